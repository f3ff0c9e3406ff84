"""The same units on a Ray cluster: the same bytes, whatever is lost on the way."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toys import files_of, image_set, linear

from shiftbed.errors import InputError
from shiftbed.models import Model
from shiftbed.results import Results, Store, verify
from shiftbed.run import Progress, execute, execute_on_ray, make_plan
from shiftbed.settings import Setting, Shift

ray = pytest.importorskip("ray", reason="Ray is not installed (the extra ray)")
pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(sys.platform != "linux", reason="needs a second loopback address"),
]

SHIFTS = [None, Shift("gaussian_noise", 3), Shift("impulse_noise", 2)]


def grid(count: int = 1100) -> list[Setting]:
    images = image_set(count)
    return [Setting(f"toys+{one}" if one else "toys", images, one) for one in SHIFTS]


def models() -> list[Model]:
    return [linear("one"), linear("two", seed=2)]


def on_ray(path: Path, loaded: list[Model], settings: list[Setting], **options: Any) -> Results:
    plan = make_plan(loaded, settings, Store(path), keep_logits=True)
    execute_on_ray(plan, Store(path), {}, **options)
    return Results(path)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two machines' raylets on this one, a CPU each; the first has the driver."""
    from ray.cluster_utils import Cluster

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    node = {"num_cpus": 1, "object_store_memory": 200 * 2**20, "node_ip_address": "127.0.0.2"}
    cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    cluster.add_node(**node)
    # Not 127.0.0.1, which Ray takes for this machine's address on the network.
    ray.init(
        address=cluster.address,
        _node_ip_address="127.0.0.2",
        log_to_driver=False,
        logging_level="ERROR",
    )
    try:
        cluster.wait_for_nodes()
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What the local engine writes."""
    path = tmp_path_factory.mktemp("local") / "results"
    plan = make_plan(models(), grid(), Store(path), keep_logits=True)
    execute(plan, Store(path))
    return files_of(path)


def test_bytes_are_those_of_the_local_engine(
    cluster: Any, whole: dict[str, bytes], tmp_path: Path
) -> None:
    seen: list[Progress] = []
    on_ray(tmp_path, models(), grid(), watch=seen.append)
    assert files_of(tmp_path) == whole
    assert verify(tmp_path) == []
    assert sum(one.pictures for one in seen) == 2 * 3 * 1100
    assert all(one.node for one in seen)
    # What is there is not done again, and nothing is left in the cluster.
    seen.clear()
    on_ray(tmp_path, models(), grid(), watch=seen.append)
    assert seen == []


def failing(model: Model, bad: float) -> Model:
    """A model that cannot bear pictures of a certain brightness."""

    def predict(batch: np.ndarray) -> Any:
        if (batch.mean((1, 2, 3)) == bad).any():
            raise RuntimeError("too bright")
        return model.predict(batch)

    return dataclasses.replace(model, predict=predict)


def test_a_unit_that_fails_three_times_leaves_the_others_whole(
    cluster: Any, whole: dict[str, bytes], tmp_path: Path
) -> None:
    settings = grid()
    bad = settings[0].images.load(700).mean()
    one, two = models()
    with pytest.raises(InputError) as caught:
        on_ray(tmp_path, [failing(one, bad), two], settings)
    said = str(caught.value)
    assert "one failed 3 times on 512 pictures of toys, " in said
    assert "'picture-0512.png' to 'picture-1023.png'" in said
    assert "RuntimeError: too bright" in said
    cells = Results(tmp_path).cells().to_pylist()
    left = [(row["model"], row["setting"]) for row in cells if not row["complete"]]
    assert left == [("one", "toys")]
    on_ray(tmp_path, [one, two], settings)
    assert files_of(tmp_path) == whole


def test_a_model_that_cannot_be_loaded_there_is_reported(cluster: Any, tmp_path: Path) -> None:
    def missing(gpu: bool) -> Model:
        raise FileNotFoundError("weights.pt")

    plan = make_plan(models(), grid(40), Store(tmp_path))
    with pytest.raises(InputError, match=r"one failed 3 times .*weights\.pt"):
        execute_on_ray(plan, Store(tmp_path), {"one": missing})
    cells = Results(tmp_path).cells().to_pylist()
    assert {row["model"] for row in cells if row["complete"]} == {"two"}

    def other(gpu: bool) -> Model:
        return linear("one", seed=99)

    with pytest.raises(InputError, match="another one on"):
        execute_on_ray(plan, Store(tmp_path), {"one": other})


def slowly(model: Model) -> Model:
    def predict(batch: np.ndarray) -> Any:
        time.sleep(0.02)
        return model.predict(batch)

    return dataclasses.replace(model, predict=predict)


def test_a_machine_lost_in_the_middle_costs_a_retry_of_its_units(
    cluster: Any, whole: dict[str, bytes], tmp_path: Path
) -> None:
    # The last test of the module: the cluster has one machine less afterwards.
    [other] = cluster.worker_nodes
    seen: list[Progress] = []
    killed = threading.Event()

    def watch(progress: Progress) -> None:
        seen.append(progress)
        if len(seen) == 3:
            cluster.remove_node(other, allow_graceful=False)
            killed.set()

    on_ray(tmp_path, [slowly(one) for one in models()], grid(), watch=watch)
    assert killed.is_set()
    assert sum(node["Alive"] for node in ray.nodes()) == 1
    assert files_of(tmp_path) == whole
    assert verify(tmp_path) == []


@pytest.mark.parametrize("engine", ["spark", "rays"])
def test_an_unknown_engine_is_a_sentence(engine: str) -> None:
    import shiftbed

    with pytest.raises(InputError, match="there is no engine"):
        shiftbed.evaluate(linear("one"), data=image_set(4), engine=engine, quiet=True)
    with pytest.raises(InputError, match="choose the engine too"):
        shiftbed.evaluate(linear("one"), data=image_set(4), address="auto", quiet=True)


MODULE = """
import numpy as np

class Bright:
    def __call__(self, batch):
        light = batch.mean((1, 2, 3))
        return np.stack([255 - light, light, 0 * light], 1)

def bright():
    return Bright()
"""


def test_the_command_starts_a_cluster_and_stops_it(tmp_path: Path) -> None:
    images = image_set(40, classes=3).whole
    pixels = np.stack([images.load(index) for index in range(40)])
    np.savez(tmp_path / "toys.npz", images=pixels, labels=np.arange(40) % 3, classes=list("abc"))
    (tmp_path / "own.py").write_text(MODULE)
    words = [sys.executable, "-m", "shiftbed", "eval", "-m", "one=python:own:bright"]
    words += ["--size", "16", "--resize", "16", "-d", "toys.npz", "-s", "+{clean,fog.2}"]
    for engine in ("local", "ray"):
        done = subprocess.run(
            [*words, "-o", engine, "--engine", engine, "--json"],
            cwd=tmp_path,
            env={**os.environ, "RAY_USAGE_STATS_ENABLED": "0"},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr
    assert files_of(tmp_path / "ray") == files_of(tmp_path / "local")
