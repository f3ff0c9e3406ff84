"""Whatever stops an evaluation, the same command ends with the same bytes."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from killing import CELLS, PICTURES, World, files_of, kill_and_resume

import shiftbed as sb
from shiftbed.data import ArraySet
from shiftbed.errors import InputError
from shiftbed.results import Results, verify
from shiftbed.run import SLICE

posix = pytest.mark.skipif(os.name != "posix", reason="kills with POSIX signals")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A world in which the evaluation was run once and never disturbed."""
    world = World.made(tmp_path_factory.mktemp("world") / "template")
    child = world.start("whole")
    _, errors = child.communicate(timeout=120)
    assert child.returncode == 0, errors
    return world


@pytest.fixture
def world(template: World, tmp_path: Path) -> World:
    shutil.copytree(template.folder, tmp_path / "world")
    return World(tmp_path / "world")


def ended(child: subprocess.Popen[str]) -> tuple[int, str]:
    _, errors = child.communicate(timeout=120)
    return child.returncode, errors


def completed(world: World) -> None:
    """Run the same command to its end, and see that nothing differs."""
    status, errors = ended(world.start())
    assert status == 0, errors
    assert files_of(world.folder / "results") == files_of(world.folder / "whole")
    assert verify(world.folder / "results") == []


@posix
@pytest.mark.parametrize("kills", [10, pytest.param(100, marks=pytest.mark.slow)])
def test_killed_at_random_moments_nothing_is_lost_or_left(tmp_path: Path, kills: int) -> None:
    tally = kill_and_resume(World.made(tmp_path / "world"), kills, seed=kills)
    assert tally.kills == kills
    assert tally.midway >= kills // 4
    # What is in flight: a unit that the models see, and one that is being written.
    assert tally.most <= 2 * 2 * SLICE


@posix
def test_two_processes_on_one_directory_and_one_is_killed(world: World) -> None:
    draw = random.Random(3)
    for _ in range(2):
        first, second = world.start(), world.start()
        while not (world.folder / "results" / "cells").exists() and first.poll() is None:
            time.sleep(0.01)
        time.sleep(draw.uniform(0.1, 0.6))
        first.send_signal(signal.SIGKILL)
        ended(first)
        status, errors = ended(second)
        assert status == 0, errors
        completed(world)
        assert not (world.folder / "results" / ".tmp").exists()
        shutil.rmtree(world.folder / "results")


def in_own_namespace(world: World, script: str) -> subprocess.CompletedProcess[str]:
    """Run a script that may mount file systems nobody else sees."""
    own = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-eu", "-c"]
    try:
        able = subprocess.run(
            [*own, f"mount -t tmpfs -o size=1m tmpfs '{world.folder}/disk'"],
            check=False,
            capture_output=True,
            text=True,
        )
    except FileNotFoundError:
        pytest.skip("this system has no unshare")
    if able.returncode:
        pytest.skip(f"no file system can be mounted here ({able.stderr.strip()[:80]})")
    return subprocess.run(
        [*own, script],
        cwd=world.folder,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )


def quoted(words: list[str]) -> str:
    return " ".join("'" + word.replace("'", "'\\''") + "'" for word in words)


def test_a_full_disk_is_one_sentence_and_loses_nothing(world: World) -> None:
    (world.folder / "disk").mkdir()
    size = sum(map(len, files_of(world.folder / "whole").values()))
    evaluate = quoted(world.command("disk/results"))
    done = in_own_namespace(
        world,
        f"""
        for kilobytes in {size // 8192} {size // 2048}; do
            mount -t tmpfs -o size=${{kilobytes}}k tmpfs disk
            if [ -d saved ]; then cp -r saved disk/results; fi
            set +e; {evaluate}; echo "status $?"; set -e
            rm -rf saved; cp -r disk/results saved
            umount disk
        done
        """,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("status 2") == 2, done.stdout + done.stderr
    assert done.stderr.count("No space left on device") == 2, done.stderr
    assert "Traceback" not in done.stderr
    (world.folder / "saved").rename(world.folder / "results")
    assert not (world.folder / "results" / ".tmp").exists()
    assert verify(world.folder / "results") == []
    assert world.missing() < CELLS * PICTURES
    completed(world)


def test_a_folder_that_can_only_be_read_is_read(world: World) -> None:
    (world.folder / "disk").mkdir()
    first = quoted(world.command("disk/results", "+clean"))
    more = quoted(world.command("disk/results"))
    shiftbed = quoted(world.command()[:3])
    done = in_own_namespace(
        world,
        f"""
        mount -t tmpfs -o size=50m tmpfs disk
        {first}
        mount -o remount,ro disk
        set +e; {more}; echo "status $?"
        for word in ls show verify; do {shiftbed} results $word disk/results; echo "fine $?"; done
        {shiftbed} results sql 'select count(*) from predictions' disk/results; echo "fine $?"
        {first}; echo "again $?"
        set -e
        mount -o remount,rw disk
        {more}
        cp -r disk/results results
        """,
    )
    assert done.returncode == 0, done.stderr
    assert "status 2" in done.stdout
    assert "cannot write results to disk/results (Read-only file system)" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout.count("fine 0") == 4, done.stdout
    assert "again 0" in done.stdout  # there is nothing to be written
    completed(world)


@posix
def test_a_clock_that_goes_backwards_does_not_matter(world: World) -> None:
    child = world.start()
    while not list((world.folder / "results").glob("cells/*/*.parquet")):
        assert child.poll() is None
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    ended(child)
    ahead = time.time() + 400 * 24 * 3600
    for path in [*world.folder.rglob("*")]:
        os.utime(path, (ahead, ahead))
    backwards = (
        "\nnow = time.time() - 1e8\ndef back():\n    global now\n    now -= 60\n    return now"
    )
    with (world.folder / "own.py").open("a") as file:
        file.write(backwards + "\ntime.time = back\ntime.time_ns = lambda: int(back() * 1e9)\n")
    completed(world)


def faketime() -> str:
    """Return the library that gives a process another clock."""
    folders = ("/usr/lib", "/usr/local/lib", "/opt/homebrew/lib")
    found = [one for folder in folders for one in Path(folder).glob("**/libfaketimeMT.so.1")]
    if not found:
        pytest.skip("libfaketime is not on this machine")
    return str(found[0])


@posix
def test_the_systems_clock_may_jump_while_it_runs(world: World) -> None:
    clock = world.folder / "clock"
    world.environment = {
        "LD_PRELOAD": faketime(),
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",  # that one never goes back
    }
    clock.write_text("+400d")
    child = world.start()
    while not list((world.folder / "results").glob("cells/*/*.parquet")):
        assert child.poll() is None
        time.sleep(0.01)
    clock.write_text("-3000d")
    status, errors = ended(child)
    assert status == 0, errors
    record = next((world.folder / "results").glob("cells/*/timing.json")).read_text()
    assert json.loads(record)["finished"] < "2023"  # it did go back
    world.environment = {}
    completed(world)


@posix
@pytest.mark.parametrize("setup", [(1, 1), (2, 64), (1, 64), (2, 1)], ids=str)
def test_the_same_bytes_with_other_threads_and_batches(
    world: World, setup: tuple[int, int]
) -> None:
    workers, batch_size = setup
    command = world.command()
    command[command.index("--workers") + 1] = str(workers)
    world.environment = {"OMP_NUM_THREADS": str(workers), "NUMBA_NUM_THREADS": str(workers)}
    child = subprocess.run(
        [*command, "--batch-size", str(batch_size)],
        cwd=world.folder,
        env={**os.environ, **world.environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == 0, child.stderr
    assert files_of(world.folder / "results") == files_of(world.folder / "whole")


# Models that fail


def photos(count: int = SLICE + 100) -> ArraySet:
    pictures = np.random.default_rng(0).integers(0, 256, (count, 8, 8, 3), np.uint8)
    return ArraySet("photos", pictures, np.arange(count) % 4, list("abcd"))


def linear(batch: np.ndarray) -> np.ndarray:
    weights = np.random.default_rng(1).normal(0, 0.01, (8 * 8 * 3, 4))
    return batch.reshape(len(batch), -1).astype(np.float64) @ weights


#: What the 25th batch meets, and how many there were. Not in the function: that would make it
#: another model.
FAILING: list[object] = []
CALLS = [0]


def net(batch: np.ndarray) -> np.ndarray:
    CALLS[0] += 1
    if FAILING and CALLS[0] == 25:
        if isinstance(FAILING[0], BaseException):
            raise FAILING[0]
        return np.full((len(batch), 4), FAILING[0])
    return linear(batch)


def evaluated(results: Path, *failing: object) -> Results:
    FAILING[:], CALLS[:] = failing, [0]
    how = {"outputs": 4, "channels": 3, "size": 8, "quiet": True}
    sb.evaluate({"net": net}, ["+{clean,contrast.3}"], photos(), results=results, **how)
    return Results(results)


@pytest.mark.parametrize(
    ("failing", "sentence"),
    [
        (RuntimeError("CUDA error: an illegal memory access"), "RuntimeError: CUDA error"),
        (MemoryError(), "MemoryError: no reason given"),
        (np.nan, "not finite numbers for 32 of 32"),
        (-np.inf, "not finite numbers for 32 of 32"),
    ],
    ids=["raises", "no memory", "NaN", "infinite"],
)
def test_a_batch_that_fails_stops_the_run_and_the_rest_is_kept(
    tmp_path: Path, failing: object, sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence) as told:
        evaluated(tmp_path / "failed", failing)
    assert "net" in str(told.value)
    assert "what was finished is kept" in str(told.value)
    stored = Results(tmp_path / "failed").cells().to_pylist()
    assert 0 < sum(cell["n"] for cell in stored) < 2 * len(photos())
    evaluated(tmp_path / "failed")
    evaluated(tmp_path / "whole")
    assert files_of(tmp_path / "failed") == files_of(tmp_path / "whole")
