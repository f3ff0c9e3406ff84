"""Weights on the Hugging Face hub: what is in the cache, and whether the hub can be reached.

Its own client tries for most of a minute before it gives up; a user without a network is told
at once.
"""

from __future__ import annotations

import os
import socket
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

__all__ = ["cached_file", "reachable"]


def cached_file(repository: str, names: list[str]) -> Path | None:
    """Return the first of some files of a repository that is in the hub's cache."""
    from huggingface_hub import try_to_load_from_cache

    for name in names:
        found = try_to_load_from_cache(repository, name)
        if isinstance(found, str):
            return Path(found)
    return None


@cache
def reachable() -> bool:
    """Whether the hub answers, or a proxy is set that may reach it."""
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return False
    if any(os.environ.get(name) for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY")):
        return True
    endpoint = urlsplit(constants.ENDPOINT)
    port = endpoint.port or (443 if endpoint.scheme == "https" else 80)
    try:
        socket.create_connection((endpoint.hostname or "", port), timeout=5).close()
    except OSError:
        return False
    return True
