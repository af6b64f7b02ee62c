"""Kernels that both sides have, from modules and summaries written by hand."""

from typing import Any

import compiler_kernels
import compiler_page
import pytest
from compiler_compare import Row

# A product of 64 x 128 by 128 x 256 with a bias, an update and a sum of what it reads.
MODULE = """
HloModule step

%add.1 (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}

%fused (p.0: bf16[64,128], p.1: bf16[128,256], p.2: f32[256]) -> f32[64,256] {
  %p.0 = bf16[64,128]{1,0} parameter(0)
  %p.1 = bf16[128,256]{1,0} parameter(1)
  %p.2 = f32[256]{0} parameter(2)
  %dot.1 = f32[64,256]{1,0} dot(%p.0, %p.1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %wide = f32[64,256]{1,0} broadcast(%p.2), dimensions={1}
  ROOT %biased = f32[64,256]{1,0} add(%dot.1, %wide)
}

ENTRY %main (x: bf16[64,128], w: bf16[128,256], b: f32[256]) -> f32[256] {
  %x = bf16[64,128]{1,0} parameter(0)
  %w = bf16[128,256]{1,0} parameter(1)
  %b = f32[256]{0} parameter(2)
  %zero = f32[] constant(0)
  %biased = f32[64,256]{1,0} fusion(%x, %w, %b), kind=kOutput, calls=%fused
  %scaled = f32[64,256]{1,0} multiply(%biased, %biased)
  ROOT %sums = f32[256]{0} reduce(%scaled, %zero), dimensions={0}, to_apply=%add.1
}
"""


def op(name: str, total_ns: float, **facts: Any) -> dict[str, Any]:
    """An operation of a report."""
    alike = {"category": "fusion", "scope": f"jit(step)/{name}", "count": 1}
    return {"name": name, "total_ns": total_ns, "engine": "tensor_core", **alike, **facts}


REPORT = {
    "ops": [
        op("biased", 50),
        op("scaled", 48),
        op("sums", 2),
        op("copy", 900, category="copy-start"),
        op("gathered", 900, engine="collective"),
    ]
}


def kernel(name: str, cycles: int | None, **facts: Any) -> dict[str, Any]:
    """A kernel of a summary."""
    alike = {"name": name, "opcode": "fusion", "count": 1, "cycles": cycles}
    return {**alike, "operands": [], "results": [], **facts}


# Merged with rows of zeros, transposed and tiled, but the same product.
PRODUCT = kernel(
    "fusion.7",
    300,
    ops={"convolution": 1, "add": 1},
    operands=["f32[256]{0:T(256)}", "bf16[128,256]{0,1:T(8,128)(2,1)}", "bf16[8,8,128]{2,1,0}"],
    results=["f32[8,8,256]{2,1,0:T(8,128)}"],
)


def test_large_kernels_are_those_with_a_share_of_the_compute() -> None:
    found = compiler_kernels.large(REPORT, MODULE)
    assert [(k.name, k.share, k.results) for k in found] == [
        ("biased", 0.5, "f32[64,256]"),
        ("scaled", 0.48, "f32[64,256]"),
    ]
    assert found[0].work == compiler_kernels.Work(
        "product", (256, 8192, 32768), (16384,), (8192, 32768, 16384)
    )


def test_a_product_is_the_same_by_its_operands_and_its_result() -> None:
    first, second = compiler_kernels.pairs(REPORT, MODULE, {"kernels": [PRODUCT]})
    assert first.theirs is PRODUCT
    assert first.share == 1
    # Its gradient reads what it writes.
    gradient = {**PRODUCT, "operands": PRODUCT["results"], "results": PRODUCT["operands"][1:2]}
    pairs = compiler_kernels.pairs(REPORT, MODULE, {"kernels": [gradient]})
    assert [pair.theirs for pair in pairs] == [None, None]
    assert second.theirs is None


@pytest.mark.parametrize(
    ("facts", "found"),
    [
        ({"ops": {"multiply": 1}}, True),
        ({"ops": {"multiply": 1, "reduce": 1}}, False),
        ({"ops": {"multiply": 1, "convolution": 1}}, False),
        ({"ops": {"multiply": 1}, "results": ["f32[64]"]}, False),
    ],
)
def test_other_kernels_are_the_same_by_their_kind_and_largest_arrays(
    facts: dict[str, Any], found: bool
) -> None:
    wide = ["f32[64,256]{1,0:T(8,128)}"]
    row = kernel("fusion.8", 100, **{"operands": wide, "results": wide, **facts})
    pairs = compiler_kernels.pairs(REPORT, MODULE, {"kernels": [PRODUCT, row]})
    assert pairs[1].theirs is (row if found else None)
    assert pairs[1].share == (0.25 if found else 0)


def test_a_kernel_of_the_compiler_is_the_counterpart_of_one() -> None:
    again = {**REPORT, "ops": [*REPORT["ops"], op("biased", 40)]}
    pairs = compiler_kernels.pairs(again, MODULE, {"kernels": [PRODUCT]})
    assert [pair.theirs for pair in pairs] == [PRODUCT, None, None]
    twice = {**PRODUCT, "count": 2}
    pairs = compiler_kernels.pairs(again, MODULE, {"kernels": [twice]})
    assert [pair.theirs for pair in pairs] == [twice, None, twice]


def test_the_page_names_both_and_says_where_there_is_none() -> None:
    unpriced = {**PRODUCT, "cycles": None}
    pairs = compiler_kernels.pairs(REPORT, MODULE, {"kernels": [unpriced]})
    row = Row("vit_1", "training", "v5e-1x1", large=pairs)
    text = "\n".join(compiler_page.large_kernels([row]))
    assert (
        "| vit_1 | v5e-1x1 | biased | jit(step)/biased | f32[64,256] | 50.0% | fusion.7 | - |"
        in text
    )
    assert "| scaled | jit(step)/scaled | f32[64,256] | 48.0% | **none** | |" in text
