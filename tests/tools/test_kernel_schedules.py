"""The rows of instructions are what the TPU compiler schedules for single operations."""

import json
import pathlib
from typing import Any

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMPILERS = ROOT / "configs" / "compilers"
CHIPS = json.loads((ROOT / "validation" / "kernels" / "schedules.json").read_text())["chips"]
TABLE = json.loads((COMPILERS / "instructions" / "libtpu-0.0.42.json").read_text())
LIKE = json.loads((COMPILERS / "libtpu-0.0.42.json").read_text())["chips"]
# Names of rows that jax.lax calls otherwise.
NAMES = {
    "exponential": "exp",
    "exponential-minus-one": "expm1",
    "log-plus-one": "log1p",
    "sine": "sin",
    "cosine": "cos",
    "multiply": "mul",
    "maximum": "max",
    "negate": "neg",
    "divide": "div",
    "divide-by-constant": "div_constant",
    "remainder": "rem",
    "power": "pow",
    "round-nearest-afz": "round",
}


def fit(row: dict[str, Any], chip: str) -> int:
    """Returns how closely a row names a chip; 0: it is of others."""
    chips = row.get("chips")
    if chips is None:
        return 1
    return 3 if chip in chips else 2 if LIKE[chip]["like"] in chips else 0


def cost(operation: str, kind: str, chip: str) -> dict[str, Any]:
    """The row of an operation on a type."""
    rows = [row for row in TABLE["rows"] if (row["operation"], row["type"]) == (operation, kind)]
    return max(rows, key=lambda row: fit(row, chip))


SCHEDULED = sorted(
    {
        (row["operation"], row["type"], chip)
        for row in TABLE["rows"]
        for chip in CHIPS
        if row["source"] == "schedules"
        and f"{NAMES.get(row['operation'], row['operation'])}_{row['type']}"
        in CHIPS[chip]["operations"]
    }
)


def test_rows_are_found():
    assert len(SCHEDULED) > 70


@pytest.mark.parametrize(("operation", "kind", "chip"), SCHEDULED)
def test_operations_cost_what_is_scheduled(operation, kind, chip):
    row = cost(operation, kind, chip)
    scheduled = CHIPS[chip]["operations"][f"{NAMES.get(operation, operation)}_{kind}"]
    assert scheduled["valu"] == pytest.approx(row.get("valu", 0), abs=1.1)
    if chip != "v4":  # What one unit gives v4 takes two there; rows count it as of the others.
        assert scheduled.get("eup", 0) == pytest.approx(row.get("eup", 0), abs=0.1)


def test_every_row_has_a_source_of_its_own_or_says_that_it_is_assumed():
    for row in TABLE["rows"]:
        text = TABLE["sources"].get(row["source"], row["source"])
        assert len(text) > 10, row
        assert set(row.get("chips", [])) <= set(LIKE), row
        if row["source"] == "schedules":
            kind = f"{NAMES.get(row['operation'], row['operation'])}_{row['type']}"
            assert any(kind in chip["operations"] for chip in CHIPS.values()), row


@pytest.mark.parametrize("chip", ["v5e", "v6e"])
def test_a_cosine_beside_its_sine_costs_what_is_scheduled(chip):
    operations = CHIPS[chip]["operations"]
    # Counted per register of either result.
    both = 2 * operations["sin_cos_f32"]["valu"]
    beside = cost("cosine-beside-sine", "f32", chip)["valu"]
    assert both - operations["sin_f32"]["valu"] == pytest.approx(beside, abs=0.5)


@pytest.mark.parametrize("chip", CHIPS)
def test_f16_costs_what_is_scheduled(chip):
    operations = CHIPS[chip]["operations"]
    assert operations["f16_to_f32"]["valu"] == pytest.approx(cost("widen", "f16", chip)["valu"])
    # Counted per packed register, which two are narrowed for and packed into.
    narrowing = (operations["f32_to_f16"]["valu"] - 1) / 2
    assert narrowing == pytest.approx(cost("round-to-narrow", "f16", chip)["valu"])


@pytest.mark.parametrize("chip", CHIPS)
def test_slots_are_those_of_the_chip(chip):
    vpu = json.loads((ROOT / "configs" / "chips" / f"{chip}.json").read_text())["chip"]["vpu"]
    slots = CHIPS[chip]["slots"]
    for parameter, slot in (
        ("alus_per_lane", "valu"),
        ("eup_slots", "eup"),
        ("load_slots", "vload"),
        ("store_slots", "vstore"),
        ("xlu_count", "xlu"),
    ):
        assert vpu[parameter]["value"] == slots[slot], parameter
