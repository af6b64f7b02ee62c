"""Puts tpusim beside the summaries of compiled programs: docs/validation/compiler.md."""

import argparse
import collections
import contextlib
import dataclasses
import json
import math
import os
import pathlib
import statistics
import sys
import tempfile
from collections.abc import Iterable, Sequence
from typing import Any

import compiler
import compiler_hlo
import compiler_summary
import tpusim
from compiler_programs import PROGRAMS

PAGE = compiler.ROOT / "docs" / "validation" / "compiler.md"
CHIPS = compiler.ROOT / "configs" / "chips"

INTRODUCTION = """# Programs beside the TPU compiler

Written by `python tools/validation/compiler.py --page`; do not edit.

`validation/compiler` has a summary of what the TPU compiler made of every program below, compiled
ahead of time for slices that are only described. Nothing was executed: these are choices and
estimates of a compiler, not measurements. tpusim compiles the same JAX programs, built over an
abstract mesh, for the same slices.

**Set aside.** A program whose name has a SHA-256 that is divisible by three only tests: no rule of
the simulator may be made from it. The rule was in the code before any rule of the simulator was
made from a summary. Its rows are marked with a star, and have their own means.

**What is compared.**

* *Kernels*: how many are executed, loops multiplied by their trip counts. What the compiler neither
  prices nor gives more than one element is none, nor are copies and slices with a start and a done.
* *Compute*: the sum of the compiler's estimated cycles, by the chip's clock, and the time of
  tpusim's kernels, in microseconds. Where the compiler has no estimate for a lookup, a sort or a
  custom call, tpusim's are left out as well; where more than a tenth of its kernels have none,
  times are not compared.
* *Products* and *others*: tpusim's time over the compiler's, for kernels with a product or
  convolution inside and for all others. Estimates count an element of fewer than 4 bytes as one of
  4 bytes where there is no product. *Others, narrow* scales each estimate by the bytes of the
  kernel's operands and results over the same with 4 bytes at least per element: between this and
  *others* is where a right answer would be.
* *Collectives*, executed: `s` synchronous, `a` with a start and a done or carried by kernels, `w`
  permutes of a windowed einsum, which the compiler made of a product and a collective.
* *HBM*: the peak, in MB, that tpusim reports, and arguments + results - donated + temporaries of
  `memory_analysis` (whose own peak also counts what is in VMEM).

**What is not.** The compiler says nothing of how long collectives and Pallas kernels take, nor of
waits, and its cycles are a model of its own: [kernels.md](kernels.md) has what they contain, and
that measurements contradict part of it. So a ratio of one is not the aim; what stands out is.
Conditionals count with their longest branch. Loops that depend on data count once with the
compiler, and as the program says with tpusim.
"""

_SHORT = {
    **{"all-reduce": "AR", "all-gather": "AG", "reduce-scatter": "RS", "all-to-all": "A2A"},
    **{"collective-permute": "CP", "ragged-all-to-all": "RA2A", "collective-broadcast": "CB"},
}
_MODES = {"sync": "s", "async": "a", "windowed": "w"}
_CONTROL = ("while", "conditional", "call", "async-start", "async-update", "async-done")
_UNPRICED = ("gather", "scatter", "sort", "custom-call", "topk", "top-k", "reduce-window")
_PRODUCTS = ("convolution", "dot", "ragged-dot")


@dataclasses.dataclass
class Side:
    """What is compared of a program; times in microseconds."""

    kernels: int = 0
    without_time: int = 0
    products: float = 0
    others: float = 0
    narrow: float = 0
    collectives: collections.Counter[tuple[str, str]] = dataclasses.field(
        default_factory=collections.Counter
    )
    peak: int = 0

    @property
    def compute(self) -> float:
        """Of all kernels."""
        return self.products + self.others


@dataclasses.dataclass
class Row:
    """A program on a slice."""

    program: str
    slice_name: str
    theirs: Side | None = None
    ours: Side | None = None
    error: str = ""

    @property
    def aside(self) -> bool:
        """Whether it only tests."""
        return compiler.set_aside(self.program)

    def ratio(self, field: str, other: str = "") -> float | None:
        """Tpusim over the compiler; None where either has nothing."""
        if not self.ours or not self.theirs:
            return None
        if field not in ("kernels", "peak") and self.theirs.without_time * 10 > self.theirs.kernels:
            return None
        mine, their = getattr(self.ours, field), getattr(self.theirs, other or field)
        return mine / their if mine > 0 and their > 0 else None


def clock_of(chip: str) -> float:
    """Cycles per microsecond."""
    described = json.loads((CHIPS / f"{chip}.json").read_text())
    hertz: float = described["chip"]["clock_hz"]["value"]
    return hertz / 1e6


def narrow_share(kernel: dict[str, Any]) -> float:
    """Bytes of operands and results over the same with 4 bytes at least per element."""
    real = padded = 0.0
    for text in (*kernel["operands"], *kernel["results"]):
        for array in compiler_hlo.arrays_of(text):
            real += array.elements * array.element_bytes
            padded += array.elements * max(4, array.element_bytes)
    return real / padded if padded else 1


def of_compiler(summary: dict[str, Any]) -> Side:
    """The compiler's side."""
    cycles_per_us = clock_of(summary["slice"].partition("-")[0])
    memory = summary["memory"]
    kept = memory["argument_bytes"] + memory["output_bytes"] - memory["alias_bytes"]
    side = Side(peak=kept + memory["temp_bytes"])
    for kernel in summary["kernels"]:
        side.kernels += kernel["count"]
        side.without_time += kernel["count"] if kernel["cycles"] is None else 0
        time = kernel["count"] * (kernel["cycles"] or 0) / cycles_per_us
        names = {kernel["opcode"], *kernel.get("ops", ())}
        if names & set(_PRODUCTS):
            side.products += time
        else:
            side.others += time
            side.narrow += time * narrow_share(kernel)
    for row in summary["collectives"]:
        side.collectives[row["kind"], row["mode"]] += row["count"]
    return side


def unpriced(summary: dict[str, Any]) -> set[str]:
    """Kinds of operations that the compiler has no estimate for in this program."""
    found: set[str] = set()
    for kernel in summary["kernels"]:
        if kernel["cycles"] is None:
            found |= {kernel["opcode"], *kernel.get("ops", ())} & set(_UNPRICED)
            found |= {"scatter"} if "scatter" in kernel["name"] else set()
            found |= {"gather"} if "gather" in kernel["name"] else set()
            found |= (
                {"topk", "top-k", "sort"} if "sort" in found or "TopK" in str(kernel) else set()
            )
    return found


def of_tpusim(report: dict[str, Any], left_out: set[str]) -> Side:
    """Tpusim's side, without the time of what the compiler does not price."""
    side = Side(peak=report["peak_hbm_bytes"])
    for op in report["ops"]:
        category = op["category"]
        kind = category.removesuffix("-start")
        if category.endswith("-start") and kind in compiler_summary.COLLECTIVES:
            side.collectives[kind, "async"] += op["count"]
        if op["engine"] != "tensor_core" or category.endswith(("-start", "-done", *_CONTROL)):
            continue
        side.kernels += op["count"]
        if any(category == kind or op["name"].startswith(kind) for kind in left_out):
            continue
        if category in ("convolution fusion", "convolution", "ragged-dot"):
            side.products += op["total_ns"] / 1e3
        else:
            side.others += op["total_ns"] / 1e3
    totals: collections.Counter[str] = collections.Counter()
    for row in report["collectives"]:
        totals[row["kind"]] += row["count"]
    for kind, count in totals.items():
        waiting = count - side.collectives[kind, "async"]
        if waiting > 0:
            side.collectives[kind, "sync"] += waiting
    return side


@contextlib.contextmanager
def _at_root() -> Any:
    """Exports name source files relative to the working directory."""
    folder = pathlib.Path.cwd()
    os.chdir(compiler.ROOT)
    try:
        yield
    finally:
        os.chdir(folder)


class Exports:
    """Workload files of programs, made when first asked for; the last one is kept."""

    def __init__(self, folder: str):
        self._folder = pathlib.Path(folder)
        self._errors: dict[str, str] = {}

    def path(self, program: str) -> pathlib.Path:
        """Of the exported program."""
        path = self._folder / f"{program}.pb"
        if program in self._errors:
            raise RuntimeError(self._errors[program])
        if not path.exists():
            example = PROGRAMS[program].example
            try:
                with _at_root():
                    step, arguments = example()
                    tpusim.export(
                        step,
                        *arguments,
                        path=path,
                        name=program,
                        config=example.config,
                        trip_counts=example.trip_counts,
                    )
            except Exception as error:  # Of whatever kind: the row says so.
                self._errors[program] = f"not exported: {compiler.one_line(str(error))}"
                raise RuntimeError(self._errors[program]) from error
        return path


def row_of(summary: dict[str, Any], exports: Exports) -> Row:
    """Both sides of a summary."""
    row = Row(summary["program"], summary["slice"])
    if "error" in summary:
        row.error = f"TPU compiler: {summary['error']}"
        return row
    row.theirs = of_compiler(summary)
    try:
        report = tpusim.run(exports.path(row.program), config=row.slice_name)
        row.ours = of_tpusim(report, unpriced(summary))
    except (tpusim.TpusimError, RuntimeError) as error:
        row.error = compiler.one_line(str(error))
    return row


def collectives_text(counts: collections.Counter[tuple[str, str]]) -> str:
    """AR7 AGa29: synchronous ones without a letter."""
    parts = []
    for (kind, mode), count in sorted(counts.items()):
        if count:
            letter = _MODES[mode] if mode != "sync" else ""
            parts.append(f"{_SHORT.get(kind, kind)}{letter}{count}")
    return " ".join(parts)


def geometric(ratios: Iterable[float | None]) -> str:
    """Geometric mean, and the factor by which they are off on average."""
    logs = [math.log(ratio) for ratio in ratios if ratio]
    if not logs:
        return "-"
    off = math.exp(statistics.fmean(map(abs, logs)))
    return f"{math.exp(statistics.fmean(logs)):.2f} (x{off:.2f})"


FIELDS = (
    ("kernels", "kernels", ""),
    ("compute", "compute", ""),
    ("products", "products", ""),
    ("others", "others", ""),
    ("others, narrow", "others", "narrow"),
    ("HBM", "peak", ""),
)


def means(rows: Sequence[Row]) -> list[str]:
    """Geometric means by chip, apart for what is set aside."""
    heads = [title for title, *_ in FIELDS]
    lines = [f"| chip | programs | {' | '.join(heads)} |", "|---" * (len(heads) + 2) + "|"]
    chips = list(dict.fromkeys(row.slice_name.partition("-")[0] for row in rows))
    for chip in (*chips, "all"):
        for aside in (False, True):
            some = [
                r
                for r in rows
                if r.ours and r.aside == aside and chip in ("all", r.slice_name.partition("-")[0])
            ]
            cells = [geometric(r.ratio(field, other) for r in some) for _, field, other in FIELDS]
            title = f"{chip}, set aside" if aside else chip
            lines.append(f"| {title} | {len(some)} | {' | '.join(cells)} |")
    return lines


def number(ratio: float | None) -> str:
    """Of a cell."""
    return "" if ratio is None else f"{ratio:.2f}"


def table(rows: Sequence[Row]) -> list[str]:
    """Program by program."""
    lines = [
        "| program | kernels | compute | ratio | products | others | others, narrow | collectives,"
        " tpusim | TPU compiler | HBM | ratio |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for r in rows:
        if not r.ours or not r.theirs:
            continue
        ours, theirs = r.ours, r.theirs
        lines.append(
            f"| {r.program}{' *' if r.aside else ''} | {ours.kernels} / {theirs.kernels}"
            f" | {ours.compute:.1f} / {theirs.compute:.1f} | {number(r.ratio('compute'))}"
            f" | {number(r.ratio('products'))} | {number(r.ratio('others'))}"
            f" | {number(r.ratio('others', 'narrow'))}"
            f" | {collectives_text(ours.collectives)} | {collectives_text(theirs.collectives)}"
            f" | {ours.peak / 1e6:.1f} / {theirs.peak / 1e6:.1f} | {number(r.ratio('peak'))} |"
        )
    return lines


def furthest(rows: Sequence[Row], field: str, count: int = 12) -> list[str]:
    """What is off by most, of programs that rules may be made from."""
    found = [(r.ratio(field), r) for r in rows if not r.aside]
    ranked = sorted(
        ((ratio, r) for ratio, r in found if ratio),
        key=lambda pair: (-abs(math.log(pair[0])), pair[1].program, pair[1].slice_name),
    )
    return [f"| {r.program} | {r.slice_name} | {ratio:.2f} |" for ratio, r in ranked[:count]]


def page(rows: Sequence[Row]) -> str:
    """The whole text."""
    by_slice: dict[str, list[Row]] = {}
    for row in rows:
        by_slice.setdefault(row.slice_name, []).append(row)
    parts = [INTRODUCTION, "## Means", ""]
    parts += ["tpusim over the TPU compiler: geometric mean, and by which factor a program is off."]
    parts += ["", *means(rows), "", "## Furthest off", ""]
    parts += ["Of programs that are not set aside."]
    for title, field in (("Compute", "compute"), ("HBM", "peak"), ("Kernels", "kernels")):
        parts += ["", f"| {title} | slice | ratio |", "|---|---|---|", *furthest(rows, field)]
    for slice_name, some in by_slice.items():
        parts += ["", f"## {slice_name}", "", *table(some)]
    refused = [f"| {r.program} | {r.slice_name} | {r.error} |" for r in rows if r.error]
    if refused:
        parts += ["", "## Not compared", "", "| program | slice | why |", "|---|---|---|", *refused]
    return "\n".join(parts) + "\n"


def write(flags: argparse.Namespace) -> None:
    """Runs tpusim on everything that there is a summary of."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        exports = Exports(folder)
        for program, slice_name in compiler.selected(flags):
            path = compiler.SUMMARIES / slice_name / f"{program}.json.gz"
            if not path.exists():
                continue
            row = row_of(compiler.unpack(path), exports)
            rows.append(row)
            print(slice_name, program, number(row.ratio("compute")), row.error, file=sys.stderr)
    rows.sort(key=lambda r: flags.chips.index(r.slice_name.partition("-")[0]))
    PAGE.write_text(page(rows))
