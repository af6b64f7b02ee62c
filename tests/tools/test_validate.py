"""`tpusim validate`: published measurements beside simulations, and the exports behind them."""

import json
import pathlib

import pytest
import tpusim

from tests.tools.command_line import program_name
from validation.workloads import inference, programs, qwen3, serving, small_training, training
from workloads.examples import export_all

VALIDATION = pathlib.Path(__file__).resolve().parents[2] / "validation"
MEASUREMENTS = VALIDATION / "measurements.json"


# The script that writes the committed exports, and the programs that it exports.
EXPORTED = {
    "programs.py": programs.PROGRAMS,
    "qwen3.py": qwen3.QWEN3,
    "small_training.py": small_training.SMALL,
    "serving.py": serving.SERVING,
}


@pytest.mark.parametrize(
    ("script", "name"), [(script, name) for script, some in EXPORTED.items() for name in some]
)
def test_committed_exports_are_current(script, name):
    exported = export_all.export(EXPORTED[script][name])
    committed = tpusim.Workload.load(VALIDATION / "workloads" / f"{name}.pb.gz")
    assert exported == committed, f"run validation/workloads/{script} and commit the result"


@pytest.mark.parametrize("name", programs.MODULES)
def test_committed_compiled_programs_are_current(name):
    committed = tpusim.Workload.load(VALIDATION / "workloads" / f"{name}.pb.gz")
    assert programs.parse(name) == committed


def steps_of_models(rows):
    """Rows that only --long runs, and the others."""
    long = [r for r in rows if r["kind"] in ("training", "inference")]
    return long, [r for r in rows if r not in long]


def test_every_program_is_measured():
    rows = json.loads(MEASUREMENTS.read_text())["measurements"]
    models, single = (
        {program_name(VALIDATION / r["workload"]) for r in some if r["workload"][:1] == "w"}
        for some in steps_of_models(rows)
    )
    assert single == {*programs.PROGRAMS, *programs.MODULES}
    steps = (training.TRAINING, small_training.SMALL, qwen3.QWEN3)
    examples = (*steps, inference.INFERENCE, serving.SERVING)
    assert models == {name for group in examples for name in group}
    assert all((VALIDATION / r["workload"]).is_file() for r in rows)


# The largest mean error of a group in the sample, on any chip: what the page shows, rounded up. A
# change may lower them.
MOST = {
    "attention, XLA chunked": 0.11,
    "attention, XLA, bias and mask": 0.32,
    "attention, XLA, causal": 0.14,
    "attention, XLA, full": 0.12,
    "attention, XLA, vjp": 0.20,
    "attention, Pallas": 0.21,
    "attention, Pallas, vjp": 0.06,
    "cross entropy, XLA": 0.19,
    "cross entropy, XLA chunked": 0.23,
    "cross entropy, XLA, vjp": 0.23,
    "cross entropy, Pallas": 0.10,
    "cross entropy, Pallas, vjp": 0.09,
    "grouped matmul, XLA": 0.77,
    "grouped matmul, Pallas": 0.10,
    "gated linear unit, XLA": 0.15,
    "normalization, XLA, vjp": 0.16,
}


def test_kernels(run, tmp_path):
    done = run("validate", "--kernels", VALIDATION / "kernels_measured", "--report", "k.json")
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "k.json").read_text())
    assert len(result["rows"]) == 102
    assert "have no program" not in done.stdout
    over = {
        (score["group"], score["chip"]): score["mean_error"]
        for score in result["scores"][:-1]
        if score["failed"] or score["mean_error"] > MOST[score["group"]]
    }
    assert not over
    some = run("validate", "--kernels", VALIDATION / "kernels_measured", "--chip", "v5e", "--long")
    assert "rows have no program in" in some.stdout
    assert run("validate", "--kernels", tmp_path).returncode == 1
    other = run("validate", "--kernels", VALIDATION / "kernels_measured", "--chip", "v5x")
    assert other.stderr.startswith("tpusim: error: --chip v5x: nothing was measured on it; there")


def test_validate(run, tmp_path):
    done = run("validate", MEASUREMENTS, "--report", "v.json")
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "v.json").read_text())
    assert result["schema"] == "tpusim.validation/1"
    listed = json.loads(MEASUREMENTS.read_text())
    long, short = steps_of_models(listed["measurements"])
    assert [r["id"] for r in result["rows"]] == [r["id"] for r in short]
    assert f"{len(long)} steps of models were left out: --long runs them" in done.stdout
    assert len(result["pending"]) == len(listed["pending"])
    for row in result["rows"]:
        assert row["id"] in done.stdout
        assert row["error"] == pytest.approx(row["simulated_ns"] / row["measured_ns"] - 1)

    def errors(role, grade=""):
        rows = [r for r in result["rows"] if r["role"] == role and r["reproducibility"] >= grade]
        return [abs(r["error"]) for r in rows if not grade or r["reproducibility"] == grade]

    # What the model promises; the figures are in docs/validation/measurements.md.
    fitted, predicted = errors("calibration"), errors("validation", "A")
    assert sum(fitted) / len(fitted) < 0.05
    assert sum(predicted) / len(predicted) < 0.10
    assert max(predicted) < 0.25
    for row in result["rows"]:
        assert row["role"] != "upper bound" or row["error"] < 0, row["id"]


def test_validate_one_chip_with_another_parameter(run):
    alone = run("validate", MEASUREMENTS, "--chip", "v7x")
    assert "V24" in alone.stdout
    assert "V02" not in alone.stdout
    slower = run("validate", MEASUREMENTS, "--chip", "v7x", "--set", "ici.launch_ns=99000")
    assert slower.stdout != alone.stdout


def test_validate_rejects(rejects, tmp_path):
    (tmp_path / "m.json").write_text("{}")
    assert "m.json: no file of measurements" in rejects("validate", tmp_path / "m.json")
    assert "no.json: cannot be read" in rejects("validate", tmp_path / "no.json")
    assert "there are v2, v4, v5e" in rejects("validate", MEASUREMENTS, "--chip", "v9")
    (tmp_path / "m.json").write_text(
        MEASUREMENTS.read_text().replace("workloads/query_projection.pb.gz", "gone.pb")
    )
    assert "V02: " in rejects("validate", tmp_path / "m.json", "--chip", "v2")


def test_error_bars_are_those_of_the_rows(run):
    """validation/errors.json, which is in the binary: which rows, and how far off they are."""
    rows = json.loads(MEASUREMENTS.read_text())["measurements"]
    errors = {
        row["id"]: row for row in json.loads((VALIDATION / "errors.json").read_text())["rows"]
    }
    known = [r for r in rows if r["role"] == "validation" and r["reproducibility"] in ("A", "B")]
    assert list(errors) == [row["id"] for row in known]
    for row in known:
        assert (errors[row["id"]]["chip"], errors[row["id"]]["kind"]) == (row["chip"], row["kind"])
    simulated = json.loads(run("validate", MEASUREMENTS, "--json").stdout)["rows"]
    for row in simulated:
        if row["id"] in errors:
            stale = "run tools/validation/error_bars.py"
            assert errors[row["id"]]["error"] == pytest.approx(row["error"], abs=0.0005), stale


@pytest.mark.parametrize(
    ("program", "kind"),
    [
        ("query_projection", "matmul"),
        ("decode_llama_7b_v4_4", "inference"),
        ("train_16b_v5e_256", "training"),
        ("all_reduce_axis_16777216", "collective"),
        ("copy_2097152", ""),
    ],
)
def test_programs_are_of_the_kind_of_their_row(report_of, program, kind):
    report = report_of(VALIDATION / "workloads" / f"{program}.pb.gz")
    assert report["error_bar"]["kind"] == kind
    assert report["error_bar"]["chip"] == report["config"].split("-")[0].removeprefix("2x(")
