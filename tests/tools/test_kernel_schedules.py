"""The operations of an elementwise kernel are those that the TPU compiler schedules."""

import json
import pathlib
import re
from typing import Any

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
COSTS = (ROOT / "workloads" / "kernels" / "elementwise_cost.cc").read_text()
CHIPS = json.loads((ROOT / "validation" / "kernels" / "schedules.json").read_text())["chips"]
# Operations by their names in jax.lax; arc tangents have no opcode of their own.
NAMES = {
    "Exponential": "exp",
    "ExponentialMinusOne": "expm1",
    "LogPlusOne": "log1p",
    "Sine": "sin",
    "Cosine": "cos",
    "Divide": "div",
    "Remainder": "rem",
    "Power": "pow",
}
ROW = re.compile(r"\{Opcode::k(\w+), (\d+), (\d+), (\d+), (\d+)\}")
FUNCTIONS = [(name, [int(n) for n in counts]) for name, *counts in ROW.findall(COSTS)]


def test_all_functions_are_found():
    assert len(FUNCTIONS) > 20


@pytest.mark.parametrize(("name", "counts"), FUNCTIONS)
def test_functions_cost_what_is_scheduled(name, counts):
    operation = NAMES.get(name, name.lower()) + "_f32"
    for chip, (valu, eup) in (("v5e", counts[:2]), ("v6e", counts[2:])):
        scheduled = CHIPS[chip]["operations"][operation]
        assert scheduled["valu"] == pytest.approx(valu, abs=1.1)
        assert scheduled.get("eup", 0) == pytest.approx(eup, abs=0.1)


POLICY = json.loads((ROOT / "configs" / "compilers" / "libtpu-0.0.42.json").read_text())["values"]


def policy(name: str, chip: str) -> Any:
    """The value of a row for a chip."""
    row = POLICY[name]
    return row.get("by_chip", {}).get(chip, row)["value"]


@pytest.mark.parametrize("chip", ["v5e", "v6e"])
def test_what_is_written_out_costs_what_is_scheduled(chip):
    operations = CHIPS[chip]["operations"]
    for name, operation in (
        ("integer_division_operations", "div_s32"),
        ("constant_division_operations", "div_constant_s32"),
    ):
        assert operations[operation]["valu"] == pytest.approx(policy(name, chip), abs=0.1)
    # Counted per register of either result.
    both = 2 * operations["sin_cos_f32"]["valu"]
    beside = policy("cosine_beside_sine_operations", chip)
    assert both - operations["sin_f32"]["valu"] == pytest.approx(beside, abs=0.5)


@pytest.mark.parametrize("chip", CHIPS)
def test_refined_results_take_more_operations(chip):
    quotient = CHIPS[chip]["operations"]["div_f32"]["valu"]
    assert policy("transcendentals_refined", chip) == (quotient > 10)


@pytest.mark.parametrize("chip", CHIPS)
def test_f16_costs_what_is_scheduled(chip):
    operations = CHIPS[chip]["operations"]
    widening = operations["f16_to_f32"]["valu"]
    assert widening == pytest.approx(policy("f16_widening_operations", chip))
    # Counted per packed register, which two are narrowed for and packed into.
    narrowing = (operations["f32_to_f16"]["valu"] - 1) / 2
    assert narrowing == pytest.approx(policy("f16_narrowing_operations", chip))


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
