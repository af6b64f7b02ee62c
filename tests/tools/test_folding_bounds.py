"""What a simulation that is less than exact says of its error holds against the exact one.

Collectives and models of `validation/workloads` on slices with a straggler, and pod programs whose
exact simulation takes seconds (`--long`).
"""

import pathlib
from collections.abc import Callable

import pytest

ROOT = pathlib.Path(__file__).parents[2]
WORKLOADS = ROOT / "validation/workloads"
POD = ROOT / "benchmarks/pod_programs/decoder_fsdp_tp_256.pb.gz"
# Without windowed einsums.
GATHERED = ("--xla-flags", "--xla_jf_spmd_threshold_for_windowed_einsum_mib=1000000")
STRAGGLERS = (
    ["--slow", "chip=37:0.7"],
    ["--slow", "chip=3:0.8"],
    ["--slow", "chip=5:0.95", "--slow", "chip=9:0.8"],
    ["--link", "0:x+=0.5"],
)
SAMPLE = ("all_gather_ring_524288", "all_reduce_axis_4194304")
MORE = (
    "all_gather_ring_4294967296",
    "all_reduce_axis_16777216",
    "all_reduce_axis_1073741824",
    "all_reduce_slice",
    "decode_palm_540b_v4_64",
    "prefill_palm_540b_v4_64",
)

Reports = Callable[..., dict]


def check(exact: dict, other: dict) -> None:
    bound = other["folding"]["error_bound_ns"]
    assert exact["folding"]["error_bound_ns"] == 0
    assert abs(other["step_time_ns"] - exact["step_time_ns"]) <= bound


@pytest.mark.parametrize("flags", STRAGGLERS, ids=" ".join)
@pytest.mark.parametrize(
    "name", [*SAMPLE, *(pytest.param(name, marks=pytest.mark.long) for name in MORE)]
)
def test_exact_step_is_within_the_bound_of_an_approximate_folding(
    report_of: Reports, name: str, flags: list[str]
) -> None:
    workload = WORKLOADS / f"{name}.pb"
    approximate = report_of(workload, "--fold", "approximate", *flags)
    if "--slow" in flags:
        assert approximate["folding"]["error_bound_ns"] >= approximate["step_time_ns"] / 101
    check(report_of(workload, "--fold", "on", *flags), approximate)


@pytest.mark.long
@pytest.mark.parametrize("chip", ["3:0.9", "3:0.8"])
def test_passes_that_are_nearly_the_same(report_of: Reports, chip: str) -> None:
    flags = ["--config", "v5e-16x16", "--slow", f"chip={chip}", *GATHERED]
    by_default = report_of(POD, *flags)
    # Ten millionths of the step.
    assert 0 < by_default["folding"]["error_bound_ns"] < 1e-5 * by_default["step_time_ns"]
    assert not by_default["folding"]["approximate"]
    check(report_of(POD, *flags, "--fold", "on"), by_default)


@pytest.mark.long
def test_many_classes_that_take_too_long(report_of: Reports) -> None:
    flags = ["--config", "v5e-16x16", "--slow", "chip=100:0.95", *GATHERED]
    by_default = report_of(POD, *flags)
    assert by_default["folding"]["approximate"]
    check(report_of(POD, *flags, "--fold", "on"), by_default)


@pytest.mark.long
def test_windowed_einsums_over_parts_of_lines(report_of: Reports) -> None:
    flags = ["--config", "v5e-16x16"]
    by_default = report_of(POD, *flags)
    assert by_default["folding"]["approximate"]
    check(report_of(POD, *flags, "--fold", "on"), by_default)


def test_small_programs_are_exact_by_default(report_of: Reports) -> None:
    workload = WORKLOADS / "all_reduce_axis_4194304.pb"
    by_default = report_of(workload, "--slow", "chip=3:0.8")
    assert by_default["folding"]["error_bound_ns"] == 0
    assert (
        by_default["folding"]
        == report_of(workload, "--slow", "chip=3:0.8", "--fold", "on")["folding"]
    )
