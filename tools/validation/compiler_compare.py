"""Both sides of a program: what the TPU compiler made of it, and what tpusim does."""

import collections
import contextlib
import dataclasses
import json
import os
import pathlib
import subprocess
from collections.abc import Iterator
from typing import Any

import compiler_collectives
import compiler_hlo
import compiler_kernels
import compiler_steps
import compiler_store
import compiler_summary
import tpusim
from compiler_kernels import CONTROL
from compiler_programs import PROGRAMS

CHIPS = compiler_store.ROOT / "configs" / "chips"

_UNPRICED = ("gather", "scatter", "sort", "custom-call", "topk", "top-k", "reduce-window")
# The least share of the compiler's compute whose ratio is more than noise.
_SMALL_PART = 0.05


@dataclasses.dataclass
class Side:
    """Figures of a program on one side; times in microseconds."""

    kernels: int = 0
    without_time: int = 0
    products: float = 0
    others: float = 0
    narrow: float = 0
    collectives: compiler_collectives.Counts = dataclasses.field(
        default_factory=collections.Counter
    )
    covers: compiler_collectives.Covers = dataclasses.field(default_factory=collections.Counter)
    peak: int = 0  # bytes of HBM, with the holes of the heap
    live: int = 0  # without

    @property
    def compute(self) -> float:
        """The time of all kernels."""
        return self.products + self.others

    @property
    def compute_narrow(self) -> float:
        """The time of all kernels, were elements outside of products no wider than they are."""
        return self.products + self.narrow


@dataclasses.dataclass
class Row(compiler_store.OnSlice):
    """A program on a slice."""

    program: str
    family: str
    slice_name: str
    theirs: Side | None = None
    ours: Side | None = None
    large: list[compiler_kernels.Pair] | None = None  # of the models whose kernels are listed
    error: str = ""
    step: compiler_steps.Step | None = None  # where the corpus has the compiled module

    def ratio(self, field: str, other: str = "") -> float | None:
        """Returns our figure over the compiler's; None where that would say nothing."""
        if not self.ours or not self.theirs:
            return None
        if (
            field not in ("kernels", "peak", "live")
            and self.theirs.without_time * 10 > self.theirs.kernels
        ):
            return None
        if field in ("products", "others"):
            part: float = getattr(self.theirs, field)
            if part < _SMALL_PART * self.theirs.compute:
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
    side = Side(peak=kept + memory["temp_bytes"], live=memory["peak_bytes"])
    for kernel in summary["kernels"]:
        side.kernels += kernel["count"]
        side.without_time += kernel["count"] if kernel["cycles"] is None else 0
        time = kernel["count"] * (kernel["cycles"] or 0) / cycles_per_us
        names = {kernel["opcode"], *kernel.get("ops", ())}
        if names & set(compiler_summary.PRODUCTS):
            side.products += time
        else:
            side.others += time
            side.narrow += time * narrow_share(kernel)
    side.collectives = compiler_collectives.of_compiler(summary)
    side.covers = compiler_collectives.covers(summary)
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
    peak = report["peak_hbm_bytes"]
    side = Side(peak=peak, live=peak - report["memory_at_peak"]["fragmentation_bytes"])
    for op in report["ops"]:
        category = op["category"]
        if op["engine"] != "tensor_core" or category.endswith(("-start", "-done", *CONTROL)):
            continue
        side.kernels += op["count"]
        if any(category == kind or op["name"].startswith(kind) for kind in left_out):
            continue
        if category in ("convolution fusion", "convolution", "ragged-dot"):
            side.products += op["total_ns"] / 1e3
        else:
            side.others += op["total_ns"] / 1e3
    side.collectives = compiler_collectives.of_tpusim(report)
    return side


@contextlib.contextmanager
def _at_root() -> Iterator[None]:
    """Exports name source files relative to the working directory."""
    folder = pathlib.Path.cwd()
    os.chdir(compiler_store.ROOT)
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
        """Returns the path of the exported program."""
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
                self._errors[program] = f"not exported: {compiler_store.one_line(str(error))}"
                raise RuntimeError(self._errors[program]) from error
        return path


def module_text(path: pathlib.Path, slice_name: str, stage: str) -> str:
    """The module at a stage."""
    command = [tpusim.find_binary(), "compile", "--quiet", "--emit", stage]
    done = subprocess.run(
        [*command, "--config", slice_name, str(path)], capture_output=True, text=True, check=True
    )
    return done.stdout


def row_of(summary: dict[str, Any], exports: Exports) -> Row:
    """Both sides of a summary."""
    row = Row(summary["program"], summary["family"], summary["slice"])
    if "error" in summary:
        row.error = f"TPU compiler: {summary['error']}"
        return row
    row.theirs = of_compiler(summary)
    try:
        report = tpusim.run(exports.path(row.program), config=row.slice_name)
        row.ours = of_tpusim(report, unpriced(summary))
        row.step = compiler_steps.step_of(row.program, row.slice_name, report["step_time_ns"] / 1e3)
        if row.theirs.covers:
            text = module_text(exports.path(row.program), row.slice_name, "schedule")
            trips = PROGRAMS[row.program].example.trip_counts.get("*", 1)
            scheduled = compiler_summary.summarize(compiler_hlo.parse(text), trips)
            row.ours.covers = compiler_collectives.covers(scheduled)
        if row.program.partition("_")[0] in compiler_kernels.MODELS:
            text = module_text(exports.path(row.program), row.slice_name, "optimized")
            row.large = compiler_kernels.pairs(report, text, summary)
    except RuntimeError as error:
        row.error = compiler_store.one_line(str(error))
    return row
