"""`tpusim.compare`: several reports side by side."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tpusim import arguments as checks
from tpusim import optional
from tpusim.errors import ArgumentTypeError, Error
from tpusim.report import Report

if TYPE_CHECKING:
    import pandas


def compare(reports: Mapping[str, Report] | Sequence[Report]) -> "pandas.DataFrame":
    """One row per report, in the order given (needs pandas).

    Args:
      reports: `{name: report}`, or reports, which are then called by workload and slice.

    Returns:
      A DataFrame whose index is the names. `slowdown` is the step time against that of the fastest
      report. Exposed communication and what is left of the step add up to it.
    """
    expected = "reports, as a list or as {name: report}"
    named = isinstance(reports, Mapping)
    listed = list(reports.values()) if named else checks.several("reports", reports, expected)
    for report in listed:
        if not isinstance(report, Report):
            raise ArgumentTypeError(checks.wrong("reports", report, expected))
    rows = dict(zip(reports if named else _names(listed), listed, strict=True))
    if not rows:
        raise Error("compare: no reports")
    fastest = min(report.step_time_ns for report in rows.values())
    library = optional.require("pandas", "tpusim.compare")
    return library.DataFrame.from_dict(
        {name: _row(report, fastest) for name, report in rows.items()}, orient="index"
    )


def _row(report: Report, fastest: float) -> dict[str, object]:
    bounds = report.bound_ns
    return {
        "workload": report.workload,
        "config": report.config,
        "step_time_ns": report.step_time_ns,
        "slowdown": report.step_time_ns / fastest if fastest > 0 else 1.0,
        "exposed_communication_ns": report.exposed_communication_ns,
        "other_ns": report.step_time_ns - report.exposed_communication_ns,
        "hidden_communication_ns": report.hidden_communication_ns,
        "mfu": report.mfu,
        "hfu": report.hfu,
        "bound_compute_ns": bounds.compute,
        "bound_hbm_ns": bounds.hbm,
        "bound_ici_ns": bounds.ici,
        "bound_host_ns": bounds.host,
        "bound_dcn_ns": bounds.dcn,
        "peak_hbm_bytes": report.peak_hbm_bytes,
        "usable_hbm_bytes": report.usable_hbm_bytes,
        "devices": report.devices,
    }


def _names(reports: Sequence[Report]) -> list[str]:
    """Returns names that tell the reports apart; equal ones are numbered."""
    names: dict[str, None] = {}
    for report in reports:
        name = first = f"{report.workload} on {report.config}"
        number = 1
        while name in names:
            number += 1
            name = f"{first} ({number})"
        names[name] = None
    return list(names)
