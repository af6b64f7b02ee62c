"""Pictures of a report by matplotlib: timeline, roofline, memory.

Each draws into the axes given, or into new ones, and returns them, so that they can be changed and
saved: `report.plot_roofline().figure.savefig("roofline.png")`.
"""

import re
from typing import TYPE_CHECKING, Any

from tpusim import optional
from tpusim.quantities import percent, size
from tpusim.report_fields import ReportFields
from tpusim.timeline import Slice, Timeline

if TYPE_CHECKING:
    import matplotlib.axes

# Tracks of these names repeat what others say, or have nothing to compare them by.
_NOT_DRAWN = ("Steps", "Scopes")
# "HBM DMA 2" has what did not fit on "HBM DMA" because it overlaps.
_OVERFLOW = re.compile(r" \d+$")
# Their time is that of what is inside of them.
_CONTAINERS = ("while", "conditional", "call")
BYTE_UNITS = ((2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B"))
TIME_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns"))


def new_axes(axes: "matplotlib.axes.Axes | None", width: float, height: float) -> Any:
    """Returns the axes given, or new ones of that size in inches."""
    if axes is not None:
        return axes
    pyplot = optional.require("matplotlib.pyplot", "a plot")
    _, new = pyplot.subplots(figsize=(width, height), layout="constrained")
    return new


def _time_unit(report: ReportFields) -> tuple[float, str]:
    return next((u for u in TIME_UNITS if report.step_time_ns >= u[0]), TIME_UNITS[-1])


def _title(report: ReportFields) -> str:
    return f"{report.workload} on {report.config}"


def timeline(
    report: ReportFields, drawn: Timeline, chip: int = 0, axes: "matplotlib.axes.Axes | None" = None
) -> "matplotlib.axes.Axes":
    """A row per engine, link and stream of the chip's first device; a colour per category."""
    rows: dict[str, list[Slice]] = {}
    for track in drawn.first_device():
        if track.slices and track.name not in _NOT_DRAWN:
            rows.setdefault(_OVERFLOW.sub("", track.name), []).extend(track.slices)
    axes = new_axes(axes, 10, 1.5 + 0.35 * len(rows))
    unit, unit_name = _time_unit(report)
    categories = dict.fromkeys(_category(s) for slices in rows.values() for s in slices)
    cycle = optional.require("matplotlib", "a plot").colormaps["tab20"].colors
    named = [category for category in categories if category]
    colours = {c: cycle[i % len(cycle)] for i, c in enumerate(named)} | {"": "0.6"}
    for row, slices in enumerate(rows.values()):
        bars: dict[tuple[int, str], list[tuple[float, float]]] = {}
        for s in slices:
            extent = (s.start_ns / unit, (s.end_ns - s.start_ns) / unit)
            bars.setdefault((s.depth, _category(s)), []).append(extent)
        # Loops behind their bodies.
        for (depth, category), extents in sorted(bars.items()):
            colour = colours[category]
            axes.broken_barh(extents, (row - 0.4, 0.8), color=colour, lw=0.3, zorder=1 + depth)
    for category in named:
        axes.broken_barh([(0, 0)], (0, 0), facecolors=colours[category], label=category)
    if named:
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize="small")
    axes.set_yticks(range(len(rows)), list(rows))
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlim(0, report.step_time_ns / unit)
    axes.set_xlabel(f"time ({unit_name})")
    axes.set_title(f"{_title(report)}: chip {chip}")
    return axes


def _category(s: Slice) -> str:
    """An operation in two halves is one thing."""
    return s.category.removesuffix("-start").removesuffix("-done")


def roofline(
    report: ReportFields, axes: "matplotlib.axes.Axes | None" = None
) -> "matplotlib.axes.Axes":
    """A point per operation with FLOPs, as large as its share of the step, under both ceilings."""
    axes = new_axes(axes, 7, 5)
    peak, bandwidth = report.peak_flops_per_second, report.hbm_bytes_per_second
    drawn = [
        op
        for op in report.op_records
        if op.flops > 0 and op.hbm_bytes > 0 and op.total_ns > 0 and op.category not in _CONTAINERS
    ]
    intensities = [op.flops / op.hbm_bytes for op in drawn]
    ridge = peak / bandwidth
    low, high = min([ridge, *intensities]) / 4, max([ridge, *intensities]) * 4
    axes.plot([low, ridge], [low * bandwidth, peak], "k-", label=f"HBM {bandwidth / 1e9:.0f} GB/s")
    axes.plot([ridge, high], [peak, peak], "k--", label=f"bf16 peak {peak / 1e12:.0f} TFLOP/s")
    for category in dict.fromkeys(op.category for op in drawn):
        ops = [op for op in drawn if op.category == category]
        axes.scatter(
            [op.flops / op.hbm_bytes for op in ops],
            [op.flops / (op.total_ns * 1e-9) for op in ops],
            s=[20 + 400 * op.total_ns / report.step_time_ns for op in ops],
            alpha=0.6,
            label=category,
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("FLOP per byte of HBM")
    axes.set_ylabel("FLOP/s of one device")
    axes.set_title(_title(report))
    axes.legend(fontsize="small")
    return axes


def memory(
    report: ReportFields, drawn: Timeline, axes: "matplotlib.axes.Axes | None" = None
) -> "matplotlib.axes.Axes":
    """Live HBM over the step, and at its peak a bar of whose the memory is."""
    counters = [t for t in drawn.first_device() if t.name == "Live HBM"]
    axes = new_axes(axes, 8, 4)
    unit, unit_name = _time_unit(report)
    unit_bytes, bytes_name = next(
        (u for u in BYTE_UNITS if report.peak_hbm_bytes >= u[0]), BYTE_UNITS[-1]
    )
    for counter in counters:
        samples = [*counter.samples, (int(report.step_time_ns), counter.samples[-1][1])]
        axes.step(
            [t / unit for t, _ in samples],
            [v / unit_bytes for _, v in samples],
            where="post",
            color="k",
        )
    peak, below = report.memory_at_peak, 0.0
    width = 0.02 * report.step_time_ns / unit
    for owner in peak.owners:
        label = f"{owner.owner} {size(owner.bytes)}"
        axes.bar(peak.time_ns / unit, owner.bytes / unit_bytes, width, below, label=label)
        below += owner.bytes / unit_bytes
    used = percent(report.peak_hbm_bytes / max(report.usable_hbm_bytes, 1))
    axes.set_title(f"{_title(report)}\npeak {size(report.peak_hbm_bytes)}, {used} of usable HBM")
    axes.set_xlabel(f"time ({unit_name})")
    axes.set_ylabel(f"live HBM ({bytes_name})")
    axes.set_xlim(0, report.step_time_ns / unit)
    axes.set_ylim(bottom=0)
    if peak.owners:
        axes.legend(title=f"at the peak, in {peak.operation}", fontsize="small")
    return axes
