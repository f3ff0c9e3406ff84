"""Other people's tools, the real ones: what goes over is what the results say."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from shiftbed import bridges, evaluate, metrics
from shiftbed.corruptions import corrupt
from shiftbed.data import ArraySet
from shiftbed.errors import InputError
from shiftbed.evaluation import Evaluation
from shiftbed.results import Results, import_results


def by_light(batch: np.ndarray) -> np.ndarray:
    light = batch.mean((1, 2, 3))
    return np.stack([128 - light, light - 128], 1)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Evaluation:
    rng = np.random.default_rng(0)
    labels = np.arange(40) % 2
    light = np.where(rng.uniform(size=40) < 0.9, labels, 1 - labels)
    pictures = (light[:, None, None] * 120 + rng.integers(0, 100, (40, 24, 24))).astype(np.uint8)
    photos = ArraySet("photos", pictures, labels=labels, classes=["dark", "light"])
    return evaluate(
        {"mine": by_light, "other": lambda batch: -by_light(batch)},
        ["+{clean,contrast.*}"],
        photos,
        outputs=2,
        channels=1,
        baseline="other",
        results=tmp_path_factory.mktemp("results"),
        quiet=True,
    )


def test_metrics_are_those_of_the_run(run: Evaluation) -> None:
    found = bridges.as_metrics(run, "mine")
    cells = {row["setting"]: row for row in run.table().to_pylist() if row["model"] == "mine"}
    assert found["accuracy/photos"] == cells["photos"]["accuracy"]
    assert found["accuracy/photos+contrast.5.low"] == cells["photos+contrast.5"]["low"]
    [score] = [score for score in run.scores() if score.model == "mine"]
    assert score.mce is not None
    assert found["mce/photos+imagenet-c"] == score.mce.value


def test_mlflow_has_them(run: Evaluation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow = pytest.importorskip("mlflow")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    bridges.log_to_mlflow(run)
    logged = {one.info.run_name: one.data for one in mlflow.search_runs(output_format="list")}
    assert set(logged) == {"mine", "other"}
    expected = bridges.as_metrics(run, "mine")
    assert logged["mine"].metrics == {k.replace("+", " "): v for k, v in expected.items()}


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_weights_and_biases_has_them(
    run: Evaluation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_SILENT", "true")
    bridges.log_to_wandb(run, mode="offline", dir=str(tmp_path), project="test")
    assert len(list(tmp_path.rglob("*.wandb"))) == 2


def test_imagenet_x_comes_back_as_it_went(run: Evaluation, tmp_path: Path) -> None:
    file = bridges.write_imagenet_x(run.results, "mine", "photos", tmp_path / "mine.csv")
    rows = run.predictions("mine", "photos")
    truth = zip(rows["picture"].to_pylist(), rows["label"].to_pylist(), strict=True)
    labels = ["file_name,label", *(f"{picture},{label}" for picture, label in truth)]
    (tmp_path / "labels.csv").write_text("\n".join(labels))
    import_results(file, tmp_path / "back", labels=tmp_path / "labels.csv", setting="photos")
    [cell] = Results(tmp_path / "back").cells().to_pylist()
    assert cell["correct"] == (rows["rank_true"].to_numpy() == 1).sum()
    assert cell["n"] == 40


def test_a_data_set_is_corrupted_by_place(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    rng = np.random.default_rng(0)
    pictures = [rng.integers(0, 256, (20, 30, 3), np.uint8) for _ in range(6)]
    clean = datasets.Dataset.from_dict(
        {"image": [Image.fromarray(picture) for picture in pictures], "label": list(range(6))},
        features=datasets.Features({"image": datasets.Image(), "label": datasets.Value("int64")}),
    )
    noisy = bridges.corrupted(clean, "gaussian_noise", 3)
    assert noisy["label"][:] == list(range(6))
    for index, (picture, row) in enumerate(zip(pictures, noisy, strict=True)):
        expected = corrupt(picture, "gaussian_noise", 3, key=str(index))
        np.testing.assert_array_equal(np.asarray(row["image"]), expected)
    with pytest.raises(InputError, match="no column 'picture'"):
        bridges.corrupted(clean, "fog", 1, column="picture")


def test_answers_are_a_data_set(run: Evaluation) -> None:
    pytest.importorskip("datasets")
    found = bridges.as_dataset(run.predictions("mine", "photos"))
    assert len(found) == 40
    assert found["label"][:] == run.predictions("mine", "photos")["label"].to_pylist()


def test_the_metric_takes_logits_probabilities_and_batches() -> None:
    rng = np.random.default_rng(0)
    logits, labels = rng.normal(size=(300, 5)) * 2, rng.integers(0, 5, 300)
    likely = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    correct = likely.argmax(1) == labels
    metric = bridges.Metric()
    for part in np.array_split(np.arange(300), 7):
        metric.add_batch(predictions=logits[part], references=labels[part])
    found = metric.compute()
    assert found == bridges.Metric().compute(predictions=logits, references=labels)
    answers = SimpleNamespace(predictions=likely, label_ids=labels)
    assert bridges.Metric()(answers) == pytest.approx(found)
    assert found["accuracy"] == correct.mean()
    expected = metrics.calibration_error(likely.max(1), correct)
    assert found["calibration_error"] == pytest.approx(expected.value)
    with pytest.raises(InputError, match="nothing to compute"):
        metric.compute()
    with pytest.raises(InputError, match="one row of scores"):
        metric.add_batch(predictions=logits, references=labels[:3])
    json.dumps(found)
