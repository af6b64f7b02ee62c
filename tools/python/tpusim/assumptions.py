"""Sentences on what an export assumes or leaves out; every report repeats them."""

import os
import sys
import types
import warnings

from tpusim.source_files import jax_folders, relative


class Assumptions:
    """Sentences in the order in which they came up, each once."""

    def __init__(self) -> None:
        self._sentences: dict[str, None] = {}

    def add(self, sentence: str, *, warn: bool = False) -> None:
        """`warn` also tells who is exporting, at once."""
        if sentence in self._sentences:
            return
        self._sentences[sentence] = None
        if warn:
            warnings.warn(sentence, ExportWarning, stacklevel=2)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The sentences in the order in which they were added."""
        return tuple(self._sentences)


class ExportWarning(UserWarning):
    """The workload may not be the program that runs on TPUs."""


def is_users(frame: types.FrameType) -> bool:
    """Whether code of neither JAX itself nor this package runs in the frame.

    The kernels that come with JAX, in `jax.experimental`, are as any other library.
    """
    return not frame.f_globals.get("__name__", "").startswith(("jax._src.", "jaxlib.", "tpusim."))


def is_users_file(file: str) -> bool:
    """Whether a source file is the user's own, by `is_users`."""
    ours = os.path.dirname(__file__) + os.sep
    return not file.startswith((ours, *jax_folders()))


def users_place() -> str:
    """`file:line` of the innermost frame that belongs to the user or to a library of theirs."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and not is_users(frame):
        frame = frame.f_back
    return "?" if frame is None else f"{relative(frame.f_code.co_filename)}:{frame.f_lineno}"
