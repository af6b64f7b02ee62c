"""Puts tpusim beside the summaries of compiled programs: docs/validation/compiler.md."""

import argparse
import collections
import math
import statistics
import sys
import tempfile
from collections.abc import Iterable, Sequence

import compiler_collectives
import compiler_kernels
import compiler_steps
import compiler_store
import compiler_summaries
from compiler_compare import Exports, Row, row_of

PAGE = compiler_store.ROOT / "docs" / "validation" / "compiler.md"

INTRODUCTION = """# Programs beside the TPU compiler

Written by `python tools/validation/compiler.py --page`; do not edit.

`validation/compiler` has a summary of what the TPU compiler made of every program below, compiled
ahead of time for slices that are only described. Nothing was executed: these are choices and
estimates of a compiler, not measurements. tpusim compiles the same JAX programs, built over an
abstract mesh, for the same slices.

**Set aside.** A program whose name has a SHA-256 that is divisible by three only tests: no rule of
the simulator may be made from it. The rule was in the code before any rule of the simulator was
made from a summary. Such programs have their own means, and their rows are at the end.

**What is compared.**

* *Kernels*: how many are executed, loops multiplied by their trip counts. What the compiler neither
  prices nor gives more than one element is none, nor are copies and slices with a start and a done.
* *Compute*: the sum of the compiler's estimated cycles, by the chip's clock, and the time of
  tpusim's kernels, in microseconds. Where the compiler has no estimate for a lookup, a sort or a
  custom call, tpusim's are left out as well; where more than a tenth of its kernels have none,
  times are not compared.
* *Products* and *others*: tpusim's time over the compiler's, for kernels with a product or
  convolution inside and for all others; blank where the compiler spends less than a twentieth of
  its cycles there, as what it puts into a product is then a kernel of ours, or the reverse.
  Estimates count an element of fewer than 4 bytes as one of 4 bytes where there is no product.
  *Narrow* scales each estimate by the bytes of the kernel's operands and results over the same
  with 4 bytes at least per element: a right answer would lie between this and the ratio beside it.
* *Collectives*, executed: `s` synchronous, `a` with a start and a done or carried by kernels, `w`
  permutes of a windowed einsum, which the compiler made of a product and a collective.
* *HBM*: the peak, in MB, that tpusim reports, and arguments + results - donated + temporaries of
  `memory_analysis`. *Live*: the same without the holes of tpusim's heap, and the
  `peak_memory_in_bytes` of `memory_analysis`, which may count arrays in VMEM.
* *Step, module*: the step of the export and of the compiled module, where the corpus of modules has
  it; *HBM, module*: what is live in that module, here and by the compiler's buffer assignment.

**What is not.** The compiler says nothing of how long collectives and Pallas kernels take, nor of
waits. Operands that it copies to VMEM ahead of a kernel cost the kernel nothing and the copy has no
estimate, so a product with few rows, or a step of decoding, looks cheaper than HBM allows. Its
cycles are a model of its own: [kernels.md](kernels.md) has what they contain, and that measurements
contradict part of it. So a ratio of one is not the aim; what stands out is.
Conditionals count with their longest branch; loops that depend on data run as often as the example
says, on both sides.
"""

_SHORT = {
    **{"all-reduce": "AR", "all-gather": "AG", "reduce-scatter": "RS", "all-to-all": "A2A"},
    **{"collective-permute": "CP", "ragged-all-to-all": "RA2A", "collective-broadcast": "CB"},
}
_MODES = {"sync": "s", "async": "a", "windowed": "w"}


def collectives_text(counts: compiler_collectives.Counts) -> str:
    """AR7 AGa29: synchronous ones without a letter."""
    parts = []
    kinds: collections.Counter[tuple[str, str]] = collections.Counter()
    for (kind, _, _, mode), count in counts.items():
        kinds[kind, mode] += count
    for (kind, mode), count in sorted(kinds.items()):
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
    ("compute, narrow", "compute", "compute_narrow"),
    ("products", "products", ""),
    ("others", "others", ""),
    ("others, narrow", "others", "narrow"),
    ("HBM", "peak", ""),
    ("live", "live", ""),
)


def near(ratios: Iterable[float | None]) -> str:
    """Share of programs that are at most 15 % off."""
    known = [ratio for ratio in ratios if ratio]
    if not known:
        return "-"
    return f"{sum(abs(ratio - 1) <= 0.15 for ratio in known) / len(known):.0%}"


def means(rows: Sequence[Row], groups: dict[str, list[Row]], head: str) -> list[str]:
    """Geometric means by group, apart for what is set aside."""
    heads = [title for title, *_ in FIELDS]
    heads.insert(1, "within 15 %")
    lines = [f"| {head} | programs | {' | '.join(heads)} |", "|---" * (len(heads) + 2) + "|"]
    for name, group in {**groups, "all": list(rows)}.items():
        for aside in (False, True):
            some = [r for r in group if r.ours and r.aside == aside]
            cells = [geometric(r.ratio(field, other) for r in some) for _, field, other in FIELDS]
            cells.insert(1, near(r.ratio("kernels") for r in some))
            title = f"{name}, set aside" if aside else name
            if some:
                lines.append(f"| {title} | {len(some)} | {' | '.join(cells)} |")
    return lines


def grouped(rows: Sequence[Row], attribute: str) -> dict[str, list[Row]]:
    """Rows by chip, family or slice, in the order in which they come."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(getattr(row, attribute), []).append(row)
    return groups


def totals(rows: Sequence[Row]) -> list[str]:
    """Sums the collectives of a slice's programs."""
    lines = ["| slice | programs | tpusim | TPU compiler |", "|---|---|---|---|"]
    for slice_name, group in grouped(rows, "slice_name").items():
        for aside in (False, True):
            ours: compiler_collectives.Counts = collections.Counter()
            theirs: compiler_collectives.Counts = collections.Counter()
            some = [r for r in group if r.aside == aside and r.ours and r.theirs]
            for r in some:
                ours.update(r.ours.collectives if r.ours else {})
                theirs.update(r.theirs.collectives if r.theirs else {})
            if ours or theirs:
                title = f"{slice_name}, set aside" if aside else slice_name
                cells = f"{collectives_text(ours)} | {collectives_text(theirs)}"
                lines.append(f"| {title} | {len(some)} | {cells} |")
    return lines


AGREEMENT = """The same: of one kind, with as many bytes and as large groups, as often executed. A
program has the same collectives if all are; of single ones, shares are of the side that has more.
They run alike if both are synchronous, asynchronous or windowed."""


def agreement(rows: Sequence[Row]) -> list[str]:
    """Shares by chip, of the programs that rules may be made from and of the others."""
    groups: dict[str, list[tuple[compiler_collectives.Counts, compiler_collectives.Counts]]] = {}
    for chip, some in [*grouped(rows, "chip").items(), ("all", list(rows))]:
        for aside in (False, True):
            groups[f"{chip}, set aside" if aside else chip] = [
                (r.ours.collectives, r.theirs.collectives)
                for r in some
                if r.aside == aside and r.ours and r.theirs
            ]
    return compiler_collectives.table(groups)


COVERED = """What covers them: of the asynchronous and windowed ones that both sides have, by kind,
bytes, groups and how they run, what is between start and done in the scheduled modules: a kernel
with a *product* or convolution; else *other kernels*; else synchronous *collectives*; else
*nothing*. Alike are those that both have in the same class; shares of each class are tpusim's /
the compiler's."""


def covered(rows: Sequence[Row]) -> list[str]:
    """Tables coverage by chip: programs that rules may be made from, and the others."""
    groups: dict[str, list[tuple[compiler_collectives.Covers, compiler_collectives.Covers]]] = {}
    for chip, some in [*grouped(rows, "chip").items(), ("all", list(rows))]:
        for aside in (False, True):
            groups[f"{chip}, set aside" if aside else chip] = [
                (r.ours.covers, r.theirs.covers)
                for r in some
                if r.aside == aside and r.ours and r.theirs
            ]
    return compiler_collectives.cover_table(groups)


def number(ratio: float | None) -> str:
    """Writes the number of a cell."""
    return "" if ratio is None else f"{ratio:.2f}"


def table(rows: Sequence[Row]) -> list[str]:
    """Program by program."""
    lines = [
        "| program | kernels | compute | ratio | narrow | products | others | others, narrow"
        " | collectives, tpusim | TPU compiler | HBM | ratio | live | ratio" + compiler_steps.HEADS,
        "|" + "---|" * (14 + compiler_steps.COUNT),
    ]
    for r in rows:
        if not r.ours or not r.theirs:
            continue
        ours, theirs = r.ours, r.theirs
        lines.append(
            f"| {r.program} | {ours.kernels} / {theirs.kernels}"
            f" | {ours.compute:.1f} / {theirs.compute:.1f} | {number(r.ratio('compute'))}"
            f" | {number(r.ratio('compute', 'compute_narrow'))}"
            f" | {number(r.ratio('products'))} | {number(r.ratio('others'))}"
            f" | {number(r.ratio('others', 'narrow'))}"
            f" | {collectives_text(ours.collectives)} | {collectives_text(theirs.collectives)}"
            f" | {ours.peak / 1e6:.1f} / {theirs.peak / 1e6:.1f} | {number(r.ratio('peak'))}"
            f" | {ours.live / 1e6:.1f} / {theirs.live / 1e6:.1f} | {number(r.ratio('live'))}"
            f"{compiler_steps.cells(r.step)}"
        )
    return lines


def furthest(rows: Sequence[Row], field: str, count: int = 12) -> list[str]:
    """Lists the programs that are off by most, among those that rules may be made from."""
    found = [(r.ratio(field), r) for r in rows if not r.aside]
    ranked = sorted(
        ((ratio, r) for ratio, r in found if ratio),
        key=lambda pair: (-abs(math.log(pair[0])), pair[1].program, pair[1].slice_name),
    )
    return [f"| {r.program} | {r.slice_name} | {ratio:.2f} |" for ratio, r in ranked[:count]]


LARGE_KERNELS = f"""## Large kernels of train steps

Every kernel of tpusim that takes more than {compiler_kernels.LARGE:.0%} of the compute of a step,
and the compiler's kernel that does the same: as large a product or convolution, or else the same
kind of work on arrays as large (`tools/validation/compiler_kernels.py`). Shares are of the compute
of each side; a dash is a kernel that the compiler has and gives no estimate for."""


def large_kernels(rows: Sequence[Row]) -> list[str]:
    """A table per model."""
    parts = [LARGE_KERNELS]
    for begin, title in compiler_kernels.MODELS.items():
        parts += ["", f"### {title}", ""]
        parts += ["| program | slice | kernel | scope | results | share | TPU compiler | share |"]
        parts += ["|---|---|---|---|---|---|---|---|"]
        for r in rows:
            if r.large is None or r.program.partition("_")[0] != begin:
                continue
            where = f"| {r.program} | {r.slice_name} |"
            if not r.large:
                parts.append(f"{where} none | | | | | |")
            for pair in r.large:
                ours, theirs = pair.ours, pair.theirs
                share = f"{pair.share:.1%}" if theirs and theirs["cycles"] is not None else "-"
                other = f"{theirs['name']} | {share} |" if theirs else "**none** | |"
                kernel = f"{ours.name} | {ours.scope} | {ours.results} | {ours.share:.1%}"
                parts.append(f"{where} {kernel} | {other}")
    return parts


def page(rows: Sequence[Row], other_steps: Sequence[compiler_steps.Step] = ()) -> str:
    """The whole text; `other_steps` are of programs of the corpus that are in no row."""
    parts = [INTRODUCTION, "## Means", ""]
    parts += ["tpusim over the TPU compiler: geometric mean, and by which factor a program is off."]
    parts += ["", *means(rows, grouped(rows, "chip"), "chip")]
    parts += ["", *means(rows, grouped(rows, "family"), "family")]
    steps = [*(r.step for r in rows if r.step), *other_steps]
    if steps:
        parts += ["", *compiler_steps.section(steps)]
    parts += ["", *large_kernels(rows)]
    parts += ["", "## Collectives of all programs", "", *totals(rows)]
    parts += ["", AGREEMENT, "", *agreement(rows)]
    parts += ["", COVERED, "", *covered(rows)]
    parts += ["", "## Furthest off", "", "Of programs that are not set aside."]
    for title, field in (("Compute", "compute"), ("HBM", "peak"), ("Kernels", "kernels")):
        parts += ["", f"| {title} | slice | ratio |", "|---|---|---|", *furthest(rows, field)]
    for slice_name, some in grouped([r for r in rows if not r.aside], "slice_name").items():
        parts += ["", f"## {slice_name}", "", *table(some)]
    for slice_name, some in grouped([r for r in rows if r.aside], "slice_name").items():
        parts += ["", f"## {slice_name}, set aside", "", *table(some)]
    if other_steps:
        parts += ["", "## Programs of the corpus alone", "", *compiler_steps.others(other_steps)]
    refused = [f"| {r.program} | {r.slice_name} | {r.error} |" for r in rows if r.error]
    if refused:
        parts += ["", "## Not compared", "", "| program | slice | why |", "|---|---|---|", *refused]
    return "\n".join(parts) + "\n"


def write(flags: argparse.Namespace) -> None:
    """Runs tpusim on everything that there is a summary of."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        exports = Exports(folder)
        for program, slice_name in compiler_store.selected(flags):
            if not compiler_summaries.has_summary(program, slice_name):
                continue
            row = row_of(compiler_summaries.summary(program, slice_name), exports)
            rows.append(row)
            print(slice_name, program, number(row.ratio("compute")), row.error, file=sys.stderr)
    others = list(compiler_steps.without_summary(flags.chips))
    PAGE.write_text(page(rows, others))
