"""The review page as a person uses it: real Chromium, a real server, the keyboard."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from heaps import make_heap, models
from playwright.sync_api import Browser, Page, expect, sync_playwright

from shiftbed.curate import Shortlist, hard
from shiftbed.curate.votes import Votes

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")

#: Under load a page takes its time.
PATIENCE = 30_000
#: Set to a folder, screenshots are kept there.
SHOTS = os.environ.get("SHIFTBED_SCREENSHOTS")


@dataclass
class Server:
    """The review's command in a process of its own, on one port through its restarts."""

    directory: Path
    port: int
    process: subprocess.Popen[str] | None = None

    def start(self) -> dict[str, str]:
        """Start it, and return each reviewer's link."""
        words = [sys.executable, "-m", "shiftbed", "curate", "review", str(self.directory)]
        words += ["-r", "ann", "-r", "ben", "--port", str(self.port)]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        links = {}
        for line in self.process.stdout:
            if line.startswith("Each link"):
                break
            reviewer, _, link = line.strip().partition(": ")
            links[reviewer] = link
        assert set(links) == {"ann", "ben"}
        return links

    def kill(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.communicate()
            self.process = None


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    heap = make_heap(tmp_path / "heap", 80)
    hard(heap, models(), tmp_path / "found", name="colours", max_confidence=1.0)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    served = Server(tmp_path / "found", port)
    yield served
    served.kill()


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Open a page in a browser of its own, as another person would."""
    contexts = []
    problems: list[str] = []

    def opened(link: str, scheme: str = "light", **how: int) -> Page:
        viewport = {"width": how.get("width", 1280), "height": how.get("height", 800)}
        context = browser.new_context(color_scheme=scheme, viewport=viewport)
        contexts.append(context)
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.on("pageerror", lambda problem: problems.append(str(problem)))
        page.on(
            "console", lambda said: problems.append(said.text) if "Policy" in said.text else None
        )
        page.goto(link)
        ready(page)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert problems == []


expect.set_options(timeout=PATIENCE)


def ready(page: Page) -> None:
    expect(page.locator("#overall")).to_contain_text("judged")


def shown(page: Page) -> str:
    """The id of the picture that is shown large, once it is there."""
    expect(page.locator("#picture")).not_to_have_js_property("naturalWidth", 0)
    source = page.locator("#picture").get_attribute("src") or ""
    return source.rpartition("/")[2]


def press(page: Page, key: str, judged: int) -> None:
    """Press a key, and wait for so many judged pictures."""
    page.keyboard.press(key)
    expect(page.locator("#overall")).to_have_text(re.compile(rf"^{judged} of "))


def kept(server: Server) -> dict[tuple[str, str], tuple[str, str]]:
    votes = Votes(server.directory).current()
    return {(vote.picture, vote.reviewer): (vote.verdict, vote.reason) for vote in votes}


def test_a_review_by_keyboard(server: Server, visit: Callable[..., Page]) -> None:
    links = server.start()
    page = visit(links["ann"])
    assert page.url == f"http://127.0.0.1:{server.port}/"

    first = shown(page)
    press(page, "a", 1)
    second = shown(page)
    assert second != first
    press(page, "2", 2)
    third = shown(page)
    press(page, "s", 3)
    assert kept(server) == {
        (first, "ann"): ("accept", ""),
        (second, "ann"): ("reject", "wrong label"),
        (third, "ann"): ("skip", ""),
    }

    press(page, "u", 2)
    assert shown(page) == third
    assert (third, "ann") not in kept(server)
    page.keyboard.press("j")
    page.keyboard.press("k")
    assert shown(page) == third

    page.reload()
    ready(page)
    expect(page.locator("#overall")).to_have_text(re.compile(r"^2 of \d+ judged, 1 accepted$"))
    assert shown(page) == third

    server.kill()
    page.keyboard.press("a")
    expect(page.locator("#trouble")).to_contain_text("nothing was saved")
    assert len(kept(server)) == 2
    links = server.start()
    page.keyboard.press("a")
    expect(page.locator("#trouble")).to_contain_text("Open the new link")
    page = visit(links["ann"])
    expect(page.locator("#overall")).to_have_text(re.compile(r"^2 of "))
    assert shown(page) == third
    press(page, "1", 3)

    other = visit(links["ben"])
    expect(other.locator("#overall")).to_have_text(re.compile(r"^0 of "))
    assert shown(other) == first
    press(other, "a", 1)
    press(page, "a", 4)
    press(other, "a", 2)
    press(other, "1", 3)
    now = kept(server)
    assert now[first, "ben"] == ("accept", "")
    assert now[second, "ann"] == ("reject", "wrong label")
    assert now[second, "ben"] == ("accept", "")
    assert now[third, "ann"] == now[third, "ben"] == ("reject", "two classes")
    assert len(now) == 7
    [agreement] = Votes(server.directory).agreements()
    assert (agreement.pictures, agreement.agreed) == (3, 2)

    server.kill()
    assert kept(server) == now


def test_filters_classes_and_the_grid(server: Server, visit: Callable[..., Page]) -> None:
    shortlist = Shortlist.load(server.directory)
    page = visit(server.start()["ann"])
    expect(page.locator("#question")).to_have_text("Is this “blue”, and nothing else?")
    page.keyboard.press("n")
    expect(page.locator("#question")).to_have_text("Is this “green”, and nothing else?")
    page.keyboard.press("p")
    expect(page.locator("#question")).to_have_text("Is this “blue”, and nothing else?")

    page.get_by_label("Taken for").select_option("red")
    blues = [one for one in shortlist.entries if (one.class_name, one.predicted) == ("blue", "red")]
    page.get_by_role("button", name="blue").click()
    expect(page.locator("#place")).to_have_text(f"1 of {len(blues)}")
    assert shown(page) == blues[0].id

    page.get_by_label("Taken for").select_option("")
    page.locator("body").click(position={"x": 640, "y": 60})
    page.keyboard.press("g")
    every = [one for one in shortlist.entries if one.class_name == "blue"]
    expect(page.locator("#thumbnails button")).to_have_count(len(every))
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Space")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Space")
    expect(page.locator("#marked")).to_have_text("2 selected")
    press(page, "a", 2)
    expect(page.locator("#thumbnails button")).to_have_count(len(every) - 2)
    page.keyboard.press("l")
    press(page, "3", len(every))
    expect(page.locator("#empty")).to_be_visible()
    assert set(kept(server).values()) == {("accept", ""), ("reject", "bad quality")}
    press(page, "u", 2)  # what was cast together is taken back together
    assert len(kept(server)) == 2

    page.get_by_label("Show").select_option("accept")
    expect(page.locator("#thumbnails button.accept")).to_have_count(2)


def test_single_keys_can_be_switched_off(server: Server, visit: Callable[..., Page]) -> None:
    page = visit(server.start()["ann"])
    page.keyboard.press("?")
    page.get_by_label("single keys are shortcuts").uncheck()
    page.get_by_role("button", name="Close").click()
    page.keyboard.press("a")
    page.get_by_role("button", name="Skip").click()
    expect(page.locator("#overall")).to_have_text(re.compile(r"^1 of "))
    assert {verdict for verdict, _ in kept(server).values()} == {"skip"}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_use_it(server: Server, visit: Callable[..., Page], scheme: str) -> None:
    page = visit(server.start()["ann"], scheme)
    axe = Axe()
    press(page, "a", 1)
    shown(page)
    for view in ("one", "grid", "keys"):
        if view != "one":
            page.keyboard.press({"grid": "g", "keys": "?"}[view])
        found = axe.run(page)
        assert found.violations_count == 0, found.generate_report()
        if SHOTS:
            page.screenshot(path=Path(SHOTS) / f"{view}-{scheme}.png")
    page.keyboard.press("Escape")
    page.set_viewport_size({"width": 420, "height": 800})
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= 420
