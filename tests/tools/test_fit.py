"""`tpusim fit`: peak against capacity, slice by slice."""

import json
import re

from tests.tools.command_line import example


def rows_of(run, *arguments):
    done = run("fit", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_slices_with_as_many_devices(run, report_of):
    answer = rows_of(run, example("mlp_scan_8_layers"), "--chip", "v5e", "--chip", "v6e")
    assert answer["partitions"] == 8
    assert {row["devices"] for row in answer["slices"]} == {8}
    names = [row["config"] for row in answer["slices"]]
    assert names == ["v5e-2x4", "v5e-4x2", "v6e-2x4", "v6e-4x2"]
    report = report_of("mlp_scan_8_layers", "--config", "v5e-4x2")
    row = answer["slices"][1]
    assert row["fits"]
    assert row["peak_hbm_bytes"] == report["peak_hbm_bytes"]
    assert row["usable_hbm_bytes"] == report["usable_hbm_bytes"]


def test_larger_slices(run):
    rows = rows_of(run, example("mlp_scan_8_layers"), "--chip", "v5e", "--larger")["slices"]
    devices = [row["devices"] for row in rows]
    assert devices == sorted(devices)
    assert devices[0] == 8
    assert devices[-1] == 256


def effort_of(done):
    """Returns the numbers asked, compiled and simulated, by --verbose."""
    found = re.findall(r"(\d+) asked, (\d+) compiled, (\d+) simulated", done.stderr)
    return [tuple(int(n) for n in numbers) for numbers in found]


def test_slices_alike_are_compiled_once(run, report_of):
    chosen = (example("mlp_scan_8_layers"), "--chip", "v5p", "--chip", "v7x", "--larger")
    done = run("fit", *chosen, "--json", "--verbose")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["slices"]
    ((asked, compiled, simulated),) = effort_of(done)
    assert asked == len(rows)
    assert compiled <= asked / 4
    assert simulated == 0
    # What was known without it is what the compiler says.
    for row in rows[:: len(rows) // 6]:
        report = report_of("mlp_scan_8_layers", "--config", row["config"])
        assert row["peak_hbm_bytes"] == report["peak_hbm_bytes"], row
        assert row["usable_hbm_bytes"] == report["usable_hbm_bytes"], row


def test_what_does_not_fit_says_why(run):
    small = ("--set", "chip.hbm.bytes=300MiB")
    rows = rows_of(run, example("pipeline_large"), "--chip", "v5e", *small)["slices"]
    assert rows
    for row in rows:
        assert not row["fits"]
        assert "does not fit in HBM" in row["reason"]
        assert row["peak_hbm_bytes"] > row["usable_hbm_bytes"]
    done = run("fit", example("pipeline_large"), "--chip", "v5e", *small)
    assert done.returncode == 0
    assert re.search(r"no: [\d.]+ GiB too much$", done.stdout, re.MULTILINE)


def test_every_chip_is_tried(run):
    done = run("fit", example("psum"))
    assert done.returncode == 0, done.stderr
    for chip in ("v4", "v5e", "v5p", "v6e", "v7x"):
        assert f"\n{chip}-" in done.stdout


def test_mistakes(rejects):
    assert "the nearest is v5" in rejects("fit", example("psum"), "--chip", "v5x")
    assert "no.pb" in rejects("fit", "no.pb")
