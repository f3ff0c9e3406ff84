"""The filter against a plain loop over the pictures, and its properties."""

from __future__ import annotations

import csv
import shutil
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from heaps import COLOURS, by_mean, make_heap, models, photo, picture
from PIL import Image

from shiftbed.curate import Shortlist, anomalies, hard
from shiftbed.curate.ledger import Ledger
from shiftbed.data import open_set
from shiftbed.errors import InputError
from shiftbed.models import Geometry, load, ten_crops


@pytest.fixture(scope="module")
def heap(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_heap(tmp_path_factory.mktemp("heap"), 150)


def steps(found: Shortlist) -> dict[str, int]:
    return {step.step: step.left for step in found.funnel}


def fates(directory: Path) -> dict[str, str]:
    with closing(sqlite3.connect(directory / "candidates.sqlite")) as db:
        return dict(db.execute("select path, fate from candidates"))


def plain_loop(heap: Path, most: float) -> dict[str, tuple[float, str]]:
    """Each picture that survives, with its difficulty and what it is taken for, one by one."""
    kept = {}
    for path in sorted(heap.rglob("*.png")):
        pixels = np.asarray(Image.open(path).convert("RGB"))
        label = COLOURS.index(path.parent.name)
        means = []
        for model in models():
            crops = ten_crops(Geometry((20, 20), (24, 24), channels=3), pixels)
            logits = np.concatenate([model.logits(crop[None]) for crop in crops]).astype(float)
            p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
            if (p.argmax(1) == label).any():
                break
            means.append(p.mean(0))
        else:
            difficulty = 1 - max(p[label] for p in means)
            if difficulty >= 1 - most:
                together = np.mean(means, 0)
                together[label] = -1
                kept[str(path)] = (difficulty, COLOURS[int(together.argmax())])
    return kept


@pytest.mark.parametrize("most", [1.0, 0.05])
def test_it_keeps_what_a_plain_loop_keeps(heap: Path, tmp_path: Path, most: float) -> None:
    found = hard(heap, models(), tmp_path, max_confidence=most, per_confusion=1000)
    expected = plain_loop(heap, most)
    assert {str(entry.path): entry.predicted for entry in found.entries} == {
        path: predicted for path, (_, predicted) in expected.items()
    }
    assert 0 < len(found.entries) < 150
    for entry in found.entries:
        assert entry.difficulty == pytest.approx(expected[str(entry.path)][0], abs=1e-6)
        assert [answer.model for answer in entry.answers] == ["mean", "middle"]
    difficulties = [entry.difficulty for entry in found.entries]
    assert difficulties == sorted(difficulties, reverse=True)


def test_of_a_confusion_the_hardest_are_kept(heap: Path, tmp_path: Path) -> None:
    every = hard(heap, models(), tmp_path / "every", max_confidence=0.9, per_confusion=1000)
    few = hard(heap, models(), tmp_path / "few", max_confidence=0.9, per_confusion=2)
    groups: dict[tuple[str, str], list[str]] = {}
    for entry in every.entries:
        groups.setdefault((entry.class_name, entry.predicted), []).append(entry.id)
    expected = {one for some in groups.values() for one in some[:2]}
    assert {entry.id for entry in few.entries} == expected
    assert max(map(len, groups.values())) > 2
    assert {(c.class_name, c.predicted): (c.before, c.after) for c in few.confusions} == {
        key: (len(some), min(2, len(some))) for key, some in groups.items()
    }


def test_the_funnel_counts_every_class(heap: Path, tmp_path: Path) -> None:
    found = hard(heap, models(), tmp_path, per_confusion=2)
    assert list(steps(found)) == [
        *("candidates", "labelled", "readable", "single", "wrong", "under 15%", "at most 2")
    ]
    files = Counter(path.parent.name for path in heap.rglob("*.png"))
    assert dict(found.funnel[0].per_class) == dict(files)
    for step in found.funnel:
        assert step.left == sum(step.per_class.values())
    lefts = list(steps(found).values())
    assert lefts == sorted(lefts, reverse=True)
    assert found.funnel[-1].per_class == {
        colour: sum(entry.class_name == colour for entry in found.entries) for colour in COLOURS
    }


def test_nothing_of_the_run_changes_the_answer(heap: Path, tmp_path: Path) -> None:
    one = hard(heap, models(), tmp_path / "one", workers=1)
    two = hard(heap, models(), tmp_path / "two", workers=4)
    assert one.entries == two.entries
    parquet = [tmp_path / name / "shortlist.parquet" for name in ("one", "two")]
    assert parquet[0].read_bytes() == parquet[1].read_bytes()


def test_thresholds_are_ranked_anew_without_a_model(heap: Path, tmp_path: Path) -> None:
    seen = []

    def counted(batch: np.ndarray) -> np.ndarray:
        seen.append(len(batch))
        return by_mean(batch)

    model = load(counted, name="counted", outputs=3, size=20, resize=24, classes=COLOURS)
    hard(heap, model, tmp_path)
    shown = len(seen)
    again = hard(heap, model, tmp_path, max_confidence=0.3, per_confusion=7)
    assert len(seen) == shown > 0
    fresh = hard(heap, model, tmp_path / "fresh", max_confidence=0.3, per_confusion=7)
    assert again.entries == fresh.entries


def test_most_pictures_are_shown_once_to_one_model(tmp_path: Path) -> None:
    heap = make_heap(tmp_path / "heap", 60, wrong=0.0)
    seen: Counter[str] = Counter()

    def watched(name: str):
        def predict(batch: np.ndarray) -> np.ndarray:
            seen[name] += len(batch)
            return by_mean(batch)

        return load(predict, name=name, outputs=3, size=20, resize=24, classes=COLOURS)

    hard(heap, [watched("first"), watched("second")], tmp_path / "out")
    assert seen["first"] < 80
    assert seen["second"] < 20


def test_what_cannot_be_read_is_listed(tmp_path: Path) -> None:
    heap = make_heap(tmp_path / "heap", 10)
    (heap / "red" / "broken.png").write_bytes(b"\x89PNG but no more")
    (heap / "red" / "empty.jpg").touch()
    found = hard(heap, models(), tmp_path / "out")
    with Ledger(tmp_path / "out") as ledger:
        listed = dict(ledger.fallen("unreadable"))
    assert set(listed) == {"red/broken.png", "red/empty.jpg"}
    assert listed["red/empty.jpg"] == "an empty file"
    assert steps(found)["labelled"] - steps(found)["readable"] == 2


def test_near_duplicates_are_dropped(tmp_path: Path) -> None:
    heap, training = tmp_path / "heap", tmp_path / "known" / "red"
    for folder in ("red", "green"):
        (heap / folder).mkdir(parents=True)
    training.mkdir(parents=True)
    first = photo(1, 1)
    first.save(heap / "red" / "a.png")
    first.resize((80, 80), Image.Resampling.BICUBIC).save(heap / "red" / "b.jpg", quality=80)
    shutil.copy(heap / "red" / "a.png", heap / "red" / "c.png")
    leaked = photo(2, 1)
    leaked.save(training / "known.png")
    leaked.resize((120, 120), Image.Resampling.BICUBIC).save(heap / "red" / "d.jpg", quality=85)
    twice = photo(3, 2)
    twice.save(heap / "green" / "e.png")
    twice.save(heap / "red" / "e.png")
    photo(4, 1).save(heap / "red" / "f.png")
    found = hard(heap, models(), tmp_path / "out", against=[tmp_path / "known"])
    became = fates(tmp_path / "out")
    assert became["red/b.jpg"] == became["red/c.png"] == "duplicate"
    assert became["red/d.jpg"] == "in a reference set"
    assert became["red/e.png"] == became["green/e.png"] == "two labels"
    assert became["red/a.png"] == became["red/f.png"] == "judged"
    assert steps(found)["new"] - steps(found)["single"] == 4
    assert [entry.path.name for entry in found.entries] != []
    with Ledger(tmp_path / "out") as ledger:
        assert dict(ledger.fallen("in a reference set"))["red/d.jpg"] == "known: red/known.png"


def test_labels_come_from_tables_too(heap: Path, tmp_path: Path) -> None:
    table = tmp_path / "tags.csv"
    files = sorted(heap.rglob("*.png"))
    with table.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["path", "labels"])
        for path in files:
            rows.writerow([path, f"sunny; {path.parent.name}"])
        rows.writerow([files[0], "red;green"])
        rows.writerow([files[1], "sunny"])
    found = hard(table, models(), tmp_path / "one", classes=list(COLOURS))
    other = hard(heap, models(), tmp_path / "two")
    assert [(one.id, one.class_name, one.predicted) for one in found.entries] == [
        (one.id, one.class_name, one.predicted) for one in other.entries
    ]
    assert steps(found)["candidates"] - steps(found)["labelled"] == 2
    assert steps(found)["labelled"] == 150


def test_a_model_of_the_classes_needs_no_map_and_others_take_it(heap: Path, tmp_path: Path) -> None:
    def wide(batch: np.ndarray) -> np.ndarray:
        logits = by_mean(batch)
        return np.concatenate([logits - 1, logits], 1)

    class_map = {colour: [place, place + 3] for place, colour in enumerate(COLOURS)}
    both = [*models()[:1], load(wide, name="wide", outputs=6, size=20, resize=24)]
    found = hard(heap, both, tmp_path, class_map=class_map, max_confidence=1.0)
    assert [model.class_space.split()[0] for model in found.models] == ["full", "superclass"]
    own = hard(heap, models()[:1], tmp_path / "own", max_confidence=1.0)
    assert [entry.id for entry in found.entries] == [entry.id for entry in own.entries]


def test_anomalies_are_what_models_are_sure_of(tmp_path: Path) -> None:
    heap = make_heap(tmp_path / "heap", 120)
    (heap / "red").rename(heap / "crimson")
    (heap / "green").rename(heap / "grass")
    usual = make_heap(tmp_path / "usual", 40, wrong=0.0, seed=1)
    found = anomalies(
        heap, models(), tmp_path / "out", usual=usual, exclude=["grass"], min_confidence=0.9
    )
    assert dict(found.overlap) == {"blue": "blue", "grass": "grass"}
    assert {entry.class_name for entry in found.entries} == {"crimson"}
    for entry in found.entries:
        sure = [answer.confidence for answer in entry.answers]
        assert min(sure) >= 0.9
        assert entry.difficulty == pytest.approx(min(sure))
        assert entry.label is None
    surest = {}
    for path in (heap / "crimson").iterdir():
        pixels = np.asarray(Image.open(path).convert("RGB"))
        p = []
        for model in models():
            logits = model.logits(model.geometry.apply(pixels)[None]).astype(float)
            p.append(float(np.exp(logits).max() / np.exp(logits).sum()))
        surest[path.name] = min(p)
    assert steps(found)["over 90%"] == sum(value >= 0.9 for value in surest.values()) > 0
    assert steps(found)["unknown"] == len(surest)
    assert set(found.examples) == set(COLOURS)


def test_wordnet_ids_that_a_class_is_read_from_are_excluded(tmp_path: Path) -> None:
    heap = tmp_path / "heap"
    for number, name in enumerate(("n01440764", "goldfish", "n99999999")):
        (heap / name).mkdir(parents=True)
        picture(number, 0).save(heap / name / "1.png")
    usual = make_heap(tmp_path / "usual", 12, wrong=0.0, seed=1)
    keys = ("n01440764", "n01443537", "n01484850")
    model = load(by_mean, name="fish", outputs=3, size=20, resize=24, classes=keys)
    found = anomalies(
        heap,
        model,
        tmp_path / "out",
        usual=usual,
        class_map={colour: [place] for place, colour in enumerate(COLOURS)},
        min_confidence=0.0,
    )
    assert dict(found.overlap) == {"goldfish": "n01443537", "n01440764": "n01440764"}
    assert [entry.class_name for entry in found.entries] == ["n99999999"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"max_confidence": 1.5}, "between 0 and 1"),
        ({"crops": 7}, "crops is 7"),
        ({"per_confusion": 0}, "at least 1"),
        ({"near": 100}, "from 0 to 64"),
        ({"workers": 0}, "at least 1"),
        ({"classes": ["red", "green", "mauve"]}, "mauve"),
    ],
)
def test_mistakes_are_one_sentence(
    heap: Path, tmp_path: Path, change: dict[str, object], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        hard(heap, models(), tmp_path, **change)


def test_a_directory_holds_one_curation(heap: Path, tmp_path: Path) -> None:
    hard(heap, models(), tmp_path)
    with pytest.raises(InputError, match="other near-duplicates"):
        hard(heap, models(), tmp_path, near=3)
    with pytest.raises(InputError, match="other models"):
        hard(heap, models()[:1], tmp_path)
    with pytest.raises(InputError, match="other recipe"):
        anomalies(heap, models(), tmp_path, usual=heap)


def test_two_at_once_do_not_mix(heap: Path, tmp_path: Path) -> None:
    with Ledger(tmp_path) as ledger:
        ledger.note("a", "b")
        with pytest.raises(InputError, match="another process"):
            hard(heap, models(), tmp_path)


def test_flat_heaps_have_no_labels(tmp_path: Path) -> None:
    heap = make_heap(tmp_path / "heap", 12) / "red"
    with pytest.raises(InputError, match=r"no candidate in .* has a label"):
        hard(heap, models(), tmp_path / "out")
    usual = make_heap(tmp_path / "usual", 12, wrong=0.0, seed=1)
    found = anomalies(heap, models(), tmp_path / "other", usual=usual, min_confidence=0.0)
    assert len(found.entries) == len(open_set(heap))
