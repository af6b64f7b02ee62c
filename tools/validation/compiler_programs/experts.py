"""Mixture of experts on one device: routing, dispatch and combine einsums, grouped products."""

import jax
import jax.numpy as jnp
from jax import lax

from compiler_programs.registry import bf16, f32, kernel, s32

Array = jax.Array


@kernel(bf16(2048, 1024), f32(1024, 16))
def moe_routing(x: Array, w: Array) -> tuple[Array, Array]:
    """Chooses two experts, their weights, and the places in each expert's buffer."""
    shares = jax.nn.softmax(x.astype(jnp.float32) @ w)
    weight, expert = lax.top_k(shares, 2)
    mask = jax.nn.one_hot(expert, 16, dtype=jnp.int32)
    place = jnp.cumsum(mask.reshape(-1, 16), axis=0).reshape(mask.shape) * mask - 1
    return weight / jnp.sum(weight, -1, keepdims=True), place


@kernel(bf16(2048, 16, 256), bf16(2048, 1024))
def moe_dispatch(dispatch: Array, x: Array) -> Array:
    """Tokens to buffers of experts, by a product with ones and zeros."""
    return jnp.einsum("sec,sm->ecm", dispatch, x)


@kernel(bf16(16, 256, 1024), bf16(16, 1024, 2048), bf16(16, 2048, 1024))
def moe_experts(x: Array, up: Array, down: Array) -> Array:
    """An MLP per expert."""
    hidden = jax.nn.gelu(jnp.einsum("ecm,emh->ech", x, up))
    return jnp.einsum("ech,ehm->ecm", hidden, down)


@kernel(f32(2048, 16, 256), bf16(16, 256, 1024))
def moe_combine(combine: Array, y: Array) -> Array:
    """Back to tokens, weighted."""
    return jnp.einsum("sec,ecm->sm", combine.astype(y.dtype), y)


@kernel(bf16(4096, 1024), bf16(16, 1024, 2048), s32(16))
def ragged_product(x: Array, w: Array, sizes: Array) -> Array:
    """Rows in groups of sizes that are data."""
    return lax.ragged_dot(x, w, sizes)
