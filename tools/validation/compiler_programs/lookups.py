"""Embedding lookups and their gradients, one-hot, gathers and scatters."""

import jax
import jax.numpy as jnp

from compiler_programs.registry import bf16, f32, kernel, s32

Array = jax.Array


@kernel(f32(32000, 1024), s32(8, 1024))
def embedding(table: Array, tokens: Array) -> Array:
    """Rows of a table, converted."""
    return table[tokens].astype(jnp.bfloat16)


@kernel(s32(8, 1024), bf16(8, 1024, 1024))
def embedding_gradient(tokens: Array, dy: Array) -> Array:
    """Rows added to a table."""
    zeros = jnp.zeros((32000, 1024), jnp.float32)
    return zeros.at[tokens].add(dy.astype(jnp.float32))


@kernel(f32(50257, 768), f32(1024, 768), s32(8, 1024))
def embedding_with_positions(table: Array, positions: Array, tokens: Array) -> Array:
    """A lookup in a vocabulary that is no multiple of a tile."""
    return (table[tokens] + positions).astype(jnp.bfloat16)


@kernel(s32(8192), bf16(32000, 512))
def one_hot_matmul(tokens: Array, table: Array) -> Array:
    """A lookup as a product."""
    return jax.nn.one_hot(tokens, 32000, dtype=jnp.bfloat16) @ table


@kernel(s32(8192))
def one_hot(tokens: Array) -> Array:
    """Written out."""
    return jax.nn.one_hot(tokens, 1024, dtype=jnp.float32)


@kernel(f32(4096, 1024), s32(4096))
def take_along_rows(x: Array, index: Array) -> Array:
    """An element of every row."""
    return jnp.take_along_axis(x, index[:, None], axis=1)


@kernel(f32(1024, 8, 256), s32(1024))
def gather_batch_parallel(x: Array, index: Array) -> Array:
    """A row of every matrix, by an index that counts."""
    return x[jnp.arange(1024), index]


@kernel(f32(100000, 128), s32(65536), s32(65536))
def segment_sum(x: Array, source: Array, target: Array) -> Array:
    """Messages along the edges of a graph."""
    return jax.ops.segment_sum(x[source], target, num_segments=100000)
