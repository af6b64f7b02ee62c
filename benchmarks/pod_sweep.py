"""Measures `tpusim run` on whole pods and checks its error bound: a sweep with limits.

    python benchmarks/pod_sweep.py                            # exports 35 programs, runs 140 times
    python benchmarks/pod_sweep.py --exact --only 'ring*'     # and against --fold on
    python benchmarks/pod_sweep.py --seed 1 --json sweep.json # other sizes of models and batches

Each program of `sweep_programs.py` (fully sharded, tensor parallel, split sequences, experts, ring
attention, pipelines, several slices, three axes, unrolled; 64 to 12,288 chips) runs as it is, with
a straggler, with a weak link and with asynchronous all-gathers. A row has the user CPU time of the
process and its peak memory, simulated instructions, device classes, and the printed error bound.
With --exact the step is compared with that of `--fold on`, where that ends within `MOST_EXACT_S`
and `MOST_EXACT_BYTES`: the bound must be at least the true error, and no wider than it need be.

Ends with exit code 1 if a limit is broken, and names it. The binary is $TPUSIM_BINARY, by default
build/tpusim. Exports are kept in the folder --programs and not made again: remove it after a change
of the programs.
"""

import argparse
import concurrent.futures
import dataclasses
import fnmatch
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[1]
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT)]

from benchmarks.sweep_table import ROWS, Row  # noqa: E402

GENERATOR = ROOT / "benchmarks" / "sweep_programs.py"
VARIANTS: dict[str, tuple[str, ...]] = {
    "plain": (),
    "straggler": ("--slow", "chip=3:0.8"),
    "link": ("--link", "5:x+=0.5"),
    "async": ("--xla-flags", "--xla_enable_async_all_gather=true"),
}

# The limits: of nearly all runs, and of each.
NEARLY_ALL, NEARLY_ALL_S = 0.95, 1.0
WORST_S, MOST_BYTES = 3.0, 500e6
# A bound is not wider than the larger of these: a share of the step, and times the true error.
BOUND_OF_STEP, BOUND_OF_ERROR = 0.003, 3.0
# A run is given up beyond these limits; for an exact one that is no failure.
MOST_EXACT_S, MOST_EXACT_BYTES = 600, 4_000_000_000
MOST_SAID = 200  # Letters of a message
ROUNDING_NS = 0.01  # Times of reports are picoseconds in floating point


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The outcome of one process: its report, or why there is none."""

    user_s: float
    peak_bytes: int  # At least that of the process that started it, before it became tpusim
    report: dict[str, Any] | None
    failure: str = ""
    given_up: bool = False  # It reached a limit of time or memory


@dataclasses.dataclass(frozen=True)
class Exact:
    """The step without folding of what differs; None beyond the limits."""

    step_ns: float | None
    user_s: float
    given_up: str = ""


@dataclasses.dataclass(frozen=True)
class Run:
    """One row."""

    program: str
    chips: int
    variant: str
    user_s: float
    peak_bytes: int
    events: int = 0
    classes: int = 0
    step_ns: float = 0.0
    bound_ns: float = 0.0
    exact: Exact | None = None
    failure: str = ""

    @property
    def name(self) -> str:
        """In messages."""
        return f"{self.program} {self.variant}"

    @property
    def error_ns(self) -> float | None:
        """The difference to the exact step; None if that is not known."""
        if self.exact is None or self.exact.step_ns is None:
            return None
        return abs(self.step_ns - self.exact.step_ns)


def binary() -> str:
    """The simulator."""
    return os.environ.get("TPUSIM_BINARY", str(ROOT / "build" / "tpusim"))


def simulate(file: pathlib.Path, options: Sequence[str]) -> Outcome:
    """One run within the limits of an exact one."""
    with tempfile.TemporaryDirectory() as made:
        report, messages = pathlib.Path(made) / "r.json", pathlib.Path(made) / "stderr"
        command = [binary(), "run", str(file), "--quiet", "--report", str(report), *options]
        limited = f"ulimit -S -t {MOST_EXACT_S}; ulimit -v {MOST_EXACT_BYTES // 1024}; "
        limited += 'exec "$0" "$@"'
        with messages.open("w") as stderr:
            process = subprocess.Popen(
                ["sh", "-c", limited, *command], stdout=subprocess.DEVNULL, stderr=stderr
            )
            _, status, usage = os.wait4(process.pid, 0)
        process.returncode = code = os.waitstatus_to_exitcode(status)
        used = (usage.ru_utime, usage.ru_maxrss * 1024)
        if code == 0:
            return Outcome(*used, json.loads(report.read_text()))
        if code in (-signal.SIGXCPU, 128 + signal.SIGXCPU):  # Of the process, or of a child of it
            return Outcome(*used, None, f"takes more than {MOST_EXACT_S} s", given_up=True)
        said = messages.read_text().strip()
        if said.startswith("tpusim: error: out of memory"):
            most = f"{MOST_EXACT_BYTES / 1e6:.0f} MB"
            return Outcome(*used, None, f"takes more than {most}", given_up=True)
        ended = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return Outcome(*used, None, f"{ended}: {said[:MOST_SAID] or 'no message'}")


def run(row: Row, file: pathlib.Path, variant: str, *, exact: bool) -> Run:
    """One program in one way, and the exact step if that is asked for."""
    options = VARIANTS[variant]
    outcome = simulate(file, options)
    made = Run(row.name, row.chips, variant, outcome.user_s, outcome.peak_bytes)
    if outcome.report is None:
        return dataclasses.replace(made, failure=outcome.failure)
    made = dataclasses.replace(
        made,
        events=outcome.report["events"],
        classes=outcome.report["folding"]["device_classes"],
        step_ns=outcome.report["step_time_ns"],
        bound_ns=outcome.report["folding"]["error_bound_ns"],
    )
    if not exact:
        return made
    # The limit of simulated instructions is not what ends an exact run.
    truth = simulate(file, [*options, "--fold", "on", "--max-events", str(10**12)])
    if truth.report is None and not truth.given_up:
        return dataclasses.replace(made, failure=f"--fold on: {truth.failure}")
    step_ns = truth.report["step_time_ns"] if truth.report else None
    return dataclasses.replace(made, exact=Exact(step_ns, truth.user_s, truth.failure))


def broken_by(made: Run) -> list[str]:
    """Returns the limits that a single run breaks."""
    if made.failure:
        return [f"{made.name}: {made.failure}"]
    broken = []
    if made.user_s > WORST_S:
        broken.append(f"{made.name}: {made.user_s:.2f} s of user CPU, at most {WORST_S:.0f} s")
    if made.peak_bytes > MOST_BYTES:
        most = MOST_BYTES / 1e6
        broken.append(f"{made.name}: {made.peak_bytes / 1e6:.0f} MB, at most {most:.0f} MB")
    error = made.error_ns
    if error is None:
        return broken
    bound, widest = made.bound_ns, max(BOUND_OF_STEP * made.step_ns, BOUND_OF_ERROR * error)
    if bound < error - ROUNDING_NS:
        broken.append(f"{made.name}: off by {error:,.0f} ns, more than its bound, {bound:,.0f} ns")
    if bound > widest + ROUNDING_NS:
        broken.append(f"{made.name}: bound {bound:,.0f} ns, at most {widest:,.0f} ns")
    return broken


def broken_limits(runs: Sequence[Run]) -> list[str]:
    """Returns the limits that runs break, one line each."""
    quick = sum(made.user_s <= NEARLY_ALL_S for made in runs)
    broken = []
    if quick < NEARLY_ALL * len(runs):
        broken.append(
            f"{quick} of {len(runs)} runs take at most {NEARLY_ALL_S:.0f} s of user CPU, "
            f"fewer than {NEARLY_ALL:.0%}"
        )
    return broken + [line for made in runs for line in broken_by(made)]


COLUMNS = (
    f"{'program':<18} {'chips':>6} {'variant':<9} {'user s':>7} {'MB':>5} {'events':>11} "
    f"{'classes':>7} {'step ms':>10} {'bound':>9}"
)
EXACT_COLUMNS = f" {'exact ms':>10} {'error':>9} {'user s':>7}"


def cells(made: Run) -> str:
    """A row of the table."""
    row = f"{made.program:<18} {made.chips:>6} {made.variant:<9} {made.user_s:>7.2f} "
    row += f"{made.peak_bytes / 1e6:>5.0f} "
    if made.failure:
        return row + made.failure
    row += f"{made.events:>11,} {made.classes:>7} {made.step_ns / 1e6:>10.3f} "
    row += f"{made.bound_ns / made.step_ns:>9.4%}"
    if made.exact is None:
        return row
    if made.exact.step_ns is None or made.error_ns is None:
        return f"{row} {made.exact.given_up}"
    exact = made.exact.step_ns
    return f"{row} {exact / 1e6:>10.3f} {made.error_ns / exact:>9.4%} {made.exact.user_s:>7.2f}"


def summary(runs: Sequence[Run]) -> str:
    """Summarises every run in one line."""
    times = sorted(made.user_s for made in runs)
    nearly_all = times[-(-round(NEARLY_ALL * 100) * len(times) // 100) - 1]
    line = (
        f"{len(runs)} runs: {NEARLY_ALL:.0%} within {nearly_all:.2f} s of user CPU, worst "
        f"{times[-1]:.2f} s, most {max(made.peak_bytes for made in runs) / 1e6:.0f} MB"
    )
    compared = sum(made.error_ns is not None for made in runs)
    return f"{line}; {compared} compared with the exact step" if compared else line


def exported(folder: pathlib.Path, only: str, seed: int) -> list[tuple[Row, pathlib.Path]]:
    """The programs that are asked for; another process makes those that are not there yet."""
    wanted = [row for row in ROWS if fnmatch.fnmatch(row.name, only)]
    files = [(row, row.file(folder, seed)) for row in wanted]
    if not all(file.exists() for _, file in files):
        command = [sys.executable, str(GENERATOR), "--programs", str(folder), "--only", only]
        subprocess.run([*command, "--seed", str(seed)], check=True, stdout=sys.stderr)
    return files


def main(arguments: list[str] | None = None) -> int:
    """The command; its exit code."""
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--programs", type=pathlib.Path, default=ROOT / "build" / "pod_sweep")
    p.add_argument("--only", default="*", help="names of programs, as a glob")
    p.add_argument("--seed", type=int, default=0, help="of the sizes of models and batches")
    p.add_argument("--exact", action="store_true", help="compare with --fold on")
    p.add_argument("--jobs", type=int, default=1, help="runs at once (default: 1)")
    p.add_argument("--json", type=pathlib.Path, help="write all rows into this file")
    flags = p.parse_args(arguments)
    if flags.jobs < 1:
        p.error("--jobs must be positive")
    programs = exported(flags.programs, flags.only, flags.seed)
    if not programs:
        p.error(f"no program {flags.only}; there are {', '.join(row.name for row in ROWS)}")
    print(COLUMNS + (EXACT_COLUMNS if flags.exact else ""), flush=True)
    with concurrent.futures.ThreadPoolExecutor(flags.jobs) as pool:
        asked = [
            pool.submit(run, row, file, variant, exact=flags.exact)
            for row, file in programs
            for variant in VARIANTS
        ]
        runs = []
        for one in asked:
            runs.append(one.result())
            print(cells(runs[-1]), flush=True)
    broken = broken_limits(runs)
    print("\n".join([summary(runs), *(f"broken: {line}" for line in broken)]))
    if flags.json:
        rows = [dataclasses.asdict(made) | {"error_ns": made.error_ns} for made in runs]
        flags.json.write_text(json.dumps({"runs": rows, "broken": broken}, indent=2) + "\n")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
