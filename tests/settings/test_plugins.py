"""Another package's model source, image set and suite, found by name without an edit here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PLUGIN = """
import numpy as np
from shiftbed.data import ArraySet, Card, image_set
from shiftbed.models import Geometry, Model, source
from shiftbed.settings import Suite, add_suite


@image_set(Card("stripes", about="two pictures", variant="cifar-c"))
def stripes():
    pictures = np.zeros((2, 32, 32, 3), np.uint8)
    pictures[1, ::2] = 255
    return ArraySet("stripes", pictures, labels=[0, 1], classes=["plain", "striped"])


@source("threshold", "threshold:LEVEL")
def load(level, options):
    def predict(batch):
        bright = batch.mean((1, 2, 3)) - float(level)
        return np.stack([-bright, bright], axis=1)

    return Model(f"above {level}", "", Geometry(), 2, predict, level, ("plain", "striped"))


shifts = ("clean", "fog.*")
add_suite(Suite("stripes-c", "fog on stripes", shifts, "cifar-c", "accuracy", "stripes"))
"""

CHECK = """
from shiftbed import data, models, settings
import numpy as np
assert "stripes" in {info.name for info in data.list_sets()}
found = settings.resolve("stripes-c")
assert [setting.name for setting in found][:2] == ["stripes", "stripes+fog.1"], found
assert settings.list_settings("stripes+fog.1") == ["stripes+fog.1"]
model = models.load("threshold:60")
pictures = found[0].images
batch = np.stack([model.geometry.apply(pictures.load(index)) for index in range(2)])
space = found[0].class_space(model)
assert space.scores(model.logits(batch)).argmax(1).tolist() == [0, 1]
print("found")
"""


def test_a_plugin_adds_all_three(tmp_path: Path) -> None:
    (tmp_path / "stripes_plugin.py").write_text(PLUGIN)
    info = tmp_path / "stripes_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: stripes-plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[shiftbed.plugins]\nstripes = stripes_plugin\n")
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{CHECK}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "found\n", done.stderr


def test_the_rooms_are_cheap_to_import() -> None:
    heavy = "torch torchvision timm onnxruntime sklearn transformers pandas numba cv2 PIL duckdb"
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, shiftbed.settings, shiftbed.models, shiftbed.data\n"
            f"print([name for name in {heavy.split()!r} if name in sys.modules])",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"


def test_a_source_imports_only_what_it_needs() -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, numpy as np\n"
            "from shiftbed import models\n"
            "models.load(lambda batch: np.zeros((len(batch), 3)))\n"
            "models.expand(['onnx:a.onnx', 'sklearn:a.skops', 'timm:resnet18'])\n"
            "print([n for n in ('torch', 'timm', 'onnxruntime', 'sklearn') if n in sys.modules])",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"


def test_a_broken_plugin_is_named(tmp_path: Path) -> None:
    (tmp_path / "broken_plugin.py").write_text("1 / 0\n")
    info = tmp_path / "broken_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[shiftbed.plugins]\nbroken = broken_plugin\n")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from shiftbed import InputError, data\n"
        "try:\n    data.list_sets()\n"
        "except InputError as problem:\n    print(problem)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "the plugin broken (broken_plugin) cannot be imported (ZeroDivisionError" in done.stdout
