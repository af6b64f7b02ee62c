"""Whose source line an operation has.

Without these names a line of this package may stand where the user's own is wanted: nothing that a
time depends on.
"""

from tpusim.jax_internals.versions import optional


def leave_out(folder: str) -> None:
    """Frames of files below `folder` are plumbing: operations go to the lines around them."""
    register = optional("jax._src.source_info_util", "register_exclusion")
    if register is not None:
        register(folder)
