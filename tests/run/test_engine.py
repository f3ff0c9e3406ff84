from __future__ import annotations

import dataclasses
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from toys import Broken, files_of, image_set, linear

from shiftbed.corruptions import corrupt
from shiftbed.data import ArraySet
from shiftbed.errors import InputError
from shiftbed.models import Geometry, Model
from shiftbed.results import Results, Store, collect_garbage, verify
from shiftbed.run import SLICE, check_models, estimate, execute, limited, make_plan, shown
from shiftbed.run.threads import ahead
from shiftbed.settings import Setting, Shift

SHIFTS = (Shift("gaussian_noise", 3), Shift("defocus_blur", 1))


def grid(images: Broken, shifts: tuple[Shift, ...] = SHIFTS) -> list[Setting]:
    metric = "agreement" if images.labels is None else "top1"
    clean = Setting(images.name, images, metric=metric)
    shifted = [Setting(f"{images.name}+{one}", images, one, metric) for one in shifts]
    return [clean, *shifted]


def run(
    path: Path,
    models: list[Model],
    settings: list[Setting],
    *,
    seed: int = 0,
    keep_logits: bool = False,
    workers: int = 2,
    batch_size: int = 32,
) -> Results:
    plan = make_plan(models, settings, Store(path), seed=seed, keep_logits=keep_logits)
    execute(plan, Store(path), workers=workers, batch_size=batch_size)
    return Results(path)


def test_a_cell_is_what_a_plain_loop_gives(tmp_path: Path, toys: Broken) -> None:
    model = linear("net")
    results = run(tmp_path, [model], grid(toys), seed=7)
    for setting in grid(toys):
        rows = results.predictions("net", setting.name)
        for index in (0, 1, 511, 512, 1099):
            picture = toys.whole.load(index)
            if setting.shift is not None:
                name, severity = setting.shift.corruption, setting.shift.severity
                picture = corrupt(picture, name, severity, seed=7, key=toys.ids[index])
            logits = model.logits(picture[None])[0]
            row = rows.slice(index, 1).to_pylist()[0]
            assert row["picture"] == toys.ids[index]
            assert row["class1"] == logits.argmax()
            chances = np.exp(logits.astype(float)) / np.exp(logits.astype(float)).sum()
            assert row["confidence"] == pytest.approx(chances.max(), abs=0.0126)


def test_bytes_depend_on_neither_threads_nor_batches_nor_other_models(
    tmp_path: Path, toys: Broken
) -> None:
    models = [linear("one"), linear("two", seed=2)]
    run(tmp_path / "a", models, grid(toys), workers=1, batch_size=7, keep_logits=True)
    run(tmp_path / "b", models, grid(toys), workers=4, batch_size=256, keep_logits=True)
    for model in reversed(models):  # one at a time, and one setting at a time
        for setting in reversed(grid(toys)):
            run(tmp_path / "c", [model], [setting], keep_logits=True)
    expected = files_of(tmp_path / "a")
    assert len(expected) == 2 * 3 * 3 + 1
    assert files_of(tmp_path / "b") == expected
    assert files_of(tmp_path / "c") == expected


def test_models_see_batches_that_no_option_changes(tmp_path: Path) -> None:
    seen: dict[int, list[int]] = {}
    images = image_set(100)
    images.unreadable = {3: "cut short", 40: "cut short"}
    for batch_size in (1, 10, 500):
        model = linear("net")
        sizes = seen.setdefault(batch_size, [])

        def predict(
            batch: np.ndarray, model: Model = model, sizes: list[int] = sizes
        ) -> np.ndarray:
            sizes.append(len(batch))
            return np.asarray(model.predict(batch))

        counted = dataclasses.replace(model, predict=predict)
        run(tmp_path / str(batch_size), [counted], grid(images)[:1], batch_size=batch_size)
    assert seen[1] == seen[10] == seen[500] == [32, 32, 32, 2]


def test_pictures_are_decoded_once_whatever_the_grid(tmp_path: Path, toys: Broken) -> None:
    small = linear("small", side=8)
    run(tmp_path, [linear("one"), linear("two", seed=2), small], grid(toys))
    assert toys.loads == len(toys)


def test_shifts_are_drawn_once_for_all_models(tmp_path: Path, monkeypatch) -> None:
    import shiftbed.corruptions as room

    calls: list[str] = []

    def counted(picture, name, *args, **options):
        calls.append(name)
        return corrupt(picture, name, *args, **options)

    monkeypatch.setattr(room, "corrupt", counted)
    models = [linear(f"model {number}", seed=number) for number in range(5)]
    run(tmp_path, models, grid(image_set(40)))
    assert len(calls) == 40 * len(SHIFTS)


def test_pictures_wait_for_models_in_a_short_queue() -> None:
    started: list[int] = []
    lock = threading.Lock()

    def task(number: int) -> int:
        with lock:
            started.append(number)
        return number

    with ThreadPoolExecutor(2) as pool:
        tasks = (lambda number=number: task(number) for number in range(100))
        for number in ahead(pool, tasks, 6):
            assert len(started) <= number + 8
    assert sorted(started) == list(range(100))


def test_unreadable_pictures_are_listed_and_the_run_goes_on(tmp_path: Path) -> None:
    images = image_set(SLICE + 60)
    images.unreadable = {5: "cut short", SLICE + 1: "is text"}
    results = run(tmp_path, [linear("net")], grid(images))
    for manifest in results.manifests():
        assert manifest.skipped == (
            (images.ids[5], "cut short"),
            (images.ids[SLICE + 1], "is text"),
        )
        assert manifest.counts is not None
        assert manifest.counts.scored == len(images) - 2
    assert set(results.cells()["n"].to_pylist()) == {len(images) - 2}


def test_a_slice_without_one_readable_picture(tmp_path: Path) -> None:
    images = image_set(SLICE + 3)
    images.unreadable = {SLICE + number: "gone" for number in range(3)}
    results = run(tmp_path, [linear("net")], grid(images))
    assert set(results.cells()["n"].to_pylist()) == {SLICE}
    images.unreadable = dict.fromkeys(range(len(images)), "gone")
    plan = make_plan([linear("net")], grid(images), Store(tmp_path / "none"))
    with pytest.raises(InputError, match=r"none of the 515 pictures .*picture-0000.*gone"):
        check_models(plan)


def test_without_labels_there_is_agreement(tmp_path: Path) -> None:
    images = image_set(60, labelled=False)
    results = run(tmp_path, [linear("net")], grid(images))
    clean, *shifted = sorted(results.cells().to_pylist(), key=lambda cell: cell["setting"])
    assert clean["accuracy"] is None
    first = results.predictions("net", images.name)["class1"].to_numpy()
    for cell in shifted:
        again = results.predictions("net", cell["setting"])["class1"].to_numpy()
        assert cell["correct"] == (first == again).sum()


# Resuming


def test_what_is_there_is_not_done_again(tmp_path: Path, toys: Broken) -> None:
    run(tmp_path, [linear("one")], grid(toys)[:2])
    toys.loads = 0
    plan = make_plan([linear("one"), linear("two", seed=2)], grid(toys), Store(tmp_path))
    assert plan.total == 6 * len(toys)
    assert plan.predictions == 4 * len(toys)
    execute(plan, Store(tmp_path))
    assert toys.loads == len(toys)
    again = make_plan([linear("one"), linear("two", seed=2)], grid(toys), Store(tmp_path))
    assert (again.predictions, again.decoded, again.shifted) == (0, 0, 0)
    execute(again, Store(tmp_path))
    assert toys.loads == len(toys)


def test_logits_can_be_kept_afterwards(tmp_path: Path, toys: Broken) -> None:
    run(tmp_path / "later", [linear("net")], grid(toys))
    run(tmp_path / "later", [linear("net")], grid(toys), keep_logits=True)
    run(tmp_path / "at once", [linear("net")], grid(toys), keep_logits=True)
    assert files_of(tmp_path / "later") == files_of(tmp_path / "at once")
    assert verify(tmp_path / "later") == []


def test_a_failure_keeps_what_was_finished(tmp_path: Path, toys: Broken) -> None:
    good = linear("net")
    calls = 0

    def fails(batch: np.ndarray) -> np.ndarray:
        nonlocal calls
        calls += 1
        if calls > 60:
            raise MemoryError("out of memory on the device\nand a long trace")
        return np.asarray(good.predict(batch))

    with pytest.raises(InputError, match=r"model net failed .*MemoryError: out of memory"):
        run(tmp_path / "broken", [dataclasses.replace(good, predict=fails)], grid(toys))
    left = make_plan([good], grid(toys), Store(tmp_path / "broken")).predictions
    assert 0 < left < 3 * len(toys)
    run(tmp_path / "broken", [good], grid(toys))
    run(tmp_path / "whole", [good], grid(toys))
    assert files_of(tmp_path / "broken") == files_of(tmp_path / "whole")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_logits_that_are_no_numbers_are_refused(tmp_path: Path, value: float) -> None:
    model = dataclasses.replace(
        linear("net"), predict=lambda batch: np.where(np.eye(len(batch), 7) > 0, value, 0.0)
    )
    with pytest.raises(InputError, match="not finite numbers for 7 of 32"):
        run(tmp_path, [model], grid(image_set(40)))


def test_pictures_of_many_sizes_need_one(tmp_path: Path) -> None:
    class Sizes(Broken):
        def load(self, index: int) -> np.ndarray:
            return np.zeros((8 + index, 8, 3), np.uint8)

    model = dataclasses.replace(linear("net"), geometry=Geometry())
    with pytest.raises(InputError, match=r"differ in size .*SPEC,size=224"):
        run(tmp_path, [model], grid(Sizes(image_set(4).whole))[:1])


CHILD = """
import sys, time
sys.path.insert(0, sys.argv[2])
import dataclasses
from pathlib import Path
from toys import image_set, linear
from shiftbed.results import Store
from shiftbed.run import execute, make_plan
from shiftbed.settings import Setting, Shift

def slowly(model):
    def predict(batch):
        time.sleep(0.004)
        return model.predict(batch)
    return dataclasses.replace(model, predict=predict)

images = image_set(1100)
shifts = [None, Shift("gaussian_noise", 3), Shift("impulse_noise", 2)]
settings = [Setting(f"toys+{one}" if one else "toys", images, one) for one in shifts]
models = [slowly(linear("one")), slowly(linear("two", seed=2))]
store = Store(Path(sys.argv[1]))
plan = make_plan(models, settings, store, keep_logits=True)
print("ready", flush=True)
execute(plan, store, workers=2)
"""


def start(results: Path) -> subprocess.Popen[str]:
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(results), str(Path(__file__).parent)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    return child


def ended(child: subprocess.Popen[str]) -> int:
    child.communicate(timeout=60)
    return child.returncode


def unfinished(results: Path) -> int:
    """How many predictions of the child's grid are still to be made."""
    images = image_set(1100)
    shifts = [None, Shift("gaussian_noise", 3), Shift("impulse_noise", 2)]
    settings = [Setting(f"toys+{one}" if one else "toys", images, one) for one in shifts]
    models = [linear("one"), linear("two", seed=2)]
    return make_plan(models, settings, Store(results), keep_logits=True).predictions


@pytest.mark.skipif(os.name != "posix", reason="kills with POSIX signals")
def test_killed_at_random_moments_and_resumed_gives_the_same_bytes(tmp_path: Path) -> None:
    whole = start(tmp_path / "whole")
    begun = time.monotonic()
    assert ended(whole) == 0
    duration = time.monotonic() - begun
    expected = files_of(tmp_path / "whole")
    draw = random.Random(20)
    left = [6600]
    for _ in range(5):
        child = start(tmp_path / "killed")
        time.sleep(draw.uniform(0.05, 0.45) * duration)
        child.send_signal(signal.SIGKILL)
        if ended(child) == 0:
            break
        left.append(unfinished(tmp_path / "killed"))
    assert ended(start(tmp_path / "killed")) == 0
    assert files_of(tmp_path / "killed") == expected
    assert left == sorted(left, reverse=True)
    assert not (tmp_path / "killed" / ".tmp").exists()
    assert verify(tmp_path / "killed") == []


def test_killed_between_the_last_part_and_the_record(tmp_path: Path, toys: Broken) -> None:
    run(tmp_path / "whole", [linear("net")], grid(toys))
    shutil.copytree(tmp_path / "whole", tmp_path / "killed")
    begun = make_plan([linear("net")], grid(toys), Store(tmp_path / "killed")).cells[0].manifest
    record = tmp_path / "killed" / "cells" / begun.key / "manifest.json"
    record.write_text(begun.to_json())
    plan = make_plan([linear("net")], grid(toys), Store(tmp_path / "killed"))
    assert plan.predictions == 0
    execute(plan, Store(tmp_path / "killed"))
    assert files_of(tmp_path / "killed") == files_of(tmp_path / "whole")


def test_killed_between_the_record_and_the_removal_of_the_parts(
    tmp_path: Path, toys: Broken
) -> None:
    plan = make_plan([linear("net")], grid(toys), Store(tmp_path / "whole"), keep_logits=True)
    execute(plan, Store(tmp_path / "whole"))
    shutil.copytree(tmp_path / "whole", tmp_path / "killed")
    cell = tmp_path / "killed" / "cells" / plan.cells[0].manifest.key
    for kind, whole in (("part", "predictions"), ("logits", "logits")):
        shutil.copy(cell / f"{whole}.parquet", cell / f"{kind}-00001.parquet")
    again = make_plan([linear("net")], grid(toys), Store(tmp_path / "killed"), keep_logits=True)
    assert again.predictions == 0
    execute(again, Store(tmp_path / "killed"))
    assert files_of(tmp_path / "killed") == files_of(tmp_path / "whole")


def test_two_runs_at_once_on_one_directory(tmp_path: Path) -> None:
    children = [start(tmp_path / "shared"), start(tmp_path / "shared")]
    assert [ended(child) for child in children] == [0, 0]
    assert ended(start(tmp_path / "alone")) == 0
    assert files_of(tmp_path / "shared") == files_of(tmp_path / "alone")


# Never mixed


def test_changed_inputs_are_refused_by_name(tmp_path: Path, toys: Broken) -> None:
    run(tmp_path, [linear("net")], grid(toys), seed=1)
    before = files_of(tmp_path)
    with pytest.raises(InputError, match=r"net on toys, and it differs in the model's weights"):
        run(tmp_path, [linear("net", seed=9)], grid(toys), seed=1)
    with pytest.raises(InputError, match=r"differs in the seed \(1 there, 2 now\).*gc"):
        run(tmp_path, [linear("net")], grid(toys), seed=2)
    with pytest.raises(InputError, match=r"differs in the pictures or their labels"):
        run(tmp_path, [linear("net")], grid(image_set(1000)), seed=1)
    assert files_of(tmp_path) == before
    # A shift without randomness does not depend on the seed.
    run(tmp_path, [linear("net")], [grid(toys)[0], grid(toys)[2]], seed=2)
    # The way out that the sentence names.
    collect_garbage(tmp_path, models=["net"])
    run(tmp_path, [linear("net", seed=9)], grid(toys), seed=2)


def test_two_models_of_one_name_are_refused(tmp_path: Path, toys: Broken) -> None:
    with pytest.raises(InputError, match=r"two models are called net; .*name=other"):
        make_plan([linear("net"), linear("net", seed=2)], grid(toys), Store(tmp_path))


# Samples


def test_a_limit_is_a_balanced_sample_that_says_so(tmp_path: Path) -> None:
    images = image_set(700)
    settings = limited(grid(images), 70, seed=0)
    assert [one.name for one in settings] == [
        "toys[limit=70]",
        "toys[limit=70]+gaussian_noise.3",
        "toys[limit=70]+defocus_blur.1",
    ]
    sample = settings[0].images
    assert sample is settings[1].images
    assert np.bincount(sample.labels).tolist() == [10] * 7
    assert sample.load(3).tolist() == images.load(images.ids.index(sample.ids[3])).tolist()
    other = limited(grid(images), 70, seed=1)[0].images
    assert set(other.ids) != set(sample.ids)
    assert other.fingerprint() != sample.fingerprint()
    larger = limited(grid(images), 140, seed=0)[0].images
    assert set(sample.ids) < set(larger.ids)
    assert limited(grid(images), 700, seed=0)[0].images is images
    results = run(tmp_path, [linear("net")], settings)
    assert set(results.cells()["n"].to_pylist()) == {70}
    # The whole set is another setting: both may be in one directory.
    run(tmp_path, [linear("net")], grid(images))
    assert results.cells().num_rows == 6


def test_a_sample_of_uneven_classes_takes_turns() -> None:
    labels = np.array([0] * 90 + [1] * 6 + [2] * 4)
    images = ArraySet("uneven", np.zeros((100, 8, 8), np.uint8), labels, ["a", "b", "c"])
    setting = limited([Setting("uneven", images)], 30, seed=0)[0]
    assert np.bincount(setting.images.labels).tolist() == [20, 6, 4]
    with pytest.raises(InputError, match="at least one"):
        limited([Setting("uneven", images)], 0, seed=0)


# What a person is told


def test_the_estimate_counts_what_is_missing(tmp_path: Path, toys: Broken) -> None:
    plan = make_plan([linear("net")], grid(toys), Store(tmp_path))
    assert (plan.decoded, plan.shifted, plan.predictions) == (1100, 2200, 3300)
    cost = estimate(plan, workers=2)
    assert 0 < cost.seconds < 60
    assert cost.seconds >= max(cost.pictures / 2, cost.models)


def test_progress_counts_to_the_end(tmp_path: Path, toys: Broken) -> None:
    plan = make_plan([linear("net")], grid(toys), Store(tmp_path))
    seen = []
    with shown(plan, quiet=True) as watch:
        execute(
            plan, Store(tmp_path), watch=lambda progress: (seen.append(progress), watch(progress))
        )
    assert sum(progress.pictures for progress in seen) == plan.predictions
    right = {cell["setting"]: cell["correct"] for cell in Results(tmp_path).cells().to_pylist()}
    for name, correct in right.items():
        assert sum(p.correct or 0 for p in seen if p.cell.setting.name == name) == correct


@pytest.mark.parametrize(("workers", "batch_size"), [(-1, 32), (2, 0)])
def test_nonsense_is_refused(tmp_path: Path, workers: int, batch_size: int) -> None:
    plan = make_plan([linear("net")], grid(image_set(5)), Store(tmp_path))
    with pytest.raises(InputError, match="at least 1"):
        execute(plan, Store(tmp_path), workers=workers, batch_size=batch_size)
