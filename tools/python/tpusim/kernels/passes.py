"""What a loop carries from pass to pass, where none of it is data.

Loops that copy ahead of what they compute (`pltpu.emit_pipeline` makes such loops) carry where they
are, and decide by that what to copy: the next block, if there is one and if it is another. With
what they carry known in every pass, so are these decisions.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tpusim.kernels.operations import CALLS
from tpusim.kernels.scalars import can_evaluate, evaluated

# Passes at all points of the grid, and operations evaluated on the way.
_MOST_PASSES, _MOST_OPERATIONS = 1 << 16, 1 << 18

Values = dict[Any, np.ndarray]


def happen(trips: np.ndarray) -> np.ndarray:
    """At which points the passes of a loop happen, first passes first; `trips` is by point."""
    most = int(trips.max(initial=0))
    each = [np.flatnonzero(trips > number) for number in range(most)]
    return np.concatenate(each) if each else np.zeros(0, np.int64)


def decides(jaxpr: Any) -> bool:
    """Whether what runs inside may depend on scalars."""
    for equation in jaxpr.eqns:
        name = equation.primitive.name
        if name in ("cond", "while", "dma_start"):
            return True
        inner = equation.params.get("jaxpr" if name == "scan" else CALLS.get(name, ""))
        if inner is not None and decides(getattr(inner, "jaxpr", inner)):
            return True
    return False


def carried(
    body: Any,
    formals: Sequence[Any],
    first: Mapping[Any, np.ndarray],
    known: Mapping[Any, np.ndarray],
    trips: np.ndarray,
) -> Values | None:
    """Of what a loop carries (`formals`), the values in all passes, as they happen.

    `first` are those before the loop, `known` what does not change in it. Only what is made of
    nothing but these is in the result. None if there are too many passes.
    """
    results = dict(zip(formals, body.outvars, strict=False))
    open_formals = [formal for formal in formals if formal in first]
    while True:
        equations, made = _evaluable(body, {*open_formals, *known})
        still = [f for f in open_formals if hasattr(results[f], "val") or results[f] in made]
        if len(still) == len(open_formals):
            break
        open_formals = still
    equations = _leading_to([results[f] for f in open_formals], equations)
    most = int(trips.max(initial=0))
    if trips.sum() > _MOST_PASSES or most * len(equations) > _MOST_OPERATIONS:
        return None
    now = {formal: first[formal] for formal in open_formals}
    rows: dict[Any, list[np.ndarray]] = {formal: [trips[:0]] for formal in open_formals}
    for number in range(most):
        for formal, values in now.items():
            rows[formal].append(values[trips > number])
        scope = {**known, **now}
        _evaluate(equations, scope, len(trips))
        now = {f: _value(results[f], scope, len(trips)) for f in open_formals}
    return {formal: np.concatenate(parts) for formal, parts in rows.items()}


def _evaluable(jaxpr: Any, known: set[Any]) -> tuple[list[Any], set[Any]]:
    """The equations that need nothing but what is known, and all that is known with them."""
    known = set(known)
    equations = []
    for equation in jaxpr.eqns:
        if not all(hasattr(v, "val") or v in known for v in equation.invars):
            continue
        inner = _called(equation)
        if inner is not None:
            inside, _ = _evaluable(inner, set(inner.invars))
            if len(inside) < len(inner.eqns) or inner.constvars:
                continue
        elif not can_evaluate(equation):
            continue
        equations.append(equation)
        known.update(equation.outvars)
    return equations, known


def _leading_to(results: Sequence[Any], equations: Sequence[Any]) -> list[Any]:
    """Those equations that are needed."""
    wanted = {result for result in results if not hasattr(result, "val")}
    needed = []
    for equation in reversed(equations):
        if wanted.intersection(equation.outvars):
            needed.append(equation)
            wanted.update(v for v in equation.invars if not hasattr(v, "val"))
    return needed[::-1]


def _called(equation: Any) -> Any | None:
    inner = equation.params.get(CALLS.get(equation.primitive.name, ""))
    return getattr(inner, "jaxpr", inner)


def _evaluate(equations: Sequence[Any], scope: Values, points: int) -> None:
    for equation in equations:
        operands = [_value(v, scope, points) for v in equation.invars]
        inner = _called(equation)
        if inner is None:
            scope[equation.outvars[0]] = evaluated(equation, operands)
            continue
        inside = dict(zip(inner.invars, operands, strict=True))
        _evaluate(inner.eqns, inside, points)
        for outer, result in zip(equation.outvars, inner.outvars, strict=True):
            scope[outer] = _value(result, inside, points)


def _value(atom: Any, scope: Values, points: int) -> np.ndarray:
    return np.full(points, atom.val) if hasattr(atom, "val") else scope[atom]
