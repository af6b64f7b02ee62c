"""Peaks of the TPU compiler's own buffer assignment, for the corpus of modules.

    python tools/validation/compiled_buffers.py --only 'matmul*' --slices v5e-1x1 [--again]

`memory_analysis` has two figures and neither is the peak of HBM: its peak counts arrays in VMEM as
well, its sum the holes between arrays. The compiler's buffer assignment, which `xla_dump_to` has it
write, says of every array in which memory it lies, where, and from when to when. The most that is
live, and the whole with holes, go to tests/data/compiled/buffers.json; the rest is thrown away.
Compiling needs the public `libtpu` wheel (CONTRIBUTING.md says how to install it).
"""

import argparse
import collections
import dataclasses
import json
import os
import pathlib
import re
import sys
import tempfile
from collections.abc import Iterable

ROOT = pathlib.Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "tools" / "python"), str(ROOT / "tools" / "validation")]
    os.environ.setdefault("JAX_PLATFORMS", "cpu")

import compiled_modules  # noqa: E402
import tpusim  # noqa: E402

KEPT = compiled_modules.CORPUS / "buffers.json"
# Memory spaces of allocations: 0 is HBM, 1 VMEM. Arrays of scalar computations have no memory.
_COLORS = {"hbm": 0, "vmem": 1}
_ALLOCATION = re.compile(r"allocation \d+: size (?P<size>\d+)(?P<facts>.*)")
_VALUE = re.compile(
    r" value: <\d+ (?P<name>.*?)(?: \(phi\))? @\d+> \(size=(?P<size>\d+),offset=(?P<offset>\d+)\)"
)
_RANGE = re.compile(r"    (?P<name>.*\}):(?P<begin>\d+)-(?P<end>\d+)")


@dataclasses.dataclass
class Allocation:
    """A piece of a memory."""

    size: int
    color: int
    # Whether it is taken throughout: arguments and constants are.
    throughout: bool
    values: list[tuple[str, int, int]]  # the array, where it begins and ends


def allocations(text: str) -> list[Allocation]:
    """Parses a `*-buffer-assignment.txt`."""
    found: list[Allocation] = []
    skipped = False
    for line in text.splitlines():
        if match := _ALLOCATION.match(line):
            facts = match["facts"]
            skipped = "thread-local" in facts
            color = re.search(r"color (\d+)", facts)
            throughout = "parameter" in facts or "constant" in facts
            if not skipped:
                number = int(color[1]) if color else 0
                found.append(Allocation(int(match["size"]), number, throughout, []))
        elif not skipped and (match := _VALUE.match(line)):
            name = match["name"] if match["name"].endswith("}") else match["name"] + "{}"
            begin = int(match["offset"])
            found[-1].values.append((name, begin, begin + int(match["size"])))
    return found


def ranges(text: str) -> dict[str, tuple[int, int]]:
    """Parses a `*-live-range.txt`: when each array is made and read for the last time."""
    found = {}
    for line in text.partition("Live ranges at")[0].splitlines():
        if match := _RANGE.fullmatch(line):
            found[match["name"]] = int(match["begin"]), int(match["end"])
    return found


def covered(pieces: Iterable[tuple[int, int]]) -> int:
    """Bytes in any of these; arrays may share some (in place, pieces of one)."""
    total = reached = 0
    for begin, end in sorted(pieces):
        total += max(end - max(begin, reached), 0)
        reached = max(reached, end)
    return total


def most_live(assignment: str, live_range: str) -> dict[str, int]:
    """Returns bytes live at the peak and bytes of all allocations, by memory."""
    lives = ranges(live_range)
    result = {}
    for memory, color in _COLORS.items():
        those = [a for a in allocations(assignment) if a.color == color]
        held = sum(a.size for a in those if a.throughout)
        by_time: dict[int, dict[int, list[tuple[int, int]]]] = collections.defaultdict(dict)
        spans = [
            (number, (begin, end), lives[name])
            for number, a in enumerate(those)
            if not a.throughout
            for name, begin, end in a.values
            if name in lives
        ]
        # Only where something begins can more be live than before.
        moments = {life[0] for *_, life in spans}
        for number, piece, (first, last) in spans:
            for moment in moments:
                if first <= moment <= last:
                    by_time[moment].setdefault(number, []).append(piece)
        most = max(
            (sum(covered(pieces) for pieces in now.values()) for now in by_time.values()), default=0
        )
        result[f"{memory}_live_bytes"] = held + most
        result[f"{memory}_bytes"] = sum(a.size for a in those)
    return result


def kept() -> dict[str, dict[str, dict[str, int]]]:
    """Returns the kept figures by slice and program."""
    found: dict[str, dict[str, dict[str, int]]] = json.loads(KEPT.read_text())
    return found


def keep(figures: dict[str, dict[str, dict[str, int]]]) -> None:
    """One program a line."""
    slices = []
    for slice_name, programs in sorted(figures.items()):
        rows = [f"  {json.dumps(p)}: {json.dumps(f)}" for p, f in sorted(programs.items())]
        slices.append(f" {json.dumps(slice_name)}: {{\n" + ",\n".join(rows) + "\n }")
    KEPT.write_text("{\n" + ",\n".join(slices) + "\n}\n")


def assigned(program: str, slice_name: str) -> dict[str, int] | str:
    """Returns the figures of the program compiled anew, or why there are none."""
    with tempfile.TemporaryDirectory() as folder:
        again = compiled_modules.compiled(
            program, slice_name, xla_dump_to=folder, xla_dump_hlo_as_text=True
        )
        path = compiled_modules.path_of(program, slice_name)
        before = tpusim.Workload.load(path)
        assert again.compilation is not None
        assert before.compilation is not None
        if again.compilation.memory != before.compilation.memory:
            return "not the module that is kept"
        texts = [
            next(pathlib.Path(folder).glob(f"*after_optimizations-{part}.txt")).read_text()
            for part in ("buffer-assignment", "live-range")
        ]
    return most_live(texts[0], texts[1])


def main() -> None:
    """Does what the command line says."""
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--only", default="*", help="globs of programs, comma-separated")
    p.add_argument("--slices", default="*", help="globs of slices, comma-separated")
    p.add_argument("--again", action="store_true", help="also what is there")
    flags = p.parse_args()
    os.nice(10)
    os.chdir(ROOT)
    figures = kept() if KEPT.exists() else {}
    for program, slice_name in compiled_modules.selected(flags):
        there = program in figures.get(slice_name, {})
        if not compiled_modules.path_of(program, slice_name).exists() or (
            there and not flags.again
        ):
            continue
        found = assigned(program, slice_name)
        print(f"{slice_name:10} {program}: {found}", flush=True)
        if isinstance(found, dict):
            figures.setdefault(slice_name, {})[program] = found
            keep(figures)


if __name__ == "__main__":
    main()
