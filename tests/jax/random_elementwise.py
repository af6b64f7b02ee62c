"""Makers of random programs: operations on single elements."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from random_draft import Draft, Step, maker_of


@maker_of()
def unary(draft: Draft, i: int) -> Step | None:
    value = draft.values[i]
    moved = {"negative": jnp.negative, "abs": jnp.abs}
    floats = {
        "tanh": jnp.tanh,
        "sin": jnp.sin,
        "cos": jnp.cos,
        "logistic": jax.nn.sigmoid,
        "exp": lambda x: jnp.exp(-jnp.abs(x)),
        "rsqrt": lambda x: lax.rsqrt(1 + x * x),
        "log": lambda x: jnp.log(jnp.abs(x) + 0.5),
        "log1p": lambda x: jnp.log1p(jnp.abs(x)),
        "erf": lax.erf,
        "cbrt": jnp.cbrt,
        "reciprocal": lambda x: 1 / (1 + jnp.abs(x)),
        "softplus": jax.nn.softplus,
        "gelu": jax.nn.gelu,
    } | moved
    ints = {"not": jnp.bitwise_not, "sign": jnp.sign, "ones": lax.population_count, "clz": lax.clz}
    table = floats if value.is_float else {**ints, **moved} if value.is_int else {}
    name = draft.choose(list(table) or ["not"])
    function = table.get(name, jnp.logical_not)
    return Step(name, (i,), function, exact=name in moved)


@maker_of()
def binary(draft: Draft, i: int) -> Step | None:
    value = draft.values[i]
    draft.preferred = None
    j = draft.pick(lambda v: v.shape == value.shape and v.dtype == value.dtype)
    if j is None or (j == i and draft.chance(0.3)):
        j = draft.operand(value.shape, value.dtype)
    common = {"add": lambda x, y: x + y, "subtract": lambda x, y: x - y, "multiply": jnp.multiply}
    exact = {"maximum": jnp.maximum, "minimum": jnp.minimum}
    floats = {
        "divide": lambda x, y: x / (1 + y * y),
        "atan2": lambda x, y: jnp.arctan2(x, 2 + y * y),
        "power": lambda x, y: (1 + jnp.abs(x)) ** jnp.tanh(y),
    }
    bits = {"and": jnp.bitwise_and, "or": jnp.bitwise_or, "xor": jnp.bitwise_xor}
    shifts = {
        "shift": lambda x, y: lax.shift_right_logical(x, y & 7),
        "remainder": lambda x, y: lax.rem(x, y | 1),
        "divide": lambda x, y: lax.div(x, (y & 7) + 1),
    }
    table = bits
    if value.is_float:
        table = {**common, **exact, **floats}
    elif value.is_int:
        table = {**bits, **common, **exact, **shifts}
    name = draft.choose(list(table))
    return Step(name, (i, j), table[name], exact=name in exact)


@maker_of(lambda v: v.is_exact)
def compare(draft: Draft, i: int) -> Step | None:
    bound = np.asarray(0, draft.values[i].dtype)
    function = draft.choose([jnp.greater, jnp.less_equal, jnp.not_equal])
    return Step("compare", (i,), lambda x: function(x, bound), exact=True)


@maker_of(lambda v: v.is_number)
def select(draft: Draft, i: int) -> Step | None:
    shape = draft.values[i].shape
    draft.preferred = None
    p = draft.pick(lambda v: v.dtype == jnp.bool_ and v.shape in (shape, ()))
    if p is None:
        p = draft.operand(shape, jnp.bool_)
    return Step("select", (i, p), lambda x, c: jnp.where(c, x, -x), exact=True)


@maker_of(lambda v: v.is_number)
def clamp(draft: Draft, i: int) -> Step | None:
    value = draft.values[i]
    if draft.chance(0.5):
        return Step("clamp", (i,), lambda x: jnp.clip(x, 0, 2), exact=True)
    draft.preferred = None
    b = draft.pick(lambda v: v.dtype == value.dtype and v.shape in (value.shape, ()))
    if b is None:
        return None
    exact = draft.values[b].is_exact
    return Step("clamp to value", (i, b), lambda x, y: jnp.minimum(x, y), exact=exact)


@maker_of()
def convert(draft: Draft, i: int) -> Step | None:
    value = draft.values[i]
    if value.is_int:
        # Small integers, so that floats stay near one.
        to = draft.choose([jnp.float32, jnp.bfloat16, jnp.int32, jnp.uint8, jnp.bool_])
        if not jnp.issubdtype(to, jnp.floating):
            return Step(f"convert to {to.__name__}", (i,), lambda x: x.astype(to), exact=True)
        return Step("to float", (i,), lambda x: (x % 17).astype(to) / 16)
    if value.is_float:
        # Integers of exact values only: a rounding would move them by one.
        to = jnp.bfloat16 if value.dtype == jnp.float32 else jnp.float32
        if value.is_exact and draft.chance(0.4):
            return Step("to int", (i,), lambda x: (x * 8).astype(jnp.int32), exact=True)
        return Step("convert", (i,), lambda x: x.astype(to), exact=to == jnp.float32)
    to = draft.choose([jnp.float32, jnp.int32, jnp.uint8])
    return Step("from bool", (i,), lambda x: x.astype(to), exact=True)


@maker_of(lambda v: v.rank > 0 and v.is_int)
def iota(draft: Draft, i: int) -> Step | None:
    value, at = draft.values[i], draft.dimension(i)
    return Step(
        f"add iota {at}", (i,), lambda x: x + lax.broadcasted_iota(value.dtype, value.shape, at)
    )


@maker_of(lambda v: v.rank > 0 and v.is_number)
def random_bits(draft: Draft, i: int) -> Step | None:
    value, seed = draft.values[i], draft.integer(0, 1000)
    draft.preferred = None
    n = draft.pick(lambda v: v.is_int and v.rank == 0)

    def compute(x: jax.Array, *number: jax.Array) -> jax.Array:
        key = jax.random.key(seed)
        if number:
            key = jax.random.fold_in(key, number[0])
        if value.is_int:
            return x ^ jax.random.bits(key, x.shape, jnp.uint8).astype(x.dtype)
        return x * jax.random.bernoulli(key, 0.7, x.shape).astype(x.dtype)

    return Step("random bits", (i,) if n is None else (i, n), compute, exact=True)
