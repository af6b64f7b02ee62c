"""A picture of a search by matplotlib."""

from typing import TYPE_CHECKING

from tpusim.plots import new_axes
from tpusim.quantities import percent

if TYPE_CHECKING:
    import matplotlib.axes

    from tpusim.search.results import SearchResults

_SCALES = {"step_time": (1e6, " (ms)"), "mfu": (0.01, " (%)"), "peak_hbm": (2.0**30, " (GiB)")}


def pareto(
    results: "SearchResults", axes: "matplotlib.axes.Axes | None" = None
) -> "matplotlib.axes.Axes":
    """The objective over peak HBM: a colour per slice, a line through what nothing beats."""
    axes = new_axes(axes, 8, 5)
    name = results.objective.name
    unit, unit_name = _SCALES.get(name, (1.0, ""))
    done = [entry for entry in results if entry.rank is not None]

    def points(entries: list) -> tuple[list[float], list[float]]:
        return (
            [(entry.row.peak_hbm_bytes or 0) / 2**30 for entry in entries],
            [(entry.value or 0.0) / unit for entry in entries],
        )

    for config in dict.fromkeys(entry.candidate.config for entry in done):
        axes.scatter(*points([e for e in done if e.candidate.config == config]), label=config)
    front = results.pareto()
    by_memory = sorted(front, key=lambda entry: entry.row.peak_hbm_bytes or 0)
    axes.plot(*points(by_memory), "k--", lw=1, label="nothing is better in both")
    for entry in front:
        label = " ".join(entry.candidate.labels.values())
        x, y = points([entry])
        axes.annotate(label, (x[0], y[0]), (4, 4), textcoords="offset points", fontsize="x-small")
    usable = {e.row.usable_hbm_bytes for e in done if e.row.usable_hbm_bytes}
    if len(usable) == 1 and front:
        share = percent((front[0].row.peak_hbm_bytes or 0) / usable.pop())
        axes.set_title(f"{len(done)} of {len(results)} candidates; the best takes {share} of HBM")
    axes.set_xlabel("peak HBM of a device (GiB)")
    axes.set_ylabel(f"{name.replace('_', ' ')}{unit_name}")
    if done:
        axes.legend(fontsize="small")
    return axes
