"""The HTML of a report in a notebook: key figures, the step by operation, exposed collectives.

Every moment of the step is in one row of the operations, and the last row has those that are not
shown: their shares add up to 100 %.
"""

import html
from collections.abc import Iterable, Sequence

from tpusim.quantities import flops, percent, shares, size, time
from tpusim.report_fields import ReportFields

_ROWS = 8
_BAR = "display:inline-block;height:0.7em;background:{}"
_BUSY, _EXPOSED = "#4c78a8", "#e45756"


def html_of(report: ReportFields) -> str:
    """A piece of HTML without scripts; names from the program are escaped."""
    parts = [
        f"<b>{html.escape(report.workload)}</b> on {html.escape(report.config)}: "
        f"{report.devices} devices, step <b>{time(report.step_time_ns)}</b>",
        _bar(report),
        _table((), _figures(report)),
        _table(("operation", "category", "count", "time", "step", "source"), _ops(report)),
    ]
    if report.collective_records:
        head = ("collective", "count", "bytes", "time", "expected", "exposed", "because")
        parts.append(_table(head, _collectives(report)))
    parts += [f"<div>warning: {html.escape(warning)}</div>" for warning in report.warnings]
    return "<div>" + "".join(parts) + "</div>"


def _figures(report: ReportFields) -> Iterable[Sequence[str]]:
    step, bounds = report.step_time_ns, report.bound_ns
    exposed, hidden = report.exposed_communication_ns, report.hidden_communication_ns
    used = report.peak_hbm_bytes / max(report.usable_hbm_bytes, 1)
    lower = {"compute": bounds.compute, "HBM": bounds.hbm, "ICI": bounds.ici}
    lower |= {"host": bounds.host} if bounds.host else {}
    lower |= {"DCN": bounds.dcn} if bounds.dcn else {}
    yield (
        "utilization",
        f"MFU {percent(report.mfu)}, HFU {percent(report.hfu)}, {flops(report.flops)} per device",
    )
    if report.error_bar.text:
        yield "validated", report.error_bar.text
    if report.bound_by:
        yield "bound by", f"{report.bound_by} ({_path(report)})"
    yield "lower bounds", ", ".join(f"{name} {time(value)}" for name, value in lower.items())
    yield (
        "communication",
        f"{time(exposed)} exposed ({percent(exposed / step if step else 0)}), "
        f"{time(hidden)} hidden",
    )
    yield (
        "memory",
        f"peak {size(report.peak_hbm_bytes)} of {size(report.usable_hbm_bytes)} usable HBM "
        f"({percent(used)})",
    )


def _path(report: ReportFields) -> str:
    """The critical path, by what binds: its parts add up to the step."""
    path = report.critical_path_ns
    parts = {"compute": path.mxu + path.vpu, "hbm": path.hbm, "ici": path.ici, "dcn": path.dcn}
    parts |= {"host": path.host, "launch/latency": path.latency}
    times = sorted(((value, name) for name, value in parts.items() if value > 0), reverse=True)
    told = zip(times, shares([value for value, _ in times]), strict=True)
    return ", ".join(f"{name} {share}" for (_, name), share in told)


def _ops(report: ReportFields) -> Iterable[Sequence[str]]:
    rows = sorted(report.rollup.op, key=lambda row: -row.time_ns)
    shown, others = rows[:_ROWS], rows[_ROWS:]
    left = sum(row.time_ns for row in others)
    parts = shares([*(row.time_ns for row in shown), left])
    for row, share in zip(shown, parts, strict=False):
        name = f"{row.name} ({row.members})" if row.members > 1 else row.name
        yield name, row.category, _count(row.count), time(row.time_ns), share, row.source
    if others:
        yield f"({len(others)} others)", "", "", time(left), parts[-1], ""


def _count(count: int) -> str:
    """Nothing for what is not executed: time in which nothing is done."""
    return str(count) if count else ""


def _collectives(report: ReportFields) -> Iterable[Sequence[str]]:
    for c in report.collective_records[:_ROWS]:
        because = c.exposed_by[0].text or c.exposed_by[0].reason if c.exposed_by else ""
        exposed = percent(c.exposed_ns / c.total_ns if c.total_ns else 0)
        expected = time(c.expected_ns * c.count)
        yield c.name, str(c.count), size(c.bytes), time(c.total_ns), expected, exposed, because


def _bar(report: ReportFields) -> str:
    """The step as a bar: what communication adds to it is in another colour."""
    exposed = report.exposed_communication_ns
    rest = max(report.step_time_ns - exposed, 0)
    named = zip(
        ("not communication", "exposed"),
        (_BUSY, _EXPOSED),
        shares([rest, exposed]),
        strict=True,
    )
    spans = "".join(
        f'<span title="{title} {share}" style="{_BAR.format(colour)};width:{share}"></span>'
        for title, colour, share in named
    )
    return f'<div style="width:30em;font-size:1em;white-space:nowrap">{spans}</div>'


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    def row(cells: Sequence[str], tag: str) -> str:
        # Left-aligned as text is.
        style = ' style="text-align:left"'
        return "<tr>" + "".join(f"<{tag}{style}>{html.escape(c)}</{tag}>" for c in cells) + "</tr>"

    top = f"<thead>{row(head, 'th')}</thead>" if head else ""
    return f"<table>{top}<tbody>{''.join(row(cells, 'td') for cells in rows)}</tbody></table>"
