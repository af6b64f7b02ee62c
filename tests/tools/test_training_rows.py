"""Published train steps: exports, model FLOPs and what the simulation promises of them."""

import json
import math
import pathlib
import re

import pytest
import tpusim
import training_page

from tests.tools.command_line import Run, program_name
from tests.validated import validated
from validation.workloads import training
from workloads.examples import export_all

ROOT = pathlib.Path(__file__).resolve().parents[2]

LISTED = training_page.training_rows()
# Limits of all published steps together, those of inference among them.
MOST_CPU_SECONDS = 50
MOST_MEMORY = 2 * 10**9


def name_of(row: dict) -> str:
    """Returns the name of the run that the row's workload is an export of."""
    return program_name(pathlib.PurePath(row["workload"]))


@pytest.fixture(scope="module")
def simulated(binary: str) -> dict[str, dict]:
    """The outcome of every row."""
    rows = validated(binary).rows
    return {row["id"]: rows[row["id"]] for row in LISTED}


@pytest.mark.parametrize("name", training.TRAINING)
def test_committed_exports_are_current(name: str) -> None:
    exported = export_all.export(training.TRAINING[name])
    committed = tpusim.Workload.load(ROOT / "validation" / "workloads" / f"{name}.pb.gz")
    assert exported == committed, "run validation/workloads/training.py and commit the result"


def test_every_run_is_a_row() -> None:
    assert sorted(map(name_of, LISTED)) == sorted(training.RUNS)


@pytest.mark.parametrize("row", LISTED, ids=lambda row: row["id"])
def test_model_flops_are_those_of_the_run(row: dict) -> None:
    assert row["model_flops"] == training.RUNS[name_of(row)].model_flops_per_device()


def test_model_flops_by_hand() -> None:
    # Three times the forward pass of V40 for 6 x 2048 tokens, two FLOPs for each product:
    # 32 layers of 3 x 4096 x 28672 (MLP), 4 x 4096 x 64 x 128 (projections) and
    # 2 x 2048 x 64 x 128 (attention, nothing masked), and logits of 32,000 words.
    layer = 352_321_536 + 134_217_728 + 33_554_432
    by_hand = 3 * 2 * 6 * 2048 * (32 * layer + 4096 * 32_000)
    assert training.RUNS["train_16b_v5e_256"].model_flops_per_device() == by_hand
    # V71 counts half of attention.
    half = training.RUNS["train_llama3_405b_v5p_512"].decoder()
    attention = 6 * half.batch * half.sequence * half.layers * 2 * half.sequence * 16384
    assert half.model_flops() - half.model_flops(causal=True) == attention // 2


def test_published_rates(simulated: dict[str, dict]) -> None:
    """Step time and model FLOPs go together with the rate that the note quotes."""
    quoted = 0
    for row in LISTED:
        note = row.get("note", "")
        if rate := re.match(r"published as ([\d.]+) TFLOP/s per chip", note):
            published = row["model_flops"] / row["seconds"] / 1e12
        elif rate := re.match(r"published as ([\d.]+) % MFU", note):
            published = 100 * simulated[row["id"]]["measured_mfu"]
        else:
            continue
        quoted += 1
        assert published == pytest.approx(float(rate[1]), rel=0.01), row["id"]
    assert quoted == 14


def test_error_bars_are_those_of_the_rows(simulated: dict[str, dict]) -> None:
    """validation/errors.json, which is in the binary."""
    rows = json.loads((ROOT / "validation" / "errors.json").read_text())["rows"]
    errors = {row["id"]: row["error"] for row in rows if row["kind"] == "training"}
    listed = json.loads((ROOT / "validation" / "measurements.json").read_text())["measurements"]
    assert errors.keys() == {row["id"] for row in listed if row["kind"] == "training"}
    assert errors.keys() >= simulated.keys()  # Those without a utilization are on no page.
    for row_id, row in simulated.items():
        stale = "run tools/validation/error_bars.py"
        assert errors[row_id] == pytest.approx(row["error"], abs=0.0005), stale


def test_every_row_fits(simulated: dict[str, dict]) -> None:
    for row_id, row in simulated.items():
        assert 0 < row["peak_hbm_bytes"] <= row["usable_hbm_bytes"], row_id


def test_rows_are_cheap(binary: str) -> None:
    used = validated(binary).used
    assert used["cpu_s"] < MOST_CPU_SECONDS
    assert used["resident_bytes"] < MOST_MEMORY


def test_critical_path_is_the_step(simulated: dict[str, dict]) -> None:
    for row_id, row in simulated.items():
        parts = math.fsum(row["critical_path_ns"].values())
        assert parts == pytest.approx(row["simulated_ns"], rel=1e-6), row_id


def test_errors(simulated: dict[str, dict]) -> None:
    # What the model promises; the figures are in docs/validation/training.md.
    errors = [abs(r["error"]) for r in simulated.values() if r["reproducibility"] == "A"]
    assert len(errors) == 17
    assert max(errors) <= 0.12


def test_mean_error_of_all(simulated: dict[str, dict]) -> None:
    errors = [abs(r["error"]) for r in simulated.values() if r["reproducibility"] == "A"]
    assert sum(errors) / len(errors) <= 0.05


@pytest.mark.parametrize("chip", ["v5e", "v5p", "v6e"])
def test_mean_error(simulated: dict[str, dict], chip: str) -> None:
    rows = [r for r in simulated.values() if (r["chip"], r["reproducibility"]) == (chip, "A")]
    assert sum(abs(r["error"]) for r in rows) / len(rows) <= 0.06
    assert abs(sum(r["error"] for r in rows)) / len(rows) <= 0.04


def test_order(simulated: dict[str, dict]) -> None:
    pairs, turned = training_page.ranking(list(simulated.values()))
    assert pairs == 28
    assert len(turned) <= 0.1 * pairs


def test_left_out_unless_long(run: Run, tmp_path: pathlib.Path) -> None:
    listed = {
        "schema": "tpusim.measurements/1",
        "measurements": [row for row in LISTED if row["id"] == "V43"],
        "pending": [],
    }
    (tmp_path / "m.json").write_text(json.dumps(listed))
    short = run("validate", "m.json", "--report", "short.json")
    assert short.returncode == 0, short.stderr
    assert "1 steps of models were left out: --long runs them" in short.stdout
    assert json.loads((tmp_path / "short.json").read_text())["rows"] == []
    whole = run("validate", "m.json", "--long", "--report", "long.json")
    assert whole.returncode == 0, whole.stderr
    assert "left out" not in whole.stdout
    assert "V43" in whole.stdout
    (row,) = json.loads((tmp_path / "long.json").read_text())["rows"]
    assert row["measured_mfu"] == pytest.approx(110e12 / 197e12, rel=1e-3)
    ratio = row["measured_ns"] / row["simulated_ns"]
    assert row["simulated_mfu"] == pytest.approx(row["measured_mfu"] * ratio)
