"""`SearchResults`: the table of a search, for people, notebooks, pandas and programs."""

import dataclasses
import html
import json
import os
import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tpusim import files, optional
from tpusim.quantities import columns, size
from tpusim.search import page, plot
from tpusim.search.outcome import Outcome
from tpusim.search.ranking import Entry
from tpusim.search.row import Status
from tpusim.version import __version__

if TYPE_CHECKING:
    import matplotlib.axes
    import pandas

SCHEMA = "tpusim.search/1"
_SHOWN = 20
_WIDTH = 160


class SearchResults(Outcome):
    """The candidates, the best first; an entry has `candidate`, `value`, `row` and `reason`."""

    def to_frame(self) -> "pandas.DataFrame":
        """A row per candidate, in order: its values, its figures, the reason (needs pandas)."""
        library = optional.require("pandas", "a DataFrame")
        found = {"found": [str(e.found.best) if e.found else "" for e in self.entries]}
        frame = library.DataFrame([_record(entry) for entry in self.entries])
        return frame.assign(**found) if self._finds else frame

    def to_json(self, command_line: Sequence[str] = ()) -> str:
        """The table as JSON; `command_line` is the command that made it, if any."""
        rows = [
            _record(e)
            | ({"found": _found(e)} if self._finds else {})
            | {"parts": e.row.parts, "owners": e.row.owners}
            for e in self.entries
        ]
        value = {
            "schema": SCHEMA,
            "tpusim_version": __version__,
            "command_line": list(command_line),
            "objective": self.objective.name,
            "maximize": self.objective.maximize,
            "counts": self.counts(),
            "candidates": rows,
        }
        return json.dumps(value, indent=2) + "\n"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the JSON, or if `path` ends in .html a page for a browser."""
        target = files.path_of(path, "path")
        if pathlib.Path(target).suffix == ".html":
            page.save(self, target)
        else:
            files.write_atomically(target, self.to_json().encode())

    def plot_pareto(self, *, axes: "matplotlib.axes.Axes | None" = None) -> "matplotlib.axes.Axes":
        """Draws the objective over peak HBM, and the candidates that nothing beats in both."""
        return plot.pareto(self, axes)

    def text(self, top: int = _SHOWN, width: int | None = None) -> str:
        """The table of the first `top`, and how many there are of which kind.

        Lines are cut at `width`, if one is given.
        """
        shown = self.entries[:top]
        table = columns([self._head(), *(self._cells(entry) for entry in shown)])
        lines = [_cut(line, width) for line in table]
        counted = ", ".join(f"{count} {status}" for status, count in self.counts().items())
        more = f" ({len(self) - len(shown)} not shown)" if len(self) > len(shown) else ""
        return "\n".join([*lines, "", f"{len(self)} candidates: {counted}{more}"])

    def __repr__(self) -> str:
        return self.text(width=_WIDTH)

    def _repr_html_(self) -> str:
        shown = self.entries[:_SHOWN]
        cells = ([_cut(c, _WIDTH) for c in self._cells(entry)] for entry in shown)
        rows = "".join(_html_row(row, "td") for row in cells)
        counted = ", ".join(f"{count} {status}" for status, count in self.counts().items())
        return (
            f"<div><table><thead>{_html_row(self._head(), 'th')}</thead><tbody>{rows}</tbody>"
            f"</table><div>{len(self)} candidates: {html.escape(counted)}</div></div>"
        )

    def _head(self) -> list[str]:
        names = list(self.entries[0].candidate.labels) if self.entries else []
        found = ["mesh found"] if self._finds else []
        return ["", "slice", *names, self.objective.name, "peak HBM", *found, "why behind"]

    def _cells(self, entry: Entry) -> list[str]:
        row = entry.row
        value = self.objective.text(entry.value) if entry.value is not None else str(row.status)
        peak = size(row.peak_hbm_bytes) if row.peak_hbm_bytes is not None else ""
        rank = str(entry.rank) if entry.rank is not None else "-"
        labels = entry.candidate.labels.values()
        why = "" if row.status is Status.SIMULATED and entry.rank == 1 else entry.reason
        found = [entry.found.best.mesh_text if entry.found else ""] if self._finds else []
        return [rank, entry.candidate.config, *labels, value, peak, *found, why]


def _cut(line: str, width: int | None) -> str:
    return line if width is None or len(line) <= width else line[: max(0, width - 3)] + "..."


def _html_row(cells: Sequence[str], tag: str) -> str:
    style = ' style="text-align:left"'
    return "<tr>" + "".join(f"<{tag}{style}>{html.escape(c)}</{tag}>" for c in cells) + "</tr>"


def _record(entry: Entry) -> dict[str, Any]:
    """Columns of a table; parts of the step have one each in a frame of their own."""
    row = dataclasses.asdict(entry.row)
    for nested in ("parts", "owners", "value", "value_of", "found"):
        del row[nested]
    status, why = str(row.pop("status")), row.pop("why")
    row["warnings"] = "; ".join(entry.row.warnings)
    return {
        "rank": entry.rank,
        "config": entry.candidate.config,
        **entry.candidate.labels,
        "status": status,
        "value": entry.value,
        "reason": entry.reason or why,
        "tokens": entry.tokens,
        **row,
    }


def _found(entry: Entry) -> dict[str, Any] | None:
    """Mesh and shardings that were found, and how sure that is."""
    if entry.found is None:
        return None
    best = entry.found.best
    return {
        "mesh": best.mesh,
        "arguments": best.dims,
        "constraints": [
            {"value": each.value, "source": each.source, "dims": each.dims}
            for each in best.constraints
        ],
        "options": best.options,
        "lower_bound_ns": entry.found.lower_bound_ns,
        "gap": entry.found.gap,
    }


class SearchInterruptedError(KeyboardInterrupt):
    """The search was interrupted; `results` has what was finished."""

    def __init__(self, results: SearchResults):
        super().__init__("search interrupted")
        self.results = results
