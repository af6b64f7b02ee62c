"""The time of kernels of compiled modules beside the TPU compiler's estimate of the same kernel.

    python tools/validation/compiled_kernels.py [--worst FAMILY]

Runs the corpus (tests/data/compiled) and writes docs/validation/compiled-kernels.md; --worst prints
the kernels of a family that differ most instead. Modules, windows and places are the compiler's, so
that only the time of a kernel is compared.
"""

import argparse
import collections
import dataclasses
import gzip
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT / "tools" / "python"), str(ROOT / "tools" / "validation")]

from compiler_store import set_aside  # noqa: E402
from tpusim.hlo import Instruction, Module  # noqa: E402

CORPUS = ROOT / "tests" / "data" / "compiled"
PAGE = ROOT / "docs" / "validation" / "compiled-kernels.md"
# Its body the compiler keeps to itself.
_COSTS = ["--kernel-cost", "ragged-dot-metadata=1000,100000"]
# Shorter ones are a launch.
_SHORTEST_NS = 3000
_CHIPS = ("v5e", "v5p", "v6e", "v7x")
# By the first of these that a kernel holds.
_FAMILIES = (
    ("sorts", ("sort",)),
    ("gathers and scatters", ("gather", "scatter", "select-and-scatter")),
    ("windowed reductions", ("reduce-window",)),
    ("updates in place", ("dynamic-update-slice",)),
    ("reductions", ("reduce",)),
    ("slices, pads, joins", ("dynamic-slice", "slice", "pad", "concatenate", "reverse")),
)
_ORDER = (
    *(
        "products",
        "products with reductions",
        "convolutions, batches of products",
        "reductions",
        "elementwise",
    ),
    *("copies", "slices, pads, joins", "updates in place", "gathers and scatters"),
    *("windowed reductions", "sorts", "calls"),
)


@dataclasses.dataclass(frozen=True)
class Row:
    """A kernel: both times are of one execution, in nanoseconds."""

    module: str
    chip: str
    name: str
    family: str
    results: str
    aside: bool
    ours: float
    theirs: float

    @property
    def ratio(self) -> float:
        """Ours to theirs."""
        return self.ours / self.theirs


def inside(module: Module, instruction: Instruction) -> Iterator[Instruction]:
    """What a fusion consists of, at any depth; of others, the instruction."""
    if instruction.opcode != "fusion":
        yield instruction
        return
    for called in instruction.called:
        for i in module.computations[called].instructions:
            yield from inside(module, i)


def family(module: Module, kernel: Instruction) -> str:
    """Named after what decides how the kernel works."""
    parts = list(inside(module, kernel))
    held = {i.opcode for i in parts}
    if "custom-call" in held and kernel.opcode == "custom-call":
        return "calls"
    for product in parts:
        if product.opcode not in ("convolution", "dot", "ragged-dot"):
            continue
        # The compiler writes batches of products as convolutions.
        if len(product.shape.dims) > 3:
            return "convolutions, batches of products"
        return "products with reductions" if "reduce" in held else "products"
    for name, opcodes in _FAMILIES:
        if held & set(opcodes):
            return name
    moves = {"copy", "transpose", "bitcast", "parameter", "reshape", "tuple", "copy-start"}
    return "copies" if held <= moves else "elementwise"


def rows_of(path: pathlib.Path, binary: str) -> Iterator[Row]:
    """Of a module."""
    data = gzip.decompress(path.read_bytes())
    program = path.name.removesuffix(".pb.gz")
    with tempfile.TemporaryDirectory() as folder:
        workload, report = pathlib.Path(folder) / "m.pb", pathlib.Path(folder) / "r.json"
        workload.write_bytes(data)
        command = [binary, "run", str(workload), "--quiet", "--report", str(report)]
        costs = _COSTS if "ragged" in program else []
        subprocess.run([*command, *costs], check=True)
        ops = json.loads(report.read_text())["ops"]
    module = Module(data)
    kernels = {i.name: i for c in module.computations.values() for i in c.instructions}
    for op in ops:
        theirs = op.get("compiler_estimate_ns", 0) / op["count"]
        if theirs < _SHORTEST_NS or op["name"] not in kernels or op["engine"] != "tensor_core":
            continue
        kernel = kernels[op["name"]]
        parts = kernel.shape.tuple_shapes or (kernel.shape,)
        largest = max(parts, key=lambda part: math.prod(part.dims)).dims
        yield Row(
            f"{path.parent.name} {program}",
            path.parent.name.partition("-")[0],
            op["name"],
            family(module, kernel),
            "x".join(map(str, largest)),
            set_aside(program),
            op["total_ns"] / op["count"],
            theirs,
        )


def all_rows() -> list[Row]:
    """Of the corpus. Kernels that are alike, such as those of layers, count once."""
    binary = os.environ.get("TPUSIM_BINARY", str(ROOT / "build" / "tpusim"))
    kept: dict[tuple[object, ...], Row] = {}
    for path in sorted(CORPUS.glob("*/*.pb.gz")):
        for row in rows_of(path, binary):
            kept.setdefault((row.chip, row.family, row.results, row.theirs, row.aside), row)
    return list(kept.values())


def _cells(rows: list[Row]) -> str:
    if not rows:
        return "0 | |"
    errors = sorted(abs(row.ratio - 1) for row in rows)
    median = statistics.median(row.ratio for row in rows)
    return f"{len(rows)} | {median:.2f} | {errors[int(0.9 * (len(errors) - 1))]:.0%}"


def page(rows: list[Row]) -> str:
    """As Markdown."""
    groups: dict[tuple[str, str], list[Row]] = collections.defaultdict(list)
    for row in rows:
        groups[row.family, row.chip].append(row)
    lines = [
        "# Kernels of compiled modules",
        "",
        "The compiler writes into a module that it has made how many cycles it thinks that each",
        "kernel takes. Here are the kernels of the corpus of compiled modules,",
        "`tests/data/compiled`, with the time that the simulator gives them: windows, layouts and",
        "places are the compiler's, only the time is compared.",
        "`tools/validation/compiled_kernels.py` makes this page.",
        "",
        "An estimate is no measurement, and is known to be wrong in this:",
        "",
        "* Numbers of fewer than 32 bits are counted as elements, not as bytes, in elementwise",
        "  kernels and copies: their estimates are about twice what the memory takes, and a ratio",
        "  of 0.5 is right there.",
        "* All elementwise operations cost the same, exp as much as add.",
        "* Reductions along lanes cost as much as along rows.",
        "* Outside of products, reading VMEM costs as much as reading HBM, on v5e and v5p.",
        "* Slices, gathers and updates of a part count all of the array that they are a part of.",
        "* Of large products the estimate is within 11 % of measurements.",
        "",
        "The simulator's time is that in the program, with copies on their way beside the kernel.",
        f"Estimates of less than {_SHORTEST_NS / 1000:.0f} us are left out, and kernels of one",
        "chip and family with the same result and estimate count once. *Set aside*: from programs",
        "that no rule was made from. Ratio: simulated to estimated; p90: 90 % differ by less.",
        "",
        "| family | chip | kernels | median ratio | p90 | set aside | median ratio | p90 |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in _ORDER:
        for chip in _CHIPS:
            of = groups[name, chip]
            if of:
                used = _cells([row for row in of if not row.aside])
                aside = _cells([row for row in of if row.aside])
                lines.append(f"| {name} | {chip} | {used} | {aside} |")
    return "\n".join([*lines, ""])


def main() -> None:
    """Does what the command line says."""
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--worst", metavar="FAMILY", help="print its kernels that differ most")
    flags = p.parse_args()
    rows = all_rows()
    if not flags.worst:
        PAGE.write_text(page(rows))
        return
    # Those that are set aside are not looked at one by one.
    of = [row for row in rows if flags.worst in ("all", row.family) and not row.aside]
    for row in sorted(of, key=lambda row: -abs(math.log(row.ratio)))[:40]:
        times = f"{row.ours / 1000:10.2f} us, estimate {row.theirs / 1000:10.2f} us"
        print(f"{row.ratio:6.2f} {times}  {row.family}: {row.module} {row.name} {row.results}")


if __name__ == "__main__":
    main()
