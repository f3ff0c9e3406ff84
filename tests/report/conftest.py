from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import shiftbed as sb
from shiftbed.data import ArraySet, Card
from shiftbed.report import write_report
from shiftbed.results import Results, import_results

TESTBED = Path(__file__).parents[2] / ".." / "shared" / "data" / "testbed"

#: Names that a page must show as they are.
SCRIPT = "<script>document.title = 'taken'</script>"
QUOTES = 'it\'s "quoted" & </script><img src=x onerror=alert(1)>'
LONG = "long-" + "x" * 290
RIGHT_TO_LEFT = "מודל נועז"
EMOJI = "🧪 net 👩‍🔬 $x^2$ %{y}"
HOSTILE = (SCRIPT, QUOTES, LONG, RIGHT_TO_LEFT, EMOJI)
CLASSES = ("<b>dark</b>", "mid & 'dle'", "🌞 light")

#: Brightness of the three classes' pictures.
LIGHT = (50, 120, 190)


def pictures(count: int, noise: float, seed: int, dim: float = 1.0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % 3
    light = dim * np.array(LIGHT)[labels][:, None, None, None]
    drawn = light + rng.normal(0, noise, (count, 1, 1, 3)) + rng.normal(0, 12, (count, 32, 32, 3))
    return np.clip(drawn, 0, 255).astype(np.uint8), labels


def eye(sharpness: float, at: float) -> Callable[[Any], Any]:
    """A model that tells the classes by their light, around a middle of its own."""

    def logits(batch: Any) -> Any:
        light = np.asarray(batch).reshape(len(batch), -1).mean(1)
        light = light * 255 if light.max() <= 1.01 else light
        return -sharpness * (light[:, None] - at - (np.array(LIGHT) - 120)) ** 2 / 2000

    return logits


MODELS = {
    SCRIPT: eye(1.0, 120),
    QUOTES: eye(3.0, 128),
    LONG: eye(0.5, 110),
    RIGHT_TO_LEFT: eye(1.0, 135),
    EMOJI: eye(2.0, 122),
}


def image_sets() -> list[ArraySet]:
    shown, labels = pictures(300, 25, 0)
    ids = [f"<i>{number}</i> & 'it'.png" for number in range(len(labels))]
    photos = ArraySet("photos", shown, labels, CLASSES, ids)
    dim, dim_labels = pictures(240, 30, 1, dim=0.85)
    dusk = ArraySet("dusk", dim, dim_labels, CLASSES)
    dusk.card = Card("dusk", clean="photos")
    odd = ArraySet("odd", np.random.default_rng(2).integers(0, 256, (150, 32, 32, 3), np.uint8))
    odd.card = Card("odd", score="aupr", usual="photos")
    return [photos, dusk, odd]


@dataclass
class Made:
    """A report and what it is of."""

    page: Path
    results: Results
    sets: list[ArraySet] = field(default_factory=list)


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """A small grid that was measured, with hostile names, beside a few imported models."""
    folder = tmp_path_factory.mktemp("report")
    sets = image_sets()
    wanted = ["photos", "photos+{brightness,contrast}.*", "dusk", "odd"]
    results = folder / "results"
    sb.evaluate(MODELS, wanted, sets, results=results, outputs=3, classes=list(CLASSES), quiet=True)
    rng = np.random.default_rng(3)
    rows = ["model,setting,accuracy,n,category"]
    for number, clean in enumerate(rng.uniform(60, 95, 12)):
        rows.append(f"known-{number},photos,{clean:.2f},300,standard")
        rows.append(f"known-{number},dusk,{clean - 12 + rng.normal():.2f},240,standard")
    (folder / "known.csv").write_text("\n".join(rows), encoding="utf-8")
    import_results(folder / "known.csv", results)
    page = write_report(results, folder / "small.html", data=sets, baseline=SCRIPT)
    return Made(page, Results(results), sets)


@pytest.fixture(scope="session")
def names() -> SimpleNamespace:
    """The names that are hostile, each by what it is."""
    return SimpleNamespace(
        script=SCRIPT, quotes=QUOTES, long=LONG, rtl=RIGHT_TO_LEFT, emoji=EMOJI, classes=CLASSES,
        all=HOSTILE,
    )  # fmt: skip


@pytest.fixture(scope="session")
def testbed(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """The ImageNet testbed's published grid, imported."""
    if not TESTBED.exists():
        pytest.skip("the ImageNet testbed's grid is not beside the repository")
    folder = tmp_path_factory.mktemp("testbed")
    import_results(TESTBED, folder / "results")
    return Made(write_report(folder / "results", folder / "grid.html"), Results(folder / "results"))


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api")
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("there is no chromium on this machine")
    with playwright.sync_playwright() as running:
        opened = running.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-gpu"]
        )
        yield opened
        opened.close()


class Opened:
    """A page in a browser, with all that it complained of and asked for."""

    def __init__(self, browser: Any, file: Path, fragment: str = "", **options: Any) -> None:
        self.context = browser.new_context(accept_downloads=True, **options)
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda problem: self.complaints.append(str(problem)))
        self.page.on("dialog", lambda dialog: self.complaints.append(dialog.message))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(f"{file.as_uri()}{fragment}")
        self.page.wait_for_selector("html[data-ready=yes]", timeout=60_000)

    def _said(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def download(self, button: str) -> str:
        with self.page.expect_download() as caught:
            self.page.click(button)
        return Path(caught.value.path()).read_text("utf-8")

    def clean(self, file: Path) -> None:
        """Nothing was complained of, and nothing was asked of any network."""
        assert not self.complaints
        beyond = [url for url in self.requests if not url.startswith(("data:", "blob:"))]
        assert [url.partition("#")[0] for url in beyond] == [file.as_uri()]

    def close(self) -> None:
        self.context.close()


@pytest.fixture(scope="session")
def opening() -> type[Opened]:
    return Opened


def _shared(file: Path, browser: Any) -> Iterator[Opened]:
    opened = Opened(browser, file, viewport={"width": 1280, "height": 900})
    opened.page.evaluate("drawAll()")
    yield opened
    opened.clean(file)
    opened.close()


@pytest.fixture(scope="session")
def small_page(browser: Any, small: Made) -> Iterator[Opened]:
    yield from _shared(small.page, browser)


@pytest.fixture(scope="session")
def testbed_page(browser: Any, testbed: Made) -> Iterator[Opened]:
    yield from _shared(testbed.page, browser)
