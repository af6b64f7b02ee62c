"""The operations of an elementwise kernel are those that the TPU compiler schedules."""

import json
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
COSTS = (ROOT / "workloads" / "kernels" / "elementwise_cost.cc").read_text()
CHIPS = json.loads((ROOT / "validation" / "kernels" / "schedules.json").read_text())["chips"]
# As jax.lax names them; arc tangents have no opcode of their own.
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
