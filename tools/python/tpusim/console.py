"""The command `tpusim` of an installed package: the binary inside of it, and what is Python."""

import importlib
import os
import sys
from typing import NoReturn

from tpusim.errors import Error
from tpusim.runner import find_binary


def main() -> NoReturn:
    """Becomes the binary, with the same arguments; `search`, `flags` and `calibrate` stay here."""
    if sys.argv[1:2] in (["search"], ["flags"], ["calibrate"]):
        command = importlib.import_module(f"tpusim.{sys.argv[1]}.command")
        sys.exit(command.main(sys.argv[2:]))
    try:
        binary = find_binary(on_path=False)
        os.execv(binary, ["tpusim", *sys.argv[1:]])
    except (Error, OSError) as error:
        sys.exit(f"tpusim: error: {error}")
