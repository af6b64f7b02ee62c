"""The step of a program's export beside the step of its compiled module, on the same machine.

Both are simulated: what differs is what our compiler made of the program and what the TPU compiler
did. Modules are those of tests/data/compiled (compiled_modules.py), as far as the corpus has them.
"""

import dataclasses
import fnmatch
import gzip
import json
import math
import pathlib
import statistics
import tempfile
from collections.abc import Iterator, Sequence

import compiled_buffers
import compiled_modules
import compiler_store
import tpusim
from compiler_summaries import has_summary

# The body of this kernel, which computes indices for a ragged product, is MLIR as text.
_COSTS = ("--kernel-cost", "ragged-dot-metadata=1000,100000")
NEAR, FAR = 0.15, 0.35
SAME_MEMORY = 0.03


@dataclasses.dataclass
class Step(compiler_store.OnSlice):
    """The step of a program on a slice: times in microseconds, memory in bytes."""

    program: str
    slice_name: str
    export: float | None  # None: it cannot be exported
    module: float
    live: int  # of the module, in HBM at most
    assigned: int | None  # the same by its own buffer assignment, where that is kept
    vmem: int = 0  # arrays of the module in VMEM when it is fullest, without windows
    vmem_assigned: int | None = None

    @property
    def ratio(self) -> float | None:
        """The export's step over the module's."""
        return self.export / self.module if self.export else None

    @property
    def memory_ratio(self) -> float | None:
        """Our peak over that of the buffer assignment."""
        return self.live / self.assigned if self.assigned else None


def step_of(program: str, slice_name: str, export: float | None) -> Step | None:
    """Runs the compiled module, if the corpus has it; `export` is the step time of the export."""
    path = compiled_modules.path_of(program, slice_name)
    if not path.exists():
        return None
    with tempfile.TemporaryDirectory() as folder:
        module = pathlib.Path(folder) / f"{program}.pb"
        module.write_bytes(gzip.decompress(path.read_bytes()))
        options = _COSTS if "ragged" in program else ()
        report = tpusim.run(module, config=slice_name, options=options)
    figures = {}
    if compiled_buffers.KEPT.exists():
        figures = compiled_buffers.kept().get(slice_name, {}).get(program, {})
    vmem = report.get("vmem_at_peak", {"arrays": []})
    return Step(
        program,
        slice_name,
        export,
        report["step_time_ns"] / 1e3,
        report["peak_hbm_bytes"] - report["memory_at_peak"]["fragmentation_bytes"],
        figures.get("hbm_live_bytes"),
        sum(array["bytes"] for array in vmem["arrays"]),
        figures.get("vmem_live_bytes"),
    )


def without_summary(chips: Sequence[str]) -> Iterator[Step]:
    """Yields steps of programs of the corpus that are not compared by a summary."""
    for slice_name, programs in compiled_modules.SELECTION.items():
        for program in programs.split():
            if has_summary(program, slice_name) or slice_name.partition("-")[0] not in chips:
                continue
            example = compiled_modules.example_of(program)
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / f"{program}.pb"
                step, arguments = example()
                tpusim.export(
                    step,
                    *arguments,
                    path=path,
                    name=program,
                    config=example.config,
                    trip_counts=example.trip_counts,
                )
                flags = compiled_modules.options_of(program)
                text = " ".join(f"--{flag}={value}" for flag, value in flags.items())
                options = ("--xla-flags", text) if flags else ()
                report = tpusim.run(path, config=slice_name, options=options)
            found = step_of(program, slice_name, report["step_time_ns"] / 1e3)
            if found is not None:
                yield found


def _share(values: Sequence[float], most: float) -> str:
    return f"{sum(abs(v - 1) <= most for v in values) / len(values):.0%}" if values else "-"


def _row(title: str, steps: Sequence[Step]) -> str:
    ratios = [s.ratio for s in steps if s.ratio]
    memory = [s.memory_ratio for s in steps if s.memory_ratio]
    median = f"{statistics.median(ratios):.2f}" if ratios else "-"
    worst = f"{max(memory, key=lambda m: abs(m - 1)) - 1:+.1%}" if memory else "-"
    cells = [title, f"{len(ratios)}", median, _share(ratios, NEAR), _share(ratios, FAR)]
    cells += [f"{len(memory)}", _share(memory, SAME_MEMORY), worst]
    return f"| {' | '.join(cells)} |"


def summary(steps: Sequence[Step]) -> list[str]:
    """Tables steps by chip, apart for programs that are set aside."""
    lines = [
        f"| chip | programs | median | within {NEAR:.0%} | within {FAR:.0%} | modules"
        f" | HBM within {SAME_MEMORY:.0%} | worst |",
        "|---|---|---|---|---|---|---|---|",
    ]
    groups: dict[str, list[Step]] = {}
    for s in steps:
        groups.setdefault(s.chip, []).append(s)
    for chip, some in [*groups.items(), ("all", list(steps))]:
        for aside in (False, True):
            those = [s for s in some if s.aside == aside]
            if those:
                lines.append(_row(f"{chip}, set aside" if aside else chip, those))
    return lines


# Why the two steps differ, by glob of programs, as far as it is known.
WHY: dict[str, str] = json.loads(
    (pathlib.Path(__file__).parent / "compiler_steps_why.json").read_text()
)


def why(program: str) -> str:
    """Returns why the step of a program is off."""
    return next((text for glob, text in WHY.items() if fnmatch.fnmatchcase(program, glob)), "")


def furthest(steps: Sequence[Step]) -> list[str]:
    """More than FAR apart, of programs that rules may be made from; the worst first."""
    far = [(s.ratio, s) for s in steps if not s.aside]
    ranked = sorted(
        ((ratio, s) for ratio, s in far if ratio and abs(ratio - 1) > FAR),
        key=lambda pair: (-abs(math.log(pair[0])), pair[1].program, pair[1].slice_name),
    )
    return [
        "| program | slice | export | module | ratio | why |",
        "|---|---|---|---|---|---|",
        *(
            f"| {s.program} | {s.slice_name} | {s.export:.1f} | {s.module:.1f} | {ratio:.2f}"
            f" | {why(s.program)} |"
            for ratio, s in ranked
        ),
    ]


INTRODUCTION = """## Steps of exports and of compiled modules

The step of our own export beside that of the module that the TPU compiler made of the same program
for the same slice (`tests/data/compiled`), in microseconds. One machine runs both: what differs is
what the compilers chose, and how well the machine reads what the TPU compiler wrote. Neither is a
measurement. *HBM*: what is live at most in the module, as the simulator has it, over the same by
the compiler's own buffer assignment (`tests/data/compiled/buffers.json`), which says of every array
where it lies and how long; `memory_analysis` counts VMEM or holes as well. In modules of less than
a megabyte the tables of tuples and scalars, 512 bytes each, are most of the difference."""


def section(steps: Sequence[Step]) -> list[str]:
    """Returns the section of the page."""
    parts = [INTRODUCTION, "", *summary(steps)]
    parts += ["", f"More than {FAR:.0%} apart, of programs that are not set aside:", ""]
    return [*parts, *furthest(steps)]


HEADS = " | step, module | ratio | HBM, module | ratio |"
COUNT = 4


def cells(s: Step | None) -> str:
    """Returns the cells in the table of programs."""
    if s is None:
        return " | | | | |"
    export = "-" if s.export is None else f"{s.export:.1f}"
    ratio = "" if s.ratio is None else f"{s.ratio:.2f}"
    memory, off = f"{s.live / 1e6:.2f}", ""
    if s.assigned and s.memory_ratio:
        memory += f" / {s.assigned / 1e6:.2f}"
        off = f"{s.memory_ratio:.3f}"
    return f" | {export} / {s.module:.1f} | {ratio} | {memory} | {off} |"


def others(steps: Sequence[Step]) -> list[str]:
    """Lists programs without a row elsewhere."""
    lines = [f"| program | slice{HEADS}", "|" + "---|" * (2 + COUNT)]
    return lines + [f"| {s.program} | {s.slice_name}{cells(s)}" for s in steps]
