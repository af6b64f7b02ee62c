"""The command `tpusim` of an installed package: the binary inside of it, and what is Python."""

import os
import sys

from tpusim.binary import find_binary
from tpusim.errors import Error

TYPE_CHECKING = False  # As that of `typing`, which takes longer to import than all of this.
if TYPE_CHECKING:
    from typing import NoReturn


def _may_be_stablehlo(word: str) -> bool:
    """Whether a word names a file that begins as StableHLO may, and HLO does not.

    Text, bytecode, the offset of a table of a flatbuffer, or gzip that says so in its name.
    """
    if word.startswith("-") or not os.path.isfile(word):
        return False
    try:
        with open(word, "rb") as file:
            head = file.read(512)
    except OSError:
        return False
    if head.startswith(b"\x1f\x8b"):
        return ".mlir" in word
    words = (b"module", b"func.func", b"#", b"//", b"sdy.mesh", b'"builtin.module"', b"ML\xefR")
    return head.lstrip().startswith(words) or head[1:4] == b"\0\0\0"


def _converted(words: "list[str]") -> "list[str]":
    """Words of a command line, in which workloads in memory stand for files of StableHLO."""
    if not any(map(_may_be_stablehlo, words)):
        return words
    from tpusim import stablehlo_files

    return [_in_memory(word) if stablehlo_files.holds(word) else word for word in words]


def _in_memory(path: str) -> str:
    """Converts a file of StableHLO; returns the name of a file in memory that the binary inherits.

    It is gone when the binary ends, however that is.
    """
    from tpusim.optional import require

    require("jax", f"{path}: StableHLO")
    from tpusim import exporter

    workload = exporter.exported(path, (), {}).to_bytes()
    descriptor = os.memfd_create("workload", 0)
    with open(descriptor, "wb", closefd=False) as file:
        file.write(workload)
    return f"/dev/fd/{descriptor}"


def main() -> "NoReturn":
    """Becomes the binary, with the same arguments; `search`, `flags` and `calibrate` stay here."""
    if sys.argv[1:2] in (["search"], ["flags"], ["calibrate"]):
        import importlib

        command = importlib.import_module(f"tpusim.{sys.argv[1]}.command")
        sys.exit(command.main(sys.argv[2:]))
    try:
        binary = find_binary(on_path=False)
        os.execv(binary, ["tpusim", *_converted(sys.argv[1:])])
    except (Error, OSError) as error:
        sys.exit(f"tpusim: error: {error}")
