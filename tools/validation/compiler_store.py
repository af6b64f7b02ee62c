"""Programs compiled by the TPU compiler: which there are, and how what it chose is kept."""

import argparse
import fnmatch
import gzip
import hashlib
import json
import pathlib
import re
from collections.abc import Iterator
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
SUMMARIES = ROOT / "validation" / "compiler"
_FAMILIES_LAST = ("examples", "training")


def set_aside(program: str) -> bool:
    """Whether a program only tests: no rule of the simulator may be made from it.

    Decided by its name, on all slices alike, before any rule was written.
    """
    return int(hashlib.sha256(program.encode()).hexdigest(), 16) % 3 == 0


class OnSlice:
    """A program that was compiled for a slice."""

    program: str
    slice_name: str

    @property
    def chip(self) -> str:
        """The chip of the slice."""
        return self.slice_name.partition("-")[0]

    @property
    def aside(self) -> bool:
        """Whether it only tests."""
        return set_aside(self.program)


def pack(summary: dict[str, Any]) -> bytes:
    """Compresses a summary; equal summaries give equal bytes."""
    text = json.dumps(summary, sort_keys=True, separators=(",", ":"))
    return gzip.compress(text.encode(), 9, mtime=0)


def unpack(path: pathlib.Path) -> dict[str, Any]:
    """Reads what `pack` wrote."""
    summary: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return summary


def topology_name(slice_name: str) -> str:
    """A slice, such as "v7x-2x2x1", as libtpu calls it."""
    chip, _, extents = slice_name.partition("-")
    return f"{'tpu7x' if chip == 'v7x' else chip}:{extents}"


def one_line(error: str) -> str:
    """The first line of a message, without what depends on the machine."""
    line = next((part.strip() for part in error.splitlines() if part.strip()), "no message")
    return re.sub(r"(/[\w.+-]+){2,}", "PATH", line)[:300]


def selected(flags: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Programs and slices that the command line asks for, cheapest first."""
    from compiler_programs import PROGRAMS

    order: list[tuple[tuple[Any, ...], str, str]] = []
    for number, (name, entry) in enumerate(PROGRAMS.items()):
        for place, slice_name in enumerate(entry.slices):
            chip = slice_name.partition("-")[0]
            if any(fnmatch.fnmatchcase(name, g) for g in flags.only) and chip in flags.chips:
                if flags.slices and slice_name not in flags.slices:
                    continue
                if flags.families and entry.family not in flags.families:
                    continue
                large = entry.family in _FAMILIES_LAST
                key = (flags.chips.index(chip), large, place, number)
                order.append((key, name, slice_name))
    for _, name, slice_name in sorted(order):
        yield name, slice_name
