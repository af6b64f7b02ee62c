"""Rotary embeddings, gradients of activations, dropout, optimisers, casts."""

from typing import Any

import jax
import jax.numpy as jnp

from compiler_programs.registry import bf16, f32, kernel, s32

Array = jax.Array
Tree = Any


def rotate(x: Array, position: Array) -> Array:
    """Rotary embedding of [batch, sequence, heads, head]."""
    half = x.shape[-1] // 2
    frequency = 10000.0 ** (-jnp.arange(half, dtype=jnp.float32) / half)
    angle = position[:, None].astype(jnp.float32) * frequency
    sine, cosine = jnp.sin(angle)[None, :, None], jnp.cos(angle)[None, :, None]
    low, high = jnp.split(x.astype(jnp.float32), 2, axis=-1)
    turned = jnp.concatenate([low * cosine - high * sine, high * cosine + low * sine], axis=-1)
    return turned.astype(x.dtype)


@kernel(bf16(4, 1024, 8, 128), bf16(4, 1024, 2, 128), s32(1024))
def rope(q: Array, k: Array, position: Array) -> tuple[Array, Array]:
    """Rotary positions of queries and of fewer keys."""
    return rotate(q, position), rotate(k, position)


@kernel(bf16(4, 1024, 8, 128), s32(1024), bf16(4, 1024, 8, 128))
def rope_gradient(q: Array, position: Array, dq: Array) -> Array:
    """Turned back."""
    return jax.vjp(lambda q: rotate(q, position), q)[1](dq)[0]


@kernel(bf16(4096, 4096), bf16(4096, 4096))
def gelu_gradient(x: Array, dy: Array) -> Array:
    """The gradient of the tanh form of GELU."""
    return jax.vjp(jax.nn.gelu, x)[1](dy)[0]


@kernel(bf16(4096, 2816), bf16(4096, 2816), bf16(4096, 2816))
def gated_silu_gradient(gate: Array, up: Array, dy: Array) -> tuple[Array, Array]:
    """Gradients of both operands of a gated SiLU."""
    return jax.vjp(lambda g, u: jax.nn.silu(g) * u, gate, up)[1](dy)


@kernel(bf16(4096, 4096))
def gelu(x: Array) -> Array:
    """The forward pass."""
    return jax.nn.gelu(x)


@kernel(f32(4096, 4096))
def cast_to_bf16(x: Array) -> Array:
    """Half of the bytes."""
    return x.astype(jnp.bfloat16)


@kernel(bf16(4096, 4096), s32(2))
def dropout(x: Array, seed: Array) -> Array:
    """Random bits of a tenth of the elements away."""
    key = jax.random.wrap_key_data(seed.astype(jnp.uint32))
    return jnp.where(jax.random.bernoulli(key, 0.9, x.shape), x / 0.9, 0)


@kernel(f32(1024, 1024), s32(2))
def random_normal(x: Array, seed: Array) -> Array:
    """Threefry, then the inverse error function."""
    key = jax.random.wrap_key_data(seed.astype(jnp.uint32))
    return x + jax.random.normal(key, x.shape)


def global_norm(tree: Tree) -> Array:
    """The norm of all leaves together."""
    return jnp.sqrt(sum(jnp.sum(g.astype(jnp.float32) ** 2) for g in jax.tree.leaves(tree)))


def adamw(weights: Tree, mean: Tree, square: Tree, gradients: Tree, count: Array) -> Tree:
    """AdamW after clipping by the global norm, as Optax does it."""
    norm = global_norm(gradients)
    clip = jnp.where(norm < 1.0, 1.0, 1.0 / norm)
    gradients = jax.tree.map(lambda g: g.astype(jnp.float32) * clip, gradients)
    steps = count.astype(jnp.float32) + 1
    mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, gradients)
    square = jax.tree.map(lambda v, g: 0.95 * v + 0.05 * g * g, square, gradients)
    fix_mean, fix_square = 1 - 0.9**steps, 1 - 0.95**steps

    def step(w: Array, m: Array, v: Array) -> Array:
        return w - 3e-4 * (m / fix_mean / (jnp.sqrt(v / fix_square) + 1e-8) + 0.1 * w)

    weights = jax.tree.map(step, weights, mean, square)
    return weights, mean, square, norm


@kernel(*[f32(2048, 2048)] * 4, s32(), donate=(0, 1, 2))
def adamw_update(w: Array, m: Array, v: Array, g: Array, count: Array) -> Tree:
    """The update of one matrix."""
    return adamw(w, m, v, g, count)


@kernel(*[f32(1024, 1024), f32(1024, 4096), f32(1024)] * 4, s32(), donate=tuple(range(9)))
def adamw_update_of_three(*a: Array) -> Tree:
    """The update of three arrays of different sizes."""
    return adamw(a[:3], a[3:6], a[6:9], a[9:12], a[12])


@kernel(*[f32(2048, 2048)] * 3, donate=(0, 1))
def momentum_update(w: Array, m: Array, g: Array) -> tuple[Array, Array]:
    """Gradient descent with momentum."""
    m = 0.9 * m + g
    return w - 0.1 * m, m


@kernel(f32(1024, 4096), f32(4096, 1024), f32(1024))
def global_norm_of_three(a: Array, b: Array, c: Array) -> Array:
    """The norm alone."""
    return global_norm((a, b, c))
