"""From votes to a set that is evaluated at once."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from heaps import COLOURS, by_mean, make_heap, models

import shiftbed as sb
from shiftbed.assets import sha256_of
from shiftbed.curate import Shortlist, anomalies, export, hard
from shiftbed.curate.votes import Vote, Votes
from shiftbed.data import open_set, read_card
from shiftbed.errors import InputError
from shiftbed.metrics import cohen_kappa
from shiftbed.models import load


@pytest.fixture
def found(tmp_path: Path) -> Shortlist:
    heap = make_heap(tmp_path / "heap", 120)
    return hard(heap, models(), tmp_path / "found", name="mine-a", max_confidence=1.0)


def accept(found: Shortlist, reviewer: str, ids: list[str]) -> None:
    others = [entry.id for entry in found.entries if entry.id not in ids]
    votes = [Vote(one, reviewer, "accept") for one in ids]
    votes += [Vote(one, reviewer, "reject", "bad quality") for one in others]
    Votes(found.directory).cast(reviewer, votes)


def test_the_filter_models_have_none_of_it_right(found: Shortlist, tmp_path: Path) -> None:
    folder = export(found.directory, tmp_path / "mine-a", rule="unreviewed", licence="CC0-1.0")
    run = sb.evaluate(models(), data=str(folder), results=tmp_path / "results", quiet=True)
    rows = run.table().to_pylist()
    assert [row["setting"] for row in rows] == ["mine-a", "mine-a"]
    assert [(row["accuracy"], row["n"]) for row in rows] == [(0.0, len(found))] * 2
    other = load(lambda batch: -by_mean(batch), name="contrary", channels=3, classes=COLOURS)
    run = sb.evaluate(other, data=str(folder), results=tmp_path / "results", quiet=True)
    assert run.table().to_pylist()[0]["accuracy"] > 0


def test_it_can_be_named_once_it_is_in_the_sets_folder(
    found: Shortlist, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHIFTBED_DATA", str(tmp_path / "data"))
    export(found.directory, rule="unreviewed")
    run = sb.evaluate(models()[0], "mine-a", results=tmp_path / "results", quiet=True)
    assert run.table().to_pylist()[0]["accuracy"] == 0.0


def test_what_is_taken_is_what_was_accepted(found: Shortlist, tmp_path: Path) -> None:
    ids = [entry.id for entry in found.entries]
    accept(found, "ann", ids[:6])
    accept(found, "ben", ids[3:9])
    Votes(found.directory).cast("cid", [Vote(ids[4], "cid", "skip")])
    every = export(found.directory, tmp_path / "all")
    either = export(found.directory, tmp_path / "any", rule="any")
    table = pq.read_table(every / "manifest.parquet").to_pylist()
    assert [row["id"] for row in table] == ids[3:6]
    assert [row["id"] for row in pq.read_table(either / "manifest.parquet").to_pylist()] == ids[:9]
    for row, entry in zip(table, found.entries[3:6], strict=True):
        assert sha256_of(every / row["picture"]) == row["sha256"] == entry.sha256
        assert row["source"] == str(entry.path)
        assert row["label"] == entry.class_name == Path(row["picture"]).parent.name
        assert [answer["model"] for answer in row["answers"]] == ["mean", "middle"]
        assert {vote["reviewer"]: vote["verdict"] for vote in row["votes"]} == {
            "ann": "accept",
            "ben": "accept",
        } | ({"cid": "skip"} if entry.id == ids[4] else {})
    images = open_set(every)
    assert len(images) == 3
    assert images.classes == found.classes
    text = (every / "README.md").read_text()
    assert "ann and ben judged" in text
    assert "| **in the set** | | **3** |" in text
    assert "CC0" not in text
    for model in found.models:
        assert model.fingerprint in text


def test_links_copies_and_changes(found: Shortlist, tmp_path: Path) -> None:
    linked = export(found.directory, tmp_path / "linked", rule="unreviewed", link=True)
    copied = export(found.directory, tmp_path / "copied", rule="unreviewed")
    first = found.entries[0]
    place = pq.read_table(linked / "manifest.parquet")["picture"][0].as_py()
    assert (linked / place).samefile(first.path)
    assert not (copied / place).samefile(first.path)
    with pytest.raises(InputError, match="is there already"):
        export(found.directory, copied, rule="unreviewed")
    shutil.copy(found.entries[1].path, tmp_path / "other.png")
    first.path.unlink()
    shutil.copy(tmp_path / "other.png", first.path)
    with pytest.raises(InputError, match="not the picture any more"):
        export(found.directory, tmp_path / "third", rule="unreviewed")
    assert not (tmp_path / "third").exists()
    assert [path.name for path in tmp_path.glob(".third*")] == []
    with pytest.raises(InputError, match=r"no picture of .* is accepted"):
        export(found.directory, tmp_path / "third")
    with pytest.raises(InputError, match="no rule"):
        export(found.directory, tmp_path / "third", rule="most")


def test_anomalies_are_told_from_usual_pictures(tmp_path: Path) -> None:
    heap = make_heap(tmp_path / "heap", 200)
    for colour in COLOURS:
        (heap / colour).rename(heap / f"odd {colour}")
    usual = make_heap(tmp_path / "usual", 60, wrong=0.0, seed=3)
    found = anomalies(
        heap, models(), tmp_path / "odd", usual=usual, name="mine-o", min_confidence=0.9999
    )
    curated = export(tmp_path / "odd", tmp_path / "mine-o", rule="unreviewed")
    every = anomalies(
        heap,
        models(),
        tmp_path / "every",
        usual=usual,
        name="every",
        min_confidence=0.0,
        per_confusion=1000,
    )
    rng = np.random.default_rng(0)
    entries = every.entries
    chosen = rng.choice(len(entries), len(found), replace=False)
    votes = [Vote(entries[place].id, "chance", "accept") for place in chosen]
    Votes(tmp_path / "every").cast("chance", votes)
    sample = export(tmp_path / "every", tmp_path / "random-o", name="random-o")
    run = sb.evaluate(
        models(), data=[str(curated), str(sample)], results=tmp_path / "results", quiet=True
    )
    aupr = {
        (row["model"], row["setting"]): row["accuracy"]
        for row in run.table().to_pylist()
        if row["metric"] == "aupr"
    }
    assert len(aupr) == 4
    for model in ("mean", "middle"):
        assert aupr[model, "mine-o"] < aupr[model, "random-o"]
        curated_auroc, sampled = (
            run.results.detection(model, name).auroc.value for name in ("mine-o", "random-o")
        )
        assert curated_auroc < sampled
    assert read_card(curated / "set.toml").card.usual == str(usual)


def test_votes_of_many_at_once_are_all_kept(tmp_path: Path) -> None:
    votes = Votes(tmp_path)

    def vote(reviewer: str) -> None:
        for number in range(20):
            Votes(tmp_path).cast(reviewer, [Vote(f"{number:04}", reviewer, "accept")])

    threads = [threading.Thread(target=vote, args=[f"r{number}"]) for number in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(votes.current()) == 100
    for _ in range(20):
        votes.undo("r1")
    assert len(votes.current("r1")) == 0
    assert votes.undo("r1") == []
    assert len(votes.current()) == 80


@pytest.mark.parametrize("seed", range(5))
def test_kappa_is_scikit_learns(seed: int) -> None:
    sklearn = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 2 + seed % 2, 60)
    second = np.where(rng.random(60) < 0.3, rng.integers(0, 2, 60), first)
    found = cohen_kappa(first.tolist(), second.tolist())
    assert found is not None
    assert found.value == pytest.approx(sklearn.cohen_kappa_score(first, second))
    assert found.low < found.value < found.high


def test_kappa_at_its_ends() -> None:
    assert cohen_kappa(["a"] * 5, ["a"] * 5) is None
    perfect = cohen_kappa(["a", "b"] * 10, ["a", "b"] * 10)
    assert perfect is not None
    assert (perfect.value, perfect.high) == (1.0, 1.0)
    assert 0.5 < perfect.low < 0.9
    with pytest.raises(InputError, match="two judgements"):
        cohen_kappa(["a"], ["a", "b"])
