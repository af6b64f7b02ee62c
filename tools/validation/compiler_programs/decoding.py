"""A step of decoding through layers, with their caches in the forms that programs have them in.

Stacked, read by a scan and stacked again (xs and ys); stacked, carried through the loop and updated
there; an array per layer. The caller donates the caches, but in one of them.
"""

import jax
import jax.numpy as jnp
from jax import lax

from compiler_programs.registry import Spec, bf16, kernel, s32

Array = jax.Array
LAYERS, BATCH, HEADS, GROUP, SEQUENCE, HEAD = 4, 16, 8, 4, 2048, 128
WIDTH = HEADS * GROUP * HEAD
CACHE = (BATCH, HEADS, SEQUENCE, HEAD)
WEIGHTS = (
    bf16(LAYERS, WIDTH, WIDTH),
    bf16(LAYERS, WIDTH, HEADS * HEAD),
    bf16(LAYERS, WIDTH, HEADS * HEAD),
    bf16(LAYERS, WIDTH, WIDTH),
)
STACK = bf16(LAYERS, *CACHE)
TOKEN: tuple[Spec, ...] = (bf16(BATCH, WIDTH), s32())

Weights = tuple[Array, ...]


def layer(
    x: Array, weights: Weights, keys: Array, values: Array, position: Array
) -> tuple[Array, Array, Array]:
    """One token: writes a row of the caches, attends over all of them."""
    query, key, value, out = weights
    q = (x @ query).reshape(BATCH, HEADS, GROUP, HEAD)
    k = (x @ key).reshape(BATCH, HEADS, 1, HEAD)
    v = (x @ value).reshape(BATCH, HEADS, 1, HEAD)
    keys = lax.dynamic_update_slice_in_dim(keys, k, position, axis=2)
    values = lax.dynamic_update_slice_in_dim(values, v, position, axis=2)
    scores = jnp.einsum("bhgd,bhsd->bhgs", q, keys, preferred_element_type=jnp.float32)
    scores = jnp.where(jnp.arange(SEQUENCE) <= position, scores * HEAD**-0.5, -1e30)
    shares = jax.nn.softmax(scores).astype(values.dtype)
    mixed = jnp.einsum("bhgs,bhsd->bhgd", shares, values).reshape(BATCH, WIDTH)
    return x + mixed @ out, keys, values


def scanned(
    a: Array, b: Array, c: Array, d: Array, keys: Array, values: Array, x: Array, position: Array
) -> tuple[Array, Array, Array]:
    """Caches are what the scan maps."""

    def body(x: Array, of: tuple) -> tuple[Array, tuple[Array, Array]]:
        weights, keys, values = of
        x, keys, values = layer(x, weights, keys, values, position)
        return x, (keys, values)

    x, (keys, values) = lax.scan(body, x, ((a, b, c, d), keys, values))
    return x, keys, values


kernel(*WEIGHTS, STACK, STACK, *TOKEN, name="decode_scan", donate=(4, 5))(scanned)
kernel(*WEIGHTS, STACK, STACK, *TOKEN, name="decode_scan_kept")(scanned)


@kernel(*WEIGHTS, STACK, STACK, *TOKEN, donate=(4, 5))
def decode_carry(
    a: Array, b: Array, c: Array, d: Array, keys: Array, values: Array, x: Array, position: Array
) -> tuple[Array, Array, Array]:
    """Caches are carried; a layer takes its part out and puts it back."""

    def body(carry: tuple, of: tuple) -> tuple[tuple, None]:
        x, all_keys, all_values = carry
        weights, n = of
        keys = lax.dynamic_index_in_dim(all_keys, n, keepdims=False)
        values = lax.dynamic_index_in_dim(all_values, n, keepdims=False)
        x, keys, values = layer(x, weights, keys, values, position)
        all_keys = lax.dynamic_update_index_in_dim(all_keys, keys, n, 0)
        all_values = lax.dynamic_update_index_in_dim(all_values, values, n, 0)
        return (x, all_keys, all_values), None

    (x, keys, values), _ = lax.scan(body, (x, keys, values), ((a, b, c, d), jnp.arange(LAYERS)))
    return x, keys, values


@kernel(*WEIGHTS, *[bf16(*CACHE)] * 2 * LAYERS, *TOKEN, donate=tuple(range(4, 4 + 2 * LAYERS)))
def decode_layers(
    a: Array, b: Array, c: Array, d: Array, *rest: Array
) -> tuple[Array, list[Array], list[Array]]:
    """A cache per layer, layers written out."""
    caches, (x, position) = rest[:-2], rest[-2:]
    keys, values = list(caches[:LAYERS]), list(caches[LAYERS:])
    for n in range(LAYERS):
        weights = (a[n], b[n], c[n], d[n])
        x, keys[n], values[n] = layer(x, weights, keys[n], values[n], position)
    return x, keys, values
