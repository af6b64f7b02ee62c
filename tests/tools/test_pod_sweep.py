"""The sweep of whole pods: its programs, its limits, and its smallest one from end to end."""

import dataclasses
import json
import pathlib
import subprocess
import sys

import pytest
from tpusim.slices import devices_of

from benchmarks import pod_sweep
from benchmarks.pod_sweep import VARIANTS, Exact, Run
from benchmarks.sweep_table import ROWS

ROOT = pathlib.Path(__file__).parents[2]
SCRIPT = ROOT / "benchmarks" / "pod_sweep.py"
# Whose exact simulation takes a second, too.
SMALLEST = "tp_plane_v5p_64"
# A run of a step of a second that is exactly within all limits.
GOOD = Run(
    "program",
    64,
    "link",
    user_s=0.9,
    peak_bytes=400_000_000,
    events=1,
    classes=1,
    step_ns=1.001e9,
    bound_ns=3e6,
    exact=Exact(1e9, 10.0),
)


def sweep(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("seed", [0, 1])
def test_bound_is_never_below_the_true_error(
    seed: int, binary: str, tmp_path: pathlib.Path
) -> None:
    rows = tmp_path / "rows.json"
    asked = ("--programs", tmp_path, "--only", SMALLEST, "--seed", seed)
    done = sweep(*asked, "--exact", "--json", rows)
    made = json.loads(rows.read_text())
    assert done.returncode == (1 if made["broken"] else 0), done.stdout + done.stderr
    runs = {run["variant"]: run for run in made["runs"]}
    assert list(runs) == list(VARIANTS)
    for variant, run in runs.items():
        assert (run["program"], run["failure"]) == (SMALLEST, "")
        assert run["events"] > 0
        assert run["error_ns"] == abs(run["step_ns"] - run["exact"]["step_ns"])
        assert run["error_ns"] <= run["bound_ns"] + pod_sweep.ROUNDING_NS
        assert run["peak_bytes"] < pod_sweep.MOST_BYTES
        # A worse machine is not faster.
        if variant in ("straggler", "link"):
            assert run["exact"]["step_ns"] >= runs["plain"]["exact"]["step_ns"]
    # A heading, the rows, the summary, and what is broken.
    assert done.stdout.count("\n") == len(runs) + 2 + len(made["broken"])


@pytest.mark.long
def test_all_programs_are_within_all_limits(binary: str, tmp_path: pathlib.Path) -> None:
    done = sweep("--programs", tmp_path, "--exact")
    assert done.returncode == 0, done.stdout + done.stderr


def test_table_has_programs_that_fill_their_slices() -> None:
    assert len(ROWS) == len({row.name for row in ROWS}) == 35
    assert min(row.chips for row in ROWS) == 64
    assert max(row.chips for row in ROWS) == 12_288
    for row in ROWS:
        assert devices_of(row.config) == row.chips, row.name


def test_every_seed_draws_models_that_fit() -> None:
    from benchmarks.sweep_programs import KINDS, drawn

    assert {row.kind for row in ROWS} == set(KINDS)
    draws = [[drawn(row, seed) for row in ROWS] for seed in range(20)]
    assert draws[3] == [drawn(row, 3) for row in ROWS]
    assert len({str(draw) for draw in draws}) == len(draws)


@pytest.mark.parametrize(
    ("changes", "broken"),
    [
        ({}, []),
        ({"exact": None}, []),
        ({"exact": Exact(None, 600.0, "takes more than 600 s")}, []),
        # It may be 0.3 % of a step of a second, or three times an error of 1 ms.
        ({"bound_ns": 3.1e6}, ["program link: bound 3,100,000 ns, at most 3,003,000 ns"]),
        ({"step_ns": 1.002e9, "bound_ns": 6e6}, []),
        (
            {"bound_ns": 9e5},
            ["program link: off by 1,000,000 ns, more than its bound, 900,000 ns"],
        ),
        ({"user_s": 3.01}, ["program link: 3.01 s of user CPU, at most 3 s"]),
        ({"peak_bytes": 501_000_000}, ["program link: 501 MB, at most 500 MB"]),
        ({"failure": "SIGSEGV: no message"}, ["program link: SIGSEGV: no message"]),
    ],
)
def test_limits_of_a_run(changes: dict, broken: list[str]) -> None:
    assert pod_sweep.broken_by(dataclasses.replace(GOOD, **changes)) == broken


def test_limit_of_nearly_all_runs() -> None:
    slow = dataclasses.replace(GOOD, user_s=2.0)
    assert pod_sweep.broken_limits([GOOD] * 19 + [slow]) == []
    assert pod_sweep.broken_limits([GOOD] * 18 + [slow] * 2) == [
        "18 of 20 runs take at most 1 s of user CPU, fewer than 95%"
    ]
    assert pod_sweep.summary([GOOD] * 19 + [slow]) == (
        "20 runs: 95% within 0.90 s of user CPU, worst 2.00 s, most 400 MB; "
        "20 compared with the exact step"
    )


@pytest.mark.parametrize(
    ("limit", "value", "failure"),
    [
        ("MOST_EXACT_BYTES", 100_000_000, "takes more than 100 MB"),
        ("MOST_EXACT_S", 1, "takes more than 1 s"),
    ],
)
def test_run_beyond_a_limit_is_given_up(
    binary: str, monkeypatch: pytest.MonkeyPatch, limit: str, value: int, failure: str
) -> None:
    monkeypatch.setattr(pod_sweep, limit, value)
    program = ROOT / "benchmarks" / "pod_programs" / "decoder_fsdp_tp_256.pb.gz"
    outcome = pod_sweep.simulate(program, ["--fold", "off", "--detail", "tile"])
    assert (outcome.report, outcome.failure, outcome.given_up) == (None, failure, True)


def test_failed_run_is_a_row_and_a_broken_limit(binary: str, tmp_path: pathlib.Path) -> None:
    row = ROWS[0]
    row.file(tmp_path, 0).write_bytes(b"no program")
    done = sweep("--programs", tmp_path, "--only", row.name)
    assert done.returncode == 1
    for variant in VARIANTS:
        assert f"broken: {row.name} {variant}: exit code 1: tpusim: error: " in done.stdout


def test_unknown_program_is_named(tmp_path: pathlib.Path) -> None:
    done = sweep("--programs", tmp_path, "--only", "nothing*")
    assert done.returncode == 2
    assert "no program nothing*; there are fsdp_v5e_64, " in done.stderr
