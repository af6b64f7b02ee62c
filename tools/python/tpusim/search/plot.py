"""A picture of a search by matplotlib."""

from typing import TYPE_CHECKING

from tpusim.plots import BYTE_UNITS, TIME_UNITS, new_axes

if TYPE_CHECKING:
    import matplotlib.axes

    from tpusim.search.outcome import Outcome
    from tpusim.search.ranking import Entry

_UNITS = {"step_time": TIME_UNITS, "mfu": ((0.01, "%"),), "peak_hbm": BYTE_UNITS}


def pareto(
    results: "Outcome", axes: "matplotlib.axes.Axes | None" = None
) -> "matplotlib.axes.Axes":
    """The objective over peak HBM: a colour per slice, a line through what nothing beats.

    Points on the line have the ranks and labels of their candidates.
    """
    axes = new_axes(axes, 8, 5)
    name = results.objective.name
    done = [entry for entry in results if entry.rank is not None and entry.value is not None]
    unit, unit_name = _unit(_UNITS.get(name, ((1.0, ""),)), [e.value or 0.0 for e in done])
    memory, memory_name = _unit(BYTE_UNITS, [float(e.row.peak_hbm_bytes or 0) for e in done])

    def points(entries: "list[Entry]") -> tuple[list[float], list[float]]:
        return (
            [(entry.row.peak_hbm_bytes or 0) / memory for entry in entries],
            [(entry.value or 0.0) / unit for entry in entries],
        )

    for config in dict.fromkeys(entry.candidate.config for entry in done):
        axes.scatter(*points([e for e in done if e.candidate.config == config]), label=config)
    front = results.pareto()
    by_memory = sorted(front, key=lambda entry: entry.row.peak_hbm_bytes or 0)
    axes.plot(*points(by_memory), "k--", lw=1, label="nothing is better in both")
    for entry in front:
        label = " ".join([f"{entry.rank}:", *entry.candidate.labels.values()])
        x, y = points([entry])
        axes.annotate(label, (x[0], y[0]), (4, 4), textcoords="offset points", fontsize="x-small")
    axes.set_title(f"{len(done)} of {len(results)} candidates")
    axes.set_xlabel(f"peak HBM of a device ({memory_name})")
    axes.set_ylabel(name.replace("_", " ") + (f" ({unit_name})" if unit_name else ""))
    if done:
        axes.legend(fontsize="small")
    return axes


def _unit(units: tuple[tuple[float, str], ...], values: list[float]) -> tuple[float, str]:
    """The one that fits the largest value."""
    most = max(values, default=0.0)
    return next((u for u in units if most >= u[0]), units[-1])
