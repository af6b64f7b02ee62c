"""Profiles of `--xplane` say in XProf what the report says."""

import json
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
READER = pathlib.Path(__file__).with_name("xprof_reader.py")
TOOLS = (
    *("overview_page", "pod_viewer", "op_profile", "hlo_stats", "roofline_model"),
    *("memory_viewer", "memory_profile"),
)


def rows_of(table: list | dict) -> list[dict]:
    """A table of Google Charts as dictionaries."""
    names = [column["id"] for column in table["cols"]]
    return [
        dict(zip(names, (cell.get("v") for cell in row["c"]), strict=True)) for row in table["rows"]
    ]


def profile_of(folder: pathlib.Path) -> pathlib.Path:
    (profile,) = folder.glob("plugins/profile/*/*.xplane.pb")
    return profile


@pytest.fixture(
    scope="module",
    params=["collective_matmul_int32", "mlp_two_layers", "mlp_scan_8_layers"],
)
def seen(request, binary, tmp_path_factory) -> tuple[dict, dict]:
    """The report of a run, and what XProf shows of its profile."""
    folder = tmp_path_factory.mktemp(request.param)
    program = ROOT / "workloads" / "examples" / f"{request.param}.pb.gz"
    command = [binary, "run", program, "--quiet", "--config", "v5e-4x2"]
    command += ["--xplane", folder / "logs", "--trace-chips", "0", "--report", folder / "r.json"]
    subprocess.run(command, check=True, timeout=60)
    done = subprocess.run(
        [sys.executable, READER, profile_of(folder / "logs"), *TOOLS],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "r.json").read_text()), json.loads(done.stdout)


def test_the_step_takes_as_long(seen):
    report, xprof = seen
    (step,) = xprof["pod_viewer"]["podStatsSequence"]["podStatsMap"]
    (core,) = step["podStatsPerCore"].values()
    assert core["totalDurationUs"] * 1e3 == pytest.approx(report["step_time_ns"], abs=1e-3)


def test_operations_have_the_same_counts_and_times(seen):
    """Self times are those of the roll-up, where an operation is alone in its row."""
    report, xprof = seen
    shown = {row["hlo_op_name"]: row for row in rows_of(xprof["hlo_stats"])}
    ops = {row["name"]: row for row in report["ops"] if row["engine"] == "tensor_core"}
    assert ops
    for name, op in ops.items():
        assert shown[name]["occurrences"] == op["count"], name
        # Microseconds with their picoseconds.
        assert shown[name]["total_time"] * 1e3 == pytest.approx(op["total_ns"], abs=2e-3), name
        assert shown[name]["category"] == op["category"], name
    alone = [row for row in report["rollup"]["op"] if row["name"] in shown and row["members"] == 1]
    assert alone
    for row in alone:
        self_ns = shown[row["name"]]["total_self_time"] * 1e3
        assert self_ns == pytest.approx(row["time_ns"], abs=2e-3), row["name"]


def test_work_and_bytes_are_the_same(seen):
    report, xprof = seen
    whole = xprof["op_profile"]["byProgram"]["metrics"]
    ops = [row for row in report["ops"] if row["engine"] == "tensor_core"]
    assert whole["rawFlops"] == sum(row["flops"] for row in ops)
    (program,) = [p for p in xprof["op_profile"]["byProgram"]["children"] if p["name"] != "IDLE"]
    assert program["name"] == f"{report['workload']}(1)"


def test_the_overview_has_the_busy_shares(seen):
    report, xprof = seen
    overview = next(t["p"] for t in xprof["overview_page"] if "mxu_utilization_percent" in t["p"])
    assert float(overview["active_steptime_ms_average"]) == pytest.approx(
        report["step_time_ns"] * 1e-6, abs=0.006
    )
    if report["workload"] == "collective_matmul_int32":
        # 218.5 us of 244.2 us: an int32 product is ten passes of the arrays.
        assert overview["mxu_utilization_percent"] == "89.5%"


def test_rooflines_have_the_rates_of_the_chip(seen):
    report, xprof = seen
    properties = next(t["p"] for t in xprof["roofline_model"] if "peak_flop_rate" in t["p"])
    assert float(properties["peak_flop_rate"]) == pytest.approx(
        report["peak_flops_per_second"] * 1e-9, rel=1e-3
    )


def test_the_memory_viewer_has_the_arrays_of_the_peak(seen):
    report, xprof = seen
    arrays = report["memory_at_peak"]["arrays"]
    viewer = xprof["memory_viewer"]
    live = sum(a["bytes"] for a in arrays)
    assert float(viewer["peakHeapMib"]) == pytest.approx(live / 2**20, rel=1e-6)
    shown = {entry["label"].split(":")[0]: entry for entry in viewer["maxHeap"]}
    large = [a for a in arrays if a["bytes"] >= 16384]  # XProf adds up what is smaller
    assert large
    for a in large:
        entry = shown[a["name"]]
        assert entry["logicalBufferSizeMib"] == pytest.approx(a["bytes"] / 2**20)
        assert entry["unpaddedShapeMib"] == pytest.approx(a["unpadded_bytes"] / 2**20)
        assert entry["opCode"] == a["owner"]


def test_the_memory_profile_peaks_as_high(seen):
    report, xprof = seen
    (allocator,) = xprof["memory_profile"]["memoryProfilePerAllocator"].values()
    peak = int(allocator["profileSummary"]["peakStats"]["heapAllocatedBytes"])
    holes = report["memory_at_peak"]["fragmentation_bytes"]
    assert peak == report["peak_hbm_bytes"] - holes


def test_a_file_per_host(binary, tmp_path):
    """64 chips of v5e are on hosts of 2 x 4 chips: 8 files of 8 devices, in JAX's numbers."""
    program = ROOT / "workloads" / "examples" / "all_reduce_64mib_8x16.pb.gz"
    command = [binary, "run", program, "--quiet", "--xplane", tmp_path, "--trace-chips", "all"]
    subprocess.run(command, check=True, timeout=60)
    files = sorted(tmp_path.glob("plugins/profile/*/*.xplane.pb"))
    assert [f.name for f in files] == sorted(f"host_{i}.xplane.pb" for i in range(len(files)))
    assert len(files) == 128 // 8
    first = next(f for f in files if f.name == "host_0.xplane.pb").read_bytes()
    assert all(f"/device:TPU:{i}".encode() in first for i in range(8))
    assert b"/device:TPU:8" not in first


def test_two_profiles_are_the_same_bytes(binary, tmp_path):
    program = ROOT / "workloads" / "examples" / "mlp_scan_8_layers.pb.gz"
    made = []
    for name in ("a", "b"):
        command = [binary, "run", program, "--quiet", "--xplane", tmp_path / name]
        subprocess.run(command, check=True, timeout=60)
        made.append(profile_of(tmp_path / name).read_bytes())
    assert made[0] == made[1]


def test_a_folder_that_cannot_be(binary, tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    program = ROOT / "workloads" / "examples" / "psum.pb.gz"
    command = [binary, "run", program, "--quiet", "--xplane", file]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert "--xplane: cannot write into" in done.stderr
