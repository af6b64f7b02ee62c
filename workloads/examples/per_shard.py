"""Work on each device's own part of a batch, said globally and said locally.

Globally a shard is a row of x reshaped to [shards, rows per shard, ...]; the compiler has to see
that nothing needs to move. Locally, in `shard_map`, it is simply the array.
"""

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from workloads.examples.example import AnyMesh, Program, array, example

SLICE = "v5e-4x2"
MESH = {"data": 8}
ROWS, COLUMNS, SHIFT = 512, 256, 3


def batch(mesh: AnyMesh) -> tuple[jax.ShapeDtypeStruct]:
    """x[data, -]."""
    return (array(mesh, (ROWS, COLUMNS), jnp.float32, "data", None),)


def in_shards(x: jax.Array, mesh: AnyMesh) -> jax.Array:
    """The batch with a dimension of its own for the devices."""
    shards = MESH["data"]
    x = x.reshape(shards, ROWS // shards, COLUMNS)
    return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P("data", None, None)))


@example(mesh=MESH, config=SLICE)
def shard_means_auto(mesh: AnyMesh) -> Program:
    """The mean of each shard, [shards, columns]."""

    def shard_means_auto(x: jax.Array) -> jax.Array:
        return in_shards(x, mesh).mean(axis=1)

    return jax.jit(shard_means_auto), batch(mesh)


@example(mesh=MESH, config=SLICE)
def shard_means_manual(mesh: AnyMesh) -> Program:
    """Means of shards in shard_map."""

    def shard_means_manual(x: jax.Array) -> jax.Array:
        return x.mean(axis=0, keepdims=True)

    sharded = jax.shard_map(
        shard_means_manual, mesh=mesh, in_specs=P("data", None), out_specs=P("data", None)
    )
    return jax.jit(sharded), batch(mesh)


@example(mesh=MESH, config=SLICE)
def shard_roll_auto(mesh: AnyMesh) -> Program:
    """The rows of each shard, rolled within the shard."""

    def shard_roll_auto(x: jax.Array) -> jax.Array:
        return jnp.roll(in_shards(x, mesh), SHIFT, axis=1).reshape(x.shape)

    return jax.jit(shard_roll_auto), batch(mesh)


@example(mesh=MESH, config=SLICE)
def shard_roll_manual(mesh: AnyMesh) -> Program:
    """The roll of each shard in shard_map."""

    def shard_roll_manual(x: jax.Array) -> jax.Array:
        return jnp.roll(x, SHIFT, axis=0)

    sharded = jax.shard_map(
        shard_roll_manual, mesh=mesh, in_specs=P("data", None), out_specs=P("data", None)
    )
    return jax.jit(sharded), batch(mesh)


@example(mesh=MESH, config=SLICE)
def batch_roll(mesh: AnyMesh) -> Program:
    """The whole batch, rolled: rows cross from shard to shard."""

    def batch_roll(x: jax.Array) -> jax.Array:
        return jnp.roll(x, SHIFT, axis=0)

    step = jax.jit(batch_roll, out_shardings=NamedSharding(mesh, P("data", None)))
    return step, batch(mesh)
