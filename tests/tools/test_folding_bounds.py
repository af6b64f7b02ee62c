"""Error bounds of simulations that are less than exact hold against the exact ones.

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
    workload = WORKLOADS / f"{name}.pb.gz"
    approximate = report_of(workload, "--fold", "approximate", *flags)
    check(report_of(workload, "--fold", "on", *flags), approximate)


# A budget that no exact simulation of a pod keeps to: approximate, yet within what is said.
@pytest.mark.long
@pytest.mark.parametrize(
    "flags", [*STRAGGLERS, ["--slow", "chip=100:0.95"], []], ids=lambda flags: " ".join(flags)
)
@pytest.mark.parametrize("einsums", [(), GATHERED], ids=("windowed", "gathered"))
def test_steps_of_pods_are_within_the_bound(
    report_of: Reports, flags: list[str], einsums: tuple[str, ...]
) -> None:
    flags = ["--config", "v5e-16x16", *flags, *einsums]
    check(report_of(POD, *flags, "--fold", "on"), report_of(POD, *flags))


@pytest.mark.long
def test_more_events_give_finer_classes(report_of: Reports) -> None:
    flags = ["--config", "v5e-16x16", "--slow", "chip=3:0.8", *GATHERED]
    few = report_of(POD, *flags, "--exact-under", "0")["folding"]
    many = report_of(POD, *flags, "--exact-under", "100000000")["folding"]
    assert few["approximate"]
    assert few["device_classes"] < many["device_classes"]
    assert few["error_bound_ns"] > many["error_bound_ns"]


def test_small_programs_are_exact_by_default(report_of: Reports) -> None:
    workload = WORKLOADS / "all_reduce_axis_4194304.pb.gz"
    by_default = report_of(workload, "--slow", "chip=3:0.8")
    assert by_default["folding"]["error_bound_ns"] == 0
    assert (
        by_default["folding"]
        == report_of(workload, "--slow", "chip=3:0.8", "--fold", "on")["folding"]
    )
