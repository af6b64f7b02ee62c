"""Breakdown of the step: rows that add up to it."""

import collections
import re

import pytest

from tests.tools.command_line import SLICE, example, examples

TABLES = ("op", "scope", "source", "category", "collective", "path")


def picoseconds(nanoseconds):
    return round(nanoseconds * 1000)


@pytest.mark.parametrize("workload", examples())
def test_rows_add_up_to_the_step(report_of, workload):
    report = report_of(workload)
    step = picoseconds(report["step_time_ns"])
    for table in TABLES:
        rows = report["rollup"][table]
        assert sum(picoseconds(row["time_ns"]) for row in rows) == step, table
        assert sum(row["share"] for row in rows) == pytest.approx(1), table
        for row in rows:
            assert row["compute_ns"] + row["exposed_ns"] <= row["time_ns"] + 1e-6, row
    # A scope takes as long as itself and those inside.
    for row in report["rollup"]["scope"]:
        assert row["time_ns"] <= row["total_ns"] <= report["step_time_ns"]
    # Several collectives of a kind at once are in flight as long as they are together.
    sums = collections.Counter()
    for c in report["collectives"]:
        sums[c["kind"]] += c["total_ns"]
    for row in report["rollup"]["collective"]:
        if row["name"] in sums:
            assert row["hidden_ns"] <= row["in_flight_ns"] <= sums.pop(row["name"]) + 1e-6
            assert row["in_flight_ns"] <= report["step_time_ns"]
    assert not sums


@pytest.mark.parametrize("by", TABLES)
def test_shown_shares_add_up(run, by):
    done = run(example("residual_mlp_train_loop_two_dimensional"), "--by", by, "--top", "3")
    assert done.returncode == 0, done.stderr
    table = done.stdout.split("\n\n")[1].splitlines()
    head = {"op": "operation", "path": "critical path"}.get(by, by)
    assert table[0].startswith(head)
    shares = [re.search(r" ([0-9.]+)%", line)[1] for line in table[1:]]
    assert len(shares) <= 5
    assert sum(round(float(share) * 10) for share in shares) == 1000


def test_unrolled_layers_are_one(report_of):
    """A layer written in a Python loop takes as many rows as one of a scan."""
    rows = report_of("residual_mlp_train_loop_two_dimensional")["rollup"]["op"]
    together = [row for row in rows if row["members"] > 1]
    assert together
    for row in together:
        assert "*" in row["name"]
        assert row["count"] >= row["members"]


def test_compare_has_the_same_words(run, report_of):
    done = run(
        *("compare", "--by", "category", example("psum"), example("mlp_scan_8_layers")),
        *("--config", SLICE, "--top", "20"),
    )
    assert done.returncode == 0, done.stderr
    table = done.stdout.split("\n\n")[1]
    for row in report_of("mlp_scan_8_layers", "--config", SLICE)["rollup"]["category"]:
        assert f"\n{row['name']} " in table


def test_unknown_tables_are_rejected(run):
    done = run("--config", SLICE, example("psum"), "--by", "layer")
    assert done.returncode == 2
    assert "--by" in done.stderr
