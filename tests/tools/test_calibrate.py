"""Data to which parameters may be fitted."""

import json
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools" / "validation"))
import calibrate  # noqa: E402


def row(name: str, **changes: str) -> dict:
    """A row of measurements, as far as the choice looks at it."""
    return {"id": name, "chip": "v5e", "kind": "matmul", "role": "calibration", **changes}


@pytest.mark.parametrize("kind", ["training", "inference"])
def test_steps_of_models_are_refused(kind):
    # On another chip and of an unknown id as well: the file is wrong.
    wrong = row("V40", kind=kind, chip="v5p")
    with pytest.raises(ValueError, match=f"V40: nothing is fitted on a {kind} row"):
        calibrate.may_calibrate([row("V05"), wrong], "v5e")
    # Nor are they taken by another role, whatever their id.
    other = row("V05", kind=kind, role="upper bound")
    assert calibrate.may_calibrate([other], "v5e") == []


def test_only_listed_rows_that_are_not_validation_calibrate():
    rows = [
        row("V05 all-gather"),
        row("V05b"),
        row("V10 4096", role="upper bound"),
        row("V13", role="validation"),
        row("V29", chip="v4"),
    ]
    taken = [r["id"] for r in calibrate.may_calibrate(rows, "v5e")]
    assert taken == ["V05 all-gather", "V10 4096"]


def test_shipped_values_are_those_that_were_found():
    # A value that fits as well as the one found stays: within what a step of the search gains.
    for chip, fit in json.loads(calibrate.CALIBRATION.read_text())["chips"].items():
        for key, values in fit["parameters"].items():
            shipped = calibrate.shipped(chip, [key])[key]
            assert calibrate.rounded(shipped) == values["shipped"], f"{chip}: {key}"
            assert values["fitted"] == pytest.approx(values["shipped"], rel=0.03), f"{chip}: {key}"
