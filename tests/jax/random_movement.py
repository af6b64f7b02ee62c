"""Makers of random programs: operations that move, repeat, cut and join."""

import math

import jax.numpy as jnp
import numpy as np
from jax import lax
from random_draft import MAX_ELEMENTS, Draft, Step, Value, maker_of


def has_rank(value: Value) -> bool:
    return value.rank > 0


@maker_of(lambda v: v.rank < 4 and v.elements <= MAX_ELEMENTS)
def broadcast(draft: Draft, i: int) -> Step | None:
    value = draft.values[i]
    extent = draft.size(max(1, MAX_ELEMENTS // max(1, value.elements)))
    at = draft.integer(0, value.rank + 1)
    shape = (*value.shape[:at], extent, *value.shape[at:])
    kept = tuple(d for d in range(len(shape)) if d != at)
    return Step(
        f"broadcast {shape}", (i,), lambda x: lax.broadcast_in_dim(x, shape, kept), exact=True
    )


@maker_of(has_rank)
def reshape(draft: Draft, i: int) -> Step | None:
    dims = list(draft.values[i].shape)
    for _ in range(draft.integer(1, 3)):
        at = draft.integer(0, len(dims))
        divisors = [d for d in range(1, dims[at] + 1) if dims[at] % d == 0]
        if draft.chance(0.5) and len(dims) < 4:
            first = int(draft.choose(divisors))
            dims[at : at + 1] = [first, dims[at] // first]
        elif at + 1 < len(dims):
            dims[at : at + 2] = [dims[at] * dims[at + 1]]
    return Step(f"reshape {tuple(dims)}", (i,), lambda x: x.reshape(dims), exact=True)


@maker_of(lambda v: v.rank > 1)
def transpose(draft: Draft, i: int) -> Step | None:
    order = tuple(int(d) for d in draft.random.permutation(draft.values[i].rank))
    return Step(f"transpose {order}", (i,), lambda x: x.transpose(order), exact=True)


@maker_of(has_rank)
def slice_(draft: Draft, i: int) -> Step | None:
    cut = draft.dimensions(i)
    dims = []
    for d, extent in enumerate(draft.values[i].shape):
        if d not in cut:
            dims.append((0, extent, 1))
            continue
        start = draft.integer(0, extent) if draft.chance(0.6) else draft.integer(0, 2) % extent
        limit = draft.integer(start, extent) + 1 if draft.chance(0.6) else extent
        dims.append((start, limit, draft.choose([1, 1, 1, 2, 3])))
    starts, limits, strides = zip(*dims, strict=True)
    return Step(f"slice {dims}", (i,), lambda x: lax.slice(x, starts, limits, strides), exact=True)


@maker_of(lambda v: v.rank > 0 and v.elements <= MAX_ELEMENTS // 8)
def pad(draft: Draft, i: int) -> Step | None:
    changed = draft.dimensions(i)
    config = []
    for d, extent in enumerate(draft.values[i].shape):
        low, high = draft.integer(-2, 5), draft.integer(-2, 5)
        interior = draft.choose([0, 0, 1, 2])
        if d not in changed or low + high + extent + (extent - 1) * interior < 1:
            low = high = interior = 0
        config.append((low, high, interior))
    fill = np.asarray(1, draft.values[i].dtype)
    return Step(f"pad {config}", (i,), lambda x: lax.pad(x, fill, config), exact=True)


@maker_of(has_rank)
def reverse(draft: Draft, i: int) -> Step | None:
    dims = draft.dimensions(i)
    return Step(f"reverse {dims}", (i,), lambda x: lax.rev(x, dims), exact=True)


@maker_of(has_rank)
def concatenate(draft: Draft, i: int) -> Step | None:
    at, wanted = draft.dimension(i), draft.values[i]

    def without(shape: tuple[int, ...]) -> tuple[int, ...]:
        return (*shape[:at], *shape[at + 1 :])

    def fits(v: Value) -> bool:
        same = v.rank == wanted.rank and v.dtype == wanted.dtype
        return same and without(v.shape) == without(wanted.shape)

    draft.preferred = None
    parts = [i, draft.pick(fits)]
    if draft.chance(0.3):
        shape = (*wanted.shape[:at], draft.integer(1, 8), *wanted.shape[at + 1 :])
        parts[draft.integer(0, 2)] = draft.operand(shape, wanted.dtype)
    if draft.chance(0.3):
        parts.append(draft.pick(fits))
    chosen = tuple(p for p in parts if p is not None)
    return Step(f"concatenate {at}", chosen, lambda *x: lax.concatenate(x, at), exact=True)


@maker_of(has_rank)
def roll(draft: Draft, i: int) -> Step | None:
    axis = draft.dimension(i)
    size = draft.values[i].shape[axis]
    shift = draft.integer(-size, 2 * size)
    return Step(f"roll {axis} {shift}", (i,), lambda x: jnp.roll(x, shift, axis), exact=True)


@maker_of(has_rank)
def wrap(draft: Draft, i: int) -> Step | None:
    axis = draft.dimension(i)
    width = [(0, 0)] * draft.values[i].rank
    width[axis] = (draft.integer(0, 4), draft.integer(0, 4))
    mode = draft.choose(["wrap", "edge", "reflect"]) if draft.values[i].shape[axis] > 4 else "edge"
    name = f"{mode} {axis} {width[axis]}"
    return Step(name, (i,), lambda x: jnp.pad(x, width, mode=mode), exact=True)


@maker_of(has_rank)
def dynamic_slice(draft: Draft, i: int) -> Step | None:
    cut, value = draft.dimensions(i), draft.values[i]
    draft.preferred = None
    n = draft.pick(lambda v: v.is_int and v.rank == 0)
    sizes = [draft.integer(1, s + 1) if d in cut else s for d, s in enumerate(value.shape)]
    starts = [draft.integer(-2, s + 2) for s in value.shape]

    def compute(x, *index):
        # Around the dimension's ends, so that the start is clamped now and then.
        moved = index[0].astype(jnp.int32) % 3 if index else 0
        return lax.dynamic_slice(x, [np.int32(s) + moved for s in starts], sizes)

    name = f"dynamic_slice {starts} {sizes}"
    return Step(name, (i,) if n is None else (i, n), compute, exact=True)


@maker_of(has_rank)
def dynamic_update_slice(draft: Draft, i: int) -> Step | None:
    value, cut = draft.values[i], draft.dimensions(i)

    def fits(v: Value) -> bool:
        smaller = v.rank == value.rank and v.dtype == value.dtype
        return smaller and all(a <= b for a, b in zip(v.shape, value.shape, strict=True))

    draft.preferred = None
    j = draft.pick(fits)
    if j is None or j == i:
        shape = [draft.integer(1, s + 1) if d in cut else s for d, s in enumerate(value.shape)]
        j = draft.operand(shape, value.dtype)
    n = draft.pick(lambda v: v.is_int and v.rank == 0)
    starts = [draft.integer(-2, s + 2) for s in value.shape]

    def compute(x, y, *index):
        moved = index[0].astype(jnp.int32) % 3 if index else 0
        return lax.dynamic_update_slice(x, y, [np.int32(s) + moved for s in starts])

    operands = (i, j) if n is None else (i, j, n)
    return Step(f"dynamic_update_slice {starts}", operands, compute, exact=True)


@maker_of(lambda v: v.rank > 0 and v.elements <= MAX_ELEMENTS // 2)
def tile(draft: Draft, i: int) -> Step | None:
    axis, count = draft.dimension(i), draft.integer(2, 4)
    reps = [1] * draft.values[i].rank
    reps[axis] = count
    limit = 2 * MAX_ELEMENTS
    if math.prod(draft.values[i].shape) * count > limit:
        return None
    return Step(f"tile {axis} {count}", (i,), lambda x: jnp.tile(x, reps), exact=True)
