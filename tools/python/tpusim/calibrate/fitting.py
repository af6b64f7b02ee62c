"""Least squares over the operations of a profile.

An operation of the simulation takes s_i(p), that of the profile m_i; the residual is s_i / m_i - 1.
Parameters vary as logarithms, so all of them are relative. Residuals far from zero, of operations
that the simulator has otherwise than the chip, count by their size and not by its square (the loss
"soft_l1" of scipy).

What the profile determines: let J be the derivatives of the residuals. A parameter can be told from
the others as far as its column of J is not a combination of theirs; that part, over the size of a
residual, is one over the standard error. If that is too large, or if the best value is at the edge
of what is possible, the parameter is not determined and stays what it was.
"""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
from scipy.optimize import least_squares

from tpusim.calibrate.parameters import Fitted, Parameter

Vector = npt.NDArray[np.float64]
# Simulated times of the operations, for each of several sets of values.
Simulate = Callable[[Sequence[Sequence[float]]], list[Vector]]

# Derivatives are taken over a step of so much.
_STEP = 0.02
# Residuals beyond it count by their size.
_OUTLIER = 0.05
# No measurement is better.
_NOISE = 0.005
# A standard error of more is no determination.
_MOST_ERROR = 0.05
# So close to the edge of what is possible the optimum is beyond.
_EDGE = 1e-3


class _Problem:
    """Residuals and derivatives as functions of the logarithms of some parameters."""

    def __init__(self, simulate: Simulate, measured: Vector, values: Vector, free: list[int]):
        self._simulate = simulate
        self._measured = measured
        self._values = values
        self._free = free
        self._known: dict[bytes, Vector] = {}

    def residuals(self, logs: Vector) -> Vector:
        self._run([logs])
        return self._known[logs.tobytes()]

    def jacobian(self, logs: Vector) -> Vector:
        # Efficiencies are at most 1, so the step goes down.
        points = [logs - _STEP * unit for unit in np.eye(len(logs))]
        self._run([logs, *points])
        here = self._known[logs.tobytes()]
        columns = [(here - self._known[point.tobytes()]) / _STEP for point in points]
        return np.stack(columns, axis=1)

    def _run(self, points: list[Vector]) -> None:
        new = {p.tobytes(): p for p in points if p.tobytes() not in self._known}
        sets = []
        for point in new.values():
            values = self._values.copy()
            values[self._free] = np.exp(point)
            sets.append(values.tolist())
        for key, simulated in zip(new, self._simulate(sets), strict=True):
            self._known[key] = simulated / self._measured - 1


def _noise(residuals: Vector) -> float:
    """The middle of what remains, not its mean square: outliers are no noise."""
    return max(1.4826 * float(np.median(np.abs(residuals))), _NOISE)


def _standard_errors(jacobian: Vector, noise: float) -> list[float | None]:
    """Relative, of every parameter; None where no residual depends on it."""
    errors: list[float | None] = []
    for j in range(jacobian.shape[1]):
        column, others = jacobian[:, j], np.delete(jacobian, j, axis=1)
        if np.linalg.norm(column) < _NOISE:
            errors.append(None)
            continue
        if others.shape[1]:
            column = column - others @ np.linalg.lstsq(others, column, rcond=None)[0]
        alone = float(np.linalg.norm(column))
        errors.append(noise / alone if alone > 0 else float("inf"))
    return errors


def _why_not(parameter: Parameter, value: float, error: float | None) -> str:
    if error is None:
        return "no operation depends on it"
    room = np.log(parameter.highest / parameter.lowest)
    if np.log(value / parameter.lowest) < _EDGE * room:
        return f"operations ask for less than {parameter.lowest:g}"
    if np.log(parameter.highest / value) < _EDGE * room:
        return f"operations ask for more than {parameter.highest:g}"
    if error > _MOST_ERROR:
        shown = "" if error > 1 else f" (+-{100 * error:.0f}%)"
        return f"its effect cannot be told from that of the others{shown}"
    return ""


def fit(
    parameters: Sequence[Parameter], before: Sequence[float], measured: Vector, simulate: Simulate
) -> list[Fitted]:
    """The parameters that `measured`, times of operations, determine.

    `simulate` gives the times of the same operations for several sets of values. A parameter that
    is not determined keeps its value, and the others are fitted again.
    """
    lowest = np.array([p.lowest for p in parameters])
    highest = np.array([p.highest for p in parameters])
    values = np.clip(np.array(before, dtype=np.float64), lowest, highest)
    start = values.copy()
    found: list[Fitted | None] = [None] * len(parameters)
    free = list(range(len(parameters)))

    def refuse(errors: list[float | None], at: Vector) -> None:
        for i, value, error in zip(list(free), at, errors, strict=True):
            if why := _why_not(parameters[i], float(value), error):
                found[i] = Fitted(parameters[i], before[i], before[i], error, why)
                free.remove(i)

    while free:
        problem = _Problem(simulate, measured, start, free)
        logs = np.log(start[free])
        # What is at the edge to begin with may come away from it.
        inside = np.clip(logs, np.log(lowest[free]) + _EDGE, np.log(highest[free]) - _EDGE)
        # How far the simulation is off before the fit says nothing of what remains after it.
        errors = _standard_errors(problem.jacobian(inside), _NOISE)
        before_fit = len(free)
        middle = np.sqrt(lowest[free] * highest[free])
        refuse(errors, middle)
        if len(free) < before_fit:
            continue
        solution = least_squares(
            problem.residuals,
            inside,
            jac=problem.jacobian,
            bounds=(np.log(lowest[free]), np.log(highest[free])),
            loss="soft_l1",
            f_scale=_OUTLIER,
            xtol=1e-5,
            ftol=1e-9,
            gtol=1e-12,
            max_nfev=50,
        )
        remains = _noise(problem.residuals(solution.x))
        errors = _standard_errors(problem.jacobian(solution.x), remains)
        refuse(errors, np.exp(solution.x))
        if len(free) < before_fit:
            continue
        for i, log, error in zip(free, solution.x, errors, strict=True):
            found[i] = Fitted(parameters[i], before[i], float(np.exp(log)), error)
        break
    return [f for f in found if f is not None]
