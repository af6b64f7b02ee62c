"""Blocks in which everything is executed, and nothing is intercepted, by thread."""

import contextlib
import threading
from collections.abc import Iterator


class _Depth(threading.local):
    """The number of nested blocks of one thread."""

    value = 0


_depth = _Depth()


def is_paused() -> bool:
    """Whether this thread is in such a block."""
    return _depth.value > 0


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """In the block everything is executed, by this thread, and nothing is reported."""
    _depth.value += 1
    try:
        yield
    finally:
        _depth.value -= 1
