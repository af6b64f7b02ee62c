"""Whether a new TPU compiler needs a file of its own: the comparing half, without libtpu."""

import json
import pathlib

import collective_choices
import compiler_summaries
import new_compiler
import pytest
from new_compiler import Compared

ROOT = pathlib.Path(__file__).parents[3]


def module(config: str, opcode: str = "all-reduce") -> str:
    """Returns a module of one collective, as the compiler prints it."""
    return (
        "HloModule jit_f, is_scheduled=true\n\n"
        "ENTRY %main (x: bf16[64,128]) -> bf16[64,128] {\n"
        "  %x = bf16[64,128]{1,0:T(8,128)(2,1)} parameter(0)\n"
        f"  ROOT %sum = bf16[64,128]{{1,0:T(8,128)(2,1)}} {opcode}(%x), "
        f"replica_groups={{{{0,1}}}}, backend_config={config}\n}}\n"
    )


RING = {
    "emitter": "RotatedPincerEmitter",
    "strategy": "StrategyRing",
    "debug": "\nStrategyRing{colors:2 phases:1 cores:{8},{8} nophase0:0}",
}


def test_what_a_module_prints_of_its_collective() -> None:
    ring = json.dumps({"collective_algorithm_config": RING})
    row = {"emitter": "RotatedPincerEmitter", "strategy": "StrategyRing", "colors": 2, "phases": 1}
    assert new_compiler.printed(module(ring)) == {"done_as": "all-reduce", **row}
    assert new_compiler.printed(module("{}", "collective-permute-start"))["emitter"] is None
    # Another core executes it.
    assert new_compiler.printed(module('{"collective_offload_config":{}}')) == {
        "done_as": "custom-call"
    }
    # One for another dimension runs the same algorithm.
    for dimension in ("On", "Non"):
        name = json.dumps({"collective_algorithm_config": {"emitter": f"2DAll{dimension}MajorDim"}})
        assert new_compiler.printed(module(name, "all-gather"))["emitter"] == "2DAll"
    # The fields are those of the sweep.
    assert {*row, "done_as"} == set(collective_choices.PRINTED)


def compared(group: str, kept: object, made: object, name: str = "p on v5e-1x1") -> Compared:
    """Returns one program with one field."""
    return Compared(group, name, {"cycles": kept}, {"cycles": made})


def test_a_choice_counts_exactly_and_a_quantity_by_a_tenth() -> None:
    assert compared("collectives", "A", "A").differing == {}
    assert compared("collectives", "A", "B").differing == {"cycles": "cycles: A -> B"}
    assert compared("kernels", 100.0, 109.0).differing == {}
    assert compared("kernels", 100.0, 120.0).differing == {"cycles": "cycles: 100.0 -> 120.0"}
    refused = Compared("products", "p", {"all-gather 8 2 sync": 1}, {"error": "refused"})
    assert [*refused.differing.values()] == [
        "all-gather 8 2 sync: 1 -> None",
        "error: None -> refused",
    ]
    more = Compared("products", "p", {}, {"all-gather 8 2 windowed": 1})
    assert [*more.differing.values()] == ["all-gather 8 2 windowed: None -> 1"]


@pytest.mark.parametrize(
    ("found", "needs"),
    [
        ([compared("collectives", "A", "A"), compared("products", 1, 1)], False),
        ([compared("collectives", "A", "A"), compared("products", 1, 2)], True),
        ([compared("kernels", 100.0, 100.0)] * 9 + [compared("kernels", 100.0, 300.0)], False),
        ([compared("kernels", 100.0, 100.0)] * 8 + [compared("kernels", 100.0, 300.0)] * 2, True),
        ([Compared("kernels", "p", {"vmem": 2.0**20}, {"vmem": 2.0**22})] * 9, False),
    ],
)
def test_the_verdict(found: list[Compared], needs: bool) -> None:
    assert new_compiler.verdict(found)[0] is needs
    drafted = new_compiler.draft("libtpu-0.0.60", "cl/1", "0.12.0", found)
    assert (drafted["name"], drafted["like"], drafted["build"]) == (
        "libtpu-0.0.60",
        new_compiler.LIKE,
        "cl/1",
    )
    # What differs stands where its values are to stand.
    assert bool(drafted["values"]) is needs
    assert f"of {len(found)} the same" in drafted["description"] or len(found) == 2


def test_lines_name_what_differs_and_by_how_much() -> None:
    found = [compared("kernels", 100.0, 100.0), compared("kernels", 100.0, 300.0, "slow")]
    assert new_compiler.verdict(found)[1] == [
        "kernels: 1 of 2 the same",
        "  cycles: median 2.000 of before, 1.000 to 3.000",
        "  slow: cycles: 100.0 -> 300.0",
    ]


def test_a_kept_program_is_as_it_was() -> None:
    kept = compiler_summaries.summary("matmul", "v5e-1x1")
    text = compiler_summaries.kept_module("matmul", "v5e-1x1")["text"]
    found = new_compiler.of_kernels(kept, text)
    assert found["cycles"] == sum(k["cycles"] * k["count"] for k in kept["kernels"])
    assert 2**20 < found["vmem"] < 16 * 2**20
    collective = compiler_summaries.summary("sharded_gather_contracted_large", "v5e-4x2")
    assert any("windowed" in key for key in new_compiler.of_products(collective))


def test_the_sample_is_even_and_names_the_first_file() -> None:
    assert new_compiler.sample(range(10), 5) == [0, 2, 4, 6, 8]
    assert new_compiler.sample(range(3), 5) == [0, 1, 2]
    assert (ROOT / "configs" / "compilers" / f"{new_compiler.LIKE}.json").exists()


def test_devices_in_another_order_are_no_choice_of_the_compiler() -> None:
    assert new_compiler.reordered("v5p-2x2x2", "0.10.2", "0.12.0.1")
    assert not new_compiler.reordered("v5p-2x2x2", "0.10.2", "0.11.0")
    assert not new_compiler.reordered("v5p-2x2x2", "0.11.2", "0.12.0.1")
    assert not new_compiler.reordered("v5p-2x2x1", "0.10.2", "0.12.0.1")
    assert not new_compiler.reordered("v5e-4x2", "0.10.2", "0.12.0.1")
