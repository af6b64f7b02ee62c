"""`tpusim validate W.pb --xplane PROFILE`: profiles of our own, read back."""

import gzip
import itertools
import json
import pathlib
import subprocess

import pytest

from tests.tools import schemas
from tests.tools.command_line import EXAMPLES, SLICE, example

PROGRAM = example("language_model_train_fully_sharded")
COMPILED = EXAMPLES.parents[1] / "tests" / "data" / "compiled" / SLICE


def profile(binary: str, program: pathlib.Path, folder: pathlib.Path, *words: str) -> pathlib.Path:
    command = [binary, "run", program, "--config", SLICE, "--quiet", "--xplane", folder]
    subprocess.run([*command, "--trace-chips", "all", *words], check=True, timeout=120)
    return folder


def compared(binary: str, program: pathlib.Path, taken: pathlib.Path, *words: str) -> dict:
    command = [binary, "validate", program, "--config", SLICE, "--xplane", taken, "--json", *words]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    schemas.check(binary, done.stdout)
    return json.loads(done.stdout)


def test_a_profile_of_the_same_machine_has_no_error(binary, tmp_path):
    found = compared(binary, PROGRAM, profile(binary, PROGRAM, tmp_path / "logs"))
    assert found["rows_are"] == "places"
    assert found["devices"] == found["executions"] == 8
    assert found["measured_ns"] == pytest.approx(found["simulated_ns"])
    assert found["matched_ns"] == pytest.approx(found["measured_ns"])
    for rows in (found["categories"], found["rows"]):
        measured = sum(row["measured_ns"] for row in rows)
        assert measured == pytest.approx(found["measured_ns"], rel=1e-6)
        for row in rows:
            assert row["measured_ns"] == pytest.approx(row["simulated_ns"], abs=1), row
            assert row["measured_count"] == row["simulated_count"]


def test_what_differs_comes_first(binary, tmp_path):
    # The chip's HBM is slower than the simulated one: elementwise kernels, not collectives.
    taken = profile(binary, PROGRAM, tmp_path / "logs", "--set=chip.hbm.efficiency=0.5")
    found = compared(binary, PROGRAM, taken)
    errors = {
        row["name"]: row["simulated_ns"] / row["measured_ns"] - 1 for row in found["categories"]
    }
    assert errors["loop fusion"] < -0.01
    assert errors["reduce-scatter"] == pytest.approx(0, abs=1e-3)
    differences = [abs(row["simulated_ns"] - row["measured_ns"]) for row in found["rows"]]
    assert all(b < a + 1e-6 for a, b in itertools.pairwise(differences))
    assert found["rows"][0]["simulated_ns"] < found["rows"][0]["measured_ns"]


def test_modules_of_the_compiler_line_up_by_operation(binary, tmp_path):
    program = tmp_path / "mlp.pb"
    program.write_bytes(gzip.decompress((COMPILED / "mlp_scan_8_layers.pb.gz").read_bytes()))
    found = compared(binary, program, profile(binary, program, tmp_path / "logs"))
    assert found["rows_are"] == "operations"
    names = [row["name"] for row in found["rows"]]
    assert len(names) == len(set(names))
    assert any(name.startswith("fusion") for name in names)


def test_text(binary, tmp_path):
    taken = profile(binary, PROGRAM, tmp_path / "logs")
    command = [binary, "validate", PROGRAM, "--config", SLICE, "--xplane", taken, "--top", "3"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    lines = done.stdout.splitlines()
    assert "mean of 8 executions on 8 devices" in lines[0]
    assert any(line.startswith("category of XProf") for line in lines)
    assert any(line.startswith("scope (3 of ") for line in lines)
    assert lines[-1].startswith("100.0% of what was measured")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--xplane", "logs"], "name the program of the profile"),
        ([PROGRAM, "--xplane", "none"], "none: no such file"),
        ([PROGRAM, "--xplane", "."], "no *.xplane.pb file in it"),
        ([PROGRAM, "--xplane", PROGRAM], "not a profile of XProf"),
        ([PROGRAM, "--xplane", "logs", "--long"], "--long are of published measurements"),
        ([PROGRAM, "--config", SLICE], "--config requires --xplane"),
    ],
)
def test_bad_input(binary, tmp_path, words, says):
    command = [binary, "validate", *(["--config", SLICE] if "--config" not in words else [])]
    done = subprocess.run(
        [*command, *words], capture_output=True, text=True, check=False, timeout=60, cwd=tmp_path
    )
    assert done.returncode not in (0, 70)
    assert says in " ".join(done.stderr.split())
    assert done.stderr.count("tpusim: error: ") == 1


def test_xprof_categories_of_any_program(run):
    done = run("run", PROGRAM, "--config", SLICE, "--by", "xprof", "--top", "30")
    rows = [line.split("  ")[0] for line in done.stdout.splitlines()]
    assert {"loop fusion", "convolution fusion", "all-gather", "custom fusion"} <= set(rows)
