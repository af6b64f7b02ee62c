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

import pytest
import trace_reader

# The tolerance as a share of what is saved; the largest difference, 18 %, is that of the
# SparseCores' sums: they take longer beside compute than alone.
TOLERANCE = 0.2

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "workloads" / "examples"

# On the first device: transfers on streams of their own, and how long each was in flight while the
# TensorCore ran something that neither starts transfers nor waits for them. Copies to and from the
# host may also hide beside collectives.
OVERLAPS = (
    trace_reader.TRACK_PATH
    + """, device as (select min(path) as name from track_path where path like '%/TensorCore'),
    core as (
      select s.ts, s.ts + s.dur as ends, s.category
      from slice s join track_path p on s.track_id = p.id join device d
      where p.path = d.name),
    compute as (
      select ts, ends, category in ('all-reduce', 'all-gather', 'reduce-scatter', 'all-to-all',
                                    'collective-permute') as communicates
      from core
      where category not like '%-start' and category not like '%-done'
        and category not in ('while', 'conditional', 'call', 'wait for host')),
    transfer as (
      select s.category, s.ts, s.ts + s.dur as ends,
             s.category like 'copy % host' as of_host
      from slice s join track_path p on s.track_id = p.id join device d
      where s.category is not null
        and (p.path like replace(d.name, 'TensorCore', 'Collectives%')
             or p.path like replace(d.name, 'TensorCore', 'Copies%')
             or p.path like replace(d.name, 'TensorCore', 'SparseCore%')))
  select t.category, count(*), sum(t.ends - t.ts), sum((
    select ifnull(sum(min(c.ends, t.ends) - max(c.ts, t.ts)), 0)
    from compute c where c.ts < t.ends and c.ends > t.ts and (of_host or not communicates)))
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
        """Joins the flights of these kinds."""
        some = [self.flights[kind] for kind in kinds if kind in self.flights]
        return Flight(*(sum(getattr(f, part) for f in some) for part in Flight.__annotations__))


def simulate(binary: str, folder: pathlib.Path, name: str, *options: str) -> Step:
    trace, report = folder / "t.pftrace", folder / "t.json"
    command = [binary, "run", str(EXAMPLES / f"{name}.pb.gz"), *options]
    command += ["--trace", str(trace), "--report", str(report), "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (rows,) = trace_reader.query(trace, OVERLAPS)
    flights = {kind: Flight(*numbers) for kind, *numbers in rows}
    return Step(json.loads(report.read_text())["step_time_ns"], flights)


# The share of transfers of these kinds that must be hidden: what stays exposed is the first
# transfer and the last, which nothing runs beside, or what no compute is left for.
CASES = [
    # Keys and values go round while a part of the attention is computed.
    ("ring_attention_large", ("collective-permute",), 0.99),
    # Activations move a stage on while the next microbatch is worked on, in both directions.
    ("pipeline_large", ("collective-permute",), 0.95),
    # One all-gather at a time, the first of all alone; permutes of windowed einsums.
    ("fully_sharded_layers_large", ("all-gather", "collective-permute"), 0.75),
    # On the SparseCores of v7x: all but the sums of the layers that the backward pass ends with.
    ("data_parallel_layers_large", ("all-reduce",), 0.45),
    # The last slot goes out and comes back between the passes.
    ("activations_on_host_large", ("copy to host", "copy from host"), 0.75),
    # Chunks go round while the product of another one is computed; in bfloat16 that is too short.
    ("collective_matmul_int32", ("collective-permute",), 0.99),
    # Unrolled, the first product adds up all others and comes last: a chunk has nothing beside it.
    ("collective_matmul_unrolled_int32", ("collective-permute",), 0.6),
    ("collective_matmul_bf16", ("collective-permute",), 0.5),
]


@pytest.mark.parametrize(("name", "kinds", "share"), CASES, ids=[case[0] for case in CASES])
def test_transfers_hide_and_the_step_is_shorter_by_that(
    binary: str, tmp_path: pathlib.Path, name: str, kinds: tuple[str, ...], share: float
) -> None:
    scheduled = simulate(binary, tmp_path, name)
    hidden = scheduled.of(*kinds)
    assert hidden.count > 0
    assert hidden.hidden_ns >= share * hidden.total_ns

    in_order = simulate(binary, tmp_path, name, "--passes=-schedule")
    alone = in_order.of(*kinds)
    assert (alone.count, alone.hidden_ns) == (hidden.count, 0)
    # Of the time that they take alone, what is still waited for.
    saved = alone.total_ns - (hidden.total_ns - hidden.hidden_ns)
    assert in_order.step_ns - scheduled.step_ns == pytest.approx(saved, rel=TOLERANCE)


def test_sums_of_gradients_wait_where_no_sparse_core_runs_them(
    binary: str, tmp_path: pathlib.Path
) -> None:
    """All-reduces of the program are synchronous on v5e, as the TPU compiler leaves them."""
    step = simulate(binary, tmp_path, "data_parallel_layers_large", "--config", "v5e-4x4")
    sums = step.of("all-reduce")
    assert sums.count > 1
    assert sums.hidden_ns == 0


def test_a_decoded_token_copies_the_cache_once(binary: str) -> None:
    """The loop over layers reads the old cache and makes the new one, which then goes to its place.

    So does the TPU compiler with the stacks of a scan (programs decode_scan and decode_scan_kept of
    docs/validation/compiler.md): keys and values once per token, and nothing inside of layers.
    """
    program = EXAMPLES / "generate_heads_sharded.pb.gz"
    command = [binary, "compile", "--emit", "schedule", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    # Two layers of four sequences, 64 places, one head of four: 16 wide, one copy of each.
    copies = [line for line in done.stdout.splitlines() if " copy(" in line and ",64," in line]
    assert [line.split()[0].endswith(".placed") for line in copies] == [True, True]
    assert all("/while/body/closed_call/while" in line for line in copies)
