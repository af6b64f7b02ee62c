"""How a report looks in a notebook: key figures, the longest operations, why what is exposed is."""

import html
from collections.abc import Iterable, Sequence

from tpusim.quantities import flops, percent, size, time
from tpusim.report import Report

_ROWS = 8
_BAR = "display:inline-block;height:0.7em;background:{}"
_BUSY, _EXPOSED = "#4c78a8", "#e45756"


def html_of(report: Report) -> str:
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


def _figures(report: Report) -> Iterable[Sequence[str]]:
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


def _ops(report: Report) -> Iterable[Sequence[str]]:
    step = report.step_time_ns
    for op in report.op_records[:_ROWS]:
        share = percent(op.total_ns / step if step else 0)
        yield op.name, op.category, str(op.count), time(op.total_ns), share, op.source


def _collectives(report: Report) -> Iterable[Sequence[str]]:
    for c in report.collective_records[:_ROWS]:
        because = c.exposed_by[0].text or c.exposed_by[0].reason if c.exposed_by else ""
        exposed = percent(c.exposed_ns / c.total_ns if c.total_ns else 0)
        expected = time(c.expected_ns * c.count)
        yield c.name, str(c.count), size(c.bytes), time(c.total_ns), expected, exposed, because


def _bar(report: Report) -> str:
    """The step as a bar: what communication adds to it is in another colour."""
    step = report.step_time_ns
    exposed = 100 * report.exposed_communication_ns / step if step else 0
    parts = ((100 - exposed, _BUSY, "not communication"), (exposed, _EXPOSED, "exposed"))
    spans = "".join(
        f'<span title="{title} {share:.1f}%" style="{_BAR.format(colour)};width:{share:.2f}%">'
        "</span>"
        for share, colour, title in parts
    )
    return f'<div style="width:30em;font-size:1em;white-space:nowrap">{spans}</div>'


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    def row(cells: Sequence[str], tag: str) -> str:
        # Left-aligned as text is.
        style = ' style="text-align:left"'
        return "<tr>" + "".join(f"<{tag}{style}>{html.escape(c)}</{tag}>" for c in cells) + "</tr>"

    top = f"<thead>{row(head, 'th')}</thead>" if head else ""
    return f"<table>{top}<tbody>{''.join(row(cells, 'td') for cells in rows)}</tbody></table>"
