"""`tpusim configs`, and every chip at work."""

import json
import re

import jax
import jax.numpy as jnp
import pytest
import tpusim

from tests.tools.command_line import example


def test_configs(run, rejects):
    listed = run("configs").stdout
    assert re.search(r"^v5e .*\b4x2\b.*\b16x16\b", listed, re.MULTILINE)
    shown = run("configs", "v5e").stdout
    assert max(map(len, shown.splitlines())) <= 120
    assert re.search(
        r"chip\.hbm\.bytes_per_second +819000000000 +bytes_per_second = 819 GB/s", shown
    )
    assert "note:" in run("configs", "v5e", "--verbose").stdout
    assert run("configs", "v5e-4x2").stdout == shown
    assert "v5e" in rejects("configs", "v5ee")


CHIPS = ("v2", "v3", "v4", "v4i", "v5e", "v5p", "v6e", "v7x", "8i", "8t")


@pytest.mark.parametrize("chip", CHIPS)
def test_a_chip_fits_on_one_screen(run, chip):
    shown = run("configs", chip).stdout
    lines = shown.splitlines()
    assert len(lines) <= 64
    assert max(map(len, lines)) <= 120
    assert lines[0].startswith(f"{chip}: ")
    # Every row has a unit and a source.
    rows = [row for row in lines[lines.index("") + 1 : -1] if "more parameters" not in row]
    assert rows[0].split() == ["parameter", "value", "unit", "source"]
    assert all(len(re.split(r" {2,}", row.strip())) >= 4 for row in rows[1:])
    # What has its default is counted, and shown with the others on request.
    counted = re.search(r"^(\d+) more parameters have their defaults", shown, re.MULTILINE)
    everything = run("configs", chip, "--verbose").stdout
    assert everything.count("source: default:") == (int(counted[1]) if counted else 0)


def test_configs_lists_every_chip_with_its_rings(run):
    listed = run("configs").stdout
    for chip in CHIPS:
        assert re.search(rf"^{chip} +\S", listed, re.MULTILINE)
    for marked in ("8x16+", "16x16*", "4x4x4*"):
        assert marked in listed
    assert max(map(len, listed.splitlines())) <= 120


@pytest.mark.parametrize(
    "config",
    [
        *("v2-1x1", "v3-2x2", "v4-1x1x1", "v4i-2x2", "v5e-1x1", "v5p-2x2x2", "v6e-4x2"),
        *("v7x-1x1x1", "v7x-2x2x1", "8i-1x1", "8t-1x1", "v5p-4x4x8_twisted"),
    ],
)
def test_a_product_runs_on_every_chip(run, config, tmp_path):
    workload, report = tmp_path / "w.pb", tmp_path / "r.json"
    x = jax.ShapeDtypeStruct((2048, 2048), jnp.bfloat16)
    tpusim.export(jax.jit(jnp.dot), x, x, path=workload, config=config)
    done = run("--config", config, "--report", str(report), str(workload))
    assert done.returncode == 0, done.stderr
    result = json.loads(report.read_text())
    assert result["config"] == config
    # No faster than its arithmetic and its bytes allow, and not ten times slower.
    bound = max(result["bound_ns"].values())
    assert 0 < bound <= result["step_time_ns"] < 10 * bound


@pytest.mark.parametrize("config", ["v4-2x2x2", "v5e-4x2", "v5p-2x2x2", "v6e-4x2"])
@pytest.mark.parametrize("name", ["matmul_square", "all_to_all", "ring_shift"])
def test_examples_run_on_other_chips(run, config, name):
    done = run("--config", config, example(name))
    assert done.returncode == 0, done.stderr


def test_the_choices_of_collectives_are_printed_with_what_they_rest_on(run):
    shown = run("configs", "v5e", "--compiler").stdout
    choices = shown[shown.index("Collectives, decided by the first line that holds") :]
    routed = choices[choices.index("\nall-to-all, slice_chips >= 17: NetRouterEmitter") :]
    lines = [line.strip() for line in routed.strip().splitlines()[1:3]]
    assert lines == [
        "source:  27 collectives that were compiled, 27 of them for v5e",
        "bracket: slices of 16 chips no, of 64 yes",
    ]
    # What is about other chips is not shown, what is borrowed is.
    assert "NetRouterEmitter" not in run("configs", "v6e", "--compiler").stdout
    assert "NetRouterEmitter" in run("configs", "v2", "--compiler").stdout

    (chip,) = json.loads(run("configs", "v7x", "--compiler", "--json").stdout)["chips"]
    assert chip["collectives"][0]["choice"] == "one ring through the group"
    off_loaded = [row for row in chip["collectives"] if row["choice"] == "off-loaded"]
    assert [row["when"] for row in off_loaded] == [
        "all-gather",
        "reduce-scatter, minor_dimension",
        "all-reduce or reduce-scatter, offload_size",
    ]
    assert all("collectives that were compiled" in row["source"] for row in off_loaded)
    assert "collectives" not in json.loads(run("configs", "v7x", "--json").stdout)["chips"][0]
