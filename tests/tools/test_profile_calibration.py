"""`tpusim calibrate`: parameters that made a profile are found in it again."""

import json
import pathlib
import subprocess

import numpy as np
import pytest
import tpusim
from tpusim.calibrate.command import main
from tpusim.calibrate.fitting import fit
from tpusim.calibrate.parameters import Parameter

from tests.tools import schemas
from tests.tools.command_line import SLICE, example

PROGRAM = example("language_model_train_fully_sharded")
CHANGED = {
    "chip.mxu.efficiency": 0.8,
    "chip.hbm.efficiency": 0.7,
    "chip.tensor_core.kernel_launch_ns": 900.0,
    "ici.unwrapped_efficiency": 0.75,
    "ici.launch_ns": 6000.0,
}


@pytest.fixture(scope="module")
def profile(binary, tmp_path_factory) -> pathlib.Path:
    """Returns a profile of a chip that is not the built-in one."""
    folder = tmp_path_factory.mktemp("logs")
    words = [f"--set={name}={value}" for name, value in CHANGED.items()]
    command = [binary, "run", PROGRAM, "--config", SLICE, "--quiet", *words]
    command += ["--xplane", folder, "--trace-chips", "all"]
    subprocess.run(command, check=True, timeout=120)
    return folder


@pytest.fixture(scope="module")
def found(profile) -> tpusim.calibrate.Calibration:
    return tpusim.calibrate(PROGRAM, profile=profile, config=SLICE)


def test_what_made_the_profile_is_found(found):
    values = {f.parameter.name: f.value for f in found.determined}
    assert values == pytest.approx(CHANGED, rel=0.02)


def test_what_the_profile_does_not_determine_stays(found):
    refused = {f.parameter.name: f for f in found.parameters if f.refused}
    # An axis of 4 does not wrap on v5e, and a ring over 4x2 is no axis of two.
    assert set(refused) == {"ici.wrapped_efficiency", "ici.pair_efficiency"}
    for f in refused.values():
        assert f.value == f.before
        assert f.refused == "no operation depends on it"


def test_a_third_says_what_the_fit_is_worth(found):
    fitted, aside = found.errors(set_aside=False), found.errors(set_aside=True)
    assert 0.15 < aside["operations"] / (aside["operations"] + fitted["operations"]) < 0.5
    for errors in (fitted, aside):
        assert errors["median_before"] > 0.05
        assert errors["p90_after"] < 0.01
    assert found.step_after_ns == pytest.approx(found.step_measured_ns, rel=0.01)


def test_the_chip_file_is_a_chip(binary, found, tmp_path):
    found.write_chip(str(tmp_path / "chip.json"), "mine")
    (tmp_path / "config.json").write_text('{"chip": "chip.json", "slice": "4x2"}')
    report = tpusim.simulate(PROGRAM, config=str(tmp_path / "config.json"))
    # Of a chip the compiler knows the speeds; those of the profile were the machine's alone.
    assert report.step_time_ns == pytest.approx(found.step_measured_ns, rel=0.03)
    done = subprocess.run(
        [binary, "configs", tmp_path / "chip.json", "--json"],
        check=True,
        capture_output=True,
        text=True,
    )
    (chip,) = json.loads(done.stdout)["chips"]
    parameters = {p["name"]: p for p in chip["parameters"]}
    assert "tpusim calibrate" in parameters["chip.hbm.efficiency"]["source"]
    assert "standard error" in parameters["chip.hbm.efficiency"]["note"]


def test_command(binary, profile, tmp_path, capsys):
    words = [str(PROGRAM), "--xplane", str(profile), "--config", SLICE]
    assert main([*words, "--json", "-o", str(tmp_path / "chip.json")]) == 0
    printed = capsys.readouterr().out
    schemas.check(binary, printed)
    assert json.loads(printed)["chip"] == "v5e"
    assert json.loads((tmp_path / "chip.json").read_text())["base"] == "v5e"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--xplane", "none"], "none: no such file"),
        (["--xplane", "none", "-o", "no/folder/chip.json"], "chip.json: cannot be written"),
    ],
)
def test_bad_input(words, says, capsys):
    assert main([str(PROGRAM), "--config", SLICE, *words]) == 1
    assert says in capsys.readouterr().err


def test_without_the_package(binary):
    done = subprocess.run(
        [binary, "calibrate", "step.pb"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "python -m tpusim.calibrate" in done.stderr


# Times that are a/x and b/y, and of a third set of operations (a + b) / z.
EFFICIENCIES = (
    Parameter("x", 0.1, 1.0, ""),
    Parameter("y", 0.1, 1.0, ""),
    Parameter("z", 0.1, 1.0, ""),
)


def times(values: np.ndarray) -> np.ndarray:
    x, y, _ = values
    return np.array([1 / x, 2 / x, 3 / y, 5 / y])


def test_outliers_count_little():
    measured = times(np.array([0.5, 0.8, 1.0]))
    measured[0] *= 3  # has nothing to do with what the others are
    measured = np.concatenate([measured, measured[1:]])
    fitted = fit(
        EFFICIENCIES,
        [0.9, 0.9, 0.9],
        measured,
        lambda sets: [np.concatenate([t, t[1:]]) for t in map(times, map(np.array, sets))],
    )
    assert [f.value for f in fitted[:2]] == pytest.approx([0.5, 0.8], rel=0.03)
    assert fitted[2].refused == "no operation depends on it"


def test_parameters_that_act_alike_are_refused():
    measured = np.array([2.0, 4.0, 6.0])
    fitted = fit(
        EFFICIENCIES[:2],
        [0.9, 0.9],
        measured,
        lambda sets: [np.array([1.0, 2.0, 3.0]) / (x * y) for x, y in sets],
    )
    for f in fitted:
        assert "cannot be told from that of the others" in f.refused
        assert f.value == 0.9


def test_what_is_beyond_the_possible_is_refused():
    fitted = fit(
        EFFICIENCIES[:1],
        [0.9],
        np.array([0.8, 1.6]),
        lambda sets: [np.array([1.0, 2.0]) / x for (x,) in sets],
    )
    assert fitted[0].refused == "operations ask for more than 1"
    assert fitted[0].value == 0.9
