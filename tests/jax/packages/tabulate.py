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

from tpusim.export import force_cpu_devices  # noqa: E402  # before anything imports JAX

force_cpu_devices(8)

import catalogue  # noqa: E402

FOLDER = ROOT / "build" / "packages"
PAGE = ROOT / "docs" / "validation" / "packages.md"

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

| program | package | slice | step | MFU | peak HBM | exposed | bound | most |
|---|---|---|---:|---:|---:|---:|---:|---|
"""


def run(program: catalogue.Program) -> dict[str, Any]:
    """The report of one program, kept in FOLDER; its process ends with all that JAX remembers."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    workload = FOLDER / f"{program.name}.pb"
    program.export(workload)
    report = program.run(workload)
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
    step = report["step_time_ns"]
    bounds = report["bound_ns"]
    bound = max(bounds, key=lambda name: bounds[name])
    # Of loops and branches the operations inside are counted.
    kinds: collections.Counter[str] = collections.Counter()
    for op in report["ops"]:
        if op["category"] not in ("while", "conditional", "call"):
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
    )
    return "| " + " | ".join(cells) + " |"


def main(names: list[str]) -> int:
    """Runs what is named, or all that has no report yet, each in a process; then the page."""
    if names[:1] == ["--one"]:
        (program,) = (p for p in catalogue.PROGRAMS if p.name == names[1])
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
