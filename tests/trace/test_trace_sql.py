"""Traces hold what the simulator says, by Perfetto's own word."""

import collections
import json
import math
import os
import pathlib
import re
import subprocess

import pytest
import trace_reader
from tpusim.timeline import Timeline

from tests.tools.command_line import program_name

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Programs of every kind; loops, rings and tuples of results among them.
TRACED = [
    *("all_gather", "all_reduce_64mib_16x16", "all_reduce_64mib_4x2", "all_reduce_64mib_8x16"),
    *("all_to_all", "allgather_matmul_bf16", "allgather_matmul_int32", "axis_index"),
    *("collective_matmul_bf16", "collective_matmul_int32", "collective_matmul_unrolled_int32"),
    *("elementwise_chain", "local_matmul_bf16", "matmul_square", "mlp_scan_8_layers"),
    *("mlp_two_layers", "psum", "psum_scatter", "ring_shift", "shard_mean"),
    *("contract_constrained_input", "all_reduce_matmul_two_ways", "transformer_block_auto"),
    "residual_mlp_train_scan_two_dimensional",
]
EXAMPLES = [ROOT / "workloads" / "examples" / f"{name}.pb.gz" for name in TRACED]


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The trace of a made-up step, with its totals and its broken copies beside it."""
    build = pathlib.Path(os.environ.get("TPUSIM_BINARY", ROOT / "build" / "tpusim")).parent
    writer = build / "tests" / "write_sample_trace"
    assert writer.is_file(), f"{writer} is not built"
    trace = tmp_path_factory.mktemp("sample") / "t.pftrace"
    subprocess.run([writer, trace, trace.with_suffix(".json")], check=True)
    return trace


def totals_of(trace: pathlib.Path) -> dict:
    return json.loads(trace.with_suffix(".json").read_text())


def test_sample_is_found_as_written(sample: pathlib.Path) -> None:
    assert trace_reader.problems(sample, totals_of(sample)) == []


def test_sample_holds_the_made_up_step(sample: pathlib.Path) -> None:
    """The sample has the step of tests/sim/results/sample.h, counted by hand."""
    on_track = collections.defaultdict(list)
    for s in trace_reader.slices(sample):
        on_track[s.path].append((s.name, s.start_ns, s.start_ns + s.duration_ns, s.depth))
    assert on_track["toy-2x1/TPU_0(process=0,(0,0,0,0))/TensorCore"] == [
        ("all-gather.1", 0, 20_000, 0),
        ("while.2", 20_000, 92_000, 0),
        ("fusion.3", 20_000, 55_000, 1),
        ("fusion.3", 56_000, 91_000, 1),
        ("loop_fusion.5", 92_000, 100_000, 0),
    ]
    assert on_track["toy-2x1/TPU_1(process=0,(1,0,0,0))/ICI x-"] == [
        ("all-gather.1", 1_000, 11_000, 0),
        ("collective-permute-start.4", 21_000, 41_000, 0),
        ("collective-permute-start.4", 57_000, 77_000, 0),
    ]


def test_arrows_lead_from_sender_to_receiver(sample: pathlib.Path) -> None:
    (rows,) = trace_reader.query(
        sample,
        trace_reader.TRACK_PATH
        + """select a.path, s.ts, b.path, t.ts from flow f
             join slice s on f.slice_out = s.id join track_path a on s.track_id = a.id
             join slice t on f.slice_in = t.id join track_path b on t.track_id = b.id
             order by s.ts, a.path""",
    )
    assert len(rows) == 6
    for sender, sent, receiver, arrived in rows:
        here, there = (
            "toy-2x1/TPU_0(process=0,(0,0,0,0))",
            "toy-2x1/TPU_1(process=0,(1,0,0,0))",
        )
        if sender == f"{there}/ICI x-":
            here, there = there, here
        else:
            assert sender == f"{here}/ICI x+"
        assert receiver in (f"{there}/HBM DMA", f"{there}/HBM DMA 2")
        assert arrived == sent + 1_000  # a hop of a microsecond


def test_slices_say_what_they_are(sample: pathlib.Path) -> None:
    (rows,) = trace_reader.query(
        sample,
        """select name, key, display_value from slice join args using (arg_set_id)
           where name in ('fusion.3', 'all-gather.1') order by slice.id""",
    )
    (categories,) = trace_reader.query(
        sample, "select distinct category from slice where name = 'fusion.3' and depth = 1"
    )
    assert categories == [["convolution fusion"]]
    said = collections.defaultdict(set)
    for name, key, value in rows:
        said[name].add((key.removeprefix("debug."), value))
    assert {
        ("hlo", "fusion.3"),
        ("shape", "bf16[1000,1500]"),
        ("flops", "3000000000"),
        ("hbm_bytes", "10000000"),
        ("source", "f.py:12"),
        ("step", "2"),
        ("op_name", "jit(f)/layer/while/body/dot_general"),
    } <= said["fusion.3"]
    assert {("algorithm", "line over x"), ("group_size", "2"), ("bound_ns", "10000.0")} <= said[
        "all-gather.1"
    ]


def test_counters_have_units(sample: pathlib.Path) -> None:
    (rows,) = trace_reader.query(
        sample,
        """select name, unit, max(value) from counter join counter_track t on track_id = t.id
           group by name, unit order by name""",
    )
    assert [row[:2] for row in rows] == [
        ["HBM bandwidth", "GB/s"],
        ["ICI x+ utilization", "%"],
        ["ICI x- utilization", "%"],
        ["Live HBM", "bytes"],
    ]
    assert [row[2] for row in rows] == [800, 50, 50, 4e9]


@pytest.mark.parametrize(
    ("defect", "sign"),
    [
        ("cut", "slices"),
        ("end", "slices without end: 1"),
        ("flow", "flows: 5"),
        ("counter", "counter samples: 13"),
        ("state", "skipped packets"),
        ("track", "slices and busy time of tracks"),
    ],
)
def test_defects_are_noticed(sample: pathlib.Path, defect: str, sign: str) -> None:
    broken = sample.with_name(f"{sample.name}.broken-{defect}")
    found = trace_reader.problems(broken, totals_of(sample))
    assert any(problem.startswith(sign) for problem in found), found


def test_random_bytes_do_not_load(sample: pathlib.Path, tmp_path: pathlib.Path) -> None:
    noise = tmp_path / "noise"
    noise.write_bytes(bytes((i * 197 + 31) % 251 for i in range(4096)))
    found = trace_reader.problems(noise, totals_of(sample))
    assert len(found) == 1
    assert found[0].startswith("does not load: Unknown trace type")


@pytest.fixture(scope="module", params=EXAMPLES, ids=program_name)
def run(
    request: pytest.FixtureRequest, binary: str, tmp_path_factory: pytest.TempPathFactory
) -> tuple[pathlib.Path, dict]:
    """The trace of an example with all its chips, and the report of the same run."""
    trace = tmp_path_factory.mktemp(program_name(request.param)) / "t.pftrace"
    report, totals = trace.with_suffix(".report.json"), trace.with_suffix(".json")
    subprocess.run(
        [
            *(binary, "run", "--quiet", str(request.param), "--report", report),
            *("--trace", trace, "--trace-chips", "all", "--trace-detail", "blocks"),
            *("--trace-totals", totals),
        ],
        check=True,
        timeout=300,
    )
    return trace, json.loads(report.read_text())


def test_example_is_found_as_written(run: tuple[pathlib.Path, dict]) -> None:
    trace, _ = run
    assert trace_reader.problems(trace, totals_of(trace)) == []


def chip_of(path: str, config: str) -> int:
    """The chip of "v5e-4x2/TPU_5(process=0,(1,1,0,0))": x is minor."""
    x, y, z = map(int, re.search(r"\((\d+),(\d+),(\d+),\d+\)\)$", path).groups())
    extents = [*map(int, config.rsplit("-", 1)[1].split("x")), 1]
    return x + extents[0] * (y + extents[1] * z)


def test_example_agrees_with_its_report(run: tuple[pathlib.Path, dict]) -> None:
    trace, report = run
    slices = trace_reader.slices(trace)

    steps = [s for s in slices if s.path.endswith("/Steps")]
    assert len(steps) == report["devices"]
    assert {s.duration_ns for s in steps} == {math.floor(report["step_time_ns"])}
    (critical,) = (s for s in steps if s.name == "step 0 (critical device)")
    device = critical.path.removesuffix("/Steps")

    # Whole nanoseconds: every slice may be one short or long.
    count, time = collections.Counter(), collections.Counter()
    for s in slices:
        engine = s.path.removeprefix(device + "/").rstrip("0123456789 ")
        count[engine, s.name] += 1
        time[engine, s.name] += s.duration_ns
    tracks = {"tensor_core": "TensorCore", "collective": "Collectives", "host": "Host"}
    tracks["dma"] = "Copies"
    for row in [{"engine": "collective", **c} for c in report["collectives"]] + report["ops"]:
        name, track = row["name"], tracks[row["engine"]]
        assert count[track, name] == row["count"], (track, name)
        assert abs(time[track, name] - row["total_ns"]) <= row["count"] + 1, (track, name)
    # And the other way round: no operation is only in the trace.
    told = {(tracks[row["engine"]], row["name"]) for row in report["ops"]}
    synchronous = {row["name"] for row in report["collectives"]}
    for track, name in count:
        if track == "TensorCore":
            assert (track, name) in told or name in synchronous, name

    # The main stream does one thing at a time, so scopes side by side fit the step.
    side_by_side = [s["total_ns"] for s in report["scopes"] if "/" not in s["scope"]]
    assert sum(side_by_side) <= report["step_time_ns"] + 1e-3

    # What the tracks of a link carried is what the report says, chip by chip.
    sent = collections.Counter()
    for s in slices:
        group, track = s.path.rsplit("/", 1)
        if track.rsplit("/")[-1].startswith("ICI "):
            chip = chip_of(group, report["config"])
            sent[chip, track.rsplit("/")[-1].split()[1]] += s.bytes or 0
    reported = {(x["chip"], x["direction"]): x["bytes"] for x in report["links"] if x["bytes"]}
    assert dict(sent) == reported


def union_of(intervals: list[tuple[int, int]]) -> list[tuple[int, int]]:
    union: list[tuple[int, int]] = []
    for start, end in sorted(intervals):
        if union and start <= union[-1][1]:
            union[-1] = (union[-1][0], max(end, union[-1][1]))
        else:
            union.append((start, end))
    return union


def common(a: list[tuple[int, int]], b: list[tuple[int, int]]) -> int:
    return sum(max(0, min(e, f) - max(s, t)) for s, e in a for t, f in b)


@pytest.mark.parametrize(
    "name",
    [
        *("collective_matmul_bf16", "collective_matmul_int32", "allgather_matmul_int32"),
        *("reduce_scatter_matmul_two_ways", "mlp_two_layers"),
        "residual_mlp_train_loop_fully_sharded",
    ],
)
def test_hidden_and_exposed_time_are_those_of_the_trace(
    name: str, binary: str, tmp_path: pathlib.Path
) -> None:
    trace, report_path = tmp_path / "t.pftrace", tmp_path / "r.json"
    subprocess.run(
        [
            *(binary, "run", "--quiet", str(ROOT / "workloads" / "examples" / f"{name}.pb.gz")),
            *("--trace-blocks", "all", "--detail", "tile", "--trace-chips", "all"),
            *("--trace", trace, "--report", report_path),
        ],
        check=True,
        timeout=300,
    )
    report = json.loads(report_path.read_text())
    slices = trace_reader.slices(trace)
    (critical,) = (s.path for s in slices if s.name == "step 0 (critical device)")
    device = critical.removesuffix("/Steps")
    collectives = {row["name"] for row in report["collectives"]}
    compute, in_flight, blocks = [], collections.defaultdict(list), 0
    for s in slices:
        engine = s.path.removeprefix(device + "/").rstrip("0123456789 ")
        interval = (s.start_ns, s.start_ns + s.duration_ns)
        if engine in ("MXU", "VPU"):
            compute.append(interval)
            blocks += 1
        if engine in ("Collectives", "SparseCore") and s.name in collectives:
            in_flight[s.name].append(interval)
    compute = union_of(compute)
    # Whole nanoseconds: every end of a block or collective may be one off.
    everything = union_of([i for intervals in in_flight.values() for i in intervals])
    hidden = common(everything, compute)
    assert abs(hidden - report["hidden_communication_ns"]) <= 2 * blocks + 2
    total = report["hidden_communication_ns"] + report["exposed_communication_ns"]
    assert abs(sum(e - s for s, e in everything) - total) <= 2 * len(everything)
    for row in report["collectives"]:
        own = union_of(in_flight[row["name"]])
        assert row["hidden_ns"] + row["exposed_ns"] == pytest.approx(row["total_ns"], abs=1e-3)
        assert abs(sum(e - s for s, e in own) - row["total_ns"]) <= 2 * row["count"]
        assert abs(common(own, compute) - row["hidden_ns"]) <= 2 * blocks + 2
        because = sum(by["exposed_ns"] for by in row["exposed_by"])
        assert because == pytest.approx(row["exposed_ns"], abs=1e-3)
        covered = sum(by["hidden_ns"] for by in row["covered_by"])
        assert covered <= row["hidden_ns"] + 1e-3
        if len(row["covered_by"]) < 8:
            assert covered == pytest.approx(row["hidden_ns"], abs=1e-3)


# Per device and kind of track, work that overlaps taken together: what was counted, and merged.
SUMS = (
    trace_reader.TRACK_PATH
    + """select rtrim(path, ' 0123456789') as engine, count(*), sum(ifnull(merged, 1)),
                sum(ifnull(busy, dur)), sum(ifnull(bytes, 0))
         from (select path, dur, extract_arg(arg_set_id, 'debug.merged') as merged,
                      extract_arg(arg_set_id, 'debug.busy_ns') as busy,
                      extract_arg(arg_set_id, 'debug.bytes') as bytes
               from slice s join track_path p on s.track_id = p.id)
         group by engine order by engine"""
)
# Integrals that counters add up to.
INTEGRALS = (
    trace_reader.TRACK_PATH
    + """select path, count(*), sum(value * (next - ts))
         from (select path, value, ts, lead(ts) over (partition by path order by ts) as next
               from counter c join track_path p on c.track_id = p.id)
         group by path order by path"""
)


@pytest.mark.parametrize(
    ("program", "chips"),
    [
        ("workloads/examples/matmul_square.pb.gz", "all"),
        ("workloads/examples/mlp_scan_8_layers.pb.gz", "all"),
        ("workloads/examples/allgather_matmul_bf16.pb.gz", "all"),
        # Rings and blocks of attention in layers.
        pytest.param(
            "benchmarks/pod_programs/decoder_fsdp_tp_64.pb.gz", "0", marks=pytest.mark.long
        ),
    ],
)
def test_merging_changes_no_sum(
    program: str, chips: str, binary: str, tmp_path: pathlib.Path
) -> None:
    found = {}
    for blocks in ("all", "64", "4"):
        trace, totals = tmp_path / f"{blocks}.pftrace", tmp_path / f"{blocks}.json"
        subprocess.run(
            [
                *(binary, "run", "--quiet", str(ROOT / program), "--trace-blocks", blocks),
                *("--trace", trace, "--trace-chips", chips, "--trace-detail", "blocks"),
                *("--trace-totals", totals),
            ],
            check=True,
            timeout=300,
        )
        assert trace_reader.problems(trace, totals_of(trace)) == []
        found[blocks] = trace_reader.query(trace, SUMS, INTEGRALS)

    (every, every_integral) = found["all"]
    assert all(count == steps for _, count, steps, _, _ in every)
    for blocks in ("64", "4"):
        (merged, integral) = found[blocks]
        assert sum(row[1] for row in merged) <= sum(row[1] for row in every)
        assert [row[0] for row in merged] == [row[0] for row in every]
        for (engine, count, steps, busy, size), (_, all_count, _, all_busy, all_size) in zip(
            merged, every, strict=True
        ):
            assert (steps, size) == (all_count, all_size), engine
            # Whole nanoseconds: every slice may be one short or long.
            assert abs(busy - all_busy) <= count + all_count, engine
        assert [row[0] for row in integral] == [row[0] for row in every_integral]
        for (path, _, area), (_, samples, all_area) in zip(integral, every_integral, strict=True):
            # Their times are rounded down; a rate is at most some 10,000 GB/s.
            assert abs((area or 0) - (all_area or 0)) <= 1e4 * samples, path
    assert sum(row[1] for row in found["4"][0]) < sum(row[1] for row in every)


def test_the_trace_of_one_chip_of_a_pod_stays_small(binary: str, tmp_path: pathlib.Path) -> None:
    """32 layers with rings on 18,432 devices: steps one by one would be four times as much."""
    program = ROOT / "benchmarks" / "pod_programs" / "decoder_fsdp_tp_9216.pb.gz"
    trace, totals = tmp_path / "t.pftrace", tmp_path / "t.json"
    command = [binary, "run", "--quiet", program, "--trace", trace, "--trace-totals", totals]
    subprocess.run(command, check=True, timeout=300)
    assert trace.stat().st_size < 30e6
    paths = [track["path"] for track in totals_of(trace)["tracks"]]
    assert any(path.endswith("/MXU") for path in paths)
    assert any(path.endswith("/ICI x+") for path in paths)


def test_many_devices_have_a_summary_of_the_pod(binary: str, tmp_path: pathlib.Path) -> None:
    """A track for each class of devices, above them: what the main stream does, in a few slices."""
    program = ROOT / "benchmarks" / "pod_programs" / "mlp_train_64.pb.gz"
    trace, report = tmp_path / "t.pftrace", tmp_path / "r.json"
    command = [binary, "run", "--quiet", program, "--trace", trace, "--trace-chips", "all"]
    command += ["--trace-totals", tmp_path / "t.json", "--report", report]
    subprocess.run(command, check=True, timeout=120)
    assert trace_reader.problems(trace, totals_of(trace)) == []
    tracks = [t for t in totals_of(trace)["tracks"] if "/Pod/" in t["path"]]
    told = json.loads(report.read_text())
    # All devices are in one of them.
    alike = [int(m[1]) for t in tracks if (m := re.search(r" and (\d+) alike$", t["path"]))]
    assert sum(alike) + len(tracks) == told["devices"]
    query = (
        trace_reader.TRACK_PATH
        + """select s.name, sum(s.dur) from slice s join track_path p on s.track_id = p.id
             where path like '%/Pod/TPU_0(%' group by s.name order by s.name"""
    )
    ((*sums,),) = trace_reader.query(trace, query)
    exposed = {
        r["name"]: r["time_ns"] for r in told["rollup"]["category"] if "exposed" in r["name"]
    }
    assert [name for name, _ in sums] == ["compute", *sorted(exposed)]
    for name, busy in sums[1:]:
        # Gaps of up to a thousandth of the step are in it.
        assert busy == pytest.approx(exposed[name], rel=0.05)
    # The first device in Python is one, not the pod.
    names = [track.name for track in Timeline.load(trace).first_device()]
    assert {"Steps", "TensorCore"} <= set(names)


def test_few_devices_have_none(demo: pathlib.Path) -> None:
    query = "select count(*) from track where name = 'Pod'"
    assert trace_reader.query(demo, query) == [[[0]]]


@pytest.fixture(scope="module")
def demo(binary: str, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Returns the trace that tools/demo writes, of one chip."""
    trace = tmp_path_factory.mktemp("demo") / "t.pftrace"
    program = ROOT / "workloads" / "examples" / "collective_matmul_int32.pb.gz"
    command = [binary, "--config", "v5e-4x2", program, "--quiet", "--trace", trace]
    subprocess.run(command, check=True, timeout=60)
    return trace


DEVICE = "TPU_0(process=0,(0,0,0,0))"


def test_arrows_lead_from_start_to_flight_to_done_on_one_chip(demo: pathlib.Path) -> None:
    (rows,) = trace_reader.query(
        demo,
        trace_reader.TRACK_PATH
        + """select p.path, a.name, q.path, b.name, a.ts <= b.ts + b.dur from flow f
             join slice a on f.slice_out = a.id join track_path p on a.track_id = p.id
             join slice b on f.slice_in = b.id join track_path q on b.track_id = q.id""",
    )
    core, flight = f"{DEVICE}/TensorCore", f"{DEVICE}/Collectives"
    to_flight = [core, "ppermute.2-start", flight, "ppermute.2", 1]
    to_done = [flight, "ppermute.2", core, "ppermute.2-done", 1]
    assert sorted(rows) == sorted([to_flight, to_done] * 3)  # three passes of the loop


def test_instants_are_beside_their_neighbours(demo: pathlib.Path) -> None:
    slices = [s for s in trace_reader.slices(demo) if s.path == f"{DEVICE}/TensorCore"]
    for s in slices:
        if s.name == "ppermute.2-start":
            assert s.depth == 1  # in the loop, not in the product that begins then
    (last,) = (s for s in slices if s.name == "dot_add_fusion")
    inside = [s for s in slices if s.depth > last.depth and s.start_ns >= last.start_ns]
    assert inside == []


@pytest.mark.parametrize(
    "name",
    ["collective_matmul_int32", "mlp_scan_8_layers", "residual_mlp_train_loop_fully_sharded"],
)
def test_scopes_cover_what_the_tensor_core_executes(
    name: str, binary: str, tmp_path: pathlib.Path
) -> None:
    trace = tmp_path / "t.pftrace"
    program = ROOT / "workloads" / "examples" / f"{name}.pb.gz"
    subprocess.run([binary, "run", program, "--quiet", "--trace", trace], check=True, timeout=60)
    slices = [s for s in trace_reader.slices(trace) if s.depth == 0]
    extents = {
        track: union_of(
            [
                (s.start_ns, s.start_ns + s.duration_ns)
                for s in slices
                if s.path == f"{DEVICE}/{track}" and s.duration_ns > 0
            ]
        )
        for track in ("TensorCore", "Scopes")
    }
    executed = sum(end - start for start, end in extents["TensorCore"])
    assert common(extents["TensorCore"], extents["Scopes"]) == executed


def test_the_program_and_its_step_are_named(demo: pathlib.Path) -> None:
    named = {
        s.path: s.name for s in trace_reader.slices(demo) if "Steps" in s.path or "XLA" in s.path
    }
    assert named == {
        f"{DEVICE}/Steps": "step 0 (critical device)",
        f"{DEVICE}/XLA Modules": "collective_matmul_int32",
    }


def test_without_blocks_there_are_operations_alone(binary: str, tmp_path: pathlib.Path) -> None:
    trace, totals = tmp_path / "t.pftrace", tmp_path / "t.json"
    program = ROOT / "workloads" / "examples" / "collective_matmul_int32.pb.gz"
    command = [binary, "--config", "v5e-4x2", program, "--quiet", "--trace", trace]
    command += ["--trace-totals", totals, "--trace-detail", "ops"]
    subprocess.run(command, check=True, timeout=60)
    assert trace_reader.problems(trace, totals_of(trace)) == []
    tracks = {s.path.rsplit("/", 1)[1] for s in trace_reader.slices(trace)}
    assert tracks == {"Steps", "XLA Modules", "Scopes", "TensorCore", "Collectives"}
