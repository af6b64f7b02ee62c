"""Attention over sequences that no device could hold: keys and values go round a ring.

A device has a part of the queries, and of the keys and values another part at every step. While it
works on one part it passes it on. What the softmax divides by is known at the end only, so sums are
kept relative to the largest score so far, and scaled when there is a larger one.
"""

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from workloads.examples.example import AnyMesh, Program, array, example

Sums = tuple[jax.Array, jax.Array, jax.Array]  # of values, of weights; the largest score


def add_part(sums: Sums, query: jax.Array, key: jax.Array, value: jax.Array) -> Sums:
    """The sums with the keys and values of one part."""
    values, weights, largest = sums
    scores = jnp.einsum("bqhd,bkhd->bhqk", query, key, preferred_element_type=jnp.float32)
    new_largest = jnp.maximum(largest, scores.max(axis=-1))
    scale = jnp.exp(largest - new_largest)
    shares = jnp.exp(scores - new_largest[..., None])
    part = jnp.einsum(
        "bhqk,bkhd->bhqd", shares.astype(value.dtype), value, preferred_element_type=jnp.float32
    )
    return values * scale[..., None] + part, weights * scale + shares.sum(axis=-1), new_largest


def ring_attention(sequence: int, heads: int, head: int, mesh: AnyMesh) -> Program:
    """Attention of everything to everything, the sequence split over the ring."""
    parts = mesh.shape["ring"]
    to_next = [(device, (device + 1) % parts) for device in range(parts)]

    def attend(query: jax.Array, key: jax.Array, value: jax.Array) -> jax.Array:
        query = query * head**-0.5

        def step(carry: tuple, _: None) -> tuple[tuple, None]:
            sums, key, value = carry
            passed = (lax.ppermute(key, "ring", to_next), lax.ppermute(value, "ring", to_next))
            return (add_part(sums, query, key, value), *passed), None

        batch, length = query.shape[:2]
        nothing = (
            jnp.zeros((batch, heads, length, head), jnp.float32),
            jnp.zeros((batch, heads, length), jnp.float32),
            jnp.full((batch, heads, length), -jnp.inf, jnp.float32),
        )
        nothing = jax.tree.map(lambda x: lax.pcast(x, "ring", to="varying"), nothing)
        (sums, key, value), _ = lax.scan(step, (nothing, key, value), length=parts - 1)
        values, weights, _ = add_part(sums, query, key, value)
        return (values / weights[..., None]).swapaxes(1, 2).astype(query.dtype)

    spec = P(None, "ring")
    sharded = jax.shard_map(attend, mesh=mesh, in_specs=(spec, spec, spec), out_specs=spec)
    part = array(mesh, (1, sequence, heads, head), jnp.bfloat16, None, "ring")
    return jax.jit(sharded), (part, part, part)


example({"ring": 8}, "v5e-4x2", "ring_attention")(functools.partial(ring_attention, 512, 2, 32))
example({"ring": 4}, "v5e-2x2", "ring_attention_large")(
    functools.partial(ring_attention, 8192, 8, 128)
)
