"""Writes docs/validation/packages.md: what tpusim makes of programs of public packages.

python tests/jax/packages/tabulate.py [NAME ...]   # in an environment with requirements.txt

Reports are kept in build/packages, so that the table can be made from programs that were run one
by one; a name runs that program again, `--page` none.
"""

import collections
import json
import pathlib
import subprocess
import sys
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(ROOT / "tools" / "python"), str(HERE)]

from tpusim.cpu_devices import force_cpu_devices  # noqa: E402  # before anything imports JAX

force_cpu_devices(8)

import catalogue  # noqa: E402
import tpusim  # noqa: E402

FOLDER = ROOT / "build" / "packages"
PAGE = ROOT / "docs" / "validation" / "packages.md"

ELEMENTWISE = frozenset(
    [
        "loop fusion",
        "input fusion",
        "non-fusion elementwise",
        "data formatting",
        "broadcast",
        "copy",
        "slice",
        "reduce",
    ]
)
PRODUCTS = frozenset(["convolution fusion", "convolution"])
# Loops and branches, whose inner operations are counted.
CONTROL = frozenset(["while", "conditional", "call"])

HEAD = """# Programs of public packages

Made by `python tests/jax/packages/tabulate.py`, in an environment with
`tests/jax/packages/requirements.txt`. The programs, in `tests/jax/packages`, take models,
optimizers, samplers and simulations as their authors wrote them, give them shapes instead of
weights, shard them over a mesh, export and run them. None of them was measured on TPUs: the table
shows that they run, and what to doubt. `pytest --long tests/jax/packages` repeats them.

* **exposed** is communication that nothing hides, as a share of the step.
* **bound** is the largest lower bound as a share of the step: how near the step is to what the
  arrays, HBM or the links allow. Small shares are launches, latencies, vector work, or a doubt.
* **most** is the kind of operation in which most time passes, as a share of the step; operations
  that run beside others count as well.
* **doubts** are what makes a figure implausible, found in the report:
  * **HBM**: so much of the step are elementwise kernels, reductions and copies in a program that
    HBM binds, and so many bytes are what they hand to each other. Fusions end at products, at
    reductions and at values that several kernels read, where XLA computes some of them again.
  * **waits**: more than a fifth of the step waits for collectives, mostly for these. On v5e only
    all-gathers and permutes are started early; every collective is sent by itself, where XLA
    combines small ones.
  * **small**: launches and first transfers count as much as what kernels move. A compiler that
    fuses more would launch fewer.
  * **thin**: products take much of the step and the arrays are idle for most of it: small or narrow
    shapes, or operands that come from HBM in float32.
  * **stated**: so much of the step are kernels that cost what they state or their grids imply.
    What they do inside is not modelled.

| program | package | slice | step | MFU | peak HBM | exposed | bound | most | doubts |
|---|---|---|---:|---:|---:|---:|---:|---|---|
"""


def run(program: catalogue.Program) -> dict[str, Any]:
    """The report of one program, kept in FOLDER; its process ends with all that JAX remembers.

    Of a program that tpusim refuses, its message.
    """
    FOLDER.mkdir(parents=True, exist_ok=True)
    workload = FOLDER / f"{program.name}.pb"
    program.export(workload)
    try:
        report = program.run(workload)
    except tpusim.Error as error:
        report = {"refused": str(error)}
    (FOLDER / f"{program.name}.json").write_text(json.dumps(report))
    return report


def duration(nanoseconds: float) -> str:
    """Three digits and a unit."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.3g} {unit}"
    return f"{nanoseconds:.3g} ns"


def row(program: catalogue.Program, report: dict[str, Any]) -> str:
    """One line of the table."""
    if "refused" in report:
        cells = (program.name, program.package, program.config, "refused", *[""] * 5)
        return "| " + " | ".join((*cells, report["refused"].replace("|", "/"))) + " |"
    step = report["step_time_ns"]
    bounds = report["bound_ns"]
    bound = max(bounds, key=lambda name: bounds[name])
    kinds: collections.Counter[str] = collections.Counter()
    for op in report["ops"]:
        if op["category"] not in CONTROL:
            kinds[op["category"]] += op["total_ns"]
    most, longest = kinds.most_common(1)[0]
    cells = (
        program.name,
        program.package,
        program.config,
        duration(step),
        f"{100 * report['mfu']:.1f}%",
        f"{report['peak_hbm_bytes'] / 1e9:.3g} GB",
        f"{100 * report['exposed_communication_ns'] / step:.1f}%",
        f"{bound} {100 * bounds[bound] / step:.0f}%",
        f"{most} {100 * longest / step:.0f}%",
        "; ".join(text for text in (doubt(report) for doubt in DOUBTS) if text),
    )
    return "| " + " | ".join(cells) + " |"


def total(report: dict[str, Any], key: str, kinds: frozenset[str]) -> float:
    """Sums a figure over the operations of these kinds."""
    return sum(op[key] for op in report["ops"] if op["category"] in kinds)


def through_memory(report: dict[str, Any]) -> str:
    """Arrays that kernels hand to each other by way of HBM."""
    share = total(report, "total_ns", ELEMENTWISE) / report["step_time_ns"]
    if share < 0.35 or report["bound_ns"]["hbm"] < 2 * report["bound_ns"]["compute"]:
        return ""
    gigabytes = total(report, "hbm_bytes", ELEMENTWISE) / 1e9
    return f"HBM {share:.0%}, " + (
        f"{gigabytes:,.0f} GB" if gigabytes > 99 else f"{gigabytes:.3g} GB"
    )


def waits(report: dict[str, Any]) -> str:
    """Collectives that nothing hides."""
    exposed, hidden = report["exposed_communication_ns"], report["hidden_communication_ns"]
    if exposed < 0.2 * report["step_time_ns"]:
        return ""
    times: collections.Counter[str] = collections.Counter()
    counts: collections.Counter[str] = collections.Counter()
    for collective in report["collectives"]:
        times[collective["kind"]] += collective["exposed_ns"]
        counts[collective["kind"]] += collective["count"]
    kind = max(times, key=lambda name: times[name])
    return f"waits: {counts[kind]:,} {kind}s, {hidden / (exposed + hidden):.0%} hidden"


def small_kernels(report: dict[str, Any]) -> str:
    """Steps that consist of launches and latencies."""
    kernels = [
        op
        for op in report["ops"]
        if op["engine"] == "tensor_core" and op["category"] not in CONTROL
    ]
    count = sum(op["count"] for op in kernels)
    mean = sum(op["total_ns"] for op in kernels) / max(1, count)
    near_bound = max(report["bound_ns"].values()) > 0.6 * report["step_time_ns"]
    if near_bound or count < 1000 or mean > 10_000:
        return ""
    return f"small: {count:,} kernels of {duration(mean)}"


def slow_products(report: dict[str, Any]) -> str:
    """Products far from what the arrays could do."""
    spent = total(report, "total_ns", PRODUCTS)
    needed = report["bound_ns"]["compute"]
    if spent < 0.3 * report["step_time_ns"] or needed > 0.4 * spent:
        return ""
    return f"thin: arrays busy for {needed / spent:.0%} of {duration(spent)}"


def stated_kernels(report: dict[str, Any]) -> str:
    """Time that is as good as what a kernel says of itself."""
    share = total(report, "total_ns", frozenset(["custom-call"])) / report["step_time_ns"]
    return f"stated {share:.0%}" if share >= 0.3 else ""


DOUBTS = (through_memory, waits, small_kernels, slow_products, stated_kernels)


def main(names: list[str]) -> int:
    """Runs what is named, or all that has no report yet, each in a process; then the page."""
    if names[:1] == ["--one"]:
        (program,) = (p for p in catalogue.PROGRAMS if p.name == names[1])
        sys.argv[1:] = []  # packages with absl flags read it
        run(program)
        return 0
    for program in catalogue.PROGRAMS:
        missing = not (FOLDER / f"{program.name}.json").exists()
        if program.name in names or (not names and missing):
            command = [sys.executable, __file__, "--one", program.name]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            last = (done.stderr.strip().splitlines() or [""])[-1]
            print(program.name, "ok" if done.returncode == 0 else last, flush=True)
    rows, stated, remarks = [], [], []
    for program in catalogue.PROGRAMS:
        report_file = FOLDER / f"{program.name}.json"
        if not report_file.exists():
            print(f"{program.name} has no report", file=sys.stderr)
            continue
        rows.append(row(program, json.loads(report_file.read_text())))
        if program.options:
            stated.append(f"* {program.name}: `{' '.join(program.options)}`")
        if program.remark:
            remarks.append(f"* {program.name}: {program.remark}")
    page = HEAD + "\n".join(rows) + "\n"
    if stated:
        page += "\n## What depends on data and is stated\n\n" + "\n".join(stated) + "\n"
    if remarks:
        page += "\n## What looks implausible\n\n" + "\n".join(remarks) + "\n"
    PAGE.write_text(page)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
