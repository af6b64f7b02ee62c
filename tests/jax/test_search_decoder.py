"""A search of the size that people do: what it costs, and that pruning changes no result."""

import pytest

from benchmarks.search_benchmark import lowering_cpu_s, search

MOST_CPU_SECONDS = 1.2


@pytest.mark.long
def test_decoder_on_256_chips():
    lowering = lowering_cpu_s()
    pruned, everything = search(2), search(2, "--all")
    for cost in (pruned, everything):
        print(f"{cost.beyond(lowering):.2f} s for each of {cost.simulated}, {cost.wall_s:.0f} s")
        print(f"processors wanted {100 * cost.busy:.0f}% of it")
        assert cost.busy > 0.8
        assert len(cost.table["candidates"]) == 64
    assert pruned.table["counts"]["pruned"] > 0
    assert pruned.beyond(lowering) < MOST_CPU_SECONDS
    best, first = pruned.table["candidates"][0], everything.table["candidates"][0]
    for name in ("mesh", "rules", "batch", "value", "step_time_ns"):
        assert best[name] == first[name]
    rows = {
        (row["mesh"], row["rules"], row["batch"]): row for row in everything.table["candidates"]
    }
    for row in pruned.table["candidates"]:
        other = rows[row["mesh"], row["rules"], row["batch"]]
        if row["status"] == "simulated":
            assert row["step_time_ns"] == other["step_time_ns"]
        elif row["status"] == "pruned":
            assert (other["value"] or 0) < best["value"]
        if other["step_time_ns"]:
            assert other["schedule_bound_ns"] <= other["step_time_ns"]
