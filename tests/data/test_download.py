"""Downloading from a server on this machine: whole, broken off, altered, hostile."""

from __future__ import annotations

import hashlib
import io
import stat
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from shiftbed import InputError, published
from shiftbed.cli import app
from shiftbed.data import catalogue, download, list_sets, open_set
from shiftbed.data.catalogue import Archive


@dataclass
class Server:
    files: dict[str, bytes] = field(default_factory=dict)
    #: How many bytes an answer gives before it breaks off; one entry per request.
    breaks: list[int] = field(default_factory=list)
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    address: str = ""

    def archive(self, name: str, content: bytes, checksum: bool = True) -> Archive:
        self.files[f"/{name}"] = content
        digest = f"md5:{hashlib.md5(content).hexdigest()}" if checksum else None
        return Archive(f"{self.address}/{name}", digest, len(content) / 1e9)


@pytest.fixture
def server() -> Iterator[Server]:
    served = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = served.files.get(self.path)
            served.asked.append((self.path, self.headers["Range"]))
            if content is None:
                self.send_error(404)
                return
            tag = f'"{hashlib.md5(content).hexdigest()}"'
            start = 0
            if self.headers["Range"] and self.headers["If-Range"] == tag:
                start = int(self.headers["Range"].removeprefix("bytes=").removesuffix("-"))
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(len(content) - start))
            self.send_header("ETag", tag)
            self.end_headers()
            end = start + served.breaks.pop(0) if served.breaks else len(content)
            self.wfile.write(content[start:end])

        def log_message(self, *about: Any) -> None:
            pass

    web = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served.address = f"http://127.0.0.1:{web.server_port}"
    thread = threading.Thread(target=web.serve_forever, daemon=True)
    thread.start()
    yield served
    web.shutdown()
    web.server_close()
    thread.join()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SHIFTBED_DATA", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return tmp_path / "cache"


NOISE = np.random.default_rng(0).integers(0, 256, 3_000_000, dtype=np.uint8).tobytes()


def test_a_download_goes_on_where_it_broke_off(server: Server, home: Path) -> None:
    archive = server.archive("noise.tar", NOISE)
    server.breaks = [1_500_000, 1_000_000]
    seen: list[int] = []
    path = download.download(archive, lambda done, total: seen.append(done))
    assert path.read_bytes() == NOISE
    starts = [int((ask or "bytes=0-")[6:-1]) for _, ask in server.asked]
    assert starts[0] == 0
    assert 0 < starts[1] <= 1_500_000 < starts[2] <= 2_500_000
    assert seen[-1] == len(NOISE)
    assert [one.name for one in path.parent.iterdir()] == ["noise.tar"]


def test_what_was_begun_is_gone_on_with_by_the_same_command(server: Server, home: Path) -> None:
    archive = server.archive("noise.tar", NOISE)
    server.breaks = [1_200_000, 10, 10, 10]
    with pytest.raises(InputError, match="what has arrived is kept, and the same command goes on"):
        download.download(archive)
    server.breaks = []
    server.asked.clear()
    assert download.download(archive).read_bytes() == NOISE
    assert server.asked[0][1] is not None


def test_another_file_is_not_the_rest_of_the_first(server: Server) -> None:
    archive = server.archive("noise.tar", NOISE[::-1], checksum=False)
    server.breaks = [1_500_000, 0, 0, 0]
    with pytest.raises(InputError, match="cannot download"):
        download.download(archive)
    server.breaks = []
    archive = server.archive("noise.tar", NOISE)
    assert download.download(archive).read_bytes() == NOISE


def test_a_wrong_checksum_keeps_nothing(server: Server, home: Path) -> None:
    archive = replace(server.archive("noise.tar", NOISE), checksum="md5:" + "0" * 32)
    with pytest.raises(InputError, match="is not what was published: its checksum is not md5:000"):
        download.download(archive)
    assert list((home / "downloads").iterdir()) == []


def test_what_is_not_there_is_one_sentence(server: Server) -> None:
    gone = Archive(f"{server.address}/gone.tar", None, 0.1)
    with pytest.raises(InputError, match=r"cannot download .*404") as caught:
        download.download(gone)
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="cannot download"):
        download.download(Archive("http://127.0.0.1:9/x.tar", None, 0.1))


# A whole set


def picture(value: int) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (4, 4), (value, 0, 0)).save(buffer, "PNG")
    return buffer.getvalue()


def tarred(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def zipped(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


@pytest.fixture
def served_r(server: Server, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Have ImageNet-R come from our server, with so many pictures."""

    def serve(content: bytes, pictures: int = 3) -> None:
        list_sets()
        info = catalogue._SETS["imagenet-r"]
        assert info.placed is not None
        monkeypatch.setitem(catalogue._SETS, "imagenet-r", info)
        ours = server.archive("imagenet-r.tar", content)
        catalogue.placed_set(info.card, replace(info.placed, archives=(ours,), pictures=pictures))

    return serve


R = published.class_list("imagenet-r")
FILES = {f"imagenet-r/{R[number % 2]}/{number}.png": picture(number) for number in range(3)}


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["fetch", *arguments])


@pytest.mark.parametrize("form", [tarred, zipped])
def test_a_set_is_fetched_and_opened(
    served_r: Callable[..., None], home: Path, form: Callable[[dict[str, bytes]], bytes]
) -> None:
    served_r(form(FILES))
    done = run("imagenet-r", "--accept-licence")
    assert done.exit_code == 0, done.output
    assert "imagenet-r is now in" in done.output
    assert "3 pictures" in done.output
    images = open_set("imagenet-r")
    assert images.ids == tuple(f"{R[n % 2]}/{n}.png" for n in (0, 2, 1))
    assert images.load(1)[0, 0, 0] == 2
    assert list((home / "downloads").iterdir()) == []  # the archive is not kept twice
    assert "was already" in run("imagenet-r").output


def placed_nothing(home: Path) -> bool:
    return not (home / "sets").exists() or list((home / "sets").iterdir()) == []


def test_a_licence_is_asked_for(served_r: Callable[..., None], home: Path, server: Server) -> None:
    served_r(tarred(FILES))
    refused = run("imagenet-r")
    assert isinstance(refused.exception, InputError)
    assert "accept the licence with --accept-licence" in str(refused.exception)
    info = catalogue._SETS["imagenet-r"]
    with pytest.raises(InputError, match=r"licence was not accepted, .* MIT; the pictures"):
        download.fetch_set(info, accept=lambda terms: False)
    assert server.asked == []
    assert placed_nothing(home)


def test_a_set_that_is_not_whole_is_not_placed(served_r: Callable[..., None], home: Path) -> None:
    served_r(tarred(FILES), pictures=4)
    with pytest.raises(InputError, match="holds 3 pictures, and 4 were published"):
        download.fetch_set(catalogue._SETS["imagenet-r"], accept=lambda terms: True)
    assert placed_nothing(home)


def test_a_full_disk_is_said_before(
    served_r: Callable[..., None], home: Path, monkeypatch: pytest.MonkeyPatch, server: Server
) -> None:
    served_r(tarred(FILES))
    usage = (10, 9, 1)
    monkeypatch.setattr(download.shutil, "disk_usage", lambda _: type("U", (), {"free": usage[2]}))
    with pytest.raises(InputError, match=r"has 0\.0 GB free"):
        download.fetch_set(catalogue._SETS["imagenet-r"], accept=lambda terms: True)
    assert server.asked == []
    assert placed_nothing(home)


def test_what_a_person_has_to_fetch(home: Path) -> None:
    done = run("objectnet")
    assert "by a person: download objectnet-1.0.zip from objectnet.dev" in str(done.exception)
    done = run("imagenet-vall")
    assert "did you mean imagenet-val" in str(done.exception)


# Hostile archives


def hostile_tar(entry: tarfile.TarInfo) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        tar.addfile(entry, io.BytesIO(b"x" * entry.size))
    return buffer.getvalue()


def tar_entry(name: str, kind: bytes = tarfile.REGTYPE) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type = kind
    entry.linkname = "/etc/passwd"
    entry.size = 1 if kind == tarfile.REGTYPE else 0
    return entry


def linked_zip() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        entry = zipfile.ZipInfo("link")
        entry.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(entry, "/etc/passwd")
    return buffer.getvalue()


HOSTILE: list[tuple[str, bytes, str]] = [
    ("absolute", hostile_tar(tar_entry("/tmp/evil")), "leads out of its folder"),
    ("dots", hostile_tar(tar_entry("a/../../evil")), "leads out of its folder"),
    ("drive", hostile_tar(tar_entry("C:\\evil")), "leads out of its folder"),
    ("symbolic", hostile_tar(tar_entry("a", tarfile.SYMTYPE)), "is a link or a device"),
    ("hard", hostile_tar(tar_entry("a", tarfile.LNKTYPE)), "is a link or a device"),
    ("device", hostile_tar(tar_entry("a", tarfile.CHRTYPE)), "is a link or a device"),
    ("zip dots", zipped({"../evil": b"x"}), "leads out of its folder"),
    ("zip link", linked_zip(), "is a link or a device"),
    ("bomb", zipped({"bomb": bytes(150_000_000)}), "grows to more than 100 times its size"),
    ("tar bomb", tarred({"bomb": bytes(150_000_000)}), "grows to more than 100 times its size"),
    ("cut", tarred(FILES)[:-40], "is damaged|cannot be read|cannot unpack"),
    ("nothing", b"<html>not found</html>", "is damaged"),
]


@pytest.mark.parametrize(
    ("content", "why"), [one[1:] for one in HOSTILE], ids=[h[0] for h in HOSTILE]
)
def test_hostile_archives_are_refused(
    served_r: Callable[..., None], home: Path, content: bytes, why: str
) -> None:
    served_r(content)
    with pytest.raises(InputError, match=why) as caught:
        download.fetch_set(catalogue._SETS["imagenet-r"], accept=lambda terms: True)
    assert "\n" not in str(caught.value)
    assert placed_nothing(home)
    assert not (home.parent / "evil").exists()
    assert not Path("/tmp/evil").exists()


def test_another_way_is_taken_where_the_archive_cannot_be_reached(
    monkeypatch: pytest.MonkeyPatch, server: Server, home: Path
) -> None:
    def place() -> None:
        for name, content in FILES.items():
            path = home / "sets" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    list_sets()
    info = catalogue._SETS["imagenet-r"]
    assert info.placed is not None
    monkeypatch.setitem(catalogue._SETS, "imagenet-r", info)
    nowhere = replace(server.archive("imagenet-r.tar", b""), url=f"{server.address}/absent.tar")
    ways = replace(info.placed, archives=(nowhere,), otherwise=place, pictures=3)
    catalogue.placed_set(info.card, ways)
    done = run("imagenet-r", "--accept-licence")
    assert done.exit_code == 0, done.output
    assert len(open_set("imagenet-r")) == 3
