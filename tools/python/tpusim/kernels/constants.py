"""Arrays of a traced program that are known: what tells a kernel which blocks to work on.

Kernels for sparse attention read tables ahead of their blocks: which blocks a mask leaves out,
which come next. They are constants of the program most of the time, but far from where the kernel
is called: handed through jit, shard_map, scan and differentiation, and computed on the way. A
`Scope` finds them on demand, from a use back to the constant.

Inside of a shard_map every device has its own part. Where the parts differ there is a scope for
each; `Scope.inside` gives all of them.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from tpusim.jax_internals import jaxprs
from tpusim.kernels.operations import CALLS, words

# Larger ones tell no kernel what to do.
_MOST_ELEMENTS = 1 << 24
# Devices that are told apart by what they know.
_MOST_SHARDS = 256
# What constants go through before a kernel reads them: tables of a mask are cut out, shifted,
# compared, counted. Integers and booleans only; what is made of data is not looked at.
_EVALUATED = words(
    "broadcast_in_dim reshape squeeze expand_dims transpose slice concatenate convert_element_type "
    "copy copy_p device_put sharding_constraint reshard mesh_cast pvary pcast optimization_barrier "
    "iota pad rev split tile dynamic_slice dynamic_update_slice gather scatter scatter-add "
    "scatter_add scatter_min scatter_max scatter_mul scatter-min scatter-max scatter-mul "
    "add sub mul div rem max min neg sign abs clamp select_n eq ne lt le gt ge and or xor not "
    "shift_left shift_right_logical shift_right_arithmetic integer_pow square "
    "reduce_sum reduce_max reduce_min reduce_prod reduce_and reduce_or argmax argmin "
    "cumsum cumprod cummax cummin sort population_count clz"
)

Known = np.ndarray | None
Given = Callable[[int], Known]


class Scope:
    """A jaxpr, and what is known of its operands."""

    def __init__(self, jaxpr: Any, consts: Sequence[Any] = (), given: Given = lambda _: None):
        self.jaxpr = jaxpr
        self._given = given
        self._operands = {variable: n for n, variable in enumerate(jaxpr.invars)}
        self._found: dict[Any, Known] = dict(
            zip(jaxpr.constvars, map(_constant, consts), strict=False)
        )
        self._made_by = {v: (e, n) for e in jaxpr.eqns for n, v in enumerate(e.outvars)}
        self._inside: dict[int, list[tuple[Mapping[str, int], Scope]]] = {}

    def value(self, atom: Any) -> Known:
        """The array, or None if it depends on data."""
        if hasattr(atom, "val"):
            return _constant(atom.val)
        if atom not in self._found:
            self._found[atom] = self._find(atom)
        return self._found[atom]

    def inside(self, equation: Any) -> Iterator[tuple[Any, list["Scope"]]]:
        """The jaxprs of an equation, each with a scope for every kind of device."""
        if equation.primitive.name == "shard_map":
            shards = self._shards(equation)
            yield shards[0][1].jaxpr, [scope for _, scope in shards]
            return
        inner = self._called(equation)
        if inner is not None:
            yield inner.jaxpr, [inner]
            return
        for jaxpr in jaxprs.inside(equation.params):
            yield jaxpr, [Scope(jaxpr)]

    def _find(self, variable: Any) -> Known:
        if variable in self._operands:
            return self._given(self._operands[variable])
        if variable not in self._made_by or math.prod(variable.aval.shape) > _MOST_ELEMENTS:
            return None
        equation, result = self._made_by[variable]
        name = equation.primitive.name
        if name == "shard_map":
            return self._gathered(equation, result)
        if name == "scan":
            return self._stacked(equation, result)
        if name in CALLS:
            inner = self._called(equation)
            return None if inner is None else inner.value(inner.jaxpr.outvars[result])
        if name not in _EVALUATED:
            return None
        operands = [self.value(v) for v in equation.invars]
        if any(v is None for v in operands):
            return None
        with jax.ensure_compile_time_eval():
            shaped = equation.primitive.bind(*operands, **equation.params)
        return np.asarray(shaped[result] if equation.primitive.multiple_results else shaped)

    def _called(self, equation: Any) -> "Scope | None":
        """Of a jaxpr that runs with the operands of the equation, once or as a loop."""
        name, params = equation.primitive.name, equation.params
        if name not in CALLS and name != "scan":
            return None
        if id(equation) not in self._inside:
            jaxpr = params["jaxpr" if name == "scan" else CALLS[name]]

            def given(n: int) -> Known:
                value = self.value(equation.invars[n]) if n < len(equation.invars) else None
                if name != "scan" or value is None or n < params["num_consts"]:
                    return value
                # What a scan goes through is known if all rows are the same.
                carried = n < params["num_consts"] + params["num_carry"]
                alike = not carried and len(value) > 0 and bool((value == value[:1]).all())
                return value[0] if alike else None

            body = getattr(jaxpr, "jaxpr", jaxpr)
            scope = Scope(body, getattr(jaxpr, "consts", ()), given)
            self._inside[id(equation)] = [({}, scope)]
        return self._inside[id(equation)][0][1]

    def _stacked(self, equation: Any, result: int) -> Known:
        inner = self._called(equation)
        if inner is None or result < equation.params["num_carry"]:
            return None
        row = inner.value(inner.jaxpr.outvars[result])
        if row is None:
            return None
        return np.broadcast_to(row, (equation.params["length"], *row.shape))

    def _shards(self, equation: Any) -> list[tuple[Mapping[str, int], "Scope"]]:
        """By the coordinates along those axes of the mesh whose devices know different things."""
        if id(equation) in self._inside:
            return self._inside[id(equation)]
        params = equation.params
        jaxpr, sizes = params["jaxpr"], dict(params["mesh"].shape)
        body = getattr(jaxpr, "jaxpr", jaxpr)
        axes: dict[str, None] = {}
        for operand, spec in zip(equation.invars, params["in_specs"], strict=True):
            integers = np.issubdtype(getattr(operand.aval, "dtype", float), np.integer)
            whole = self.value(operand) if integers and any(spec) else None
            if whole is None:
                continue
            parts = [_part(whole, spec, sizes, at) for at in _places(_axes_of(spec), sizes)]
            if any(not np.array_equal(parts[0], part) for part in parts):
                axes |= dict.fromkeys(_axes_of(spec))
        told_apart = math.prod(sizes[a] for a in axes) <= _MOST_SHARDS

        def given_at(at: Mapping[str, int]) -> Given:
            def given(n: int) -> Known:
                spec = params["in_specs"][n]
                if not told_apart and any(a in axes for a in _axes_of(spec)):
                    return None
                whole = self.value(equation.invars[n])
                return None if whole is None else _part(whole, spec, sizes, at)

            return given

        places = _places(tuple(axes) if told_apart else (), sizes)
        consts = getattr(jaxpr, "consts", ())
        shards = [(at, Scope(body, consts, given_at(at))) for at in places]
        self._inside[id(equation)] = shards
        return shards

    def _gathered(self, equation: Any, result: int) -> Known:
        sizes = dict(equation.params["mesh"].shape)
        spec = equation.params["out_specs"][result]
        shards = self._shards(equation)
        whole = np.zeros(equation.outvars[result].aval.shape, np.int64)
        for at, scope in shards:
            local = scope.value(scope.jaxpr.outvars[result])
            if local is None:
                return None
            free = tuple(axis for axis in _axes_of(spec) if axis not in at)
            for rest in _places(free, sizes):
                _part(whole, spec, sizes, {**at, **rest})[...] = local
        return whole.astype(local.dtype)


def _constant(value: Any) -> Known:
    array = np.asarray(value) if np.size(value) <= _MOST_ELEMENTS else None
    return array if array is not None and array.dtype.kind in "iub" else None


def _axes_of(spec: Any) -> tuple[str, ...]:
    return tuple(
        axis
        for entry in spec
        if entry is not None
        for axis in (entry if isinstance(entry, tuple) else (entry,))
    )


def _places(axes: Sequence[str], sizes: Mapping[str, int]) -> list[dict[str, int]]:
    ranges = itertools.product(*(range(sizes[axis]) for axis in axes))
    return [dict(zip(axes, place, strict=True)) for place in ranges]


def _part(
    whole: np.ndarray, spec: Any, sizes: Mapping[str, int], at: Mapping[str, int]
) -> np.ndarray:
    """A view of what one device has; axes that `at` does not name count as the first."""
    index: list[slice] = []
    for entry, extent in zip(spec, whole.shape, strict=False):
        axes = () if entry is None else entry if isinstance(entry, tuple) else (entry,)
        place, parts = 0, 1
        for axis in axes:
            place, parts = place * sizes[axis] + at.get(axis, 0), parts * sizes[axis]
        length = extent // parts
        index.append(slice(place * length, (place + 1) * length))
    return whole[tuple(index)]
