from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from shiftbed import evaluate
from shiftbed.attacks import Attack, attacked_logits
from shiftbed.data import ArraySet
from shiftbed.errors import InputError
from shiftbed.evaluation.job import prepare
from shiftbed.evaluation.report import described
from shiftbed.models import load
from shiftbed.results import Store
from shiftbed.run import COMPUTE_BATCH, execute
from shiftbed.settings import list_settings, resolve


@pytest.fixture
def images(digits) -> ArraySet:
    return ArraySet(
        "digits",
        digits.pictures[:90, ..., 0],
        digits.labels[:90],
        [str(digit) for digit in range(10)],
        [f"digit-{number}.png" for number in range(90)],
    )


def test_attacks_are_settings(images: ArraySet) -> None:
    names = [
        one.name for one in resolve("+{clean,pgd.*,fgsm.linf.8.0,pgd.linf.2.100steps}", images)
    ]
    assert names == [
        "digits",
        "digits+pgd.linf.0.5",
        "digits+pgd.linf.2",
        "digits+pgd.l2.0.1",
        "digits+pgd.l2.0.5",
        "digits+fgsm.linf.8",
    ]
    assert list_settings("pgd")[1] == "SET+pgd.linf.0.5"
    with pytest.raises(InputError, match="has no variants"):
        resolve("+pgd.linf.2@cifar-c", images)
    with pytest.raises(InputError, match="did you mean pgd"):
        resolve("+pgdd.linf.2", images)


def test_a_cell_is_what_the_attack_gives_whatever_the_threads_and_the_batches(
    tmp_path: Path, digits, images: ArraySet
) -> None:
    other = load(digits.network, name="other", size=8, channels=1)
    names = ["+{clean,pgd.linf.24.20steps.random,uniform.linf.30,shot_noise.1}"]
    for folder, workers, size in (("a", 1, 7), ("b", 3, 50)):
        plan, _ = prepare([digits.model, other], names, images, results=tmp_path / folder, seed=4)
        execute(plan, Store(tmp_path / folder), workers=workers, batch_size=size)
    files = {
        path.relative_to(tmp_path / "a"): path.read_bytes()
        for path in (tmp_path / "a").rglob("*")
        if path.is_file() and path.name != "timing.json"
    }
    for path, content in files.items():
        assert (tmp_path / "b" / path).read_bytes() == content
    run = evaluate([digits.model, other], names, images, results=tmp_path / "a", seed=4, quiet=True)
    attack = Attack("pgd", "linf", 24, 20, True)
    logits = np.concatenate(
        [
            attacked_logits(
                digits.model,
                digits.pictures[start : start + COMPUTE_BATCH][: 90 - start],
                attack,
                digits.labels[start : start + COMPUTE_BATCH][: 90 - start],
                keys=images.ids[start : start + COMPUTE_BATCH],
                seed=4,
            )
            for start in range(0, 90, COMPUTE_BATCH)
        ]
    )
    rows = run.predictions("digits", f"digits+{attack}")
    assert rows["class1"].to_pylist() == logits.argmax(1).tolist()
    accuracy = {(row["model"], row["setting"]): row["accuracy"] for row in run.table().to_pylist()}
    assert accuracy["digits", f"digits+{attack}"] < 0.7 * accuracy["digits", "digits"]
    assert str(attack) in str(run)
    manifests = {one.identity.setting: one.identity for one in run.manifests()}
    assert manifests["digits"].seed is None
    assert manifests[f"digits+{attack}"].seed == 4
    assert manifests[f"digits+{attack}"].shift == attack.described()


def test_pictures_that_nobody_labelled_are_scored_by_agreement(tmp_path: Path, digits) -> None:
    images = ArraySet("found", digits.pictures[:40, ..., 0])
    run = evaluate(digits.model, "+{clean,fgsm.linf.20}", images, results=tmp_path, quiet=True)
    row = run.table().to_pylist()[1]
    assert row["metric"] == "agreement"
    assert 0 < row["accuracy"] < 0.9


def test_refusals_come_before_any_work(tmp_path: Path, digits, images: ArraySet) -> None:
    def flat(batch: np.ndarray) -> np.ndarray:
        return batch.reshape(len(batch), -1)[:, :10].astype(float)

    with pytest.raises(InputError, match="flat cannot be attacked"):
        prepare([digits.model, flat], "+pgd.linf.2", images, results=tmp_path)
    several = ArraySet(
        "several", digits.pictures[:5, ..., 0], np.ones((5, 10), bool), list("0123456789")
    )
    with pytest.raises(InputError, match="one class each"):
        prepare(digits.model, "+pgd.linf.2", several, results=tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_dry_run_counts_attacks_apart(tmp_path: Path, digits, images: ArraySet) -> None:
    plan, _ = prepare(digits.model, "+{clean,pgd.linf.2,fog.1}", images, results=tmp_path)
    assert "corrupt 90, attack 90 times, show 270" in described(plan, 1)


def test_nothing_is_stored_of_an_attack(tmp_path: Path, images: ArraySet) -> None:
    from shiftbed.cli.make import make

    np.savez(tmp_path / "d.npz", images=np.zeros((2, 8, 8), np.uint8), labels=[0, 1])
    with pytest.raises(InputError, match="made for each model"):
        make(
            str(tmp_path / "d.npz"),
            "+pgd.linf.2",
            tmp_path / "out",
            "png",
            True,
            0,
            None,
            1,
            False,
            True,
        )
