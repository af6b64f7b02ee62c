"""Sums along rows and columns, gradients of biases, running sums, sorting."""

import jax
import jax.numpy as jnp
from jax import lax

from compiler_programs.registry import bf16, f32, kernel, s32

Array = jax.Array


@kernel(f32(4096, 4096))
def reduce_rows(x: Array) -> Array:
    """Along lanes."""
    return jnp.sum(x, -1)


@kernel(f32(4096, 4096))
def reduce_columns(x: Array) -> Array:
    """Along sublanes."""
    return jnp.sum(x, 0)


@kernel(bf16(8192, 4096))
def reduce_all_bf16(x: Array) -> Array:
    """To a scalar, in float32."""
    return jnp.sum(x.astype(jnp.float32))


@kernel(f32(64, 128, 512))
def reduce_middle(x: Array) -> Array:
    """Along a dimension that is neither."""
    return jnp.max(x, 1)


@kernel(bf16(4, 1024, 4096))
def bias_gradient(dy: Array) -> Array:
    """The gradient of a bias: the sum of all rows, in float32."""
    return jnp.sum(dy.astype(jnp.float32), (0, 1))


@kernel(bf16(4, 1024, 4096), bf16(4, 1024, 4096))
def bias_gradient_relu(y: Array, dy: Array) -> tuple[Array, Array]:
    """The gradient of a bias below a ReLU, with the gradient below it."""
    dy = jnp.where(y > 0, dy, 0)
    return dy, jnp.sum(dy.astype(jnp.float32), (0, 1))


@kernel(f32(4096, 4096))
def row_and_column_sums(x: Array) -> tuple[Array, Array]:
    """Both of one array."""
    return jnp.sum(x, 0), jnp.sum(x, 1)


@kernel(f32(1024, 8192))
def argmax(x: Array) -> Array:
    """The largest element's index in every row."""
    return jnp.argmax(x, -1)


@kernel(f32(1024, 2048))
def cumsum(x: Array) -> Array:
    """Along every row."""
    return jnp.cumsum(x, -1)


@kernel(s32(2048, 64))
def cumsum_rows(x: Array) -> Array:
    """Down every column: places of tokens in experts."""
    return jnp.cumsum(x, 0)


@kernel(f32(256, 4096))
def sort_rows(x: Array) -> Array:
    """Every row."""
    return jnp.sort(x, -1)


@kernel(f32(65536))
def argsort(x: Array) -> Array:
    """A long row."""
    return jnp.argsort(x)


@kernel(f32(64, 32000))
def top_k(x: Array) -> tuple[Array, Array]:
    """40 of a vocabulary."""
    return tuple(lax.top_k(x, 40))


@kernel(f32(8192, 64))
def top_2_of_experts(x: Array) -> tuple[Array, Array]:
    """Two of 64."""
    return tuple(lax.top_k(x, 2))
