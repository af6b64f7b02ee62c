"""The command `tpusim` of an installed package: the binary inside of it."""

import os
import sys
from typing import NoReturn

from tpusim.runner import find_binary


def main() -> NoReturn:
    """Becomes the binary, with the same arguments."""
    os.execv(find_binary(on_path=False), ["tpusim", *sys.argv[1:]])
