"""The programs inside of a program, and how much it computes."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from jax.extend import core


def inside(params: Mapping[str, Any]) -> Iterator[Any]:
    """The jaxprs, not closed, among the parameters of an equation; branches are in tuples."""
    for value in params.values():
        for part in value if isinstance(value, tuple | list) else (value,):
            if isinstance(part, core.Jaxpr):
                yield part
            elif isinstance(part, core.ClosedJaxpr):
                yield part.jaxpr


def kernels(program: Any) -> bool:
    """Whether a jaxpr calls a Pallas kernel, which runs on TPUs alone."""
    return any(
        equation.primitive.name == "pallas_call" or any(map(kernels, inside(equation.params)))
        for equation in program.eqns
    )


def work(program: Any) -> float:
    """Returns about how many operations a jaxpr computes; loops on data count once.

    It tells a step from what prepares or evaluates it, and is no cost of anything.
    """
    return sum(map(_work_of, program.eqns))


def _work_of(equation: Any) -> float:
    params = equation.params
    if parts := list(inside(params)):
        counts = [params.get("length", 1), *getattr(params.get("grid_mapping"), "grid", ())]
        times = math.prod(count for count in counts if isinstance(count, int))
        return times * sum(map(work, parts))
    results = max((math.prod(v.aval.shape) for v in equation.outvars if _is_array(v)), default=0)
    if equation.primitive.name == "dot_general":
        (contracted, _), _ = params["dimension_numbers"]
        shape = equation.invars[0].aval.shape
        return 2.0 * results * math.prod(shape[dimension] for dimension in contracted)
    if equation.primitive.name == "conv_general_dilated":
        kernel, features = equation.invars[1].aval.shape, params["dimension_numbers"].rhs_spec[0]
        return 2.0 * results * math.prod(kernel) / max(kernel[features], 1)
    return float(results)


def _is_array(variable: Any) -> bool:
    return all(isinstance(size, int) for size in getattr(variable.aval, "shape", ("none",)))
