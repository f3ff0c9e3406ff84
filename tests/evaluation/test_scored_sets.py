"""Sets that say how they are scored, from pictures to numbers, against answers by hand.

The model reads its logits off the picture: the value of each pixel is that output's logit
times ten. So what it answers is known without it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import shiftbed as sb
from shiftbed import InputError
from shiftbed.cli import app
from shiftbed.data import Card, Description, write_card
from shiftbed.evaluation import Evaluation

OUTPUTS = ("n01531178", "n01614925", "n01440764", "n01443537")


def oracle(batch: np.ndarray) -> np.ndarray:
    return np.asarray(batch[:, 0, :, 0] / 10.0, np.float32)


def draw(path: Path, logits: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    row = (10 * np.asarray(logits)).astype(np.uint8)
    Image.fromarray(np.stack([row[None]] * 3, axis=-1)).save(path)


def evaluate(settings: list[str], out: Path, **how: Any) -> Evaluation:
    classes = out.parent / "classes.txt"
    classes.write_text("\n".join(OUTPUTS))
    return sb.evaluate(
        {"oracle": oracle},
        settings,
        results=out,
        outputs=4,
        size="1x4",
        quiet=True,
        classes=classes,
        **how,
    )


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SHIFTBED_DATA", str(tmp_path))
    return tmp_path / "sets"


@pytest.fixture
def odd(home: Path) -> tuple[np.ndarray, np.ndarray]:
    """Usual pictures of two of the four classes, and anomalous ones told apart from them."""
    rng = np.random.default_rng(0)
    usual, anomalous = rng.integers(0, 60, (30, 4)) / 10, rng.integers(0, 45, (12, 4)) / 10
    for number, logits in enumerate(usual):
        draw(home / "usual" / OUTPUTS[number % 2] / f"{number}.png", logits)
    for number, logits in enumerate(anomalous):
        draw(home / "odd" / OUTPUTS[2] / f"{number}.png", logits)
    write_card(home / "usual", Description(Card("usual")))
    write_card(home / "odd", Description(Card("odd", score="aupr", usual="usual")))
    return usual, anomalous


def test_anomalies_are_told_apart_over_the_usual_classes(
    odd: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    from sklearn.metrics import average_precision_score, roc_auc_score

    run = evaluate(["odd"], tmp_path / "results")
    # Naming the anomalies brings the usual pictures along.
    rows = {row["setting"]: row for row in run.table().to_pylist()}
    assert [rows[name]["metric"] for name in ("usual", "odd")] == ["top1", "aupr"]

    def surprise(logits: np.ndarray) -> np.ndarray:
        two = np.exp(logits[:, :2])  # the usual set's two classes alone
        return np.round(-(two / two.sum(1, keepdims=True)).max(1), 6)

    order = [np.array(sorted(range(len(one)), key=lambda i: str(i))) for one in odd]
    scores = np.concatenate([surprise(one[at]) for one, at in zip(odd, order, strict=True)])
    truth = np.repeat([0, 1], [30, 12])
    kept = [run.predictions("oracle", name)["confidence"].to_numpy() for name in ("usual", "odd")]
    exact, scores = scores, -np.concatenate(kept)
    np.testing.assert_allclose(np.sort(scores), np.sort(exact), atol=0.0126)  # as results keep it
    assert rows["odd"]["accuracy"] == pytest.approx(average_precision_score(truth, scores))
    assert rows["odd"]["low"] < rows["odd"]["accuracy"] < rows["odd"]["high"]
    assert rows["odd"]["n"] == 42
    out = str(tmp_path / "results")
    said = CliRunner().invoke(app, ["score", out, "--metric", "detection", "--csv"]).output
    assert f"{roc_auc_score(truth, scores):.6f}"[:6] in said
    assert "AUPR; by chance 28.6%" in said
    assert "AUPR of telling them from usual pictures" in str(run)
    assert run.predictions("oracle", "odd")["rank_true"].null_count == 12


def test_a_sample_of_anomalies_is_told_from_a_sample(
    odd: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    run = evaluate(["odd"], tmp_path / "results", limit=8)
    rows = {row["setting"]: row for row in run.table().to_pylist()}
    assert set(rows) == {"usual[limit=8]", "odd[limit=8]"}
    assert rows["odd[limit=8]"]["n"] == 16


def test_several_labels_are_scored_by_mean_average_precision(home: Path, tmp_path: Path) -> None:
    from sklearn.metrics import average_precision_score

    rng = np.random.default_rng(1)
    logits = rng.integers(0, 60, (25, 4)) / 10
    truth = rng.random((25, 4)) < 0.3
    truth[:, 3] = False  # nobody has it: there is no average precision for it
    lines = ["picture,labels"]
    for number, (values, has) in enumerate(zip(logits, truth, strict=True)):
        draw(home / "many" / f"{number}.png", values)
        labels = ";".join(name for name, there in zip(OUTPUTS, has, strict=True) if there)
        lines.append(f"{number}.png,{labels}")
    (home / "many" / "labels.csv").write_text("\n".join(lines))
    write_card(
        home / "many",
        Description(Card("many", score="map"), labels="labels.csv", classes=OUTPUTS),
    )
    run = evaluate(["many", "many+brightness.1"], tmp_path / "results")
    row = run.table().to_pylist()[0]
    expected = np.mean([average_precision_score(truth[:, c], logits[:, c]) for c in range(3)])
    assert row["metric"] == "map"
    assert row["accuracy"] == pytest.approx(expected)
    assert row["low"] < expected < row["high"]
    # Tables with and without the scores of all classes are asked together.
    photos = sb.evaluate(
        {"oracle": oracle},
        data={"plain": home / "many"},
        results=tmp_path / "results",
        outputs=4,
        size="1x4",
        quiet=True,
        classes=tmp_path / "classes.txt",
    )
    found = photos.sql("select setting, count(*) as n from predictions group by 1 order by 1")
    assert found["n"].to_pylist() == [25, 25, 25]


def test_frame_sets_are_right_if_every_frame_is(home: Path, tmp_path: Path) -> None:
    rows = ["picture,labels,frame_set,offset"]

    def frame(name: str, of: str, offset: int, labels: str, logits: list[float]) -> None:
        draw(home / "film" / f"{name}.png", logits)
        rows.append(f"{name}.png,{labels},{of},{offset}")

    # The outputs 0 and 1 are birds, 2 and 3 fish; a fish wins by the larger of its two.
    frame("a-1", "a", -1, "bird", [5, 0, 1, 1])
    frame("a0", "a", 0, "bird", [0, 5, 4, 4])
    frame("a3", "a", 3, "bird", [0, 2, 3, 0])  # wrong, three frames after the anchor
    frame("b0", "b", 0, "bird;fish", [0, 0, 6, 0])  # either of two labels is right
    frame("b9", "b", 9, "bird;fish", [6, 0, 0, 0])
    frame("c0", "c", 0, "fish", [4, 0, 3, 3])  # wrong: 4 is more than either 3
    (home / "film" / "frames.csv").write_text("\n".join(rows))
    birds = {"bird": list(OUTPUTS[:2]), "fish": list(OUTPUTS[2:])}
    for name, score in (("film.pm10", "pm10"), ("film.pm2", "pm2")):
        (home / "film").rename(home / name)
        write_card(
            home / name, Description(Card(name, score=score, members=birds), labels="frames.csv")
        )
        (home / name).rename(home / "film")
        out = tmp_path / name
        run = evaluate([name], out)
        [row] = run.table().to_pylist()
        assert row["metric"] == score
        assert row["n"] == 3
        assert row["accuracy"] == pytest.approx(1 / 3 if score == "pm10" else 2 / 3)
        assert 0 < row["low"] < row["accuracy"] < row["high"]
        shown = CliRunner().invoke(app, ["score", str(out), "--metric", "frames", "--csv"]).output
        assert '"oracle","frames","' + name + '",0.6666666666666666' in shown  # pm-0
        assert f"frame sets right on every frame within {score[2:]}" in str(run)


def test_frame_sets_are_sampled_whole(home: Path, tmp_path: Path) -> None:
    rows = ["picture,label,frame_set,offset"]
    for one in range(6):
        for offset in range(-2, 3):
            draw(home / "film" / f"{one}{offset}.png", [1, 0, 0, 0])
            rows.append(f"{one}{offset}.png,{OUTPUTS[0]},{one},{offset}")
    (home / "film" / "frames.csv").write_text("\n".join(rows))
    card = Card("film", score="pm10")
    write_card(home / "film", Description(card, labels="frames.csv", classes=OUTPUTS))
    run = evaluate(["film"], tmp_path / "results", limit=7)
    [row] = run.table().to_pylist()
    assert (row["n"], row["accuracy"]) == (2, 1.0)


@pytest.mark.parametrize(
    ("card", "sentence"),
    [
        (Card("mine", score="aupr"), "scored by aupr, which needs `usual`"),
        (Card("mine", score="map"), "scored by map, which needs a table of truth values"),
        (Card("mine", score="pm10"), "scored by pm10, which needs labels, and for each"),
        (Card("mine", score="top2"), "no score 'top2'; did you mean top1"),
        (Card("mine", usual="usal"), "no image set or suite 'usal'; did you mean usual"),
        (Card("mine", usual="usual+fog"), "should be one setting of usual"),
    ],
)
def test_what_cannot_be_scored_is_refused(
    odd: object, home: Path, tmp_path: Path, card: Card, sentence: str
) -> None:
    draw(home / "mine" / OUTPUTS[0] / "1.png", [0, 0, 0, 0])
    draw(home / "mine" / OUTPUTS[1] / "2.png", [0, 0, 0, 0])
    write_card(home / "mine", Description(card))
    with pytest.raises(InputError, match=sentence):
        evaluate(["mine"], tmp_path / "results")
    assert not (tmp_path / "results").exists()
