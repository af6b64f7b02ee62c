"""The command `tpusim` of an installed package: the binary inside of it, and what is Python."""

import os
import sys

from tpusim.binary import find_binary
from tpusim.errors import Error

TYPE_CHECKING = False  # As that of `typing`, which takes longer to import than all of this.
if TYPE_CHECKING:
    from typing import NoReturn


def main() -> "NoReturn":
    """Becomes the binary, with the same arguments; `search`, `flags` and `calibrate` stay here."""
    if sys.argv[1:2] in (["search"], ["flags"], ["calibrate"]):
        import importlib

        command = importlib.import_module(f"tpusim.{sys.argv[1]}.command")
        sys.exit(command.main(sys.argv[2:]))
    try:
        binary = find_binary(on_path=False)
        os.execv(binary, ["tpusim", *sys.argv[1:]])
    except (Error, OSError) as error:
        sys.exit(f"tpusim: error: {error}")
