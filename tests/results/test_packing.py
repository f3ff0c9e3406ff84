from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shiftbed import metrics
from shiftbed.errors import InputError
from shiftbed.results import Identity, Manifest, Results, Store, answers
from shiftbed.results.packing import pack, runners_up, unpack
from shiftbed.results.runners_up import decoded, encoded


def predicted(
    count: int, classes: int, seed: int = 0, gain: float = 5.0
) -> tuple[np.ndarray, np.ndarray]:
    """Logits and labels of a model that confuses the same few classes over and over."""
    rng = np.random.default_rng(seed)
    alike = rng.normal(0, 1, (classes, 16)).astype(np.float32)
    labels = rng.integers(0, classes, count)
    seen = gain * alike[labels] + rng.normal(0, 4, (count, 16))
    return (0.3 * seen @ alike.T).astype(np.float32), labels


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_what_is_packed_is_read_again(data: st.DataObject) -> None:
    count = data.draw(st.integers(0, 40), "count")
    classes = data.draw(st.sampled_from([1, 2, 3, 4, 5, 6, 30, 5000, 70_000]), "classes")
    rng = np.random.default_rng(data.draw(st.integers(0, 99), "seed"))
    # Few values, so that ties are common, and few favourites, so that lists are used.
    scores = rng.integers(-9, 3, (count, classes)).astype(np.float32)
    scores[:, :12] += rng.integers(0, 9, min(classes, 12))
    kind = data.draw(st.sampled_from(["one label", "some labels", "several", "none"]), "kind")
    labels, kept = None, None
    if kind == "several":
        labels = rng.random((count, classes)) < 0.3
    elif kind != "none":
        labels = rng.integers(-1 if kind == "some labels" else 0, min(classes, 9), count)
        kept = labels.astype(np.int32)
    rows = answers(np.arange(count, dtype=np.int32), scores, labels)
    packed = pack(rows, kept)
    assert ("label" in packed.column_names) == (kept is None)
    again = unpack(packed, kept)
    assert again.drop(["confidence"]).equals(rows.drop(["confidence"]))
    before, after = (one["confidence"].to_numpy() for one in (rows, again))
    sure = (before > 2e-4) & (before < 1 - 1e-7)
    apart = [np.log(one[sure] / (1 - one[sure])) for one in (before, after)]
    assert (np.abs(apart[1] - apart[0]) < 0.05 + 1e-6).all()
    assert (np.abs(after - before) < 0.0126).all()


def test_a_skipped_picture_moves_nothing() -> None:
    scores, labels = predicted(50, 30)
    there = np.delete(np.arange(50, dtype=np.int32), [7, 31])
    rows = answers(there, scores[there], labels[there])
    again = unpack(pack(rows, labels.astype(np.int32)), labels.astype(np.int32))
    assert again.drop(["confidence"]).equals(rows.drop(["confidence"]))


def test_metrics_hardly_move() -> None:
    scores, labels = predicted(20_000, 100)
    rows = answers(np.arange(20_000, dtype=np.int32), scores, labels)
    kept = labels.astype(np.int32)
    right = rows["rank_true"].to_numpy() == 1
    assert 0.3 < right.mean() < 0.9

    def figures(table: pa.Table) -> list[float]:
        sure = table["confidence"].to_numpy()
        found = metrics.detection(usual=-sure[right], anomalous=-sure[~right])
        errors = [metrics.calibration_error(sure, right, norm).value for norm in ("l1", "l2")]
        return [*errors, metrics.aurra(sure, right).value, found.aupr.value, found.auroc.value]

    # A tenth of the width of their own 95% intervals, at these 20,000 pictures.
    assert figures(unpack(pack(rows, kept), kept)) == pytest.approx(figures(rows), abs=1e-3)


def test_no_two_confident_pictures_tie() -> None:
    # Ties would take the chance out of a bin's accuracy, and so a part of the error.
    rows = answers(np.arange(5000, dtype=np.int32), np.tile([[3.0, 0.0]], (5000, 1)), None)
    again = unpack(pack(rows, None), None)["confidence"].to_numpy()
    assert len(np.unique(again)) == 5000
    assert again.mean() == pytest.approx(rows["confidence"][0].as_py(), abs=1e-4)


def test_a_prediction_takes_less_than_six_bytes(tmp_path: Path) -> None:
    count = 20_000
    scores, labels = predicted(count, 1000)
    store = Store(tmp_path)
    store.write_pictures("pictures", [str(n) for n in range(count)], None, labels)
    manifest = Manifest(Identity("net", "photos", "pictures", "w", "g", "c"))
    rows = answers(np.arange(count, dtype=np.int32), scores, labels)
    store.write_part(manifest.key, 0, rows, [])
    [part] = tmp_path.glob("cells/*/part-00000.parquet")
    plain = part.stat().st_size
    store.finish(manifest, 1, True, False, {})
    [whole] = tmp_path.glob("cells/*/predictions.parquet")
    assert whole.stat().st_size < 6 * count
    assert whole.stat().st_size < 0.6 * plain


def test_frequent_neighbours_cost_little() -> None:
    rng = np.random.default_rng(0)
    groups = np.arange(1000).reshape(200, 5)
    top = np.array([rng.permutation(groups[one]) for one in rng.integers(0, 200, 20_000)], np.int32)
    nothing = np.full(len(top), -1, np.int32)
    stream = encoded(top, nothing, nothing)
    # Four classes in any order are log2(24) bits.
    assert len(stream) < 1.25 * len(top) * np.log2(24) / 8
    assert decoded(stream, top[:, 0], nothing, nothing).tolist() == top[:, 1:].tolist()


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60), st.integers(0, 2**31 - 1))
def test_any_bytes_are_read_or_refused(stream: bytes, first: int) -> None:
    label = np.array([first, -1, 3], np.int32)
    rank = np.array([3, 0, 9], np.int32)
    try:
        classes = decoded(stream, np.array([4, first, 4], np.int32), label, rank)
    except ValueError as problem:
        assert "damaged" in str(problem)  # noqa: PT017 - or it is read
    else:
        assert classes.shape == (3, stream[0] - 1)


# In a directory


def write(path: Path, labelled: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """A complete cell in two parts, and another of which one part is there."""
    scores, labels = predicted(40, 30)
    store = Store(path)
    store.write_pictures("pictures", [f"{n}.png" for n in range(40)], None, labels)
    for name, parts in (("whole", 2), ("begun", 1)):
        manifest = Manifest(Identity(name, "photos", "pictures", "w", "g", "c"))
        store.begin(manifest)
        for part in range(parts):
            index = np.arange(20 * part, 20 * part + 20, dtype=np.int32)
            judged = labels[index] if labelled else None
            store.write_part(manifest.key, part, answers(index, scores[index], judged), [])
        if parts == 2:
            store.finish(manifest, 2, labelled, False, {})
    return scores, labels


@pytest.mark.parametrize("labelled", [True, False])
def test_queries_see_what_was_answered(tmp_path: Path, labelled: bool) -> None:
    scores, labels = write(tmp_path, labelled)
    order = np.argsort(-scores, axis=1, kind="stable")
    for model, count in (("whole", 40), ("begun", 20)):
        for rows in (
            Results(tmp_path).predictions(model, "photos"),
            Results(tmp_path).sql(
                f"from predictions where model = '{model}' order by picture[:-5]::int"
            ),
        ):
            for place in range(5):
                assert rows[f"class{place + 1}"].to_pylist() == order[:count, place].tolist()
            assert (
                rows["label"].to_pylist()
                == (labels[:count].tolist() if labelled else 40 * [None])[:count]
            )
            expected = answers(np.arange(count, dtype=np.int32), scores[:count], None)
            np.testing.assert_allclose(
                rows["confidence"].to_numpy(), expected["confidence"].to_numpy(), atol=0.0126
            )
    tables = [
        Results(tmp_path).predictions("whole", "photos").drop(["model", "setting"]),
        Results(tmp_path).sql(
            "select * exclude (model, setting) from predictions where model = 'whole' "
            "order by picture[:-5]::int"
        ),
    ]
    first, second = (table.drop(["confidence"]).to_pydict() for table in tables)
    assert first == second
    sure = [table["confidence"].to_numpy() for table in tables]
    np.testing.assert_allclose(sure[0], sure[1], rtol=1e-12)


def test_a_cell_judged_by_other_labels_is_refused(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write_pictures("pictures", ["a", "b"], None, np.array([0, 1]))
    manifest = Manifest(Identity("net", "photos", "pictures", "w", "g", "c"))
    rows = answers(np.arange(2, dtype=np.int32), np.eye(2, dtype=np.float32), np.array([1, 0]))
    store.write_part(manifest.key, 0, rows, [])
    with pytest.raises(InputError, match="other labels"):
        store.finish(manifest, 1, True, False, {})


def test_a_damaged_code_is_a_sentence(tmp_path: Path) -> None:
    write(tmp_path)
    [path] = tmp_path.glob("cells/*/predictions.parquet")
    table = pq.read_table(path)
    others = pa.array([b"\x00" * 9, *[None] * 39], pa.binary())
    pq.write_table(table.set_column(table.column_names.index("others"), "others", others), path)
    results = Results(tmp_path)
    with pytest.raises(InputError, match="is damaged"):
        results.predictions("whole", "photos")
    with pytest.raises(InputError, match=r"DuckDB cannot run.*is damaged"):
        results.sql("select max(class3) from predictions")
    assert results.sql("select max(class1) from predictions").num_rows == 1
    assert runners_up(table, None).shape == (40, 4)
