"""Published archives: downloaded with resume and checksum, unpacked with suspicion, placed whole.

What arrives is checked before anybody can see it: a set is in the sets folder as a whole, or
not at all.
"""

from __future__ import annotations

import shutil
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any

from shiftbed.assets import cache_dir, placed
from shiftbed.data.catalogue import Archive, SetInfo, list_sets
from shiftbed.errors import InputError

__all__ = ["download", "fetch_set", "unpack"]

#: What an archive may grow to when it is unpacked: MNIST-C, mostly black, grows fourfold.
GROWTH = 100
SMALL = 100_000_000
_CHUNK = 1 << 16
_TRIES = 4

#: Told how many bytes are there, and of how many if the server says.
Watch = Callable[[int, int | None], None]


def fetch_set(
    info: SetInfo, *, accept: Callable[[str], bool], watch: Watch = lambda done, total: None
) -> Path:
    """Download, check and place a set by its archives; return its folder.

    ``accept`` is asked whether the licence is accepted. If the set is there already, or comes
    another way, nothing is downloaded.
    """
    if info.ready() or info.placed is None or info.home is None:
        info.open()
        return info.home or cache_dir()
    if not info.placed.archives:
        raise InputError(info.missing)
    size = sum(archive.gigabytes for archive in info.placed.archives)
    terms = f"{info.family or info.name} ({size:g} GB), {info.card.citation}: {info.card.licence}"
    if not accept(terms):
        raise InputError(f"the licence was not accepted, and nothing was fetched: {terms}")
    _check_room(size)
    home = info.home
    try:
        archives = [download(one, watch) for one in info.placed.archives]
    except InputError:
        if info.placed.otherwise is None:
            raise
        info.placed.otherwise()
        return home
    with placed(home) as scratch:
        for archive in archives:
            unpack(archive, scratch)
        for one in list_sets():
            if one.placed is not None and one.home == home:
                check_placed(one, scratch)
    for archive in archives:
        archive.unlink(missing_ok=True)
    return home


def check_placed(info: SetInfo, root: Path) -> int:
    """Read a set where it lies, and refuse it if it is not whole; return how many pictures."""
    assert info.placed is not None
    count = len(info.placed.read(root, info.name))
    if info.placed.pictures not in (None, count):
        raise InputError(
            f"the archive of {info.name} holds {count:,} pictures, and {info.placed.pictures:,} "
            "were published; nothing was kept"
        )
    return count


def _check_room(gigabytes: float) -> None:
    folder = cache_dir()
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free / 1e9
    if free < 2.1 * gigabytes:
        raise InputError(
            f"{folder} has {free:.1f} GB free, and the archive and what it holds need about "
            f"{2.1 * gigabytes:.1f}; make room, or set SHIFTBED_DATA to another disk"
        )


# Downloading


def download(archive: Archive, watch: Watch = lambda done, total: None) -> Path:
    """Download an archive, going on where an earlier try stopped, and check it.

    A file that is there already, from an earlier try or put there by hand, is only checked.
    """
    import pooch

    folder = cache_dir() / "downloads"
    name = archive.url.rpartition("/")[2].partition("?")[0]
    pooch.get_logger().setLevel("ERROR")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path = pooch.retrieve(
            archive.url,
            archive.checksum,
            fname=name,
            path=folder,
            downloader=_Resuming(folder / f"{name}.part", watch),
        )
    except ValueError as problem:
        if isinstance(problem, InputError):
            raise
        raise InputError(
            f"{archive.url} is not what was published: its checksum is not {archive.checksum}; "
            "nothing was kept: try again, or look for a proxy that answers in its stead"
        ) from None
    except OSError as problem:
        raise _stopped(archive.url, problem) from None
    return Path(path)


def _stopped(url: str, problem: object) -> InputError:
    reason = getattr(problem, "strerror", None) or str(problem).splitlines()[0][:120]
    return InputError(
        f"cannot download {url} ({reason}); what has arrived is kept, and the same command goes "
        f"on from there; or download it by other means and put it into {cache_dir() / 'downloads'}"
    )


class _Resuming:
    """A downloader for pooch that asks for the rest of what it has."""

    def __init__(self, part: Path, watch: Watch) -> None:
        self.part = part
        self.tag = part.with_name(f"{part.name}-tag")
        self.watch = watch

    def __call__(self, url: str, output: str, pooch: object) -> None:
        import requests

        for left in reversed(range(_TRIES)):
            try:
                self._go_on(url)
                break
            except requests.HTTPError as problem:
                raise _stopped(url, problem) from None
            except requests.RequestException as problem:
                if not left:
                    raise _stopped(url, problem) from None
        self.tag.unlink(missing_ok=True)
        self.part.replace(output)

    def _go_on(self, url: str) -> None:
        import requests

        start = self.part.stat().st_size if self.part.exists() else 0
        headers = {"Accept-Encoding": "identity"}
        if start and self.tag.exists():  # the rest is wanted only of the same file
            headers |= {"Range": f"bytes={start}-", "If-Range": self.tag.read_text("ascii")}
        with requests.get(url, headers=headers, stream=True, timeout=(20, 60)) as answer:
            answer.raise_for_status()
            if answer.status_code != 206:
                start = 0
            length = answer.headers.get("Content-Length")
            total = start + int(length) if length else None
            tag = answer.headers.get("ETag") or answer.headers.get("Last-Modified")
            if tag and not tag.startswith("W/"):
                self.tag.write_text(tag, "ascii")
            else:
                self.tag.unlink(missing_ok=True)
            with self.part.open("r+b" if start else "wb") as file:
                file.seek(start)
                for chunk in answer.iter_content(_CHUNK):
                    file.write(chunk)
                    self.watch(file.tell(), total)
                there = file.tell()
            if total is not None and there != total:
                raise requests.ConnectionError(f"it broke off at {there:,} of {total:,} bytes")


# Unpacking


def unpack(archive: Path, into: Path) -> None:
    """Unpack a tar or zip, or refuse it: no links, no way out of the folder, no bomb."""
    budget = [max(GROWTH * archive.stat().st_size, SMALL)]
    try:
        if zipfile.is_zipfile(archive):
            _unpack_zip(archive, into, budget)
        else:
            _unpack_tar(archive, into, budget)
    except InputError:
        raise
    except OSError as problem:
        raise InputError(
            f"cannot unpack {archive.name} ({problem.strerror or problem}); nothing was kept"
        ) from None
    except Exception as problem:  # whatever the readers of archives make of damage
        reason = (str(problem).splitlines() or [type(problem).__name__])[0].rstrip(":")
        raise InputError(f"{archive.name} is damaged ({reason}); nothing was kept") from None


def _unpack_zip(archive: Path, into: Path, budget: list[int]) -> None:
    with zipfile.ZipFile(archive) as zipped:
        for entry in zipped.infolist():
            kind = entry.external_attr >> 28
            if kind not in (0, 0o4, 0o10):
                raise _hostile(archive, entry.filename, "is a link or a device")
            place = _place(archive, entry.filename, into)
            if not entry.is_dir():
                with _safely(archive, entry.filename), zipped.open(entry) as source:
                    _copy(archive, source, place, budget)


def _unpack_tar(archive: Path, into: Path, budget: list[int]) -> None:
    with tarfile.open(archive) as tar:
        for entry in tar:
            place = _place(archive, entry.name, into)
            if entry.isfile():
                source: IO[bytes] | None = tar.extractfile(entry)
                assert source is not None
                _copy(archive, source, place, budget)
            elif not entry.isdir():
                raise _hostile(archive, entry.name, "is a link or a device")


@contextmanager
def _safely(archive: Path, name: str) -> Iterator[None]:
    try:
        yield
    except RuntimeError as problem:  # a password is wanted
        raise InputError(
            f"{archive.name} cannot be read at {name} ({problem}); unpack it yourself"
        ) from None


def _place(archive: Path, name: str, into: Path) -> Path:
    path = PurePosixPath(name)
    odd = "\\" in name or "\0" in name or (len(name) > 1 and name[1] == ":")
    if path.is_absolute() or ".." in path.parts or odd:
        raise _hostile(archive, name, "leads out of its folder")
    return into / path


def _copy(archive: Path, source: IO[Any], place: Path, budget: list[int]) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.open("xb") as file:
        while chunk := source.read(_CHUNK):
            budget[0] -= len(chunk)
            if budget[0] < 0:
                raise InputError(
                    f"{archive.name} grows to more than {GROWTH} times its size when it is "
                    "unpacked; nothing was kept"
                )
            file.write(chunk)


def _hostile(archive: Path, name: str, why: str) -> InputError:
    return InputError(f"{archive.name} holds {name!r}, which {why}; nothing was kept")
