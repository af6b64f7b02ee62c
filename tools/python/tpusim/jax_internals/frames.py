"""Whose source line an operation has.

Without these names a line of this package may stand where the user's own is wanted, and kernels are
reported without a place: nothing that a time depends on.
"""

import dataclasses
from typing import Any

from tpusim.jax_internals.versions import optional


@dataclasses.dataclass(frozen=True)
class Frame:
    """A line of source."""

    file_name: str
    line: int


def leave_out(folder: str) -> None:
    """Frames of files below `folder` are plumbing: operations go to the lines around them."""
    register = optional("jax._src.source_info_util", "register_exclusion")
    if register is not None:
        register(folder)


def users(equation: Any) -> Frame | None:
    """The line of the user that made an equation of a jaxpr."""
    find = optional("jax._src.source_info_util", "user_frame")
    source = getattr(equation, "source_info", None)
    if find is None or source is None:
        return None
    try:
        frame = find(source.traceback)
    except (AttributeError, TypeError):
        frame = find(source)  # It has taken the whole source info, too.
    if frame is None:
        return None
    return Frame(frame.file_name, frame.start_line)
