from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from shiftbed.corruptions import corruption_names
from shiftbed.results import Identity, Manifest, Results, Store, answers
from shiftbed.results.imported import import_results
from shiftbed.studies import Grid

TESTBED = Path(__file__).parents[2] / ".." / "shared" / "data" / "testbed"

Measure = Callable[[str, str, npt.ArrayLike], None]


@pytest.fixture(scope="session")
def testbed_results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """The ImageNet testbed's published grid, imported."""
    if not TESTBED.exists():
        pytest.skip("the ImageNet testbed's grid is not beside the repository")
    folder = tmp_path_factory.mktemp("testbed")
    import_results(TESTBED, folder)
    return Results(folder)


@pytest.fixture(scope="session")
def testbed(testbed_results: Results) -> Grid:
    return Grid.from_cells(testbed_results.cells())


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return Results(tmp_path / "results")


@pytest.fixture
def measure(results: Results) -> Measure:
    return measuring(results)


def measuring(results: Results) -> Measure:
    """Measure a model on a setting: right or wrong on each of some pictures of two classes."""

    def write(model: str, setting: str, right: npt.ArrayLike) -> None:
        right = np.asarray(right, bool)
        labels = np.arange(len(right)) % 2
        sure = np.linspace(0.5, 3, len(right))
        logits = np.zeros((len(right), 2), np.float32)
        logits[np.arange(len(right)), np.where(right, labels, 1 - labels)] = sure
        store = Store(results.path)
        manifest = Manifest(
            Identity(model, setting, f"pictures-{len(right)}", "weights", "geometry", "space"),
            spec={"clean": setting.split("+")[0]},
            tags={},
            metric="top1",
            class_space="full 2",
        )
        store.begin(manifest)
        store.write_pictures(
            f"pictures-{len(right)}", [f"{number}.png" for number in range(len(right))]
        )
        index = np.arange(len(right), dtype=np.int32)
        store.write_part(manifest.key, 0, answers(index, logits, labels), [], None)
        store.finish(manifest, 1, True, False, {"seconds": 1.0})

    return write


@pytest.fixture(scope="session")
def mnist(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Two models on MNIST-C's fifteen corruptions, in memory, at one severity each."""
    rng = np.random.default_rng(0)
    results = Results(tmp_path_factory.mktemp("mnist") / "results")
    for model, share in (("first", 0.8), ("second", 0.6)):
        for setting, more in (
            ("mnist-test", 0.15),
            *((f"mnist-test+{name}", 0.0) for name in corruption_names("mnist-c")),
        ):
            measuring(results)(model, setting, rng.uniform(size=300) < share + more)
    return results
