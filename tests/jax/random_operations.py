"""Makers of random programs: operations that read or write at computed places, slide or sort.

`random_programs` says what a maker is, and runs them; importing this module registers these.
"""

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import random_programs
from jax import lax
from random_programs import MAX_ELEMENTS, Random, Step, Value, choose, is_number, maker, pick

__all__ = ["random_programs"]


def is_exact(value: Value) -> bool:
    """Two programs agree on the order of its elements."""
    return is_number(value) and not (value.is_float and value.computed)


def dimension(random: Random, value: Value) -> int:
    return int(random.integers(value.rank))


def places(x: Any, size: int, count: int) -> Any:
    """At most `count` indices, some of them outside of [0, size), from an array of integers."""
    return (x.reshape(-1)[:count] % np.int32(size + 3)) - 1


@maker
def roll(random: Random, values: Sequence[Value]) -> Step | None:
    i = pick(random, values, lambda v: v.rank > 0)
    if i is None:
        return None
    axis = dimension(random, values[i])
    shift = int(random.integers(-values[i].shape[axis], 2 * values[i].shape[axis]))
    return Step(f"roll {axis} {shift}", (i,), lambda x: jnp.roll(x, shift, axis))


@maker
def wrap(random: Random, values: Sequence[Value]) -> Step | None:
    i = pick(random, values, lambda v: v.rank > 0)
    if i is None:
        return None
    axis = dimension(random, values[i])
    width = [(0, 0)] * values[i].rank
    width[axis] = (int(random.integers(4)), int(random.integers(4)))
    return Step(f"wrap {axis} {width[axis]}", (i,), lambda x: jnp.pad(x, width, mode="wrap"))


@maker
def cumulative(random: Random, values: Sequence[Value]) -> Step | None:
    i = pick(random, values, lambda v: v.rank > 0 and is_number(v))
    if i is None:
        return None
    axis, reverse = dimension(random, values[i]), bool(random.random() < 0.3)
    table = {"cummax": lax.cummax, "cummin": lax.cummin}
    if values[i].is_int:
        table |= {"cumsum": lax.cumsum, "cumprod": lax.cumprod}
    name = choose(random, list(table))
    return Step(f"{name} {axis}", (i,), lambda x: table[name](x, axis=axis, reverse=reverse))


@maker
def argmax(random: Random, values: Sequence[Value]) -> Step | None:
    i = pick(random, values, lambda v: v.rank > 0 and is_exact(v))
    if i is None:
        return None
    axis = dimension(random, values[i])
    function = choose(random, [jnp.argmax, jnp.argmin])
    return Step(f"argmax {axis}", (i,), lambda x: function(x, axis=axis))


@maker
def sort(random: Random, values: Sequence[Value]) -> Step | None:
    i = pick(random, values, lambda v: v.rank > 0 and is_exact(v))
    if i is None:
        return None
    axis = dimension(random, values[i])
    function = choose(random, [jnp.sort, jnp.argsort])
    return Step(f"{function.__name__} {axis}", (i,), lambda x: function(x, axis=axis))


@maker
def top_k(random: Random, values: Sequence[Value]) -> Step | None:
    i = pick(random, values, lambda v: v.rank > 0 and is_exact(v))
    if i is None:
        return None
    k, part = int(random.integers(1, values[i].shape[-1] + 1)), int(random.integers(2))
    return Step(f"top_k {k}", (i,), lambda x: lax.top_k(x, k)[part])


@maker
def take(random: Random, values: Sequence[Value]) -> Step | None:
    i = pick(random, values, lambda v: v.rank > 0)
    n = pick(random, values, lambda v: v.is_int and v.rank > 0)
    if i is None or n is None:
        return None
    axis, count = dimension(random, values[i]), int(random.integers(1, 17))
    mode = choose(random, ["clip", "fill", "wrap"])
    size = values[i].shape[axis]

    def compute(x: Any, index: Any) -> Any:
        fill = {"fill_value": 1} if mode == "fill" else {}
        return jnp.take(x, places(index, size, count), axis, mode=mode, **fill)

    return Step(f"take {axis} {mode}", (i, n), compute)


@maker
def take_along(random: Random, values: Sequence[Value]) -> Step | None:
    i = pick(random, values, lambda v: v.rank > 0)
    if i is None:
        return None
    value, axis = values[i], dimension(random, values[i])

    def fits(v: Value) -> bool:
        same = v.is_int and v.rank == value.rank
        return same and all(
            a == b for d, (a, b) in enumerate(zip(v.shape, value.shape, strict=True)) if d != axis
        )

    n = pick(random, values, fits)
    if n is None:
        return None
    size = np.int32(value.shape[axis])
    return Step(
        f"take_along {axis}", (i, n), lambda x, index: jnp.take_along_axis(x, index % size, axis)
    )


@maker
def scatter(random: Random, values: Sequence[Value]) -> Step | None:
    i = pick(random, values, lambda v: v.rank > 0 and is_number(v))
    n = pick(random, values, lambda v: v.is_int and v.rank > 0)
    if i is None or n is None:
        return None
    value, count = values[i], int(random.integers(1, 17))
    name = choose(random, ["add", "max", "min"] if value.is_float else ["add", "multiply", "max"])
    size, scale = value.shape[0], np.asarray(0.25 if value.is_float else 3, value.dtype)

    def compute(x: Any, index: Any) -> Any:
        where = places(index, size, count)
        updates = jnp.concatenate([x] * (count // size + 1))[: where.shape[0]] * scale
        return getattr(x.at[where], name)(updates)

    return Step(f"scatter {name}", (i, n), compute)


@maker
def pool(random: Random, values: Sequence[Value]) -> Step | None:
    i = pick(random, values, lambda v: v.rank > 0 and is_exact(v))
    if i is None:
        return None
    value = values[i]
    window, stride, padding = [], [], []
    for extent in value.shape:
        size = min(int(random.integers(1, 4)), extent) if random.random() < 0.6 else 1
        window.append(size)
        stride.append(int(random.integers(1, 4)) if size > 1 else 1)
        padding.append(tuple(int(n) for n in random.integers(0, size, 2)))
    low = -np.inf if value.is_float else np.iinfo(value.dtype).min
    name = choose(random, ["max", "max gradient"] if value.dtype == jnp.float32 else ["max"])

    def forward(x: Any) -> Any:
        return lax.reduce_window(x, np.asarray(low, x.dtype), lax.max, window, stride, padding)

    def compute(x: Any) -> Any:
        if name == "max":
            return forward(x)
        result, gradient = jax.vjp(forward, x)
        return gradient(result)[0]

    return Step(f"pool {name} {window} {stride} {padding}", (i,), compute)


@maker
def convolution(random: Random, values: Sequence[Value]) -> Step | None:
    """(n, w, c): a window over w, c features in groups."""
    i = pick(random, values, lambda v: v.rank == 3 and is_number(v))
    if i is None:
        return None
    value = values[i]
    groups = choose(random, [1, 1, value.shape[2]])
    size, out = int(random.integers(1, 5)), groups * int(random.integers(1, 5))
    stride, dilation, holes = (int(n) for n in random.integers(1, 4, 3))
    padding = [tuple(int(n) for n in random.integers(0, 4, 2))]
    if (value.shape[1] - 1) * holes + 1 + sum(padding[0]) < (size - 1) * dilation + 1:
        return None
    if value.shape[0] * value.shape[1] * holes * out > MAX_ELEMENTS:
        return None
    shape = (size, value.shape[2] // groups, out)
    count = math.prod(shape)
    kernel = np.arange(count).reshape(shape) % 7 - 3
    if value.is_float:
        kernel = kernel / (4 * math.sqrt(count / out))

    def compute(x: Any) -> Any:
        return lax.conv_general_dilated(
            x,
            jnp.asarray(kernel, x.dtype),
            (stride,),
            padding,
            lhs_dilation=(holes,),
            rhs_dilation=(dilation,),
            dimension_numbers=("NWC", "WIO", "NWC"),
            feature_group_count=groups,
        )

    name = f"convolution {shape} by {stride} {padding} dilation {dilation} {holes} groups {groups}"
    return Step(name, (i,), compute)
