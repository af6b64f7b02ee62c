"""The time of kernels of compiled modules beside the TPU compiler's estimate of the same kernel.

    python tools/validation/compiled_kernels.py [--worst FAMILY]

Where the compiler's schedule of a kernel is known (validation/kernels/bundles.json, which
kernel_bundles.py makes), what its block takes stands beside that as well. Runs the corpus
(tests/data/compiled) and writes docs/validation/compiled-kernels.md; --worst prints the kernels of
a family that differ most instead. Modules, windows and places are the compiler's, so that only the
time of a kernel is compared.
"""

import argparse
import collections
import dataclasses
import gzip
import itertools
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

import bundles  # noqa: E402
from compiler_store import set_aside  # noqa: E402
from tpusim.hlo import Instruction, Module, Shape  # noqa: E402

CORPUS = ROOT / "tests" / "data" / "compiled"
SCHEDULES = ROOT / "validation" / "kernels" / "bundles.json"
CHIPS = ROOT / "configs" / "chips"
PAGE = ROOT / "docs" / "validation" / "compiled-kernels.md"
# Its body the compiler keeps to itself.
_COSTS = ["--kernel-cost", "ragged-dot-metadata=1000,100000"]
# Shorter ones are a launch.
_SHORTEST_NS = 3000
_VMEM = 1  # in layouts
_CHIPS = ("v5e", "v5p", "v6e", "v7x")
# A kernel is of the first family of which it holds an operation.
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
_PRODUCTS = ("products", "products with reductions", "convolutions, batches of products")
# Families whose schedules are credible; the head of the page says what is wrong with others.
_CREDIBLE = ("elementwise", "copies")


@dataclasses.dataclass(frozen=True)
class Scheduled:
    """The compiler's schedule of a kernel beside ours alone on its chip, in nanoseconds."""

    block: float  # the bundles that are executed, or the fullest unit
    ours: float  # compute of all steps
    alone: float  # the kernel's time with no other beside it
    stalls: float  # of it, steps that wait for transfers
    without_compute: float

    @property
    def ratio(self) -> float:
        """Our block to the schedule."""
        return self.ours / self.block

    @property
    def time(self) -> float:
        """The kernel's, with the schedule for its block and our transfers beside it."""
        longer = self.block - self.ours
        if longer > 0:
            return self.alone + max(0.0, longer - self.stalls)
        return max(self.without_compute, self.alone + longer)


@dataclasses.dataclass(frozen=True)
class Row:
    """A kernel: both times are of one execution, in nanoseconds."""

    module: str
    chip: str
    name: str
    family: str
    results: str
    place: str
    aside: bool
    ours: float
    theirs: float
    narrow: float  # share of their time that elements as wide as they are would take
    scheduled: Scheduled | None = None

    @property
    def ratio(self) -> float:
        """Ours to theirs."""
        return self.ours / self.theirs

    @property
    def narrow_ratio(self) -> float:
        """Ours to theirs, with narrow elements as wide as they are."""
        return self.ratio if self.family in _PRODUCTS else self.ratio / self.narrow

    @property
    def credible(self) -> bool:
        """Whether the estimate is of what the kernel does (the head of the page)."""
        return self.family in _PRODUCTS or (self.family in _CREDIBLE and self.place == "HBM")


def inside(module: Module, instruction: Instruction) -> Iterator[Instruction]:
    """Yields the instructions of a fusion, at any depth; of any other kernel, the instruction."""
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


def arrays_of(shape: Shape) -> Iterator[Shape]:
    """The arrays of a tuple, or the one."""
    if not shape.tuple_shapes:
        yield shape
    for part in shape.tuple_shapes:
        yield from arrays_of(part)


def narrow_share(arrays: list[Shape]) -> float:
    """Their bytes over the same with 4 bytes at least per element."""
    real = sum(a.bytes for a in arrays)
    wide = sum(max(a.bytes, 4 * math.prod(a.dims)) for a in arrays if a.bytes)
    return real / wide if wide else 1


def unit_cycles(chip: str) -> tuple[float, float]:
    """Returns cycles per row of arrays, over all arrays, and per transcendental."""
    config = json.loads((CHIPS / f"{chip}.json").read_text())["chip"]
    mxu = {name: row["value"] for name, row in config["mxu"].items()}
    vpu = config["vpu"]
    return 1 / mxu["lhs_rows_per_cycle"] / mxu["count"], vpu["eup_cycles_per_vreg"]["value"]


def schedules_of(
    module: str, workload: pathlib.Path, binary: str, known: dict[str, list[int]]
) -> dict[str, Scheduled]:
    """Returns a module's kernels with a known schedule, by name."""
    if not known:
        return {}
    chip = module.partition("-")[0]
    clock = json.loads((CHIPS / f"{chip}.json").read_text())["chip"]["clock_hz"]["value"] / 1e9
    command = [binary, "kernel", str(workload), "*", "--json"]
    costs = _COSTS if "ragged" in module else []
    printed = subprocess.run([*command, *costs], check=True, capture_output=True, text=True)
    found: dict[str, Scheduled] = {}
    for kernel in json.loads(printed.stdout)["kernels"]:
        if counts := known.get(kernel["name"]):
            found[kernel["name"]] = Scheduled(
                bundles.Executed(*counts).cycles(*unit_cycles(chip)) / clock,
                kernel["compute_ns"],
                kernel["time_ns"],
                kernel["stalls_ns"],
                kernel["without_compute_ns"],
            )
    return found


def rows_of(path: pathlib.Path, binary: str, known: dict[str, list[int]]) -> Iterator[Row]:
    """Yields rows of a module; `known` has the bundles of its kernels."""
    data = gzip.decompress(path.read_bytes())
    program = path.name.removesuffix(".pb.gz")
    with tempfile.TemporaryDirectory() as folder:
        workload, report = pathlib.Path(folder) / "m.pb", pathlib.Path(folder) / "r.json"
        workload.write_bytes(data)
        command = [binary, "run", str(workload), "--quiet", "--report", str(report)]
        costs = _COSTS if "ragged" in program else []
        subprocess.run([*command, *costs], check=True)
        ops = json.loads(report.read_text())["ops"]
        scheduled = schedules_of(f"{path.parent.name} {program}", workload, binary, known)
    module = Module(data)
    kernels = {i.name: (i, c) for c in module.computations.values() for i in c.instructions}
    for op in ops:
        theirs = op.get("compiler_estimate_ns", 0) / op["count"]
        if theirs < _SHORTEST_NS or op["name"] not in kernels or op["engine"] != "tensor_core":
            continue
        kernel, computation = kernels[op["name"]]
        parts = list(arrays_of(kernel.shape))
        largest = max(parts, key=lambda part: math.prod(part.dims)).dims
        arrays = [a for o in computation.operands(kernel) for a in arrays_of(o.shape)] + parts
        yield Row(
            f"{path.parent.name} {program}",
            path.parent.name.partition("-")[0],
            op["name"],
            family(module, kernel),
            "x".join(map(str, largest)),
            "VMEM" if any(a.memory_space == _VMEM for a in arrays) else "HBM",
            set_aside(program),
            op["total_ns"] / op["count"],
            theirs,
            narrow_share(arrays),
            scheduled.get(op["name"]),
        )


def all_rows() -> list[Row]:
    """Returns rows of the corpus; equal kernels, such as those of layers, count once."""
    binary = os.environ.get("TPUSIM_BINARY", str(ROOT / "build" / "tpusim"))
    schedules = json.loads(SCHEDULES.read_text())["modules"]
    kept: dict[tuple[object, ...], Row] = {}
    for path in sorted(CORPUS.glob("*/*.pb.gz")):
        module = f"{path.parent.name} {path.name.removesuffix('.pb.gz')}"
        for row in rows_of(path, binary, schedules.get(module, {})):
            kept.setdefault((row.chip, row.family, row.results, row.theirs, row.aside), row)
    return list(kept.values())


def _cells(rows: list[Row]) -> str:
    if not rows:
        return "0 | | |"
    errors = sorted(abs(row.narrow_ratio - 1) for row in rows)
    median = statistics.median(row.ratio for row in rows)
    narrow = statistics.median(row.narrow_ratio for row in rows)
    return f"{len(rows)} | {median:.2f} | {narrow:.2f} | {errors[int(0.9 * (len(errors) - 1))]:.0%}"


_TITLES = (
    "| family | arrays in | chip | kernels | ratio | narrow | p90"
    " | set aside | ratio | narrow | p90 |",
    "|---|---|---|---|---|---|---|---|---|---|---|",
)


def _table(rows: list[Row]) -> list[str]:
    groups: dict[tuple[str, str, str], list[Row]] = collections.defaultdict(list)
    for row in rows:
        place = "" if row.family in _PRODUCTS else row.place
        groups[row.family, place, row.chip].append(row)
    lines = list(_TITLES)
    for key in itertools.product(_ORDER, ("", "HBM", "VMEM"), _CHIPS):
        if of := groups[key]:
            used = _cells([row for row in of if not row.aside])
            aside = _cells([row for row in of if row.aside])
            lines.append(f"| {' | '.join(key)} | {used} | {aside} |")
    return lines


def _beside_schedules(rows: list[Row]) -> list[str]:
    groups: dict[tuple[str, str, str], list[Row]] = collections.defaultdict(list)
    for row in rows:
        if row.scheduled:
            place = "" if row.family in _PRODUCTS else row.place
            groups[row.family, place, row.chip].append(row)
    lines = [
        "| family | arrays in | chip | kernels | block | p90 | estimate | time |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for key in itertools.product(_ORDER, ("", "HBM", "VMEM"), _CHIPS):
        known = [(row, row.scheduled) for row in groups[key] if row.scheduled]
        if not known:
            continue
        errors = sorted(abs(s.ratio - 1) for _, s in known)
        cells = [
            *key,
            str(len(known)),
            f"{statistics.median(s.ratio for _, s in known):.2f}",
            f"{errors[int(0.9 * (len(errors) - 1))]:.0%}",
            f"{statistics.median(row.theirs / s.time for row, s in known):.2f}",
            f"{statistics.median(s.alone / s.time for _, s in known):.2f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def page(rows: list[Row]) -> str:
    """Returns the page as Markdown."""
    return "\n".join(
        [
            "# Kernels of compiled modules",
            "",
            "The compiler writes into a module that it has made how many cycles it thinks that",
            "each kernel takes. Here are the kernels of the corpus of compiled modules,",
            "`tests/data/compiled`, with the time that the simulator gives them: windows, layouts",
            "and places are the compiler's, only the time is compared.",
            "`tools/validation/compiled_kernels.py` makes this page.",
            "",
            "The simulator's time is that in the program, with copies on their way beside the",
            f"kernel. Estimates of less than {_SHORTEST_NS / 1000:.0f} us are left out, and",
            "kernels of one chip and family with the same result and estimate count once.",
            "*Set aside*: from programs that no rule was made from. Ratio: median of simulated",
            "to estimated. *Narrow*: the same with the estimate scaled, outside of",
            "products, by the",
            "bytes of operands and results over those with 4 bytes at least per element, as the",
            "compiler counts elements there. p90: 90 % of the narrow ratios differ by less from 1.",
            "",
            "## Beside schedules",
            "",
            "An estimate is a formula; what the core executes is the schedule: the bundles that",
            "the compiler writes for the kernel, with all branches taken as they are",
            "(`validation/kernels/bundles.json`, `tools/validation/kernel_bundles.py`). It has no",
            "stalls: a kernel counts with its fullest unit if that takes longer (rows that go",
            "into the arrays, transcendentals). *Block*: median of the compute of all steps,",
            "simulated, to the schedule; p90: 90 % differ by less from 1. *Estimate*: median of",
            "the compiler's estimate to the kernel's time with the schedule for its block and our",
            "transfers and launch around it; *time*: the same of the simulated time. Where time",
            "is near 1 and the estimate is not, it is the estimate that is wrong: it counts waits",
            "of every step and every stream, and results in HBM of less than 4 bytes per element",
            "three times (bf16 [4096,4096] squared on v6e: 68009 bundles, estimated 144922 cycles,",
            "of which 111000 are 33.5 MB of results at 301 bytes per cycle; HBM has 937).",
            "",
            *_beside_schedules(rows),
            "",
            "## Estimates of what the kernel does",
            "",
            "Products, of which the estimate is within 11 % of measurements where they are large,",
            "and elementwise kernels and copies from HBM to HBM. All elementwise operations cost",
            "the estimate the same, exp as much as add; each step of a grid costs it",
            "1.0 to 1.2 us,",
            "which measured kernels contradict (`chip.dma.start_latency_ns` of v5e).",
            "",
            *_table([row for row in rows if row.credible]),
            "",
            "## Estimates of something else",
            "",
            "What the compiler itself schedules for a kernel, bundle by bundle, contradicts these",
            "(its schedules: `validation/kernels/schedules.json`); they are listed so that a",
            "change is seen, not to be met.",
            "",
            "* An array in VMEM is read and written by the loads and stores of the",
            "  block itself; no",
            "  transfer takes place. On v5e and v5p the estimate counts it like one in HBM, on v6e",
            "  and v7x a part of it: a product and sum of f32[4096,512] that is",
            "  narrowed to bf16, all",
            "  in VMEM, is scheduled in 3120 cycles on v5e and estimated at 59204; on",
            "  v6e in 4248 and",
            "  16778.",
            "* Reductions are estimated by registers and steps, whatever the reducer does: exp and",
            "  sum of f32[1024,32000] on v5e are scheduled in 38000 cycles, HBM takes",
            "  267000 for the",
            "  operand, the estimate is 597096. Along lanes costs it as much as along rows.",
            "* Slices, gathers and updates of a part count all of the array that they",
            "  are a part of.",
            "",
            *_table([row for row in rows if not row.credible]),
            "",
        ]
    )


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
    for row in sorted(of, key=lambda row: -abs(math.log(row.narrow_ratio)))[:40]:
        times = f"{row.ours / 1000:10.2f} us, estimate {row.theirs / 1000:10.2f} us"
        where = f"{row.family} in {row.place}: {row.module} {row.name} {row.results}"
        print(f"{row.narrow_ratio:6.2f} {times}  {where}")


if __name__ == "__main__":
    main()
