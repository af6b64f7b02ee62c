"""Both sides of the comparison with the TPU compiler, from figures written by hand."""

import collections
from typing import Any

import compiler_compare
import compiler_page
import pytest

WIDE, NARROW = "f32[1000]{0:T(1024)}", "bf16[1000]{0:T(1024)(128)(2,1)}"


def kernel(**facts: Any) -> dict[str, Any]:
    """A kernel of a summary."""
    alike = {"name": "fusion.1", "opcode": "fusion", "count": 1, "cycles": 0}
    return {**alike, "operands": [], "results": [], **facts}


def summary(*kernels: dict[str, Any], collectives: tuple[dict[str, Any], ...] = ()) -> dict:
    """Returns the summary of a program on a v5e, whose clock is 1500 cycles per us."""
    sizes = {"argument_bytes": 100, "output_bytes": 80, "alias_bytes": 60, "temp_bytes": 7}
    return {
        "slice": "v5e-1x1",
        "memory": {**sizes, "peak_bytes": 1000},
        "kernels": list(kernels),
        "collectives": list(collectives),
    }


def test_cycles_become_time_by_the_clock() -> None:
    side = compiler_compare.of_compiler(
        summary(
            kernel(cycles=3000, count=5, ops={"convolution": 1, "add": 1}),
            kernel(cycles=1500, count=2, operands=[WIDE], results=[WIDE]),
        )
    )
    assert (side.kernels, side.products, side.others, side.narrow) == (7, 10, 2, 2)
    assert side.compute == 12
    assert (side.peak, side.live) == (100 + 80 - 60 + 7, 1000)


def test_narrow_elements_count_with_their_own_size() -> None:
    # 2000 + 4000 bytes over 4000 + 4000.
    assert compiler_compare.narrow_share(kernel(operands=[NARROW], results=[WIDE])) == 0.75
    side = compiler_compare.of_compiler(
        summary(kernel(cycles=1500, operands=[NARROW], results=[WIDE]))
    )
    assert (side.others, side.narrow) == (1, 0.75)


def op(category: str, count: int, total_us: float, engine: str = "tensor_core") -> dict[str, Any]:
    """An operation of a report."""
    name = category.replace(" ", "_")
    return {
        **{"name": name, "category": category, "count": count},
        **{"total_ns": total_us * 1e3, "engine": engine, "scope": "jit(f)/while/body"},
    }


def collective(kind: str, count: int, name: str = "") -> dict[str, Any]:
    """A collective of a report, over groups of 4."""
    return {"name": name or kind, "kind": kind, "count": count, "bytes": 64, "group_size": 4}


REPORT = {
    "peak_hbm_bytes": 500,
    "memory_at_peak": {"fragmentation_bytes": 30},
    "ops": [
        op("while", 1, 100),
        op("convolution fusion", 4, 40),
        op("loop fusion", 2, 6),
        op("gather", 1, 3),
        op("all-gather-start", 3, 1),
        op("all-gather-done", 3, 1),
        op("all-gather", 5, 50, "collective"),
    ],
    "collectives": [
        collective("all-gather", 3),
        collective("all-gather", 2, "all-gather.1"),
        collective("all-reduce", 7),
    ],
}


def test_a_report_is_sorted_into_products_and_others() -> None:
    side = compiler_compare.of_tpusim(REPORT, set())
    assert (side.kernels, side.products, side.others) == (7, 40, 9)
    assert (side.peak, side.live) == (500, 470)
    assert side.collectives == {
        ("all-gather", 64, 4, "async"): 3,
        ("all-gather", 64, 4, "sync"): 2,
        ("all-reduce", 64, 4, "sync"): 7,
    }


def test_what_the_compiler_does_not_price_is_left_out() -> None:
    estimates = summary(kernel(name="gather_fusion", cycles=None, ops={"gather": 1}))
    left_out = compiler_compare.unpriced(estimates)
    assert left_out == {"gather"}
    side = compiler_compare.of_tpusim(REPORT, left_out)
    assert (side.kernels, side.others) == (7, 6)


def test_times_are_not_compared_where_too_many_have_none() -> None:
    row = compiler_compare.Row("p", "f", "v5e-1x1")
    row.ours = compiler_compare.Side(kernels=20, others=6, peak=3)
    row.theirs = compiler_compare.Side(kernels=10, others=2, peak=2, without_time=1)
    assert (row.ratio("kernels"), row.ratio("compute"), row.ratio("peak")) == (2, 3, 1.5)
    row.theirs.without_time = 2
    assert (row.ratio("kernels"), row.ratio("compute"), row.ratio("peak")) == (2, None, 1.5)


def test_a_small_part_is_not_compared() -> None:
    row = compiler_compare.Row("p", "f", "v5e-1x1")
    row.ours = compiler_compare.Side(kernels=1, products=50, others=50)
    row.theirs = compiler_compare.Side(kernels=1, products=96, others=4, narrow=2)
    assert (row.ratio("products"), row.ratio("compute")) == (50 / 96, 1)
    assert (row.ratio("others"), row.ratio("others", "narrow")) == (None, None)


def test_geometric_means() -> None:
    # The mean of 4 and 1/4 is one; both are off by a factor of four.
    assert compiler_page.geometric([4, 0.25, None]) == "1.00 (x4.00)"
    assert compiler_page.geometric([None]) == "-"


def test_collectives_are_one_word_each() -> None:
    counts = collections.Counter(
        {("all-reduce", 8, 4, "sync"): 7, ("all-gather", 8, 4, "async"): 29}
    )
    counts["collective-permute", 8, 0, "windowed"] = 5
    counts["collective-permute", 16, 0, "windowed"] = 7
    assert compiler_page.collectives_text(counts) == "AGa29 AR7 CPw12"


@pytest.mark.parametrize(("chip", "cycles"), [("v5e", 1500), ("v6e", 1750), ("v7x", 1900)])
def test_clocks_come_from_the_chips(chip: str, cycles: float) -> None:
    assert compiler_compare.clock_of(chip) == cycles
