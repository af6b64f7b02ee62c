"""Finds the simulator's binary, with no import that the command `tpusim` does not need."""

import os

from tpusim.errors import Error


def find_binary(*, on_path: bool = True) -> str:
    """The tpusim binary.

    $TPUSIM_BINARY; else the one inside the package, which wheels have; else, unless `on_path` is
    False, the command `tpusim`; else build/tpusim of this source tree.
    """
    if stated := os.environ.get("TPUSIM_BINARY"):
        # A name without a folder is looked up on PATH, as a shell does.
        if (binary := _which(stated)) is None:
            why = "not an executable file" if os.path.exists(stated) else "no such file"
            raise Error(f"TPUSIM_BINARY={stated}: {why}; set it to the tpusim binary, or unset it")
        return binary
    here = os.path.dirname(os.path.realpath(__file__))
    packaged = os.path.join(here, "bin", "tpusim")
    if os.path.isfile(packaged):
        return packaged
    if on_path and (found := _which("tpusim")):
        return found
    built = os.path.abspath(os.path.join(here, "..", "..", "..", "build", "tpusim"))
    if os.path.isfile(built):
        return built
    raise Error(
        "no tpusim binary: install the wheel, build it (tools/demo), put it on PATH, or set "
        "TPUSIM_BINARY"
    )


def _which(command: str) -> str | None:
    import shutil

    return shutil.which(command)
