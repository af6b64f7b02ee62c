"""Softmax, norms and their gradients, statistics, cross entropy."""

from typing import Any

import jax
import jax.numpy as jnp

from compiler_programs.registry import bf16, f32, kernel, s32

Array = jax.Array


def total(x: Any) -> Array:
    """A loss that every element takes part in."""
    return jnp.sum(x.astype(jnp.float32) * jnp.cos(x.astype(jnp.float32)))


@kernel(f32(4096, 2048))
def softmax_f32(x: Array) -> Array:
    """In float32."""
    return jax.nn.softmax(x)


@kernel(bf16(16, 1024, 1024))
def softmax_bf16(x: Array) -> Array:
    """The softmax of scores, computed in float32."""
    return jax.nn.softmax(x.astype(jnp.float32)).astype(x.dtype)


@kernel(f32(4096, 2048))
def log_softmax_gradient(x: Array) -> Array:
    """The gradient of a log-softmax."""
    return jax.grad(lambda x: total(jax.nn.log_softmax(x)))(x)


def layer_norm_of(x: Array, scale: Array, bias: Array) -> Array:
    """Normalizes by mean and variance, in float32."""
    wide = x.astype(jnp.float32)
    mean = jnp.mean(wide, -1, keepdims=True)
    variance = jnp.var(wide, -1, keepdims=True)
    return ((wide - mean) * jax.lax.rsqrt(variance + 1e-6) * scale + bias).astype(x.dtype)


def rms_norm_of(x: Array, scale: Array) -> Array:
    """Normalizes by the root of the mean square, in float32."""
    wide = x.astype(jnp.float32)
    wide *= jax.lax.rsqrt(jnp.mean(wide * wide, -1, keepdims=True) + 1e-6)
    return (wide * scale).astype(x.dtype)


@kernel(bf16(4096, 2048), f32(2048), f32(2048))
def layer_norm(x: Array, scale: Array, bias: Array) -> Array:
    """The forward pass."""
    return layer_norm_of(x, scale, bias)


@kernel(bf16(4096, 2048), f32(2048), f32(2048))
def layer_norm_gradient(x: Array, scale: Array, bias: Array) -> tuple[Array, ...]:
    """Gradients of all three operands."""
    return jax.grad(lambda *a: total(layer_norm_of(*a)), argnums=(0, 1, 2))(x, scale, bias)


@kernel(bf16(4096, 2048), f32(2048))
def rms_norm(x: Array, scale: Array) -> Array:
    """The forward pass."""
    return rms_norm_of(x, scale)


@kernel(bf16(4096, 2048), f32(2048))
def rms_norm_gradient(x: Array, scale: Array) -> tuple[Array, ...]:
    """Gradients of both operands."""
    return jax.grad(lambda *a: total(rms_norm_of(*a)), argnums=(0, 1))(x, scale)


@kernel(bf16(4096, 2048), bf16(4096, 2048), f32(2048))
def residual_rms_norm(x: Array, residual: Array, scale: Array) -> tuple[Array, Array]:
    """A residual and the norm of the sum."""
    x = x + residual
    return x, rms_norm_of(x, scale)


@kernel(f32(4096, 2048))
def mean_and_variance(x: Array) -> tuple[Array, Array]:
    """Mean and variance of every row."""
    return jnp.mean(x, -1), jnp.var(x, -1)


@kernel(bf16(64, 56, 56, 64))
def batch_norm_statistics(x: Array) -> tuple[Array, Array]:
    """Mean and mean square of every channel."""
    wide = x.astype(jnp.float32)
    return jnp.mean(wide, (0, 1, 2)), jnp.mean(wide * wide, (0, 1, 2))


@kernel(bf16(64, 56, 56, 64), f32(64), f32(64))
def batch_norm_relu(x: Array, scale: Array, bias: Array) -> Array:
    """In training: statistics, scaling and ReLU."""
    wide = x.astype(jnp.float32)
    mean = jnp.mean(wide, (0, 1, 2))
    variance = jnp.mean(wide * wide, (0, 1, 2)) - mean * mean
    return jax.nn.relu((wide - mean) * jax.lax.rsqrt(variance + 1e-5) * scale + bias).astype(
        x.dtype
    )


def cross_entropy_of(logits: Array, labels: Array) -> Array:
    """Cross entropy with integer labels."""
    wide = logits.astype(jnp.float32)
    chosen = jnp.take_along_axis(wide, labels[:, None], axis=-1)[:, 0]
    return jnp.mean(jax.nn.logsumexp(wide, axis=-1) - chosen)


@kernel(bf16(2048, 32000), s32(2048))
def cross_entropy(logits: Array, labels: Array) -> Array:
    """Cross entropy of logits."""
    return cross_entropy_of(logits, labels)


@kernel(bf16(2048, 32000), s32(2048))
def cross_entropy_gradient(logits: Array, labels: Array) -> tuple[Array, Array]:
    """Cross entropy of logits, with the gradient."""
    return jax.value_and_grad(cross_entropy_of)(logits, labels)


@kernel(bf16(2048, 1024), f32(1024, 32000), s32(2048))
def head_gradient(x: Array, table: Array, labels: Array) -> tuple[Array, tuple[Array, Array]]:
    """The last product of a language model, its loss and both gradients."""

    def loss(x: Array, table: Array) -> Array:
        logits = jnp.matmul(x, table.astype(jnp.bfloat16), preferred_element_type=jnp.float32)
        return cross_entropy_of(logits, labels)

    return jax.value_and_grad(loss, argnums=(0, 1))(x, table)


@kernel(bf16(2048, 1024), f32(1024, 32000), s32(2048))
def head_gradient_one_hot(
    x: Array, table: Array, labels: Array
) -> tuple[Array, tuple[Array, Array]]:
    """The gradient of the head with one-hot labels."""

    def loss(x: Array, table: Array) -> Array:
        logits = jnp.matmul(x, table.astype(jnp.bfloat16), preferred_element_type=jnp.float32)
        wanted = jax.nn.one_hot(labels, logits.shape[-1], dtype=logits.dtype)
        return jnp.mean(jax.nn.logsumexp(logits, axis=-1) - jnp.sum(logits * wanted, -1))

    return jax.value_and_grad(loss, argnums=(0, 1))(x, table)
