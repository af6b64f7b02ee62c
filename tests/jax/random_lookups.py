"""Makers of random programs: reading and writing at places that are data."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from random_draft import Draft, Step, Value, maker_of


def places(x: Any, size: int, count: int) -> Any:
    """At most `count` indices, some of them outside of [0, size), from an array of integers."""
    return (x.reshape(-1)[:count].astype(jnp.int32) % np.int32(size + 3)) - 1


def indices(draft: Draft) -> int:
    """A value of integers, with a dimension that may be split."""
    draft.preferred = None
    n = draft.pick(lambda v: v.is_int and v.rank > 0) if draft.chance(0.7) else None
    return draft.operand((draft.size(16),), jnp.int32) if n is None else n


@maker_of(lambda v: v.rank > 0)
def take(draft: Draft, i: int) -> Step | None:
    axis = draft.dimension(i)
    size = draft.values[i].shape[axis]
    n, count = indices(draft), draft.integer(1, 17)
    mode = draft.choose(["clip", "fill", "wrap"])

    def compute(x: Any, index: Any) -> Any:
        fill = {"fill_value": 1} if mode == "fill" else {}
        return jnp.take(x, places(index, size, count), axis, mode=mode, **fill)

    return Step(f"take {axis} {mode}", (i, n), compute, exact=True)


@maker_of(lambda v: v.is_int and 0 < v.rank < 3 and v.elements <= 256)
def embed(draft: Draft, i: int) -> Step | None:
    """Rows of a table, at places that keep the shape and so the sharding of their array."""
    rows, width = draft.size(), draft.size(16)
    table = draft.operand((rows, width), draft.choose([jnp.float32, jnp.bfloat16]))
    return Step(
        f"embed {rows} {width}",
        (table, i),
        lambda t, x: t[x.astype(jnp.int32) % np.int32(rows)],
        exact=True,
    )


@maker_of(lambda v: v.rank > 1)
def take_two(draft: Draft, i: int) -> Step | None:
    """x[a, :, b] or so: places of several dimensions at once."""
    value, first = draft.values[i], draft.dimension(i)
    second = (first + draft.integer(1, value.rank)) % value.rank
    n, count = indices(draft), draft.integer(1, 17)

    def compute(x: Any, index: Any) -> Any:
        at: list[Any] = [slice(None)] * value.rank
        at[first] = places(index, value.shape[first], count)
        at[second] = places(index // 7, value.shape[second], count)
        return x.at[tuple(at)].get(mode="clip")

    return Step(f"take {first} and {second}", (i, n), compute, exact=True)


@maker_of(lambda v: v.rank > 0)
def take_along(draft: Draft, i: int) -> Step | None:
    value, axis = draft.values[i], draft.dimension(i)

    def fits(v: Value) -> bool:
        same = v.is_int and v.rank == value.rank
        return same and all(
            a == b for d, (a, b) in enumerate(zip(v.shape, value.shape, strict=True)) if d != axis
        )

    draft.preferred = None
    n = draft.pick(fits)
    if n is None:
        shape = (*value.shape[:axis], draft.size(8), *value.shape[axis + 1 :])
        n = draft.operand(shape, jnp.int32)
    size = np.int32(value.shape[axis])
    return Step(
        f"take_along {axis}",
        (i, n),
        lambda x, index: jnp.take_along_axis(x, index.astype(jnp.int32) % size, axis),
        exact=True,
    )


@maker_of(lambda v: v.rank > 0 and v.is_number)
def scatter(draft: Draft, i: int) -> Step | None:
    value, axis = draft.values[i], draft.dimension(i)
    n, count = indices(draft), draft.integer(1, 17)
    exact = ["max", "min"]
    name = draft.choose([*exact, "add"] if value.is_float else [*exact, "add", "multiply"])
    size, scale = value.shape[axis], np.asarray(0.25 if value.is_float else 3, value.dtype)
    shape = list(value.shape)
    shape[axis] = min(count, int(np.prod(draft.values[n].shape)))
    u = draft.operand(shape, value.dtype)

    def compute(x: Any, index: Any, updates: Any) -> Any:
        at: list[Any] = [slice(None)] * value.rank
        at[axis] = places(index, size, count)
        return getattr(x.at[tuple(at)], name)(updates * scale)

    return Step(f"scatter {name} {axis}", (i, n, u), compute)


@maker_of(lambda v: v.rank > 0)
def scatter_set(draft: Draft, i: int) -> Step | None:
    """To different places: which of several counts is nobody's business."""
    value, axis = draft.values[i], draft.dimension(i)
    size = value.shape[axis]
    count = draft.integer(1, size + 1)
    draft.preferred = None
    n = draft.pick(lambda v: v.is_int and v.shape == (size,))
    n = draft.operand((size,), jnp.int32) if n is None else n
    shape = list(value.shape)
    shape[axis] = count
    u = draft.operand(shape, value.dtype)

    def compute(x: Any, index: Any, updates: Any) -> Any:
        at: list[Any] = [slice(None)] * value.rank
        # The last one lies beyond, and is dropped.
        at[axis] = jnp.argsort(index)[:count] + (index[0].astype(jnp.int32) & 1)
        return x.at[tuple(at)].set(updates, mode="drop", unique_indices=True)

    return Step(f"scatter set {axis} {count}", (i, n, u), compute, exact=True)


@maker_of(lambda v: v.rank > 0)
def gather_windows(draft: Draft, i: int) -> Step | None:
    """Several slices of one array, at places that are data."""
    value, axis = draft.values[i], draft.dimension(i)
    size = value.shape[axis]
    width, n, count = draft.integer(1, size + 1), indices(draft), draft.integer(1, 5)
    dims = tuple(range(1, value.rank + 1))
    numbers = lax.GatherDimensionNumbers(
        offset_dims=dims, collapsed_slice_dims=(), start_index_map=(axis,)
    )
    sizes = [width if d == axis else s for d, s in enumerate(value.shape)]

    def compute(x: Any, index: Any) -> Any:
        starts = places(index, size, count)[:, None]
        return lax.gather(x, starts, numbers, sizes, mode="clip")

    return Step(f"gather windows {axis} {width}", (i, n), compute, exact=True)
