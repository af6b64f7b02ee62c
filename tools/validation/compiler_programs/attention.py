"""Attention: plain, with grouped queries, by blocks, its gradient, and one step with a cache."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental.pallas.ops.tpu.flash_attention import flash_attention

from compiler_programs.registry import bf16, kernel, s32

Array = jax.Array
HEADS = bf16(4, 8, 1024, 128)


def attend(q: Array, k: Array, v: Array, causal: bool = True) -> Array:
    """Attention of [batch, heads, sequence, head], with the softmax in float32."""
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k, preferred_element_type=jnp.float32)
    scores *= q.shape[-1] ** -0.5
    if causal:
        seen = jnp.arange(q.shape[2])[:, None] >= jnp.arange(k.shape[2])
        scores = jnp.where(seen, scores, -1e9)
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores).astype(v.dtype), v)


@kernel(HEADS, HEADS, HEADS)
def attention(q: Array, k: Array, v: Array) -> Array:
    """Without a mask."""
    return attend(q, k, v, causal=False)


@kernel(HEADS, HEADS, HEADS)
def attention_causal(q: Array, k: Array, v: Array) -> Array:
    """Attention with a causal mask."""
    return attend(q, k, v)


@kernel(HEADS, HEADS, HEADS)
def attention_gradient(q: Array, k: Array, v: Array) -> tuple[Array, ...]:
    """Attention with all gradients."""

    def loss(q: Array, k: Array, v: Array) -> Array:
        return jnp.sum(attend(q, k, v).astype(jnp.float32) ** 2)

    return jax.grad(loss, argnums=(0, 1, 2))(q, k, v)


@kernel(bf16(4, 1024, 8, 64), bf16(4, 1024, 8, 64), bf16(4, 1024, 8, 64))
def attention_heads_last(q: Array, k: Array, v: Array) -> Array:
    """Heads of 64 behind the sequence."""
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k, preferred_element_type=jnp.float32)
    shares = jax.nn.softmax(scores * q.shape[-1] ** -0.5).astype(v.dtype)
    return jnp.einsum("bhqk,bkhd->bqhd", shares, v)


@kernel(bf16(2, 2, 4, 1024, 128), bf16(2, 2, 1024, 128), bf16(2, 2, 1024, 128))
def attention_grouped(q: Array, k: Array, v: Array) -> Array:
    """Four queries share a key."""
    scores = jnp.einsum("bgnqd,bgkd->bgnqk", q, k, preferred_element_type=jnp.float32)
    shares = jax.nn.softmax(scores * q.shape[-1] ** -0.5).astype(v.dtype)
    return jnp.einsum("bgnqk,bgkd->bgnqd", shares, v)


@kernel(HEADS, HEADS, HEADS)
def attention_flash(q: Array, k: Array, v: Array) -> Array:
    """Flash attention in Pallas: the compiler has no estimate for it."""
    return flash_attention(q, k, v, causal=True, sm_scale=q.shape[-1] ** -0.5)


@kernel(bf16(1, 8, 4096, 128), bf16(1, 8, 4096, 128), bf16(1, 8, 4096, 128))
def attention_online(q: Array, k: Array, v: Array) -> Array:
    """Flash attention without Pallas: a scan over blocks of keys with a running maximum."""
    block = 512
    count = k.shape[2] // block

    def cut(x: Array) -> Array:
        return jnp.moveaxis(x.reshape(*x.shape[:2], count, block, x.shape[-1]), 2, 0)

    def step(carry: tuple[Array, Array, Array], kv: tuple[Array, Array]) -> tuple:
        out, top, weight = carry
        scores = jnp.einsum("bhqd,bhkd->bhqk", q, kv[0], preferred_element_type=jnp.float32)
        new = jnp.maximum(top, jnp.max(scores, -1, keepdims=True))
        shares, old = jnp.exp(scores - new), jnp.exp(top - new)
        mixed = jnp.einsum(
            "bhqk,bhkd->bhqd", shares.astype(v.dtype), kv[1], preferred_element_type=jnp.float32
        )
        total = weight * old + jnp.sum(shares, -1, keepdims=True)
        return (out * old + mixed, new, total), None

    rows = (*q.shape[:3], 1)
    start = (
        jnp.zeros(q.shape, jnp.float32),
        jnp.full(rows, -1e30, jnp.float32),
        jnp.zeros(rows, jnp.float32),
    )
    (out, _, weight), _ = lax.scan(step, start, (cut(k), cut(v)))
    return (out / weight).astype(q.dtype)


@kernel(*[bf16(16, 2048, 8, 128)] * 2, *[bf16(16, 1, 8, 128)] * 3, s32(), donate=(0, 1))
def decode_step(
    keys: Array, values: Array, q: Array, k: Array, v: Array, position: Array
) -> tuple[Array, Array, Array]:
    """One token per sequence: writes a row of the cache, then attends over all of it."""
    keys = lax.dynamic_update_slice_in_dim(keys, k, position, axis=1)
    values = lax.dynamic_update_slice_in_dim(values, v, position, axis=1)
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, keys, preferred_element_type=jnp.float32)
    scores = jnp.where(jnp.arange(keys.shape[1]) <= position, scores, -1e9)
    shares = jax.nn.softmax(scores).astype(values.dtype)
    return jnp.einsum("bhqk,bkhd->bqhd", shares, values), keys, values


@kernel(bf16(16, 2048, 2, 128), bf16(16, 2048, 2, 128), bf16(16, 2, 4, 128))
def decode_grouped(keys: Array, values: Array, q: Array) -> Array:
    """One token, four queries per key."""
    scores = jnp.einsum("bgnd,bkgd->bgnk", q, keys, preferred_element_type=jnp.float32)
    shares = jax.nn.softmax(scores).astype(values.dtype)
    return jnp.einsum("bgnk,bkgd->bgnd", shares, values)
