"""The critical path: what the step's time goes by with, over all devices."""

import pytest

from tests.tools.command_line import example, examples

NAMES = examples()


def picoseconds(nanoseconds):
    return round(nanoseconds * 1000)


def path_of(report):
    rows = report["rollup"]["path"]
    return {(row["name"], row["category"], row["source"]): row["time_ns"] for row in rows}


@pytest.mark.parametrize("name", NAMES)
def test_it_adds_up_to_the_step_folded_or_not(report_of, name):
    report = report_of(name)
    step = picoseconds(report["step_time_ns"])
    assert sum(map(picoseconds, report["critical_path_ns"].values())) == step
    assert sum(picoseconds(row["time_ns"]) for row in report["rollup"]["path"]) == step
    # What is passed over at once counts like what is executed one by one.
    for option in (("--detail", "tile"), ("--fold", "off")):
        other = report_of(name, *option)
        if picoseconds(other["step_time_ns"]) != step:
            continue  # the shortcut itself is off by rounding
        for part, time in report["critical_path_ns"].items():
            assert other["critical_path_ns"][part] == pytest.approx(time, abs=0.01 * step / 1000)


def test_bound_by_is_the_largest_part(report_of):
    slow_host = ("weights_from_host", "--set", "host.pcie_bytes_per_second=0.1x")
    for name in (
        ("allgather_matmul_int32",),
        ("all_reduce_64mib_4x2",),
        ("elementwise_chain",),
        slow_host,
    ):
        report = report_of(*name)
        path = report["critical_path_ns"]
        parts = {
            "compute": path["mxu"] + path["vpu"],
            "hbm": path["hbm"],
            "ici": path["ici"],
            "dcn": path["dcn"],
            "host": path["host"],
            "launch/latency": path["latency"],
        }
        assert report["bound_by"] == max(parts, key=parts.__getitem__), name
    assert report_of("allgather_matmul_int32")["bound_by"] == "compute"
    assert report_of("all_reduce_64mib_4x2")["bound_by"] == "ici"
    assert report_of("elementwise_chain")["bound_by"] == "hbm"
    assert report_of(*slow_host)["bound_by"] == "host"


def test_a_faster_part_saves_no_more_than_it_has_of_the_path(report_of):
    """Links twice as fast save about half of what links have of the path, where nothing hides."""
    base = report_of("all_reduce_64mib_4x2")
    twice = report_of("all_reduce_64mib_4x2", "--set", "ici.link_bytes_per_second=2x")
    saved = base["step_time_ns"] - twice["step_time_ns"]
    assert saved == pytest.approx(base["critical_path_ns"]["ici"] / 2, rel=0.02)


def test_what_is_hidden_is_not_on_it(report_of):
    """The transfers of the ring hide under the product, but for the first chunks."""
    report = report_of("collective_matmul_bf16")
    exposed = report["exposed_communication_ns"]
    in_flight = exposed + report["hidden_communication_ns"]
    path = report["critical_path_ns"]
    assert path["ici"] < in_flight
    assert path["mxu"] > 0


def test_a_straggler_is_on_it(report_of):
    """A slow chip makes others wait: its compute is on the path, not their waiting."""
    base = report_of("allgather_matmul_int32")
    slow = report_of("allgather_matmul_int32", "--slow", "chip=3:0.5")
    more = slow["step_time_ns"] - base["step_time_ns"]
    assert more > 0
    assert slow["critical_path_ns"]["mxu"] - base["critical_path_ns"]["mxu"] == pytest.approx(
        more, rel=0.1
    )


def test_shown(run):
    done = run(example("allgather_matmul_int32"), "--by", "path")
    assert "bound by       compute (critical path: MXU " in done.stdout
    assert "\ncritical path" in done.stdout


def test_transfers_that_memory_slows_are_of_the_memory(report_of):
    """64 MiB over links of 45 GB/s both ways; HBM of a chip has up to four such flows."""
    fast = report_of("all_reduce_64mib_4x2")
    assert fast["critical_path_ns"]["hbm"] < 0.01 * fast["step_time_ns"]
    slow = report_of("all_reduce_64mib_4x2", "--set", "chip.hbm.bytes_per_second=1e11")
    assert slow["step_time_ns"] > 2 * fast["step_time_ns"]
    assert slow["bound_by"] == "hbm"
    assert slow["critical_path_ns"]["ici"] < 0.01 * slow["step_time_ns"]
