"""A[X, Y] @ W[-, Y] -> [X, Y] as a collective matmul: communication hidden behind the product.

Each device of a Y row holds one chunk of A's columns and, of W, all rows of its own columns. A
chunk can be used as soon as it is there: multiply it with the rows of W that match it, pass it on
to the neighbour, add up. After axis-size products every device has seen every chunk.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from workloads.examples.example import AnyMesh, Program, array, example

SLICE = "v5e-4x2"
MESH = {"X": 2, "Y": 4}


def collective_matmul(mesh: AnyMesh, dtype: Any, unroll: bool) -> Program:
    """The program of `matmul.sharded_matmul` with the contraction over Y, by hand."""
    steps = MESH["Y"]
    to_previous = [(device, (device - 1) % steps) for device in range(steps)]

    def multiply(a: jax.Array, w: jax.Array) -> jax.Array:
        chunk_size = a.shape[1]

        def product(step: int | jax.Array, chunk: jax.Array) -> jax.Array:
            # Everybody passes to the device before it, so at step i a device holds the chunk that
            # started i devices after it.
            owner = (lax.axis_index("Y") + step) % steps
            return chunk @ lax.dynamic_slice_in_dim(w, owner * chunk_size, chunk_size)

        def body(step: jax.Array, carry: tuple[jax.Array, jax.Array]) -> tuple[Any, Any]:
            total, chunk = carry
            total = total + product(step, chunk)
            return total, lax.ppermute(chunk, "Y", to_previous)

        zeros = jnp.zeros((a.shape[0], w.shape[1]), a.dtype)
        carry = (lax.pcast(zeros, ("X", "Y"), to="varying"), a)
        total, chunk = lax.fori_loop(0, steps - 1, body, carry, unroll=unroll)
        return total + product(steps - 1, chunk)

    sharded = jax.shard_map(
        multiply, mesh=mesh, in_specs=(P("X", "Y"), P(None, "Y")), out_specs=P("X", "Y")
    )
    return jax.jit(sharded), (
        array(mesh, (1024, 2048), dtype, "X", "Y"),
        array(mesh, (2048, 8192), dtype, None, "Y"),
    )


@example(mesh=MESH, config=SLICE)
def collective_matmul_int32(mesh: AnyMesh) -> Program:
    """A loop in the program."""
    return collective_matmul(mesh, jnp.int32, unroll=False)


@example(mesh=MESH, config=SLICE)
def collective_matmul_bf16(mesh: AnyMesh) -> Program:
    """A loop in the program, in bfloat16."""
    return collective_matmul(mesh, jnp.bfloat16, unroll=False)


@example(mesh=MESH, config=SLICE)
def collective_matmul_unrolled_int32(mesh: AnyMesh) -> Program:
    """The loop written out by JAX."""
    return collective_matmul(mesh, jnp.int32, unroll=True)


@example(mesh=MESH, config=SLICE)
def collective_matmul_unrolled_bf16(mesh: AnyMesh) -> Program:
    """The loop written out by JAX, in bfloat16."""
    return collective_matmul(mesh, jnp.bfloat16, unroll=True)
