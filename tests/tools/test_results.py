"""Summary and report."""

import pathlib
import re

import pytest
import tpusim
from resources_used import measured

from tests.tools.command_line import EXAMPLES, SLICE, example, example_bytes, outputs

FIELDS = {
    "schema": str,
    "tpusim_version": str,
    "command_line": list,
    "workload": str,
    "config": str,
    "compiler": str,
    "step_time_ns": float,
    "error_bar": dict,
    "bound_ns": dict,
    "bound_by": str,
    "critical_path_ns": dict,
    "mfu": float,
    "hfu": float,
    "flops": int,
    "peak_flops_per_second": float,
    "hbm_bytes_per_second": float,
    "exposed_communication_ns": float,
    "hidden_communication_ns": float,
    "peak_hbm_bytes": int,
    "usable_hbm_bytes": int,
    "memory_at_peak": dict,
    "vmem_at_peak": dict,
    "devices": int,
    "chips": int,
    "chip_classes": int,
    "folding": dict,
    "events": int,
    "ops": list,
    "scopes": list,
    "collectives": list,
    "reshard_sites": list,
    "rollup": dict,
    "links": list,
    "assumptions": list,
    "warnings": list,
    "records": list,
}
ROWS = {
    "ops": "name category scope count total_ns flops hbm_bytes engine source",
    "scopes": "scope total_ns exposed_communication_ns flops",
    "collectives": "name kind bytes group_size axes algorithm count total_ns hidden_ns "
    "exposed_ns expected_ns bound_ns covered_by exposed_by scope source",
    "links": "chip direction bytes utilization",
}


ROLLUP_ROW = "name members count time_ns share compute_ns exposed_ns"
ROLLUP = {
    "op": " category source scope",
    "scope": " total_ns",
    "source": "",
    "category": "",
    "xprof": "",
    "collective": " in_flight_ns hidden_ns",
    "path": " category source scope",
}


def test_report(report_of):
    report = report_of("allgather_matmul_int32", "--config", SLICE)
    assert list(report) == list(FIELDS)
    for field, kind in FIELDS.items():
        assert isinstance(report[field], kind), field
    for field, columns in ROWS.items():
        assert report[field], field
        for row in report[field]:
            assert list(row) == columns.split(), field
    assert report["schema"] == "tpusim.report/1"
    assert report["workload"] == "allgather_matmul_int32"
    assert report["config"] == SLICE
    assert list(report["rollup"]) == list(ROLLUP)
    for table, columns in ROLLUP.items():
        for row in report["rollup"][table]:
            assert list(row) == (ROLLUP_ROW + columns).split(), table
    assert set(report["bound_ns"]) == {"compute", "hbm", "ici", "host", "dcn"}
    peak = report["memory_at_peak"]
    assert list(peak) == ["time_ns", "operation", "fragmentation_bytes", "owners", "arrays"]
    assert 0 <= peak["time_ns"] <= report["step_time_ns"]
    for array in peak["arrays"]:
        assert array["bytes"] == array["unpadded_bytes"] + array["padding_bytes"]
    live = sum(array["bytes"] for array in peak["arrays"])
    assert live == sum(owner["bytes"] for owner in peak["owners"])
    assert live + peak["fragmentation_bytes"] == report["peak_hbm_bytes"]
    assert report["chips"] == report["devices"] == 8
    # 2 * 512 * 2048 * 2048 on each device, beside little else.
    assert report["flops"] == pytest.approx(2 * 512 * 2048 * 2048, rel=0.01)
    assert report["step_time_ns"] >= max(report["bound_ns"].values())
    # A 4x2 box has 3*2 links in x and 4 in y, both ways.
    assert len(report["links"]) == 2 * (3 * 2 + 4)
    (gather,) = report["collectives"]
    assert gather["kind"] == "all-gather"
    assert gather["group_size"] == 4
    assert gather["bytes"] == 512 * 2048 * 4
    assert gather["bound_ns"] <= gather["expected_ns"]


@pytest.mark.parametrize(
    "workload",
    ["collective_matmul_int32", "collective_matmul_unrolled_bf16", "mlp_scan_8_layers", "psum"],
)
def test_two_runs_give_the_same_bytes(run, tmp_path, workload):
    files = []
    for number in (1, 2):
        folder = tmp_path / str(number)
        folder.mkdir()
        done = run(
            *("--config", SLICE, example(workload), "--quiet"),
            *outputs(folder),
            *("--trace-chips", "all", "--trace-totals", folder / "totals.json"),
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout == done.stderr == ""
        files.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert set(files[0]) == {"r.json", "t.pftrace", "totals.json"}
    assert files[0] == files[1]


@pytest.mark.parametrize("how", ["allgather", "local", "collective"])
def test_a_small_program_is_quick_and_light(binary, tmp_path, how):
    """From file to report: a fifth of a second of one processor, 200 MB."""
    if b"__asan_init" in pathlib.Path(binary).read_bytes():
        pytest.skip("a sanitizer costs more")
    command = [binary, "--config", SLICE, "--quiet", example(f"{how}_matmul_int32")]
    command += ["--report", tmp_path / "r.json"]
    used = measured(*command)
    assert used.cpu_s < 0.2
    assert used.resident_bytes < 200e6


def test_who_comes_late_to_a_collective_has_no_bound(report_of, run):
    """Beside a straggler that has what others sent long ago."""
    slow = ("pipeline_large", "--slow", "chip=1:0.8")
    alike, late = report_of("pipeline_large"), report_of(*slow)
    for report in (alike, late):
        for c in report["collectives"]:
            assert c["bound_ns"] * c["count"] <= c["total_ns"] * (1 + 1e-9)
    assert all(c["bound_ns"] > 0 for c in alike["collectives"])
    unbound = [c["name"] for c in late["collectives"] if c["bound_ns"] == 0]
    assert unbound
    assert len(unbound) < len(late["collectives"])
    table = run(example(slow[0]), *slow[1:]).stdout
    assert re.search(rf"^{re.escape(unbound[0])} .* -  ", table, re.MULTILINE)


def test_summary_is_one_screen(run):
    done = run("--config", SLICE, example("allgather_matmul_int32"))
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) <= 24
    for word in ("step time", "bound by", "MFU", "exposed", "hidden", "peak", "all-gather"):
        assert word in done.stdout
    assert done.stdout == run("run", "-c", SLICE, example("allgather_matmul_int32")).stdout


def test_slice_from_the_workload(report_of):
    report = report_of("psum")
    named = tpusim.Workload.load(example("psum")).config
    assert report["config"] == named
    assert report["assumptions"] == report_of("psum", "-c", named)["assumptions"]


def test_containers(report_of, tmp_path):
    """A program has the same step bare and gzipped."""
    on = ("--config", SLICE, "--device-order", "ids")
    data = example_bytes("matmul_square")
    expected = report_of("matmul_square", *on)["step_time_ns"]
    for name, content in (
        ("bare.pb", tpusim.Workload.from_bytes(data).hlo_module),
        ("plain.pb", data),
    ):
        (tmp_path / name).write_bytes(content)
        assert report_of(tmp_path / name, *on)["step_time_ns"] == expected


def test_trace_chips(run, tmp_path):
    def chips(*options: object) -> set[str]:
        totals = tmp_path / "totals.json"
        done = run(
            *("--config", SLICE, example("psum"), "--quiet", "--trace", tmp_path / "t.pftrace"),
            *("--trace-totals", totals, *options),
        )
        assert done.returncode == 0, done.stderr
        return set(re.findall(r"TPU_(\d+)\(process", totals.read_text()))

    assert chips("--trace-chips", "all") == set("01234567")
    # Chip 3 is at (3,0); JAX numbers by trays of 2 x 2, so it is the second of the second tray.
    assert chips("--trace-chips", "3,0") == set("05")
    # The ends of a line of four do something else than its middle.
    assert chips() == chips("--trace-chips", "distinct") == set("01")
    done = run("--config", SLICE, example("psum"), "--trace", "t", "--trace-chips", "8")
    assert done.returncode == 1
    assert "chips 0 to 7" in done.stderr


def test_readme_shows_what_is_printed(run):
    """The example output of the README is the output of today."""
    readme = (EXAMPLES.parents[1] / "README.md").read_text()
    example_output = r"^    \$ build/tpusim (.*)\n((?:    .*\n|\n)+)"
    command, shown = re.search(example_output, readme, re.MULTILINE).groups()
    shown = "".join(line.removeprefix("    ") for line in shown.splitlines(keepends=True))
    options = command.split()
    done = run(*options[:-1], EXAMPLES.parents[1] / options[-1])
    assert shown.strip() == done.stdout.strip(), "paste the new output into README.md"
