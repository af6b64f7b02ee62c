"""Makers of random programs: constraints, regions per device, and operations with a body."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec
from random_draft import (
    Draft,
    Place,
    Step,
    Value,
    composite,
    constrained,
    extend,
    maker_of,
    random_spec,
)

Body = Callable[..., Any]


@maker_of(lambda v: v.rank > 0)
def constraint(draft: Draft, i: int) -> Step | None:
    even = draft.explicit or draft.chance(0.5)
    spec = random_spec(
        draft.random,
        draft.mesh,
        draft.values[i].shape,
        even,
        open_dims=not draft.explicit,
        without=draft.taken,
    )
    return Step(
        f"constraint {spec}",
        (i,),
        lambda place, x: constrained(place, x, spec),
        exact=True,
        needs_place=True,
    )


def body_of(draft: Draft, values: list[Value], count: int, taken: tuple[str, ...] = ()) -> Any:
    """(function of a place and these values, value it gives, draft), or None."""
    inner = draft.inner(values, taken)
    extend(inner, count)
    if not inner.nodes or not isinstance(inner.nodes[-1], Step):
        return None
    steps = [n for n in inner.nodes if isinstance(n, Step)]

    def run(place: Place, *operands: Any) -> Any:
        known = list(operands)
        for step in steps:
            known.append(step.run(place, known))
        return known[-1]

    return run, inner.values[-1], steps


def inner_name(steps: list[Step]) -> str:
    return "[" + "; ".join(s.name for s in steps) + "]"


def single(draft: Draft, fits: Callable[[Value], bool], count: int) -> Any:
    """A body of one value and perhaps another: (operands, run, value, steps)."""
    i = draft.pick(fits)
    if i is None:
        return None
    draft.preferred = None
    operands = [i]
    j = draft.pick(lambda v: v.rank == draft.values[i].rank)
    if j is not None and j != i:
        operands.append(j)
    made = body_of(draft, [draft.values[k] for k in operands], count)
    return None if made is None else (tuple(operands), *made)


@composite
def jitted(draft: Draft) -> Step | None:
    made = single(draft, lambda v: True, draft.integer(1, 4))
    if made is None:
        return None
    operands, run, result, steps = made

    def compute(place: Place, *x: Any) -> Any:
        return jax.jit(lambda *y: run(place, *y))(*x)

    return Step(
        f"jit {inner_name(steps)}",
        operands,
        compute,
        exact=result.is_exact,
        needs_place=True,
        manual=any(s.manual for s in steps),
    )


@composite
def gradient(draft: Draft) -> Step | None:
    """Makes a step of the gradient of a body, perhaps with recomputation."""
    made = single(draft, lambda v: v.dtype == jnp.float32 and v.rank > 0, draft.integer(1, 4))
    if made is None:
        return None
    operands, run, result, steps = made
    remat = draft.chance(0.4)
    if not result.is_float or any(s.manual for s in steps):
        return None

    def compute(place: Place, x: Any, *others: Any) -> Any:
        def function(y: Any) -> Any:
            return run(place, y, *others)

        value, back = jax.vjp(jax.checkpoint(function) if remat else function, x)
        return back(jnp.sin(value.astype(jnp.float32)).astype(value.dtype))[0]

    name = f"gradient {'with remat ' if remat else ''}{inner_name(steps)}"
    return Step(name, operands, compute, needs_place=True)


def mapped_values(draft: Draft, leading: bool) -> Any:
    """Values that have a dimension of one size, and which."""
    i = draft.pick(lambda v: v.rank > 0 and max(v.shape) > 1)
    if i is None:
        return None
    axis = 0 if leading else draft.dimension(i)
    size = draft.values[i].shape[axis]
    operands, axes = [i], [axis]
    for j, value in enumerate(draft.values):
        dims = [d for d, n in enumerate(value.shape) if n == size and (d == 0 or not leading)]
        if j != i and dims and len(operands) < 3 and draft.chance(0.4):
            operands.append(j)
            axes.append(draft.choose(dims))

    def without(j: int, axis: int) -> Value:
        value = draft.values[j]
        uneven = tuple(d - (d > axis) for d in value.uneven if d != axis)
        shape = (*value.shape[:axis], *value.shape[axis + 1 :])
        return Value(shape, value.dtype, value.computed, uneven)

    virtual = [without(j, a) for j, a in zip(operands, axes, strict=True)]
    return size, tuple(operands), tuple(axes), virtual


@composite
def mapped(draft: Draft) -> Step | None:
    found = mapped_values(draft, leading=False)
    if found is None:
        return None
    _, operands, axes, virtual = found
    draft.preferred = None
    made = body_of(draft, virtual, draft.integer(1, 3))
    if made is None or any(s.manual for s in made[2]):
        return None
    run, result, steps = made
    out = draft.integer(0, result.rank + 1)

    def compute(place: Place, *x: Any) -> Any:
        return jax.vmap(lambda *y: run(place, *y), axes, out)(*x)

    name = f"vmap {axes} {inner_name(steps)}"
    return Step(name, operands, compute, exact=result.is_exact, needs_place=True)


@composite
def scan(draft: Draft) -> Step | None:
    found = mapped_values(draft, leading=True)
    if found is None or found[0] > 16:
        return None
    _, operands, _, virtual = found
    draft.preferred = None
    made = body_of(draft, virtual, draft.integer(1, 4))
    if made is None:
        return None
    run, result, steps = made
    which, reverse = draft.integer(0, 3), draft.chance(0.3)

    def compute(place: Place, *x: Any) -> Any:
        def body(carry: Any, rows: Any) -> Any:
            value = run(place, *rows)
            joined = carry | value if result.dtype == jnp.bool_ else jnp.maximum(carry, value)
            return joined, (value, carry)

        start = jnp.zeros(result.shape, result.dtype)
        last, (values, carries) = lax.scan(body, start, x, reverse=reverse)
        return (last, values, carries)[which]

    return Step(
        f"scan {inner_name(steps)}",
        operands,
        compute,
        exact=result.is_exact,
        needs_place=True,
        manual=any(s.manual for s in steps),
    )


def summary(value: Any) -> Any:
    """One number of an array; exact."""
    return value.any() if value.dtype == jnp.bool_ else value.max()


@composite
def loop(draft: Draft) -> Step | None:
    """A carry that keeps its shape: elements change by something of the whole body's value."""
    made = single(draft, lambda v: v.rank > 0, draft.integer(1, 4))
    if made is None:
        return None
    operands, run, result, steps = made
    count, data = draft.integer(1, 4), draft.chance(0.2)
    first = draft.values[operands[0]]

    def compute(place: Place, x: Any, *others: Any) -> Any:
        def body(_: Any, carry: Any) -> Any:
            value = run(place, carry, *others)
            if value.shape == x.shape and value.dtype == x.dtype:
                return value
            seen = summary(value)
            if first.dtype == jnp.bool_:
                return carry ^ (seen if value.dtype == jnp.bool_ else seen > 0)
            limited = jnp.minimum(carry, seen.astype(carry.dtype))
            return jnp.maximum(-carry, limited) if first.is_float else carry ^ limited

        if data:
            return lax.while_loop(
                lambda state: state[0] < count, lambda s: (s[0] + 1, body(0, s[1])), (0, x)
            )[1]
        return lax.fori_loop(0, count, body, x)

    return Step(
        f"loop {count} {inner_name(steps)}",
        operands,
        compute,
        exact=result.is_exact and (result.is_number or not first.is_float),
        needs_place=True,
        manual=any(s.manual for s in steps),
    )


@composite
def branch(draft: Draft) -> Step | None:
    made = single(draft, lambda v: True, draft.integer(1, 3))
    if made is None:
        return None
    operands, run, result, steps = made
    draft.preferred = None
    n = draft.pick(lambda v: v.is_int and v.rank == 0)
    n = draft.operand((), jnp.int32) if n is None else n
    ways = draft.integer(2, 4)

    def compute(place: Place, number: Any, *x: Any) -> Any:
        def changed(*y: Any) -> Any:
            value = run(place, *y)
            return lax.rev(value, tuple(range(value.ndim))) if value.ndim else value

        def constant(*y: Any) -> Any:
            # Of its operand: XLA's reader of modules expects branches to have one.
            kept = summary(y[0]) != summary(y[0])
            return jnp.where(kept, jnp.zeros(result.shape, result.dtype), 1).astype(result.dtype)

        branches = [lambda *y: run(place, *y), changed, constant][:ways]
        number = number.astype(jnp.int32)
        if ways == 2:
            return lax.cond(number % 2 == 0, *branches, *x)
        return lax.switch(number % ways, branches, *x)

    return Step(
        f"switch {ways} {inner_name(steps)}",
        (n, *operands),
        compute,
        exact=result.is_exact,
        needs_place=True,
        manual=any(s.manual for s in steps),
    )


@composite
def region(draft: Draft) -> Step | None:
    """A shard_map over all or some axes: a body per device, around or behind a collective."""
    free = [a for a in draft.mesh if a not in draft.taken]
    i = draft.pick(lambda v: v.rank > 0 and v.is_number)
    if i is None or not free or draft.taken:
        return None
    value = draft.values[i]
    names = [a for a in free if draft.chance(0.6)] or [draft.choose(free)]
    without = [a for a in draft.mesh if a not in names]
    spec = random_spec(draft.random, draft.mesh, value.shape, even=True, without=without)
    used = [(d, a) for d, axes in enumerate(spec) if axes for a in axes]
    if not used:
        return None
    counts = [math.prod(draft.mesh[a] for a in axes or ()) for axes in spec]
    shape = tuple(n // k for n, k in zip(value.shape, counts, strict=True))
    made = None
    virtual = Value(shape, value.dtype, value.computed)
    if draft.chance(0.6):
        made = body_of(draft, [virtual], draft.integer(1, 3), taken=tuple(names))
        if made is None:
            return None
    run, result, steps = made or (lambda place, x: x, virtual, [])
    # XLA's CPU compiler ends the process for sums of bf16 that leave axes to it.
    if not result.is_number or (without and result.dtype == jnp.bfloat16):
        return None
    _, axis = used[draft.integer(0, len(used))]
    n, dim = draft.mesh[axis], draft.integer(0, max(result.rank, 1))
    kinds: dict[str, Body] = {
        "psum": lambda x: lax.psum(x, axis),
        "pmax": lambda x: lax.pmax(x, axis),
        "shift": lambda x: lax.ppermute(x, axis, [(k, (k + 1) % n) for k in range(n)]),
        "index": lambda x: x * lax.axis_index(axis).astype(x.dtype),
        "gather": lambda x: x + lax.all_gather(x, axis, axis=0).max(0),
        "all sum": lambda x: x + lax.psum(x, tuple(names)),
    }
    if result.rank:
        kinds["scatter"] = lambda x: lax.all_gather(
            lax.psum_scatter(x.repeat(n, dim), axis, scatter_dimension=dim, tiled=True),
            axis,
            axis=dim,
            tiled=True,
        )
        kinds["exchange"] = lambda x: lax.all_to_all(
            x.repeat(n, dim), axis, split_axis=dim, concat_axis=0, tiled=True
        )
    name = draft.choose(list(kinds))
    rank = max(result.rank, 1)
    out: list[Any] = [[] for _ in range(rank)]
    for a in names:
        out[draft.integer(0, rank)].append(a)
    out_spec = PartitionSpec(*(tuple(axes) or None for axes in out))

    def compute(place: Place, x: Any) -> Any:
        def body(y: Any) -> Any:
            z = kinds[name](run(place, y))
            return z if z.ndim else z[None]

        return jax.shard_map(
            body,
            mesh=place.mesh,
            in_specs=spec,
            out_specs=out_spec,
            axis_names=set(names),
            check_vma=False,
        )(x)

    exact = result.is_exact and (result.is_int or name in ("pmax", "shift"))
    return Step(
        f"shard_map {name} {axis} over {names} {spec} {inner_name(steps)}",
        (i,),
        compute,
        exact=exact,
        needs_place=True,
        manual=True,
    )


@maker_of(lambda v: v.rank > 0 and not v.is_float)
def scalar(draft: Draft, i: int) -> Step | None:
    """A number that others can use as an index or a predicate."""
    limit = np.int32(draft.integer(2, 9))
    return Step("scalar", (i,), lambda x: jnp.sum(x, dtype=jnp.int32) % limit, exact=True)
