"""Programs in which overlap is the point: what is hidden, by Perfetto's word, and what it is worth.

Hidden is the time of a transfer during which the TensorCore runs an operation of the program. Each
program runs as the scheduler orders it, and once more without the pass `schedule`: in the module's
order, in which a transfer is waited for where it starts. Then the step is longer by what was
hidden, but for what transfers and compute cost each other while they share the memory: beside
compute a transfer takes longer than alone, so more of it is hidden than is saved.
"""

import dataclasses
import json
import pathlib
import subprocess
import sys

import pytest
import trace_reader

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "workloads" / "examples"

# On the first device: transfers on streams of their own, and how long each was in flight while a
# leaf of the TensorCore's track ran that neither starts transfers nor waits for them.
OVERLAPS = (
    trace_reader.TRACK_PATH
    + """, device as (select min(path) as name from track_path where path like '%/TensorCore'),
    core as (
      select s.ts, s.ts + s.dur as ends, s.category
      from slice s join track_path p on s.track_id = p.id join device d
      where p.path = d.name),
    compute as (
      select ts, ends from core
      where category not like '%-start' and category not like '%-done'
        and category not in ('while', 'conditional', 'call', 'all-reduce', 'all-gather', 'reduce-scatter', 'all-to-all',
                             'collective-permute')),
    transfer as (
      select s.category, s.ts, s.ts + s.dur as ends
      from slice s join track_path p on s.track_id = p.id join device d
      where s.category is not null
        and (p.path like replace(d.name, 'TensorCore', 'Collectives%')
             or p.path like replace(d.name, 'TensorCore', 'SparseCore%')))
  select t.category, count(*), sum(t.ends - t.ts), sum((
    select ifnull(sum(min(c.ends, t.ends) - max(c.ts, t.ts)), 0)
    from compute c where c.ts < t.ends and c.ends > t.ts))
  from transfer t group by t.category"""
)


@dataclasses.dataclass(frozen=True)
class Flight:
    """Transfers of a kind on one device."""

    count: int
    total_ns: int
    hidden_ns: int


@dataclasses.dataclass(frozen=True)
class Step:
    """One run of a program."""

    step_ns: float
    flights: dict[str, Flight]

    def of(self, *kinds: str) -> Flight:
        """Of all these kinds together."""
        some = [self.flights[kind] for kind in kinds if kind in self.flights]
        return Flight(*(sum(getattr(f, part) for f in some) for part in Flight.__annotations__))


def simulate(binary: str, folder: pathlib.Path, name: str, *options: str) -> Step:
    trace, report = folder / "t.pftrace", folder / "t.json"
    command = [binary, "run", str(EXAMPLES / f"{name}.pb"), *options]
    command += ["--trace", str(trace), "--report", str(report), "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (rows,) = trace_reader.query(trace, OVERLAPS)
    flights = {kind: Flight(*numbers) for kind, *numbers in rows}
    return Step(json.loads(report.read_text())["step_time_ns"], flights)


@pytest.fixture
def binary() -> str:
    import os

    return os.environ.get("TPUSIM_BINARY", str(ROOT / "build" / "tpusim"))


if __name__ == "__main__":
    import tempfile

    for name in sys.argv[2:]:
        with tempfile.TemporaryDirectory() as folder:
            a = simulate(sys.argv[1], pathlib.Path(folder), name)
            b = simulate(sys.argv[1], pathlib.Path(folder), name, "--passes=-schedule")
        print(name, a, b, b.step_ns - a.step_ns)
