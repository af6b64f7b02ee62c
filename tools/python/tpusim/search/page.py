"""The page of a search, for a browser: candidates with reasons, a Pareto plot, what did not fit.

Its data is that of `tpusim page`. Every candidate is a run, which a click opens: the best ones and
those that nothing beats in objective and memory have their reports, and so all views of a run; the
others have what the search knows of them.
"""

import json
import math
import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tpusim import files, quantities
from tpusim.errors import Error
from tpusim.runner import execute
from tpusim.search.row import Status

if TYPE_CHECKING:
    from tpusim.search.outcome import Outcome
    from tpusim.search.ranking import Entry

_UNITS = {
    "step_time": "ns",
    "mfu": "share",
    "peak_hbm": "bytes",
    "tokens_per_chip_second": "count",
}
_WORDS = {
    Status.DOES_NOT_FIT: "What does not fit",
    Status.PRUNED: "Not simulated: the bound is behind the best",
    Status.ERROR: "What was refused",
    Status.CRASHED: "What took its worker along",
    Status.EXPORTED: "Not simulated yet",
}
# Bars are for the eye.
_MOST_BARS = 40
_WIDE = 30
# Reports are simulated again, and each is some hundred kilobytes: of the best, and of the front, so
# many, as long as they took no more than this together.
_MOST_REPORTS = 12
_MOST_SECONDS = 30.0
_MOST_BYTES = 16 << 20

Panel = dict[str, Any]


def save(results: "Outcome", path: str | os.PathLike[str]) -> None:
    """Writes the page; there is all of it, or none."""
    data = json.dumps(data_of(results), allow_nan=False)
    with files.whole(path) as written:
        source = written.with_name("page.json")
        source.write_text(data)
        execute(["page", str(source), "-o", str(written)])


def data_of(results: "Outcome") -> dict[str, Any]:
    """Returns the data of the page, of schema tpusim.page/1."""
    done = [entry for entry in results if entry.rank is not None]
    tabs = [{"title": "Candidates", "panels": [_figures(results), *_ranking(results, done)]}]
    if any(entry.value is not None for entry in done):
        tabs.append({"title": "Pareto", "panels": [_pareto(results, done)]})
    if done:
        shown = done[:_MOST_BARS]
        tabs.append(
            {
                "title": "Parts",
                "panels": [
                    _bars("where the steps go", "ns", shown, [e.row.parts for e in shown]),
                    _bars("memory at the peak", "bytes", shown, [e.row.owners for e in shown]),
                ],
            }
        )
    rest = [panel for status in _WORDS for panel in _without_rank(results, status)]
    if rest:
        tabs.append({"title": "Not ranked", "panels": rest})
    counted = ", ".join(f"{count} {status}" for status, count in results.counts().items())
    data = {
        "schema": "tpusim.page/1",
        "title": f"search for {results.objective.name.replace('_', ' ')}",
        "subtitle": f"{len(results)} candidates: {counted}",
        "tabs": tabs,
    }
    reports = _reports(results, done)
    data["runs"] = [
        {
            "name": entry.candidate.name,
            "panels": _candidate(results, entry, entry.candidate.name in reports),
        }
        | ({"report": reports[entry.candidate.name]} if entry.candidate.name in reports else {})
        for entry in results
    ]
    if data["runs"]:
        data["subtitle"] += "; click a candidate to open it"
    return data


def _reports(results: "Outcome", done: "Sequence[Entry]") -> dict[str, dict[str, Any]]:
    """Returns the reports of the candidates that get all views, by name."""
    front = results.pareto()
    wanted = [
        *done[:1],
        *(e for e in done[1:] if e in front),
        *(e for e in done[1:] if e not in front),
    ]
    reports: dict[str, dict[str, Any]] = {}
    seconds, size = 0.0, 0
    for entry in wanted[:_MOST_REPORTS]:
        seconds += entry.row.simulation_cpu_s
        if reports and (seconds > _MOST_SECONDS or size > _MOST_BYTES):
            break
        try:
            text = results.report(entry).text
        except Error:
            continue  # The store has the row alone.
        size += len(text)
        reports[entry.candidate.name] = json.loads(text)
    return reports


def _candidate(results: "Outcome", entry: "Entry", whole: bool) -> list[Panel]:
    """Returns panels on one candidate; `whole` compares it with the best."""
    row = entry.row
    place = f"{entry.rank} of {len(results)}" if entry.rank is not None else str(row.status)
    figures = [{"name": "rank", "text": place, "id": "rank"}]

    def add(name: str, value: float | None, text: Callable[[float], str], key: str) -> None:
        if value is not None:
            figures.append({"name": name, "text": text(value), "id": key})

    objective = results.objective
    if objective.name not in _UNITS:
        add(objective.name.replace("_", " "), entry.value, objective.text, "value")
    if not whole:
        add("step time", row.step_time_ns, quantities.time, "step_time")
        add("MFU", row.mfu, quantities.percent, "mfu")
        add("exposed", row.exposed_communication_ns, quantities.time, "exposed")
        add("peak HBM", row.peak_hbm_bytes, quantities.size, "memory")
        add("arguments", row.argument_bytes, quantities.size, "arguments")
        add("usable HBM", row.usable_hbm_bytes, quantities.size, "usable")
    panels: list[Panel] = [{"kind": "figures", "title": entry.candidate.name, "figures": figures}]
    if entry.found is not None:
        found = repr(entry.found).splitlines()
        panels.append({"kind": "text", "title": "Shardings that were found", "lines": found})
    lines = [entry.reason] if entry.reason else []
    if not whole:
        lines += row.warnings
        if entry.rank is not None:
            lines.append(
                "results.report(results[i]) simulates it again, and has all there is to it."
            )
    if lines:
        title = "Why it is behind" if entry.rank is not None else "Why it has no rank"
        panels.append({"kind": "text", "title": title, "lines": lines})
    best = results[0]
    if entry.rank is not None and entry is not best:
        pair = [best, entry]
        panels.append(
            _bars("its step beside that of the best", "ns", pair, [e.row.parts for e in pair])
        )
    if not whole and row.owners:
        panels.append(_bars("its memory at the peak", "bytes", [entry], [row.owners]))
    return panels


def _figures(results: "Outcome") -> Panel:
    entries = list(results)
    figures = [{"name": "candidates", "text": str(len(entries))}]
    if entries and entries[0].rank is not None and entries[0].value is not None:
        best = entries[0]
        value = results.objective.text(best.value or 0.0)
        name = results.objective.name.replace("_", " ")
        figures = [
            {"name": "best", "text": best.candidate.name, "id": "best"},
            {"name": name, "text": value, "id": "best_value"},
            *figures,
        ]
    return {"kind": "figures", "title": "Search", "figures": figures}


def _labels(results: "Outcome") -> list[dict[str, str]]:
    """Columns of the space."""
    names = list(results[0].candidate.labels) if len(results) else []
    return [{"name": name} for name in ("slice", *names)]


def _cells(entry: "Entry") -> list[str]:
    return [entry.candidate.config, *entry.candidate.labels.values()]


def _ranking(results: "Outcome", done: "Sequence[Entry]") -> list[Panel]:
    if not done:
        return []
    objective = results.objective.name
    figures = {"value": (objective.replace("_", " "), _UNITS.get(objective, "number"))}
    if objective != "step_time":
        figures["step_time_ns"] = ("step time", "ns")
    if objective != "mfu":
        figures["mfu"] = ("MFU", "share")
    figures["exposed_communication_ns"] = ("exposed", "ns")
    if objective != "peak_hbm":
        figures["peak_hbm_bytes"] = ("peak HBM", "bytes")

    finds = any(entry.found for entry in done)

    def cell(entry: "Entry", field: str) -> float | None:
        return _number(entry.value if field == "value" else getattr(entry.row, field), objective)

    return [
        {
            "kind": "table",
            "title": "ranking",
            "note": "The parts of a reason add up to what the candidate is behind by.",
            "columns": [
                {"name": "rank", "unit": "count"},
                *_labels(results),
                *({"name": name, "unit": unit} for name, unit in figures.values()),
                *([{"name": "mesh found"}] if finds else []),
                {"name": "why behind"},
            ],
            "rows": [
                [
                    e.rank,
                    *_cells(e),
                    *(cell(e, field) for field in figures),
                    *([e.found.best.mesh_text if e.found else ""] if finds else []),
                    e.reason,
                ]
                for e in done
            ],
            "opens": [e.candidate.name for e in done],
        }
    ]


def _number(value: float | None, objective: str) -> float | None:
    """Returns the number as JSON can have it; tokens with the digits of the terminal's table."""
    if value is None or not math.isfinite(value):
        return None
    if objective == "tokens_per_chip_second" and isinstance(value, float) and value >= 10_000:
        return round(value)
    return value


def _pareto(results: "Outcome", done: "Sequence[Entry]") -> Panel:
    objective = results.objective.name
    front = results.pareto()
    points = [
        {
            "x": entry.row.peak_hbm_bytes or 0,
            "y": value,
            "name": f"{entry.rank}: {entry.candidate.name}",
            "opens": entry.candidate.name,
            "why": entry.reason,
            "group": entry.candidate.config,
            "marked": entry in front,
            "label": " ".join([f"{entry.rank}:", *entry.candidate.labels.values()])
            if entry in front
            else "",
        }
        for entry in done
        if (value := _number(entry.value, objective)) is not None
    ]
    x = {"name": "peak HBM of a device", "unit": "bytes", "log": _is_wide(p["x"] for p in points)}
    name = objective.replace("_", " ")
    y = {"name": name, "unit": _UNITS.get(objective, "number")}
    return {
        "kind": "scatter",
        "title": "objective over memory",
        "note": "The line joins the candidates that nothing beats in both.",
        "x": x,
        "y": y | {"log": _is_wide(p["y"] for p in points)},
        "line": True,
        "points": points,
    }


def _is_wide(values: Iterable[float]) -> bool:
    """Whether small ones could not be told apart on a scale from zero."""
    known = list(values)
    return min(known) > 0 and max(known) > _WIDE * min(known)


def _bars(
    title: str, unit: str, entries: "Sequence[Entry]", values: "Sequence[dict[str, Any]]"
) -> Panel:
    parts = list(dict.fromkeys(part for parts in values for part in parts))
    return {
        "kind": "bars",
        "title": title,
        "unit": unit,
        "parts": parts,
        "rows": [
            {
                "name": f"{entry.rank}: {' '.join(_cells(entry))}",
                "values": [of.get(part, 0) for part in parts],
                "opens": entry.candidate.name,
            }
            for entry, of in zip(entries, values, strict=True)
        ],
    }


def _without_rank(results: "Outcome", status: Status) -> list[Panel]:
    entries = [entry for entry in results if entry.row.status is status]
    if not entries:
        return []
    return [
        {
            "kind": "table",
            "title": _WORDS[status],
            "columns": [
                *_labels(results),
                {"name": "arguments", "unit": "bytes"},
                {"name": "usable HBM", "unit": "bytes"},
                {"name": "why"},
            ],
            "rows": [
                [*_cells(e), e.row.argument_bytes, e.row.usable_hbm_bytes, e.reason]
                for e in entries
            ],
            "opens": [e.candidate.name for e in entries],
        }
    ]
