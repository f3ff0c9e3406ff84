"""Scores and comparisons over measured and imported cells."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats

from shiftbed import metrics
from shiftbed.corruptions import corruption_names
from shiftbed.errors import InputError
from shiftbed.results import Identity, Manifest, Results, Store, import_results
from shiftbed.results.answers import answers
from shiftbed.studies import Grid, compare, compare_corruptions, score, worse
from shiftbed.studies.scoring import METRICS, benchmarks, corruption_errors

Measure = Callable[[str, str, Any], None]
RNG = np.random.default_rng(0)


def right(share: float, n: int = 300) -> Any:
    return RNG.uniform(size=n) < share


@pytest.fixture
def own_mnist(mnist: Results, results: Results) -> Results:
    """The same in a folder of the test's own, which `measure` adds to."""
    shutil.copytree(mnist.path, results.path)
    return results


def rows(table: Any) -> dict[tuple[str, str], dict[str, Any]]:
    return {(row["model"], row["on"]): row for row in table.to_pylist()}


def test_accuracy_has_its_clopper_pearson_interval(mnist: Results) -> None:
    found = rows(score(mnist, ["accuracy"], settings=["mnist-test"]))
    cells = {
        cell["model"]: cell for cell in mnist.cells().to_pylist() if "+" not in cell["setting"]
    }
    for model, cell in cells.items():
        row = found[model, "mnist-test"]
        expected = metrics.proportion(cell["correct"], cell["n"])
        assert (row["value"], row["low"], row["high"], row["n"]) == (
            expected.value,
            expected.low,
            expected.high,
            300,
        )


def test_mce_is_over_pictures_where_they_are_known(mnist: Results) -> None:
    names = corruption_names("mnist-c")

    def wrong(model: str, setting: str) -> Any:
        return mnist.predictions(model, setting)["rank_true"].to_numpy() != 1

    known = {name: wrong("first", f"mnist-test+{name}").mean() for name in names}
    expected = metrics.corruption_error_of_pictures(
        {name: wrong("second", f"mnist-test+{name}")[None] for name in names},
        baseline=known,
        severities=1,
    ).mean
    row = rows(score(mnist, ["mce"], baseline="first"))["second", "mnist-test+"]
    assert (row["value"], row["low"], row["high"]) == pytest.approx(
        (expected.value, expected.low, expected.high)
    )
    assert row["note"] == "15 corruptions against first"
    relative = rows(score(mnist, ["relative-mce"], baseline="first"))
    assert relative["first", "mnist-test+"]["value"] == pytest.approx(1)
    raw = rows(score(mnist, ["corruption-error"]))["second", "mnist-test+"]
    assert raw["value"] == pytest.approx(
        np.mean([wrong("second", f"mnist-test+{name}").mean() for name in names])
    )


def test_mce_without_its_baseline_or_a_corruption_is_refused(
    own_mnist: Results, measure: Measure
) -> None:
    found = rows(score(own_mnist, ["mce"]))["first", "mnist-test+"]
    assert found["value"] is None
    assert "the published AlexNet errors are of the stored ImageNet-C" in found["note"]
    measure("third", "mnist-test+fog", right(0.5))
    table = rows(score(own_mnist, ["mce"], baseline="first"))
    assert table["third", "mnist-test+"]["value"] is None
    assert "is incomplete for third on mnist-test+" in table["third", "mnist-test+"]["note"]
    assert table["second", "mnist-test+"]["value"] is not None


def test_half_a_benchmark_has_no_mce(measure: Measure, results: Results) -> None:
    for name in ("fog", "snow"):
        measure("net", f"photos+{name}.1", right(0.5))
    found = rows(score(results, ["mce"], baseline="net"))["net", "photos+"]
    assert found["note"].startswith("gaussian_noise is missing from photos+")
    raw = rows(score(results, ["corruption-error"]))["net", "photos+"]
    assert raw["note"] == "2 of 15 corruptions"


def test_errors_on_other_pictures_are_not_divided_by(measure: Measure, results: Results) -> None:
    for name in corruption_names("mnist-c"):
        measure("all", f"mnist-test+{name}", right(0.5, n=60))
        measure("some", f"mnist-test+{name}", right(0.5, n=30))
    found = rows(score(results, ["mce"], baseline="all"))
    assert found["all", "mnist-test+"]["value"] == pytest.approx(1)
    note = found["some", "mnist-test+"]["note"]
    assert "some was scored on 30 pictures of mnist-test+" in note
    assert "its baseline all on 60" in note


def test_scores_of_predictions_are_the_metrics_own(mnist: Results) -> None:
    table = mnist.predictions("first", "mnist-test")
    correct = table["rank_true"].to_numpy() == 1
    confidence = table["confidence"].to_numpy()
    expected = {
        "calibration": metrics.calibration_error(confidence, correct, "l2"),
        "ece": metrics.calibration_error(confidence, correct, "l1"),
        "aurra": metrics.aurra(confidence, correct),
        "balanced-accuracy": metrics.balanced_accuracy(
            table["class1"].to_numpy(), table["label"].to_numpy()
        ),
    }
    found = score(mnist, [*expected], models=["first"], settings=["mnist-test"]).to_pylist()
    for row in found:
        estimate = expected[row["metric"]]
        assert (row["value"], row["low"], row["high"]) == (
            estimate.value,
            estimate.low,
            estimate.high,
        )


def test_detection_names_its_usual_pictures_and_chance(mnist: Results) -> None:
    with pytest.raises(InputError, match="say which setting is usual"):
        score(mnist, ["detection"])
    table = score(mnist, ["detection"], models=["first"], settings=["*fog"], usual="mnist-test")
    notes = [row["note"] for row in table.to_pylist()]
    assert notes == ["AUPR; by chance 50.0%", "AUROC; by chance 50%", "FPR95; by chance 95%"]


def test_imported_cells_say_that_they_have_no_predictions(tmp_path: Path) -> None:
    source = tmp_path / "x.csv"
    source.write_text("model,setting,accuracy\nnet,photos,50\n")
    import_results(source, tmp_path)
    table = score(Results(tmp_path), ["accuracy", "calibration"]).to_pylist()
    assert [row["note"] for row in table] == ["imported", "imported cells have no predictions"]
    assert (table[0]["value"], table[0]["low"], table[0]["n"]) == (0.5, None, None)


def test_benchmarks_tell_stored_from_in_memory() -> None:
    settings = [f"imagenet-c.{c}.{s}" for c in ("fog", "snow") for s in range(1, 6)]
    settings += ["imagenet-val", "imagenet-val+fog.1", "imagenet-val+pgd.linf.2", "imagenet-r"]
    found = {one.name: one for one in benchmarks(settings)}
    assert set(found) == {"imagenet-c", "imagenet-val+"}
    assert found["imagenet-c"].severities == 5
    assert found["imagenet-c"].clean == "imagenet-val"
    assert set(found["imagenet-val+"].settings) == {"fog"}


def test_compare_pairs_pictures_and_corrects_for_their_number(mnist: Results) -> None:
    table = compare(mnist, "first", "second")
    assert table.num_rows == 16
    p = []
    for row in table.to_pylist():
        ours, theirs = (
            mnist.predictions(model, row["setting"])["rank_true"].to_numpy() == 1
            for model in ("first", "second")
        )
        test = metrics.mcnemar(ours, theirs)
        assert row["p"] == test.p_value
        assert (row["only_first"], row["only_second"]) == (test.only_first, test.only_second)
        assert row["difference"] == pytest.approx(ours.mean() - theirs.mean())
        assert row["low"] <= row["difference"] <= row["high"]
        p.append(test.p_value)
    np.testing.assert_array_equal(table["p_holm"].to_numpy(), metrics.holm(p))
    better = ["first" if value < 0.05 else None for value in table["p_holm"].to_pylist()]
    assert table["better"].to_pylist() == better


def test_mce_is_compared_picture_by_picture(mnist: Results) -> None:
    [row] = compare_corruptions(mnist, "second", "first").to_pylist()
    changes = []
    for cell in mnist.cells().to_pylist():
        if cell["model"] == "first" and "+" in cell["setting"]:
            ours, theirs = (
                mnist.predictions(model, cell["setting"])["rank_true"].to_numpy() != 1
                for model in ("second", "first")
            )
            changes.append((ours * 1.0 - theirs) / theirs.mean())
    per_picture = np.mean(changes, axis=0)
    test = scipy.stats.ttest_1samp(per_picture, 0)
    assert row["corruptions"] == len(changes) == 15
    assert row["mce"] == pytest.approx(1 + per_picture.mean())
    assert row["p"] == pytest.approx(test.pvalue)
    interval = test.confidence_interval(0.95)
    assert (row["low"], row["high"]) == pytest.approx((interval.low, interval.high))
    # The mCE is that of the score with the other as its baseline.
    [scored] = [
        found["value"]
        for found in score(mnist, ["mce"], models=["second"], baseline="first").to_pylist()
    ]
    assert row["mce"] == pytest.approx(scored)


def test_worse_names_benchmarks_and_other_settings_once(mnist: Results) -> None:
    def where(first: str, second: str) -> list[str]:
        found = compare(mnist, first, second), compare_corruptions(mnist, first, second)
        return worse(*found, second)

    assert where("second", "first") == ["mnist-test+", "mnist-test"]
    assert where("first", "second") == []


def test_an_unfinished_benchmark_has_no_mce(own_mnist: Results, measure: Measure) -> None:
    for model in ("first", "second"):
        measure(model, "photos+fog.1", right(0.5))
        measure(model, "photos+fog.2", right(0.4))
        measure(model, "photos+snow.1", right(0.4))
    rows = {row["on"]: row for row in compare_corruptions(own_mnist, "first", "second").to_pylist()}
    assert rows["photos+"]["mce"] is None
    assert "severities" in rows["photos+"]["note"]


def test_compare_needs_the_same_pictures(own_mnist: Results, measure: Measure) -> None:
    measure("other", "mnist-test", right(0.5, n=20))
    with pytest.raises(InputError, match="first and other on mnist-test"):
        compare(own_mnist, "first", "other")


def test_compare_without_predictions_has_no_test(testbed_results: Results) -> None:
    settings = ["imagenet-r", "objectnet"]
    table = compare(testbed_results, "resnet50_augmix", "resnet50", settings=settings)
    assert table["p"].null_count == 2
    assert table["better"].to_pylist() == ["resnet50_augmix", None]


def test_results_of_two_folders(mnist: Results, testbed_results: Results) -> None:
    again = compare(mnist, "first", "second", other=Results(mnist.path))
    assert again.equals(compare(mnist, "first", "second"))
    with pytest.raises(InputError, match="no setting that both first and resnet50 were measured"):
        compare(mnist, "first", "resnet50", other=testbed_results)


BAD: dict[str, tuple[Callable[[Results], Any], str]] = {
    "metric": (lambda r: score(r, ["mcee"]), "there is no metric 'mcee'; did you mean mce"),
    "model": (lambda r: score(r, models=["frist"]), "no model 'frist'; did you mean first?"),
    "setting": (lambda r: score(r, settings=["mnist"]), "there is no setting 'mnist'"),
    "baseline": (lambda r: score(r, baseline="alexnet"), "there is no model 'alexnet'"),
    "usual": (lambda r: score(r, ["detection"], usual="photos"), "no setting 'photos'"),
    "itself": (lambda r: compare(r, "first", "first"), "first is compared with itself"),
    "absent": (lambda r: compare(r, "first", "third"), "there is no model 'third'"),
    "pattern": (
        lambda r: compare(r, "first", "second", settings=["cifar*"]),
        "there is no setting of both first and second 'cifar*'",
    ),
    "level": (lambda r: score(r, level=95), "the confidence level is 95"),
}


@pytest.mark.parametrize(("call", "sentence"), BAD.values(), ids=BAD.keys())
def test_bad_requests_get_one_sentence(
    mnist: Results, call: Callable[[Results], Any], sentence: str
) -> None:
    with pytest.raises(InputError) as told:
        call(mnist)
    assert sentence in str(told.value)


def test_every_metric_is_named_in_the_help() -> None:
    source = Path(__file__).parents[2] / "src" / "shiftbed" / "cli" / "score.py"
    text = source.read_text()
    assert all(name in text for name in METRICS)


def test_a_mean_error_pairs_pictures_by_name_not_by_place(tmp_path: Path) -> None:
    """Two severities over the same names in another order: the interval is over pictures."""
    names = [f"{i:02}.jpg" for i in range(40)]
    rng = np.random.default_rng(0)
    right = {1: dict(zip(names, rng.random(40) < 0.7, strict=True))}
    right[2] = {name: bool(one and rng.random() < 0.8) for name, one in right[1].items()}
    store = Store(tmp_path)
    for severity, ids in ((1, names), (2, names[::-1])):
        setting, shown = f"photos+fog.{severity}", f"order{severity}"
        labels = np.zeros(40, np.int32)
        store.write_pictures(shown, ids, labels=labels)
        cell = Manifest(Identity("net", setting, shown, "w", "g", "c"), class_space="c")
        store.begin(cell)
        scores = np.array([[right[severity][name], 0.5] for name in ids], np.float32)
        rows = answers(np.arange(40, dtype=np.int32), scores, labels)
        store.write_part(cell.key, 0, rows, ())
        store.finish(cell, 1, True, False, {})
    results = Results(tmp_path)
    grid = Grid.from_cells(results.cells())
    [benchmark] = benchmarks(grid.settings)
    found = corruption_errors(
        results, grid, benchmark, "net", baseline="net", corruptions=["fog"]
    ).raw_mean
    wrong = [[not right[severity][name] for name in names] for severity in (1, 2)]
    expected = metrics.corruption_error_of_pictures(
        {"fog": np.array(wrong)}, baseline={"fog": [0.5, 0.5]}, severities=2
    ).raw_mean
    assert (found.value, found.low, found.high) == pytest.approx(
        (expected.value, expected.low, expected.high)
    )
    swapped = metrics.corruption_error_of_pictures(
        {"fog": np.array([wrong[0], wrong[1][::-1]])}, baseline={"fog": [0.5, 0.5]}, severities=2
    ).raw_mean
    assert found.low != pytest.approx(swapped.low)
