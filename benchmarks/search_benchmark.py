"""Measures a search beside JAX's own lowering: 64 candidates of a decoder on 256 chips.

    python benchmarks/search_benchmark.py [--workers N] [--exhaustive]

Prints processor time per simulated candidate, less what JAX takes to trace and lower the same
candidates in one process, and how busy the processors were. With --exhaustive it is compared with
a search that simulates everything.
"""

import argparse
import contextlib
import dataclasses
import json
import pathlib
import subprocess
import sys
import tempfile
import time
from typing import Any

import psutil

ROOT = pathlib.Path(__file__).resolve().parents[1]
PATH = [str(ROOT), str(ROOT / "tools" / "python")]
sys.path[:0] = PATH

from tpusim.search import cpu  # noqa: E402
from tpusim.search.engine import processors  # noqa: E402

SPACE = ROOT / "benchmarks" / "decoder_space.py"


@dataclasses.dataclass(frozen=True)
class Cost:
    """The cost of one search."""

    cpu_s: float
    wall_s: float
    busy: float  # share of the time that workers could run in, on a machine of their own
    table: dict[str, Any]

    @property
    def simulated(self) -> int:
        """Candidates; it is not counted how many were compiled and did not fit."""
        return self.table["counts"]["simulated"]

    def beyond(self, lowering: float) -> float:
        """Seconds per simulated candidate, all else included."""
        return (self.cpu_s - lowering) / self.simulated


def search(workers: int, *options: str) -> Cost:
    """The shell form, from nothing."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "r.json"
        words = [str(SPACE), "-o", str(out), "--top", "0", "--quiet", *options]
        words += ["--workers", str(workers)]
        code = f"import sys; sys.path[:0] = {PATH!r}; import tpusim.search.command as c; "
        # Samples are not the search's.
        start, own, began = cpu.seconds(), time.process_time(), time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "-c", f"{code}sys.exit(c.main({words!r}))"], stdout=subprocess.DEVNULL
        )
        samples = []
        while process.poll() is None:
            time.sleep(0.2)
            samples.append(min(workers, _could_run(process.pid)) / workers)
        if process.returncode:
            raise RuntimeError(f"the search ended with exit code {process.returncode}")
        spent = cpu.seconds() - start - (time.process_time() - own)
        wall = time.monotonic() - began
        return Cost(spent, wall, sum(samples) / len(samples), json.loads(out.read_text()))


def _could_run(pid: int) -> int:
    """Returns how many processes of the search want a processor, whether others have it or not."""
    count = 0
    try:
        search = psutil.Process(pid)
        for process in [search, *search.children(recursive=True)]:
            with contextlib.suppress(psutil.NoSuchProcess):
                count += process.status() in (psutil.STATUS_RUNNING, psutil.STATUS_DISK_SLEEP)
    except psutil.NoSuchProcess:
        pass  # It has just ended.
    return count


def lowering_cpu_s() -> float:
    """Returns the processor time of lowering every candidate by JAX alone, in this process."""
    from tpusim.search.space import candidates

    from benchmarks import decoder_space

    found = candidates(decoder_space.space, decoder_space.configs, None)
    start = cpu.seconds()
    for candidate in found:
        step, arguments = decoder_space.build(candidate)
        lowered = step.trace(*arguments).lower(lowering_platforms=("tpu",))
        lowered.compiler_ir("hlo").as_serialized_hlo_module_proto()
    return cpu.seconds() - start


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=processors())
    parser.add_argument("--exhaustive", action="store_true")
    flags = parser.parse_args()
    lowering = lowering_cpu_s()
    print(f"JAX alone     {lowering:.1f} s for {len(search_space())} candidates")
    pruned = _show("search", search(flags.workers), lowering)
    if flags.exhaustive:
        everything = search(flags.workers, "--all")
        _show("everything", everything, lowering)
        best, first = pruned.table["candidates"][0], everything.table["candidates"][0]
        same = all(best[key] == first[key] for key in ("mesh", "rules", "batch", "value"))
        print(f"best          {best['mesh']} {best['rules']} {best['batch']}: {best['value']:.1f}")
        print(f"              {'the same' if same else 'not the same'} as of everything")


def search_space() -> list[Any]:
    """Returns every candidate."""
    from tpusim.search.space import candidates

    from benchmarks import decoder_space

    return candidates(decoder_space.space, decoder_space.configs, None)


def _show(name: str, cost: Cost, lowering: float) -> Cost:
    counts = ", ".join(f"{n} {status}" for status, n in cost.table["counts"].items())
    print(
        f"{name:<13} {cost.cpu_s:.1f} s of processor time, {cost.wall_s:.1f} s in all, "
        f"processors wanted {100 * cost.busy:.0f}% of it: {counts}\n"
        f"              {cost.beyond(lowering):.2f} s for each of {cost.simulated} simulated, "
        "beyond JAX's own"
    )
    return cost


if __name__ == "__main__":
    main()
