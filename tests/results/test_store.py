from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from shiftbed.errors import InputError
from shiftbed.results import (
    Identity,
    Manifest,
    Results,
    Store,
    answers,
    collect_garbage,
    export,
    verify,
)
from shiftbed.results.schema import CELLS, PACKED, PREDICTIONS, STORED

IDS = [f"class/picture {number}.png" for number in range(10)]


def logits(seed: int = 0, classes: int = 12) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 2, (10, classes)).astype(np.float32)


LABELS = np.arange(10) % 4


def write_cell(
    path: Path,
    model: str = "net",
    setting: str = "photos",
    *,
    seed: int = 0,
    weights: str = "w",
    parts: tuple[int, ...] = (0, 1),
    finish: bool = True,
    labelled: bool = True,
    metric: str = "top1",
    keep_logits: bool = False,
    skipped: int | None = None,
) -> Manifest:
    """A cell of ten pictures in two parts."""
    store = Store(path)
    manifest = Manifest(
        Identity(model, setting, "pictures", weights, "geometry", "space"),
        spec={"clean": "photos"},
        tags={"category": "standard"},
        metric=metric,
        class_space="full 12",
    )
    store.begin(manifest)
    store.write_pictures("pictures", IDS)
    for part in parts:
        index = np.arange(5 * part, 5 * part + 5, dtype=np.int32)
        index = index[index != skipped]
        rows = answers(index, logits(seed)[index], LABELS[index] if labelled else None)
        left_out = [(IDS[skipped], "cut short")] if skipped in range(5 * part, 5 * part + 5) else []
        kept = logits(seed)[index] if keep_logits else None
        store.write_part(manifest.key, part, rows, left_out, kept)
    if finish:
        return store.finish(manifest, 2, labelled, keep_logits, {"seconds": 1.0})
    return manifest


# What is kept of a picture's scores


@settings(max_examples=200, deadline=None)
@given(
    hnp.arrays(
        np.float32,
        st.tuples(st.integers(1, 6), st.integers(1, 9)),
        # Few values, so that ties are common.
        elements=st.sampled_from([-3.5, 0.0, 0.25, 7.0, 60.0]),
    ),
    st.data(),
)
def test_answers_are_those_of_a_stable_sort(scores: np.ndarray, data: st.DataObject) -> None:
    classes = scores.shape[1]
    labels = np.array([data.draw(st.integers(0, classes - 1)) for _ in scores])
    rows = answers(np.arange(len(scores), dtype=np.int32), scores, labels).to_pylist()
    for row, score, label in zip(rows, scores, labels, strict=True):
        order = sorted(range(classes), key=lambda c: (-score[c], c))
        assert [row[f"class{k}"] for k in range(1, 6)] == (order + [None] * 5)[:5]
        assert row["rank_true"] == order.index(label) + 1
        chances = np.exp(score.astype(float)) / np.exp(score.astype(float)).sum()
        assert row["confidence"] == pytest.approx(chances[order[0]], rel=1e-6)
        assert (row["rank_true"] == 1) == (row["class1"] == label)


def test_of_several_true_classes_the_best_one_counts() -> None:
    scores = np.array([[3, 2, 1, 0], [3, 2, 1, 0], [3, 2, 1, 0]], np.float32)
    truths = np.array([[0, 1, 1, 0], [1, 0, 0, 1], [0, 0, 0, 0]], bool)
    rows = answers(np.arange(3, dtype=np.int32), scores, truths)
    assert rows["rank_true"].to_pylist() == [2, 1, None]
    assert rows["label"].to_pylist() == [1, 0, None]


def test_without_labels_nothing_is_true() -> None:
    rows = answers(np.arange(10, dtype=np.int32), logits(), None)
    for name in ("label", "rank_true"):
        assert rows[name].null_count == 10
    assert rows["class1"].to_pylist() == logits().argmax(axis=1).tolist()


def test_huge_logits_do_not_overflow() -> None:
    rows = answers(np.array([0], np.int32), np.array([[3e38, -3e38]], np.float32), np.array([1]))
    assert rows["confidence"].to_pylist() == [1.0]


# The directory


def test_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    write_cell(tmp_path, keep_logits=True)
    results = Results(tmp_path)
    table = results.predictions("net", "photos")
    assert table.schema.names == PREDICTIONS.names
    assert table["picture"].to_pylist() == IDS
    assert table["label"].to_pylist() == LABELS.tolist()
    assert table["class1"].to_pylist() == logits().argmax(axis=1).tolist()
    kept = np.array(results.logits("net", "photos")["logits"].to_pylist())
    np.testing.assert_array_equal(kept, logits().astype(np.float16))
    [cell] = results.cells().to_pylist()
    correct = int((logits().argmax(axis=1) == LABELS).sum())
    assert cell["n"] == 10
    assert cell["correct"] == correct
    assert cell["accuracy"] == correct / 10
    assert cell["category"] == "standard"
    assert cell["complete"]


def test_incomplete_cells_count_what_is_there(tmp_path: Path) -> None:
    write_cell(tmp_path, parts=(0,), finish=False)
    [cell] = Results(tmp_path).cells().to_pylist()
    assert (cell["n"], cell["complete"]) == (5, False)
    assert cell["correct"] == int((logits()[:5].argmax(axis=1) == LABELS[:5]).sum())
    assert Store(tmp_path).missing(cell["source"], 2, keep_logits=False) == [1]
    assert Store(tmp_path).missing(cell["source"], 2, keep_logits=True) == [0, 1]


def test_skipped_pictures_are_listed_and_not_counted(tmp_path: Path) -> None:
    manifest = write_cell(tmp_path, skipped=7)
    assert manifest.skipped == ((IDS[7], "cut short"),)
    assert manifest.counts is not None
    assert (manifest.counts.pictures, manifest.counts.scored) == (10, 9)
    assert IDS[7] not in Results(tmp_path).predictions("net", "photos")["picture"].to_pylist()


def test_agreement_is_with_the_same_models_clean_answer(tmp_path: Path) -> None:
    write_cell(tmp_path, labelled=False, metric="agreement", skipped=2)
    write_cell(tmp_path, setting="photos+fog.3", labelled=False, metric="agreement", seed=3)
    clean, shifted = Results(tmp_path).cells().to_pylist()
    assert (clean["n"], clean["correct"]) == (9, None)
    same = logits().argmax(axis=1) == logits(3).argmax(axis=1)
    assert shifted["n"] == 9
    assert shifted["correct"] == int(np.delete(same, 2).sum())


def test_sql_sees_cells_and_predictions(tmp_path: Path) -> None:
    write_cell(tmp_path)
    write_cell(tmp_path, model="other", parts=(0,), finish=False, seed=1)
    results = Results(tmp_path)
    query = """
        select model, count(*) n, count(*) filter (rank_true = 1) correct, min(picture) first
        from predictions group by model order by model
    """
    expected = [
        {
            "model": model,
            "n": n,
            "correct": int((logits(seed)[:n].argmax(axis=1) == LABELS[:n]).sum()),
            "first": IDS[0],
        }
        for model, n, seed in (("net", 10, 0), ("other", 5, 1))
    ]
    assert results.sql(query).to_pylist() == expected
    joined = results.sql("select p.* from predictions p join cells using (model, setting)")
    assert joined.num_rows == 15


def test_duckdb_and_pandas_read_the_files_themselves(tmp_path: Path) -> None:
    import duckdb
    import pandas as pd

    manifest = write_cell(tmp_path, keep_logits=True)
    folder = Store(tmp_path).folder(manifest.key)
    rows = duckdb.sql(f"select avg(odds), count(*) from '{folder}/predictions.parquet'")
    assert rows.fetchall()[0][1] == 10
    first = duckdb.sql(f"select logits[1] from '{folder}/logits.parquet' limit 1").fetchall()
    assert first[0][0] == np.float16(logits()[0, 0])
    assert pd.read_parquet(folder / "predictions.parquet").columns.tolist() == PACKED.names


@pytest.mark.parametrize("name", ["it's", "we[ir]d", "a*b?", "ünï cøde", "with space"])
def test_any_folder_name_can_be_asked(tmp_path: Path, name: str) -> None:
    write_cell(tmp_path / name)
    assert Results(tmp_path / name).sql("from predictions").num_rows == 10


def test_merging_is_copying(tmp_path: Path) -> None:
    write_cell(tmp_path / "one")
    write_cell(tmp_path / "one", model="half", parts=(0,), finish=False)
    write_cell(tmp_path / "two", setting="photos+fog.3")
    write_cell(tmp_path / "two", model="half", parts=(1,), finish=False)
    shutil.copytree(tmp_path / "two", tmp_path / "one", dirs_exist_ok=True)
    merged = Results(tmp_path / "one")
    names = [(cell["model"], cell["setting"], cell["n"]) for cell in merged.cells().to_pylist()]
    assert names == [("half", "photos", 10), ("net", "photos", 10), ("net", "photos+fog.3", 10)]
    assert verify(tmp_path / "one") == []


def test_two_cells_of_one_name_are_refused_by_what_differs(tmp_path: Path) -> None:
    write_cell(tmp_path)
    other = write_cell(tmp_path, weights="another checkpoint")
    with pytest.raises(InputError, match=r"the model's weights.*another checkpoint.*--cell"):
        Results(tmp_path).cells()
    collect_garbage(tmp_path, cells=[other.key])
    assert Results(tmp_path).cells().num_rows == 1


def test_a_file_does_not_depend_on_when_it_was_joined(tmp_path: Path) -> None:
    write_cell(tmp_path / "at once")
    write_cell(tmp_path / "later", parts=(1,), finish=False)
    write_cell(tmp_path / "later", parts=(0,))
    for name in ("predictions.parquet", "manifest.json"):
        [one] = (tmp_path / "at once").rglob(name)
        [two] = (tmp_path / "later").rglob(name)
        assert one.read_bytes() == two.read_bytes()


def test_nothing_temporary_is_left(tmp_path: Path) -> None:
    write_cell(tmp_path, keep_logits=True)
    names = sorted(path.name for path in tmp_path.rglob("*") if path.is_file())
    expected = ["logits.parquet", "manifest.json", "pictures.parquet", "predictions.parquet"]
    assert names == [*expected, "timing.json"]
    assert not (tmp_path / ".tmp").exists()


def test_leftovers_of_the_dead_are_swept_and_of_the_living_kept(tmp_path: Path) -> None:
    import socket

    done = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"],
        check=True,
        capture_output=True,
        text=True,
    )
    for process in (done.stdout.strip(), os.getppid()):
        scratch = tmp_path / ".tmp" / f"{socket.gethostname()}-{process}"
        scratch.mkdir(parents=True)
        (scratch / "half").write_text("")
    assert len(Store(tmp_path).sweep()) == 1
    assert [path.name for path in (tmp_path / ".tmp").iterdir()] == [
        f"{socket.gethostname()}-{os.getppid()}"
    ]


def test_logits_beyond_half_precision_stay_finite(tmp_path: Path) -> None:
    store = Store(tmp_path)
    scores = np.array([[1e6, -1e6]], np.float32)
    store.write_part("key", 0, answers(np.array([0], np.int32), scores, None), [], scores)
    [path] = tmp_path.rglob("logits-*.parquet")
    assert np.isfinite(np.array(pq.read_table(path)["logits"].to_pylist())).all()


# Damage


def test_verify_finds_and_repairs_what_changed(tmp_path: Path) -> None:
    manifest = write_cell(tmp_path)
    write_cell(tmp_path, model="good")
    assert verify(tmp_path) == []
    file = Store(tmp_path).folder(manifest.key) / "predictions.parquet"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(bytes(content))
    [fault] = verify(tmp_path)
    assert fault.path == file
    assert "SHA-256" in fault.problem
    verify(tmp_path, repair=True)
    assert verify(tmp_path) == []
    assert [cell["model"] for cell in Results(tmp_path).cells().to_pylist()] == ["good"]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"identity": 3}', '{"identity": {"format": 2}}', "\x00"]
)
def test_a_damaged_manifest_is_one_sentence(tmp_path: Path, text: str) -> None:
    manifest = write_cell(tmp_path)
    (Store(tmp_path).folder(manifest.key) / "manifest.json").write_text(text)
    with pytest.raises(InputError, match=r"damaged|format"):
        Results(tmp_path).cells()
    assert len(verify(tmp_path)) == 1


def test_another_format_is_not_read(tmp_path: Path) -> None:
    manifest = write_cell(tmp_path)
    path = Store(tmp_path).folder(manifest.key) / "manifest.json"
    content = json.loads(path.read_text())
    content["identity"]["format"] = 99
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match="format 99"):
        Results(tmp_path).cells()


def test_a_truncated_part_is_found(tmp_path: Path) -> None:
    manifest = write_cell(tmp_path, parts=(0,), finish=False)
    part = Store(tmp_path).folder(manifest.key) / "part-00000.parquet"
    part.write_bytes(part.read_bytes()[:100])
    [fault] = verify(tmp_path)
    assert fault.path == part


def test_garbage_is_what_no_cell_uses(tmp_path: Path) -> None:
    write_cell(tmp_path)
    write_cell(tmp_path, model="old")
    Store(tmp_path).write_pictures("orphan", IDS)
    removed = collect_garbage(tmp_path, models=["old"])
    assert len(removed) == 2
    assert Results(tmp_path).cells()["model"].to_pylist() == ["net"]
    with pytest.raises(InputError, match="did you mean net"):
        collect_garbage(tmp_path, models=["nett"])


# Mistakes


def test_mistakes_are_sentences(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no results in"):
        Results.open(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is a file"):
        Results(tmp_path / "file")
    write_cell(tmp_path)
    results = Results.open(tmp_path)
    with pytest.raises(InputError, match="did you mean net"):
        results.predictions("nett", "photos")
    with pytest.raises(InputError, match="did you mean photos"):
        results.predictions("net", "photo")
    with pytest.raises(InputError, match="--keep logits"):
        results.logits("net", "photos")
    with pytest.raises(InputError, match="DuckDB cannot run"):
        results.sql("selct 1")
    with pytest.raises(InputError, match="end its name"):
        export(results.cells(), tmp_path / "cells.xls")


@pytest.mark.skipif(os.name != "posix", reason="the folder's permissions are POSIX's")
def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "cells").write_text("a file where a folder should be")
    with pytest.raises(InputError, match="cannot write results"):
        write_cell(tmp_path)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow", ".json"])
def test_exports_read_back(tmp_path: Path, suffix: str) -> None:
    import pandas as pd

    write_cell(tmp_path)
    file = export(Results(tmp_path).cells(), tmp_path / f"cells{suffix}")
    readers = {
        ".csv": pd.read_csv,
        ".parquet": pd.read_parquet,
        ".arrow": pd.read_feather,
        ".json": pd.read_json,
    }
    frame = readers[suffix](file)
    assert list(frame.columns) == CELLS.names
    assert frame["n"].tolist() == [10]


def test_a_difference_is_told_by_its_words() -> None:
    one = Identity("m", "s", "p", "w", "g", "c", {"corruption": "fog", "version": "fog/1"}, 0)
    two = dataclasses.replace(one, shift={"corruption": "fog", "version": "fog/2"}, seed=7)
    assert one.difference(two) == (
        "the shift (version fog/1 there, version fog/2 now) and the seed (0 there, 7 now)"
    )
    assert one.key != two.key
    assert isinstance(one.key, str)
    assert pa.schema(STORED).equals(STORED)
