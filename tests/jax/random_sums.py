"""Makers of random programs: operations that bring many elements together, or order them."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from random_draft import MAX_ELEMENTS, Draft, Step, Value, maker_of


def is_ordered(value: Value) -> bool:
    """Two programs agree on the order of its elements."""
    return value.rank > 0 and value.is_number and value.is_exact


@maker_of(lambda v: v.rank > 0 and v.is_number)
def dot(draft: Draft, i: int) -> Step | None:
    left = draft.values[i]
    liked = draft.dimension(i)
    draft.preferred = None

    def fits(v: Value) -> bool:
        return v.rank > 0 and v.dtype == left.dtype and left.shape[liked] in v.shape

    j = draft.pick(fits)
    if j is None or (j == i and draft.chance(0.5)) or draft.chance(0.3):
        shape = [draft.size(12) for _ in range(draft.integer(0, 3))]
        shape.insert(draft.integer(0, len(shape) + 1), left.shape[liked])
        j = draft.operand(shape, left.dtype)
    right = draft.values[j]
    pairs = [
        (a, b)
        for a in range(left.rank)
        for b in range(right.rank)
        if left.shape[a] == right.shape[b]
    ]
    order = [pairs[int(at)] for at in draft.random.permutation(len(pairs))]
    order.sort(key=lambda pair: pair[0] != liked)
    contract: list[tuple[int, int]] = []
    batch: list[tuple[int, int]] = []
    for a, b in order:
        if any(a == c or b == d for c, d in contract + batch):
            continue
        if not contract and not (batch or draft.chance(0.1)):
            contract.append((a, b))
        elif draft.chance(0.5):
            batch.append((a, b))
        elif draft.chance(0.4):
            contract.append((a, b))
    free = [d for n, d in enumerate(left.shape) if all(n != a for a, _ in contract)]
    free += [d for n, d in enumerate(right.shape) if all(n != b for _, b in contract + batch)]
    summed = math.prod(left.shape[a] for a, _ in contract)
    if len(free) > 4 or math.prod(free) > MAX_ELEMENTS or math.prod(free) * summed > 1 << 20:
        return None
    dims: Any = tuple(tuple(zip(*p, strict=True)) if p else ((), ()) for p in (contract, batch))

    def compute(x: Any, y: Any) -> Any:
        product = lax.dot_general(x, y, dims, preferred_element_type=x.dtype)
        return product if left.is_int else product / np.asarray(math.sqrt(summed), left.dtype)

    return Step(f"dot {dims}", (i, j), compute)


@maker_of(lambda v: v.rank == 2 and v.dtype == jnp.float32)
def ragged_dot(draft: Draft, i: int) -> Step | None:
    rows, summed = draft.values[i].shape
    groups, out = draft.integer(1, 9), draft.size(12)
    draft.preferred = None
    weights = draft.operand((groups, summed, out), jnp.float32)
    counts = draft.random.multinomial(rows, [1 / groups] * groups)
    return Step(
        f"ragged_dot {groups}",
        (i, weights),
        lambda x, w: lax.ragged_dot(x, w, jnp.asarray(counts, jnp.int32)) / math.sqrt(summed),
    )


@maker_of(lambda v: v.rank > 0)
def reduce(draft: Draft, i: int) -> Step | None:
    value, dims = draft.values[i], draft.dimensions(i)
    scale = math.sqrt(math.prod(value.shape[d] for d in dims))
    exact = {"max": jnp.max, "min": jnp.min}
    table: dict[str, Any]
    if value.is_float:
        table = exact | {
            "sum": lambda x, axis: jnp.sum(x / np.asarray(scale, x.dtype), axis=axis),
            "prod": lambda x, axis: jnp.prod(jnp.cos(x), axis=axis),
            "mean": jnp.mean,
            "softmax": lambda x, axis: jax.nn.softmax(x, axis=axis),
            "logsumexp": lambda x, axis: jax.nn.logsumexp(x, axis=axis),
            "norm": lambda x, axis: jnp.sqrt(jnp.mean(x * x, axis=axis)),
        }
    elif value.is_int:
        table = exact | {
            "sum": lambda x, axis: jnp.sum(x, axis=axis, dtype=x.dtype),
            "prod": lambda x, axis: jnp.prod(x, axis=axis, dtype=x.dtype),
        }
    else:
        table = {"any": jnp.any, "all": jnp.all}
        table["count"] = lambda x, axis: jnp.sum(x, axis=axis, dtype=jnp.int32)
    name = draft.choose(list(table))
    function = table[name]
    # A max over padding of zeros must not hide that all others are negative.
    change = draft.choose(["", "below", "above"]) if name in ("max", "min") else ""

    def compute(x: Any) -> Any:
        if change:
            x = jnp.minimum(x, 0) if change == "below" else jnp.maximum(x, 1)
        return function(x, axis=dims)

    return Step(f"{name} over {dims} {change}".strip(), (i,), compute, exact=name in exact)


@maker_of(lambda v: v.rank > 0 and v.dtype in (jnp.int32, jnp.float32) and v.is_exact)
def reduce_with(draft: Draft, i: int) -> Step | None:
    """Other functions and initial values than the usual ones; several arrays at once."""
    value, dims = draft.values[i], draft.dimensions(i)
    kind = draft.choose(["max from 1", "first two", "sum and max"])
    if kind == "max from 1":
        one = np.asarray(1, value.dtype)
        return Step(kind, (i,), lambda x: lax.reduce(x, one, lax.max, dims), exact=True)
    low = -np.inf if value.is_float else np.iinfo(value.dtype).min
    low, zero = np.asarray(low, value.dtype), np.asarray(0, np.int32)

    def two(a: Any, b: Any) -> Any:
        (first, second), (third, fourth) = a, b
        least = lax.min(first, third)
        return lax.max(first, third), lax.max(least, lax.max(second, fourth))

    def both(a: Any, b: Any) -> Any:
        return a[0] + b[0], lax.max(a[1], b[1])

    def compute(x: Any) -> Any:
        if kind == "first two":
            lows = jnp.full_like(x, low)
            return lax.reduce((x, lows), (low, low), two, dims)[1]
        number = (x * 4).astype(jnp.int32)
        total, most = lax.reduce((number, x), (zero, low), both, dims)
        return jnp.where(total > 0, most, -most)

    if kind == "first two" and math.prod(value.shape[d] for d in dims) < 2:
        return None
    return Step(f"{kind} {dims}", (i,), compute, exact=True)


@maker_of(lambda v: v.rank > 0 and v.is_number)
def cumulative(draft: Draft, i: int) -> Step | None:
    value, axis, reverse = draft.values[i], draft.dimension(i), draft.chance(0.4)
    exact = {"cummax": lax.cummax, "cummin": lax.cummin}
    table: dict[str, Any] = dict(exact)
    if value.is_int:
        table |= {"cumsum": lax.cumsum, "cumprod": lax.cumprod}
    elif value.dtype == jnp.float32:
        table |= {"cumlogsumexp": lax.cumlogsumexp, "cumsum": lax.cumsum}
    name = draft.choose(list(table))
    function = table[name]
    return Step(
        f"{name} {axis} {'reverse' if reverse else ''}",
        (i,),
        lambda x: function(x, axis=axis, reverse=reverse),
        exact=name in exact,
    )


@maker_of(is_ordered)
def argmax(draft: Draft, i: int) -> Step | None:
    axis = draft.dimension(i)
    function = draft.choose([jnp.argmax, jnp.argmin])
    return Step(f"argmax {axis}", (i,), lambda x: function(x, axis=axis), exact=True)


@maker_of(is_ordered)
def sort(draft: Draft, i: int) -> Step | None:
    axis, value = draft.dimension(i), draft.values[i]
    kind = draft.choose(["sort", "argsort", "descending", "pair", "two keys"])
    if kind in ("pair", "two keys"):
        draft.preferred = None
        j = draft.pick(lambda v: v.shape == value.shape and v.is_number and v.is_exact)
        keys, part = (2 if kind == "two keys" else 1), draft.integer(0, 2)
        return Step(
            f"sort {kind} {axis}",
            (i, i if j is None else j),
            lambda x, y: lax.sort((x, y), axis, is_stable=True, num_keys=keys)[part],
            exact=True,
        )
    table = {
        "sort": lambda x: jnp.sort(x, axis=axis),
        "argsort": lambda x: jnp.argsort(x, axis=axis),
        "descending": lambda x: jnp.sort(x, axis=axis, descending=True),
    }
    return Step(f"{kind} {axis}", (i,), table[kind], exact=True)


@maker_of(is_ordered)
def top_k(draft: Draft, i: int) -> Step | None:
    k, part = draft.integer(1, draft.values[i].shape[-1] + 1), draft.integer(0, 2)
    return Step(f"top_k {k}", (i,), lambda x: lax.top_k(x, k)[part], exact=True)


@maker_of(lambda v: is_ordered(v) and v.dtype in (jnp.float32, jnp.int32))
def pool(draft: Draft, i: int) -> Step | None:
    value, liked = draft.values[i], draft.dimensions(i)
    window, stride, padding = [], [], []
    for d, extent in enumerate(value.shape):
        size = min(draft.integer(2, 5), extent) if d in liked else 1
        window.append(size)
        stride.append(draft.integer(1, 4) if size > 1 else 1)
        padding.append((draft.integer(0, size), draft.integer(0, size)))
    names = ["max", "min", "sum"]
    if value.is_float:
        names += ["max gradient", "max gradient", "dilated"]
    name = draft.choose(names)
    low = -np.inf if value.is_float else np.iinfo(value.dtype).min
    high = np.inf if value.is_float else np.iinfo(value.dtype).max

    def forward(x: Any) -> Any:
        function, start = {"min": (lax.min, high), "sum": (lax.add, 0)}.get(name, (lax.max, low))
        extra: dict[str, Any] = {}
        if name == "dilated":
            extra = {"base_dilation": [2 if n > 1 else 1 for n in window]}
        return lax.reduce_window(
            x, np.asarray(start, x.dtype), function, window, stride, padding, **extra
        )

    def compute(x: Any) -> Any:
        if name != "max gradient":
            return forward(x)
        result, gradient = jax.vjp(forward, x)
        return gradient(jnp.where(jnp.isfinite(result), jnp.sin(result), 0))[0]

    if name in ("max", "min", "dilated") and value.is_float:
        # Windows in padding only give the initial value.
        inner = compute

        def compute(x: Any) -> Any:
            result = inner(x)
            return jnp.where(jnp.isfinite(result), result, 0)

    exact = name in ("max", "min", "dilated")
    name = f"pool {name} {window} {stride} {padding}"
    return Step(name, (i,), compute, exact=exact)


@maker_of(lambda v: v.rank in (3, 4) and v.dtype in (jnp.float32, jnp.int32))
def convolution(draft: Draft, i: int) -> Step | None:
    """(n, w, c) or (n, h, w, c): windows over the middle, features and batches in groups."""
    value = draft.values[i]
    spatial = value.rank - 2
    batch, features = value.shape[0], value.shape[-1]
    groups = draft.choose([1, 1, 1, features])
    batches = draft.choose([1, 1, 1, batch]) if groups == 1 else 1
    sizes, strides, padding, dilations, holes = [], [], [], [], []
    for extent in value.shape[1:-1]:
        size, dilation = draft.integer(1, 5), draft.choose([1, 1, 1, 2, 3])
        # XLA on CPU reads beyond the array where padding is negative.
        hole, low = draft.choose([1, 1, 1, 2, 3]), max(0, draft.integer(-1, 4))
        pads = (low, draft.integer(0, 4))
        if (extent - 1) * hole + 1 + sum(pads) < (size - 1) * dilation + 1:
            return None
        sizes.append(size)
        strides.append(draft.choose([1, 1, 2, 3]))
        padding.append(pads)
        dilations.append(dilation)
        holes.append(hole)
    out = groups * batches * draft.integer(1, 5)
    if value.elements * math.prod(holes) * out // features > MAX_ELEMENTS:
        return None
    shape = (*sizes, features // groups, out)
    draft.preferred = None
    kernel = draft.operand(shape, value.dtype)
    scale = math.sqrt(math.prod(shape) / out)
    letters = "HW"[2 - spatial :]
    numbers = (f"N{letters}C", f"{letters}IO", f"N{letters}C")
    if draft.chance(0.2):
        numbers = (f"N{letters}C", f"{letters}IO", f"{letters}NC")

    def compute(x: Any, w: Any) -> Any:
        result = lax.conv_general_dilated(
            x,
            w,
            strides,
            padding,
            lhs_dilation=holes,
            rhs_dilation=dilations,
            dimension_numbers=numbers,
            feature_group_count=groups,
            batch_group_count=batches,
        )
        return result if value.is_int else result / scale

    name = f"convolution {shape} by {strides} {padding} dilation {dilations} {holes}"
    return Step(f"{name} groups {groups} {batches}", (i, kernel), compute)


@maker_of(lambda v: v.rank > 0 and v.dtype == jnp.float32)
def fft(draft: Draft, i: int) -> Step | None:
    axis = draft.dimension(i)
    if draft.chance(0.5):
        return Step(f"rfft {axis}", (i,), lambda x: jnp.abs(jnp.fft.rfft(x, axis=axis)))

    def compute(x: Any) -> Any:
        return jnp.fft.ifft(jnp.fft.fft(x, axis=axis) * 2, axis=axis).real

    return Step(f"fft {axis}", (i,), compute)


@maker_of(lambda v: v.rank in (2, 3) and v.dtype == jnp.float32 and v.shape[-2] <= 12)
def factorise(draft: Draft, i: int) -> Step | None:
    """Cholesky factors of x x' + n, or a triangular system of them."""
    n = draft.values[i].shape[-2]
    kind = draft.choose(["cholesky", "solve left", "solve right"])

    def compute(x: Any) -> Any:
        x = jnp.tanh(x)
        square = jnp.einsum("...ik,...jk->...ij", x, x) / x.shape[-1] + 2 * jnp.eye(n)
        if kind == "cholesky":
            return lax.linalg.cholesky(square)
        lower = jnp.tril(square)
        if kind == "solve left":
            return lax.linalg.triangular_solve(lower, x, left_side=True, lower=True)
        transposed = jnp.swapaxes(x, -1, -2)
        return lax.linalg.triangular_solve(lower, transposed, lower=True)

    return Step(kind, (i,), compute)
