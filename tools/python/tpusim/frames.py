"""The rows of a report as pandas DataFrames, one column per field."""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tpusim import optional
from tpusim.errors import Error
from tpusim.report_fields import (
    ArrayRecord,
    CollectiveRecord,
    LinkRecord,
    OpRecord,
    ReportFields,
    Rollup,
    RollupRow,
    ScopeRecord,
)

if TYPE_CHECKING:
    import pandas


def _frame(cls: type, rows: Sequence[Any]) -> "pandas.DataFrame":
    """An empty one has its columns, too."""
    library = optional.require("pandas", "a DataFrame")
    names = [field.name for field in dataclasses.fields(cls)]
    return library.DataFrame({name: [getattr(row, name) for row in rows] for name in names})


def ops(report: ReportFields) -> "pandas.DataFrame":
    """Operations, and which share of the step each takes."""
    frame = _frame(OpRecord, report.op_records)
    frame.insert(5, "share_of_step", frame["total_ns"].astype(float) / report.step_time_ns)
    return frame


def scopes(report: ReportFields) -> "pandas.DataFrame":
    """Prefixes of op_name paths, and which share of the step each takes."""
    frame = _frame(ScopeRecord, report.scope_records)
    frame.insert(2, "share_of_step", frame["total_ns"].astype(float) / report.step_time_ns)
    return frame


def collectives(report: ReportFields) -> "pandas.DataFrame":
    """Collectives; what covers and exposes them is a name or a reason, the one of most time."""
    frame = _frame(CollectiveRecord, report.collective_records)
    frame["covered_by"] = [
        c.covered_by[0].name if c.covered_by else "" for c in report.collective_records
    ]
    frame["exposed_by"] = [
        c.exposed_by[0].reason if c.exposed_by else "" for c in report.collective_records
    ]
    return frame


def memory(report: ReportFields) -> "pandas.DataFrame":
    """Arrays at the peak, and which share of the peak each takes."""
    frame = _frame(ArrayRecord, report.memory_at_peak.arrays)
    peak = max(report.peak_hbm_bytes, 1)
    frame.insert(6, "share_of_peak", frame["bytes"].astype(float) / peak)
    return frame


def where(report: ReportFields, by: str) -> "pandas.DataFrame":
    """Parts of the step that add up to it."""
    ways = [field.name for field in dataclasses.fields(Rollup)]
    if by not in ways:
        raise Error(f"where({by!r}): choose one of {', '.join(ways)}")
    return _frame(RollupRow, getattr(report.rollup, by))


def links(report: ReportFields) -> "pandas.DataFrame":
    """A table of the links of the slice."""
    return _frame(LinkRecord, report.link_records)
