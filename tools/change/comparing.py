"""Differences of two snapshots: program by program, by how much, and from which stage on."""

import collections
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from tools.change.measuring import Row

# A line of the table names these of the report.
_FIELDS = 3
# Heading of each figure in the table; all but collectives are told as a change in percent.
_HEADINGS = {
    "step_ns": "step",
    "peak_bytes": "peak",
    "collectives": "collectives",
    "collective_ns": "their time",
    "events": "events",
}


@dataclasses.dataclass(frozen=True)
class Difference:
    """A program that is not what it was."""

    program: str
    before: Row | None  # None: the program is new
    after: Row | None  # None: the program is gone

    @property
    def figures(self) -> dict[str, tuple[float, float]]:
        """The figures that changed, before and after."""
        if not self.before or not self.after:
            return {}
        old, new = self.before.figures, self.after.figures
        return {n: (old[n], new[n]) for n in old if n in new and old[n] != new[n]}

    @property
    def report(self) -> list[str]:
        """Fields of the report that changed."""
        return _unequal(self.before.report, self.after.report) if self._both_ran else []

    @property
    def stages(self) -> list[str]:
        """Stages and passes whose output changed, or that changed the module only once."""
        return _unequal(self.before.stages, self.after.stages) if self._both_ran else []

    @property
    def first_stage(self) -> str:
        """The first stage at which the programs differ; "" if they have the same streams."""
        if not self.before or not self.after:
            return ""
        old, new = list(self.before.stages.items()), list(self.after.stages.items())
        for (old_name, old_digest), (new_name, new_digest) in zip(old, new, strict=False):
            if old_name != new_name:
                # A pass changes the module in one of them and not in the other.
                return new_name if new_name not in self.before.stages else old_name
            if old_digest != new_digest:
                return old_name
        return ""

    @property
    def step_change(self) -> float:
        """The change of the step time, as a share."""
        return _change(*self.figures.get("step_ns", (1, 1)))

    @property
    def _both_ran(self) -> bool:
        return bool(self.before and self.after and not self.before.error and not self.after.error)

    def said(self) -> str:
        """A sentence about the program as a whole, or ""."""
        if self.before is None:
            return "new"
        if self.after is None:
            return "gone"
        if self.after.error:
            return self.after.error if self.after.error != self.before.error else ""
        return "did not run before" if self.before.error else ""

    def as_json(self) -> dict[str, Any]:
        """Returns the difference for programs that read it."""
        return {
            "program": self.program,
            "said": self.said(),
            "figures": {name: {"before": a, "after": b} for name, (a, b) in self.figures.items()},
            "first_stage": self.first_stage,
            "stages": self.stages,
            "report": self.report,
        }


def differences(before: Mapping[str, Row], after: Mapping[str, Row]) -> list[Difference]:
    """Returns the differences of programs in either snapshot, those that changed most first."""
    rows = [
        Difference(name, before.get(name), after.get(name))
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    ]
    return sorted(rows, key=lambda row: -abs(row.step_change))


def table(rows: Sequence[Difference]) -> str:
    """A line per program, with the columns in which any of them differs."""
    figures = [name for name in _HEADINGS if any(name in row.figures for row in rows)]
    header = ["program", *(_HEADINGS[name] for name in figures), "first stage", "report"]
    lines = [header, *(_cells(row, figures) for row in rows)]
    # The last column is as long as it is.
    widths = [max(map(len, column)) for column in list(zip(*lines, strict=True))[:-1]]
    return "\n".join(
        "  ".join([*map(str.ljust, line, widths), line[-1]]).rstrip() for line in lines
    )


def summary(rows: Sequence[Difference], compared: int, name: str) -> str:
    """Summarises how many differ, where they part, and which step changed most."""
    text = f"{len(rows)} of {compared} programs differ from {name}"
    stages = collections.Counter(row.first_stage for row in rows if row.first_stage)
    if stages:
        text += "; first at " + ", ".join(f"{each} {n}" for each, n in stages.most_common())
    if rows and rows[0].step_change:
        text += f"; most in step time: {_percent(rows[0].step_change)}, {rows[0].program}"
    return text


def _cells(row: Difference, figures: Sequence[str]) -> list[str]:
    cells = [row.program]
    for name in figures:
        old, new = row.figures.get(name, (0, 0))
        plain = name == "collectives" or not old
        cells.append(
            "" if old == new else f"{old:g} -> {new:g}" if plain else _percent(new / old - 1)
        )
    return [*cells, row.first_stage or "-", row.said() or _some(row.report)]


def _some(fields: Sequence[str]) -> str:
    more = len(fields) - _FIELDS
    return ", ".join([*fields[:_FIELDS], *([f"{more} more"] if more > 0 else [])])


def _change(old: float, new: float) -> float:
    return new / old - 1 if old else 0.0


def _percent(share: float) -> str:
    # What differs must not be shown as nothing.
    return f"{share:+.2%}" if abs(share) >= 5e-5 else f"{share:+.0e}"


def _unequal(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    return [name for name in {**old, **new} if old.get(name) != new.get(name)]
