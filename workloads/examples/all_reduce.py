"""A 64 MiB all-reduce over all devices of a slice, for slices without and with wrapped axes."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from workloads.examples.example import AnyMesh, Program, array, example

# f32[4096, 4096] is 64 MiB.
SIDE = 4096


def all_reduce(mesh: AnyMesh) -> Program:
    """Every device contributes 64 MiB and ends up with the 64 MiB of sums."""

    def all_reduce(x: jax.Array) -> jax.Array:
        return lax.psum(x, ("X", "Y"))

    sharded = jax.shard_map(all_reduce, mesh=mesh, in_specs=P(("X", "Y")), out_specs=P())
    shape = (mesh.size * SIDE, SIDE)
    return jax.jit(sharded), (array(mesh, shape, jnp.float32, ("X", "Y"), None),)


@example(mesh={"X": 4, "Y": 2}, config="v5e-4x2")
def all_reduce_64mib_4x2(mesh: AnyMesh) -> Program:
    """Eight chips, no wrapped axis."""
    return all_reduce(mesh)


@example(mesh={"X": 8, "Y": 16}, config="v5e-8x16")
def all_reduce_64mib_8x16(mesh: AnyMesh) -> Program:
    """128 chips, the long axis wrapped."""
    return all_reduce(mesh)


@example(mesh={"X": 16, "Y": 16}, config="v5e-16x16")
def all_reduce_64mib_16x16(mesh: AnyMesh) -> Program:
    """256 chips, a full torus."""
    return all_reduce(mesh)
