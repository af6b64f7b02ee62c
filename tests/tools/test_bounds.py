"""`tpusim compile --emit bounds`: what no schedule of a program can beat."""

import json

import pytest

from tests.tools.command_line import SLICE, Run, example, examples

# The arrays of a v5e: 4 of 128 x 128, two operations each, 1.5 GHz, of which 0.955 are reached;
# bytes of HBM per ns.
FLOPS_PER_NS, BYTES_PER_NS = 4 * 128 * 128 * 2 * 1.5 * 0.955, 819
TRIPS = ("--trip-count", "*=2")


def bounds_of(run: Run, name: str, *options: str) -> dict[str, float]:
    done = run("compile", example(name), "--emit", "bounds", *options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", examples())
def test_no_example_is_faster_or_smaller(run: Run, report_of, name: str):
    bounds, report = bounds_of(run, name, *TRIPS), report_of(name, *TRIPS)
    assert bounds["schedule_ns"] <= report["step_time_ns"]
    assert bounds["reads_ns"] <= report["bound_ns"]["hbm"] <= report["step_time_ns"]
    assert bounds["argument_bytes"] <= report["peak_hbm_bytes"]
    assert bounds["usable_hbm_bytes"] == report["usable_hbm_bytes"]
    assert bounds["chips"] == report["chips"]


def test_figures_of_a_loop_by_hand(run: Run):
    """Eight layers of 1024 x 4096 and back; rows over 4, columns over 2 devices."""
    bounds = bounds_of(run, "mlp_scan_8_layers")
    # Weights of sixteen matmuls, every layer once, and the batch; all of them are read.
    arguments = 16 * 1024 * 2048 * 2 + 128 * 1024 * 2
    assert bounds["argument_bytes"] == arguments
    assert bounds["reads_ns"] == pytest.approx(arguments / BYTES_PER_NS, rel=1e-6)
    matmuls = 16 * 2 * 128 * 1024 * 2048 / FLOPS_PER_NS
    # Every second matmul is followed by an all-reduce, which nothing hides.
    assert matmuls < bounds["schedule_ns"] < 3 * matmuls


def test_bounds_are_of_the_machine_that_runs(run: Run):
    """A program is compiled for the chip as it is, and runs on a faster one."""
    name = "matmul_square"
    plain, faster = (
        bounds_of(run, name, *options)
        for options in ((), ("--set", "chip.hbm.bytes_per_second=2x"))
    )
    assert faster["reads_ns"] == pytest.approx(plain["reads_ns"] / 2, rel=1e-6)
    assert faster["schedule_ns"] == plain["schedule_ns"]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (2, ("--json",)),
        (2, ("-o", "bounds.json")),
        (2, ("--explain", "fusion")),
        (1, ("--passes", "simplify")),
    ],
)
def test_bounds_are_printed_alone(rejects, code: int, words: tuple[str, ...]):
    on = ("compile", "-c", SLICE, example("psum"))
    said = rejects(*on, "--emit", "bounds", *words, code=code)
    assert "--emit bounds" in said
