"""How the cores are shared out, so that threads compute instead of waiting for each other.

Libraries split one batch over their own threads, which wait for each other in busy loops many
times per batch. Where other threads want the same cores this has been seen to make small
networks ten times slower. So models run beside each other, each in one thread at a time, and a
library gets more threads only if there are more cores than models.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

__all__ = ["ahead", "cores", "lanes", "library_threads", "torch_threads"]

T = TypeVar("T")


def ahead(pool: ThreadPoolExecutor, tasks: Iterable[Callable[[], T]], early: int) -> Iterator[T]:
    """Run tasks in the pool and yield their results in order, at most ``early`` before asked.

    >>> with ThreadPoolExecutor(2) as pool:
    ...     list(ahead(pool, [lambda: 1, lambda: 2, lambda: 3], 1))
    [1, 2, 3]
    """
    running: deque[Future[T]] = deque()
    for task in tasks:
        running.append(pool.submit(task))
        if len(running) > early:
            yield running.popleft().result()
    while running:
        yield running.popleft().result()


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def lanes(models: int) -> int:
    """Return how many models compute at the same time."""
    return max(1, min(models, cores()))


def library_threads(models: int) -> int:
    """Return how many threads a library may use for one batch of one model.

    A single model leaves a core to the pictures.
    """
    return max(1, cores() // lanes(models) if models > 1 else cores() - 1)


@contextmanager
def torch_threads(models: int) -> Iterator[None]:
    """Have torch, if anything uses it, keep to its threads while the block runs."""
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(min(before, library_threads(models)))
    try:
        yield
    finally:
        torch.set_num_threads(before)
