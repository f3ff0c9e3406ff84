"""Imports: what the published files say, and what is said to files that say nothing."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shiftbed.data.imagenet import imagenet_classes
from shiftbed.errors import InputError
from shiftbed.results.imported import Format, detect_format, import_results, read_imported
from shiftbed.results.schema import CELLS

SHARED = Path(__file__).parents[2] / ".." / "shared" / "data"
needs_shared = pytest.mark.skipif(
    not SHARED.exists(), reason="the published grid is not beside the repository"
)


def written(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def columns(table: pa.Table, *names: str) -> list[tuple[object, ...]]:
    return list(zip(*(table[name].to_pylist() for name in names), strict=True))


@pytest.fixture(scope="module")
def testbed(tmp_path_factory: pytest.TempPathFactory) -> pa.Table:
    if not SHARED.exists():
        pytest.skip("the published grid is not beside the repository")
    folder = tmp_path_factory.mktemp("results")
    imported = import_results(SHARED / "testbed", folder)
    assert (imported.models, imported.settings, imported.notes) == (338, 213, ())
    return read_imported(folder)


def test_testbed_has_every_number_of_the_file(testbed: pa.Table) -> None:
    pandas = pytest.importorskip("pandas")
    published = pandas.read_csv(SHARED / "testbed" / "top1.csv", index_col=0)
    assert testbed.schema == CELLS
    assert testbed.num_rows == published.notna().sum().sum()
    grid = testbed.to_pandas().pivot(index="model", columns="setting", values="accuracy")
    for theirs, ours in {
        "imagenet-c.fog.3_on-disk": "imagenet-c.fog.3",
        "imagenet-c.fog.3_in-memory": "imagenet-val+fog.3",
        "pgd.linf.eps2": "imagenet-val+pgd.linf.2",
        "imagenet-vid-robust_pm0": "imagenet-vid-robust.anchors",
        "val-on-imagenet-r-classes": "imagenet-val.imagenet-r-classes",
        "objectnet-1.0-beta": "objectnet",
    }.items():
        # The file has 32-bit floats; ours are the counts that they stand for.
        np.testing.assert_allclose(
            grid[ours].reindex(published.index), published[theirs] / 100, atol=1e-7
        )


def test_stored_and_in_memory_corruptions_stay_apart(testbed: pa.Table) -> None:
    settings = set(testbed["setting"].to_pylist())
    assert {f"imagenet-c.{c}.{s}" for c in ("fog", "glass_blur") for s in range(1, 6)} <= settings
    assert "imagenet-val+fog.3" in settings
    assert "imagenet-val+glass_blur.3" not in settings  # the grid has it from disk alone
    assert not any(word in name for name in settings for word in ("on-disk", "in-memory", "eps"))


def test_n_is_what_the_accuracies_themselves_tell(testbed: pa.Table) -> None:
    """The smallest n of which all accuracies of a setting are whole counts."""
    cells = testbed.to_pandas()
    assert cells["n"].notna().all()
    for setting, group in cells.groupby("setting"):
        candidates = np.arange(100, 60_000)
        for accuracy in group["accuracy"]:
            counts = accuracy * candidates
            candidates = candidates[np.abs(counts - counts.round()) < 1e-6]
        assert candidates[0] == group["n"].iloc[0], setting
        np.testing.assert_allclose(group["correct"] / group["n"], group["accuracy"], rtol=1e-12)


def test_testbed_categories(testbed: pa.Table) -> None:
    models = dict(columns(testbed, "model", "category"))
    assert models["resnet50"] == "standard"
    assert models["resnet50_linf_eps4_robust"] == "lp-adversarial"
    assert set(testbed["origin"].to_pylist()) == {"imported"}
    assert all(testbed["complete"].to_pylist())


@needs_shared
def test_timm_names_repeat_and_counts_hold_commas(tmp_path: Path) -> None:
    for name in ("results-imagenet.csv", "results-imagenetv2-matched-frequency.csv"):
        assert import_results(SHARED / "timm" / name, tmp_path).cells == 1556
    cells = read_imported(tmp_path)
    assert cells.num_rows == 2 * 1556
    rows = {(row["model"], row["setting"]): row for row in cells.to_pylist()}
    assert len(rows) == 2 * 1556
    giant = rows["timm:eva_giant_patch14_560.m30m_ft_in22k_in1k@560", "imagenet-val"]
    assert (giant["correct"], giant["n"], giant["top5"]) == (44_895, 50_000, 0.9899)
    small = "timm:resnet18.a1_in1k@"
    sizes = {model for model, _ in rows if model.startswith(small)}
    assert sizes == {small + "224", small + "288"}
    v2 = [row for (_, s), row in rows.items() if s == "imagenet-v2-matched-frequency"]
    assert {row["n"] for row in v2} == {10_000}


def test_percent_and_fractions_mean_the_same(tmp_path: Path) -> None:
    percent = "model,setting,accuracy,n\na,photos,81.5%,200\nb,photos,0.5,200\n"
    fraction = "model,setting,accuracy,n\na,photos,0.815,200\nb,photos,0.005,200\n"
    for name, text in (("percent", percent), ("fraction", fraction)):
        import_results(written(tmp_path, f"{name}.csv", text), tmp_path / name)
        cells = read_imported(tmp_path / name)
        assert columns(cells, "model", "correct", "n") == [("a", 163, 200), ("b", 1, 200)]


def test_a_percent_sign_is_believed_however_small_the_number(tmp_path: Path) -> None:
    text = "model,setting,accuracy,top5\na,imagenet-a,0.8%,0.5%\n"
    import_results(written(tmp_path, "x.csv", text), tmp_path)
    assert columns(read_imported(tmp_path), "accuracy", "top5") == [(0.008, 0.005)]


def test_cells_without_n_and_with_what_else_is_known(tmp_path: Path) -> None:
    text = "model,setting,accuracy,n,category,top5\na,s,50,,standard,90\nb,s,40,10,,\n"
    import_results(written(tmp_path, "x.csv", "\ufeff" + text), tmp_path)
    assert columns(read_imported(tmp_path), "n", "correct", "category", "top5") == [
        (None, None, "standard", 0.9),
        (10, 4, None, None),
    ]


def test_predictions_with_labels_from_a_file_or_from_folders(tmp_path: Path) -> None:
    rows = ["file_name,predicted_class,predicted_probability"]
    truth = ["file_name,label"]
    for index in range(30):
        rows.append(f"val_{index}.JPEG,{index % 3},0.5")
        truth.append(f"val_{index}.JPEG,{index % 2}")
    source = written(tmp_path, "net.csv", "\n".join(rows))
    labels = written(tmp_path, "labels.csv", "\n".join(truth))
    import_results(source, tmp_path, labels=labels)
    (cell,) = read_imported(tmp_path).to_pylist()
    assert (cell["model"], cell["setting"], cell["n"], cell["correct"]) == (
        "net",
        "imagenet-val",
        30,
        sum(index % 3 == index % 2 for index in range(30)),
    )

    fish = imagenet_classes()[0]
    text = f"file_name,predicted_class\n{fish}/a.JPEG,0\n{fish}/b.JPEG,{fish}\n{fish}/c.JPEG,5\n"
    import_results(written(tmp_path, "net.csv", text), tmp_path, model="m", setting="imagenet-a")
    (cell,) = read_imported(tmp_path).to_pylist()  # it replaced the first
    assert (cell["model"], cell["setting"], cell["n"], cell["correct"]) == ("m", "imagenet-a", 3, 2)


def test_missing_predictions_make_the_cell_incomplete(tmp_path: Path) -> None:
    source = written(tmp_path, "net.csv", "file_name,predicted_class\na,1\n")
    labels = written(tmp_path, "labels.csv", "file_name,label\na,1\nb,1\n")
    (note,) = import_results(source, tmp_path, labels=labels).notes
    assert note.startswith("1 of the 2 labelled pictures")
    assert read_imported(tmp_path)["complete"].to_pylist() == [False]


def test_a_rounded_grid_leaves_n_open(tmp_path: Path) -> None:
    source = written(tmp_path, "grid.csv", "model,val,own-set\na,76.13051,50\nb,70.5,\n")
    notes = import_results(source, tmp_path).notes
    assert len(notes) == 2
    assert "no category" in notes[0]
    assert "imagenet-val are not counts out of 50,000" in notes[1]
    assert columns(read_imported(tmp_path), "model", "setting", "n", "accuracy") == [
        ("a", "imagenet-val", None, 0.7613051),
        ("b", "imagenet-val", None, 0.705),
        ("a", "own-set", None, 0.5),
    ]


def test_same_bytes_every_time(tmp_path: Path) -> None:
    source = written(tmp_path, "x.csv", "model,setting,accuracy\na,s,50\n")
    one = import_results(source, tmp_path / "1").path
    two = import_results(source, tmp_path / "2").path
    assert one.read_bytes() == two.read_bytes()
    assert [path.name for path in one.parent.iterdir()] == ["x.parquet"]


HEADER = "model,setting,accuracy,n\n"
BAD: dict[str, tuple[str, str | bytes, str]] = {
    "no such columns": ("x.csv", "a,b\n1,2\n", "none of the known formats"),
    "empty file": ("x.csv", "", "is empty"),
    "header alone": ("x.csv", HEADER, "no results below its header"),
    "not text": ("x.csv", HEADER.encode() + b"\xff\xfe\x00,1", "not text in UTF-8"),
    "ragged": ("x.csv", HEADER + "a,s,50\n", "line 2: 3 fields, but the header has 4"),
    "open quote": ("x.csv", HEADER + 'a,"s,50,10\n', "not a well-formed CSV"),
    "a column twice": ("x.csv", "model,setting,accuracy,n,n\n", "the column 'n' twice"),
    "unknown column": ("x.csv", "model,setting,accuracy,m\na,s,5,1\n", "there is no column"),
    "over 100": ("x.csv", HEADER + "a,s,101,10\n", "line 2: accuracy is 101; it must lie"),
    "negative": ("x.csv", HEADER + "a,s,-1,10\n", "must lie between 0 and 100"),
    "nan": ("x.csv", HEADER + "a,s,nan,10\n", "accuracy is nan; it must lie"),
    "words": ("x.csv", HEADER + "a,s,high,10\n", "accuracy is 'high', not a number"),
    "half a picture": ("x.csv", HEADER + "a,s,50,2.5\n", "a whole number of pictures"),
    "no pictures": ("x.csv", HEADER + "a,s,50,0\n", "a whole number of pictures"),
    "no name": ("x.csv", HEADER + ",s,50,10\n", "line 2: model is empty"),
    "escape codes": ("x.csv", HEADER + "a\x1b[31m,s,50,10\n", "unprintable characters"),
    "escape codes in a category": (
        "x.csv",
        "model,setting,accuracy,category\na,s,50,\x1b[31m\n",
        "category is no name: it has unprintable",
    ),
    "endless name": ("x.csv", HEADER + "a" * 301 + ",s,50,10\n", "it has 301 characters"),
    "twice": ("x.csv", HEADER + "a,s,50,10\na,s,60,10\n", "2 results of 'a' on 's'; keep one"),
    "grid twice": ("x.csv", "model,val\na,1\na,2\n", "model 'a' is there twice"),
    "grid over 100": ("x.csv", "model,val\na,176.1\n", "val is 176.1; it must lie"),
    "timm, nameless": ("x.csv", "model,img_size,top1\na,224,80\n", "say it with --setting"),
    "no labels": ("x.csv", "file_name,predicted_class\na.jpg,1\n", "--labels"),
    "probability": (
        "x.csv",
        "file_name,predicted_class,predicted_probability\nn01440764/a,1,1.5\n",
        "predicted_probability is 1.5; it must lie between 0 and 1",
    ),
    "picture twice": (
        "x.csv",
        "file_name,predicted_class\nn01440764/a,1\nn01440764/a,1\n",
        "picture 'n01440764/a' is there twice",
    ),
}


@pytest.mark.parametrize(("name", "text", "sentence"), BAD.values(), ids=BAD.keys())
def test_bad_files_get_one_sentence(
    tmp_path: Path, name: str, text: str | bytes, sentence: str
) -> None:
    with pytest.raises(InputError) as told:
        import_results(written(tmp_path, name, text), tmp_path)
    assert sentence in str(told.value)
    assert "\n" not in str(told.value)
    assert not (tmp_path / "imported").exists()


def test_other_mistakes_get_one_sentence(tmp_path: Path) -> None:
    good = written(tmp_path, "x.csv", HEADER + "a,s,50,10\n")
    labels = written(tmp_path, "labels.csv", "file_name,label\nother.jpg,3\n")
    predictions = written(tmp_path, "p.csv", "file_name,predicted_class\na.jpg,1\n")
    for call, sentence in {
        lambda: import_results(tmp_path / "absent.csv", tmp_path): "No such file",
        lambda: import_results(tmp_path, tmp_path): "a folder without a top1.csv",
        lambda: import_results(
            good, tmp_path, format=cast("Format", "cels")
        ): "did you mean cells?",
        lambda: import_results(
            good, tmp_path, format="timm", setting="s"
        ): "has no column 'img_size'",
        lambda: import_results(good, tmp_path, labels=labels): "leave --labels out",
        lambda: import_results(good, tmp_path, name="../"): "cannot name an import",
        lambda: import_results(good, good): "cannot write",
        lambda: import_results(predictions, tmp_path, labels=labels): "no label for 'a.jpg'",
        lambda: import_results(predictions, tmp_path, labels=good): "has no column 'file_name'",
    }.items():
        with pytest.raises(InputError, match=r"\w") as told:
            call()
        assert sentence in str(told.value)


def test_a_foreign_file_among_the_imports(tmp_path: Path) -> None:
    (tmp_path / "imported").mkdir()
    written(tmp_path / "imported", "x.parquet", "not parquet")
    with pytest.raises(InputError, match="not an import of this version"):
        read_imported(tmp_path)


def test_sizes_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = written(tmp_path, "x.csv", HEADER + "a,s,50,10\nb,s,50,10\n")
    monkeypatch.setattr("shiftbed.results.imported._MAX_ROWS", 1)
    with pytest.raises(InputError, match="more than 1 rows"):
        import_results(source, tmp_path)
    monkeypatch.setattr("shiftbed.results.imported._MAX_BYTES", 10)
    with pytest.raises(InputError, match="reads at most"):
        import_results(source, tmp_path)


@needs_shared
@pytest.mark.parametrize(
    ("path", "format"),
    [
        ("testbed", "testbed"),
        ("testbed/top1.csv", "testbed"),
        ("timm/results-imagenet.csv", "timm"),
    ],
)
def test_formats_are_detected(path: str, format: str) -> None:
    assert detect_format(SHARED / path) == format


HEADERS = [
    "model,setting,accuracy,n",
    "model,img_size,top1,top5",
    "file_name,predicted_class,predicted_probability",
    "model,val,imagenet-a,imagenet-c.fog.3_on-disk",
]
FIELDS = st.one_of(
    st.sampled_from(["a", "", "50", "0.5", "1,000", "nan", "inf", "1e400", '"', "n01440764/x"]),
    st.text(max_size=8),
)


@given(
    st.sampled_from(HEADERS),
    st.lists(st.lists(FIELDS, min_size=3, max_size=5).map(",".join), max_size=4),
    st.binary(max_size=6),
)
@settings(deadline=None, max_examples=150)
def test_whatever_is_in_a_file_it_is_read_or_told(
    tmp_path_factory: pytest.TempPathFactory, header: str, lines: list[str], end: bytes
) -> None:
    folder = tmp_path_factory.mktemp("fuzz")
    text = "\n".join([header, *lines]).encode("utf-8", "surrogatepass") + end
    source = written(folder, "results-imagenet.csv", text)
    sentence = None
    try:
        imported = import_results(source, folder)
    except InputError as told:
        sentence = str(told)
    if sentence is not None:
        assert "\n" not in sentence
        return
    cells = read_imported(folder)
    assert cells.num_rows == imported.cells > 0
    assert all(0 <= accuracy <= 1 for accuracy in cells["accuracy"].to_pylist())
