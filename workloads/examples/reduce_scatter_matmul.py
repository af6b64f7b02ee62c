"""A[-, Y] @ W[Y, -]: the sum over Y as a ring that travels between partial products.

Instead of multiplying first and summing afterwards, each device computes one block of columns at a
time and adds it to the sum that comes by; what has gone all the way round is complete at its owner.
Two rings in opposite directions use both directions of the links, each for half of the columns.
An all-reduce is the same followed by a ring that spreads the complete blocks.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from workloads.examples.example import AnyMesh, Program, array, example

SLICE = "v5e-4x2"
MESH = {"X": 2, "Y": 4}
ROWS, DEPTH, COLUMNS = 256, 512, 1024
STEPS = MESH["Y"]


def ring(direction: int) -> list[tuple[int, int]]:
    """Everybody passes to the next (1) or to the previous (-1) device of Y."""
    return [(i, (i + direction) % STEPS) for i in range(STEPS)]


def reduce_scatter_ring(a: jax.Array, w: jax.Array, direction: int) -> jax.Array:
    """The own block of columns of the sum of a @ w over Y."""
    width = w.shape[1] // STEPS

    def product(step: int | jax.Array) -> jax.Array:
        # A sum that starts here at step 0 ends, STEPS - 1 hops on, at its owner.
        owner = (lax.axis_index("Y") + direction * (STEPS - 1 - step)) % STEPS
        return a @ lax.dynamic_slice_in_dim(w, owner * width, width, axis=1)

    def body(step: jax.Array, total: jax.Array) -> jax.Array:
        return lax.ppermute(total, "Y", ring(direction)) + product(step)

    return lax.fori_loop(1, STEPS, body, product(0))


def all_gather_ring(block: jax.Array, direction: int) -> jax.Array:
    """Gathers the blocks of columns of the devices along Y, in their order."""
    width = block.shape[1]
    me = lax.axis_index("Y")
    every = jnp.zeros((block.shape[0], width * STEPS), block.dtype)
    every = lax.pcast(every, ("X", "Y"), to="varying")

    def put(every: jax.Array, block: jax.Array, step: int | jax.Array) -> jax.Array:
        owner = (me - direction * step) % STEPS
        return lax.dynamic_update_slice_in_dim(every, block, owner * width, axis=1)

    def body(step: jax.Array, carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        every, block = carry
        block = lax.ppermute(block, "Y", ring(direction))
        return put(every, block, step), block

    return lax.fori_loop(1, STEPS, body, (put(every, block, 0), block))[0]


def halves(w: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The first and the second half of every device's block of columns."""
    blocks = w.reshape(w.shape[0], STEPS, 2, -1)
    return blocks[:, :, 0].reshape(w.shape[0], -1), blocks[:, :, 1].reshape(w.shape[0], -1)


def program(
    mesh: AnyMesh, body: Callable[[jax.Array, jax.Array], jax.Array], out_spec: P
) -> Program:
    """`body` on A[X, Y] and W[Y, -]."""
    sharded = jax.shard_map(
        body, mesh=mesh, in_specs=(P("X", "Y"), P("Y", None)), out_specs=out_spec, check_vma=False
    )
    return jax.jit(sharded), (
        array(mesh, (ROWS, DEPTH), jnp.bfloat16, "X", "Y"),
        array(mesh, (DEPTH, COLUMNS), jnp.bfloat16, "Y", None),
    )


@example(mesh=MESH, config=SLICE)
def reduce_scatter_matmul_one_way(mesh: AnyMesh) -> Program:
    """One ring; the result is [X, Y]."""
    return program(mesh, lambda a, w: reduce_scatter_ring(a, w, 1), P("X", "Y"))


@example(mesh=MESH, config=SLICE)
def reduce_scatter_matmul_two_ways(mesh: AnyMesh) -> Program:
    """Two rings, half of the columns each."""

    def body(a: jax.Array, w: jax.Array) -> jax.Array:
        left, right = halves(w)
        return jnp.concatenate(
            [reduce_scatter_ring(a, left, 1), reduce_scatter_ring(a, right, -1)], axis=1
        )

    return program(mesh, body, P("X", "Y"))


@example(mesh=MESH, config=SLICE)
def all_reduce_matmul_one_way(mesh: AnyMesh) -> Program:
    """One ring for the sums, one for the complete blocks; the result is [X, -]."""

    def body(a: jax.Array, w: jax.Array) -> jax.Array:
        return all_gather_ring(reduce_scatter_ring(a, w, 1), 1)

    return program(mesh, body, P("X", None))


@example(mesh=MESH, config=SLICE)
def all_reduce_matmul_two_ways(mesh: AnyMesh) -> Program:
    """Twice that, in opposite directions."""

    def body(a: jax.Array, w: jax.Array) -> jax.Array:
        left, right = (
            all_gather_ring(reduce_scatter_ring(a, half, direction), direction)
            for half, direction in zip(halves(w), (1, -1), strict=True)
        )
        rows = a.shape[0]
        return jnp.stack(
            [left.reshape(rows, STEPS, -1), right.reshape(rows, STEPS, -1)], axis=2
        ).reshape(rows, -1)

    return program(mesh, body, P("X", None))
