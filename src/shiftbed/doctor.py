"""What this installation can do here, and what stands in its way."""

from __future__ import annotations

import os
import platform
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Literal

__all__ = ["Finding", "examine"]

State = Literal["ok", "missing", "wrong"]

#: What a run of ImageNet-C's settings leaves behind, with room to work.
_ENOUGH_GB = 2


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. ``wrong`` is what will fail; ``missing`` is not installed."""

    about: str
    state: State
    says: str


def examine() -> list[Finding]:
    """Look at the versions, the extras, torch, the caches and what is ready.

    >>> findings = examine()
    >>> findings[0].about, findings[0].state
    ('shiftbed', 'ok')
    """
    return [*_machine(), *_packages(), *_torch(), *_caches(), *_sets()]


def _machine() -> Iterator[Finding]:
    from shiftbed import __version__

    where = f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs"
    yield Finding("shiftbed", "ok", f"{__version__}, Python {platform.python_version()}, {where}")


def _packages() -> Iterator[Finding]:
    """Compare what the package's own metadata asks for with what is installed."""
    from packaging.requirements import Requirement

    wanted = [Requirement(line) for line in requires("shiftbed") or []]
    extras: dict[str, list[Requirement]] = {"": []}
    for one in wanted:
        named = re.search(r"extra == ['\"]([\w-]+)['\"]", str(one.marker or ""))
        extras.setdefault(named[1] if named else "", []).append(one)
    for extra, needed in extras.items():
        if extra in ("bench", "dev", "docs"):  # for work on shiftbed itself
            continue
        about = f"extra {extra}" if extra else "core"
        needed = [one for one in needed if one.name != "shiftbed"] or needed
        have, unmet, old = [], [], []
        for one in needed:
            try:
                found = version(one.name)
            except PackageNotFoundError:
                unmet.append(one.name)
                continue
            have.append(f"{one.name} {found}")
            if not one.specifier.contains(found, prereleases=True):
                old.append(f"{one.name} is {found}, expected {one.specifier}")
        if old:
            yield Finding(about, "wrong", "; ".join(old))
        elif unmet:
            how = f"pip install 'shiftbed[{extra}]'" if extra else "pip install shiftbed"
            yield Finding(about, "missing" if extra else "wrong", f"no {', '.join(unmet)}; {how}")
        else:
            yield Finding(about, "ok", ", ".join(have))


def _torch() -> Iterator[Finding]:
    try:
        import torch
    except ImportError:
        return
    kinds = [kind for kind in ("cuda", "mps", "xpu") if _has(getattr(torch, kind, None))]
    yield Finding("torch", "ok", f"computes on {', '.join(['cpu', *kinds])}")
    try:
        import torchvision  # noqa: F401
    except ImportError:
        return
    except RuntimeError:
        from shiftbed.models import import_torchvision

        import_torchvision()
        yield Finding(
            "torchvision",
            "ok",
            "its compiled operators do not fit this torch (a build for CUDA beside one for the "
            "CPU, say); shiftbed works around it, other programs may not",
        )


def _has(accelerator: object) -> bool:
    available = getattr(accelerator, "is_available", None)
    return bool(available and available())


def _caches() -> Iterator[Finding]:
    from shiftbed import assets

    folder = assets.cache_dir()
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    free = shutil.disk_usage(there).free / 1e9
    says = f"{folder}, {_size(folder) / 1e9:.1f} GB, {free:.0f} GB free"
    if not os.access(there, os.W_OK):
        yield Finding("data", "wrong", f"{says}; cannot be written: set SHIFTBED_DATA to another")
    elif free < _ENOUGH_GB:
        yield Finding("data", "wrong", f"{says}; set SHIFTBED_DATA to a larger disk")
    else:
        yield Finding("data", "ok", says)

    kernels = Path(__file__).with_name("corruptions")
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    kernels = Path(chosen) if chosen else kernels
    if os.access(kernels, os.W_OK):
        yield Finding("kernels", "ok", f"compiled once, kept beside {kernels}")
    else:
        yield Finding(
            "kernels",
            "ok",
            f"{kernels} cannot be written; Numba keeps them in the user's cache folder, or in "
            "NUMBA_CACHE_DIR",
        )
    clients = [client for client in ("pip", "npm") if _client(client)]
    lacking = [client for client in ("pip", "npm") if client not in clients]
    if lacking:
        yield Finding(
            "clients", "missing", f"no {', '.join(lacking)}: what it fetches has to be copied here"
        )
    else:
        yield Finding("clients", "ok", "pip and npm, for what packages carry")


def _client(name: str) -> bool:
    from importlib.util import find_spec

    return find_spec("pip") is not None if name == "pip" else shutil.which(name) is not None


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _sets() -> Iterator[Finding]:
    from shiftbed.data import list_sets

    infos = list_sets()
    ready = [info.name for info in infos if info.state == "ready"]
    fetchable = sum(info.state == "fetch" for info in infos)
    says = f"ready: {', '.join(ready) or 'none'}; {fetchable} more with shiftbed fetch"
    yield Finding("image sets", "ok", says)
