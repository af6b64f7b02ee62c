"""Objectives: a figure of the row, its cost, and a lower bound of that before a simulation.

Every objective is brought to a cost, less of which is better, and which is in proportion to a sum
of parts (of the step, or of memory): so the reason why one candidate is behind another can be told
by its parts.
"""

import dataclasses
from collections.abc import Callable

from tpusim import quantities
from tpusim.errors import Error
from tpusim.report import Report
from tpusim.search.row import Row

NAMES = ("step_time", "tokens_per_chip_second", "mfu", "peak_hbm")


@dataclasses.dataclass(frozen=True)
class Objective:
    """`name` is one of NAMES or that of a function of the report."""

    name: str
    maximize: bool

    def value(self, row: Row, tokens: float | None) -> float:
        """In the objective's own unit, of a simulated row."""
        step = row.step_time_ns or 0.0
        match self.name:
            case "step_time":
                return step
            case "tokens_per_chip_second":
                return (tokens or 0.0) / ((row.chips or 1) * step * 1e-9)
            case "mfu":
                return row.mfu or 0.0
            case "peak_hbm":
                return float(row.peak_hbm_bytes or 0)
        return row.value if row.value is not None else float("nan")

    def cost(self, row: Row, tokens: float | None) -> float:
        """Less is better."""
        value = self.value(row, tokens)
        return -value if self.maximize else value

    def least_cost(self, row: Row, tokens: float | None) -> float | None:
        """Returns a lower bound of the cost; None if no bound is known."""
        if self.name == "peak_hbm":
            return None if row.argument_bytes is None else float(row.argument_bytes)
        known = self.name in ("step_time", "tokens_per_chip_second")
        if row.schedule_bound_ns is None or not known:
            return None
        least = max(row.schedule_bound_ns, row.hbm_bound_ns or 0.0)
        if self.name == "step_time":
            return least
        if least <= 0:
            return float("-inf")
        return self.cost(dataclasses.replace(row, step_time_ns=least), tokens)

    def text(self, value: float) -> str:
        """The value as people read it."""
        match self.name:
            case "step_time":
                return quantities.time(value)
            case "tokens_per_chip_second":
                return f"{value:,.4g}" if value < 10_000 else f"{value:,.0f}"
            case "mfu":
                return quantities.percent(value)
            case "peak_hbm":
                return quantities.size(value)
        return f"{value:.5g}"

    def bound_text(self, row: Row) -> str:
        """The bound of a row that was pruned by it."""
        if self.name == "peak_hbm":
            return f"the arguments alone take {quantities.size(row.argument_bytes or 0)}"
        schedule, hbm = row.schedule_bound_ns or 0.0, row.hbm_bound_ns or 0.0
        what = "matmuls and collectives" if schedule >= hbm else "reads of arguments from HBM"
        return f"its {what} alone take {quantities.time(max(schedule, hbm))}"


def objective_of(
    objective: str | Callable[[Report], float], maximize: bool | None
) -> tuple[Objective, Callable[[Report], float] | None]:
    """The objective and, if it is one, the function."""
    if callable(objective):
        name = getattr(objective, "__name__", "") or type(objective).__name__
        return Objective(name, bool(maximize)), objective
    if objective not in NAMES:
        raise Error(f"search: no objective {objective!r}; choose one of {', '.join(NAMES)}")
    usual = objective in ("tokens_per_chip_second", "mfu")
    if maximize not in (None, usual):
        raise Error(f"search: {objective} is {'maximized' if usual else 'minimized'} as it is")
    return Objective(objective, usual), None
