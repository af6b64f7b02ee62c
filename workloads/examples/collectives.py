"""One program per collective: shard_map, a line of code, and the sharding it leaves behind."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from workloads.examples.example import AnyMesh, Program, array, example

SLICE = "v5e-4x2"
MESH = {"X": 4, "Y": 2}
ROWS, COLUMNS = 512, 1024


def per_shard(
    mesh: AnyMesh,
    body: Callable[[jax.Array], jax.Array],
    out_spec: P,
    dtype: Any = jnp.float32,
    check_vma: bool = True,
) -> Program:
    """`body` on every [128, 512] shard of x[X, Y]."""
    sharded = jax.shard_map(
        body, mesh=mesh, in_specs=P("X", "Y"), out_specs=out_spec, check_vma=check_vma
    )
    return jax.jit(sharded), (array(mesh, (ROWS, COLUMNS), dtype, "X", "Y"),)


@example(mesh=MESH, config=SLICE)
def shard_mean(mesh: AnyMesh) -> Program:
    """The mean of each shard, averaged over all shards: a scalar on every device."""
    return per_shard(mesh, lambda x: lax.pmean(jnp.mean(x), ("X", "Y")), P())


@example(mesh=MESH, config=SLICE)
def psum(mesh: AnyMesh) -> Program:
    """The sum over Y: every device of a Y pair holds the result."""
    return per_shard(mesh, lambda x: lax.psum(x, "Y"), P("X", None))


@example(mesh=MESH, config=SLICE)
def all_gather(mesh: AnyMesh) -> Program:
    """Gathers all rows on every device of an X column."""
    # Replication over X is true but beyond what shard_map's own check can prove.
    return per_shard(
        mesh, lambda x: lax.all_gather(x, "X", axis=0, tiled=True), P(None, "Y"), check_vma=False
    )


@example(mesh=MESH, config=SLICE)
def psum_scatter(mesh: AnyMesh) -> Program:
    """The sum over X, of which every device keeps its quarter of the rows."""
    return per_shard(
        mesh,
        lambda x: lax.psum_scatter(x, "X", scatter_dimension=0, tiled=True),
        P("X", "Y"),
        dtype=jnp.int32,
    )


@example(mesh=MESH, config=SLICE)
def ring_shift(mesh: AnyMesh) -> Program:
    """Every shard moves one device on along X; the last one comes back to the first."""
    size = MESH["X"]
    ring = [(i, (i + 1) % size) for i in range(size)]
    return per_shard(mesh, lambda x: lax.ppermute(x, "X", ring), P("X", "Y"))


@example(mesh=MESH, config=SLICE)
def all_to_all(mesh: AnyMesh) -> Program:
    """The sharding over X moves from the rows to the columns."""
    return per_shard(
        mesh,
        lambda x: lax.all_to_all(x, "X", split_axis=1, concat_axis=0, tiled=True),
        P(None, ("Y", "X")),
        dtype=jnp.bfloat16,
    )


@example(mesh=MESH, config=SLICE)
def axis_index(mesh: AnyMesh) -> Program:
    """Every shard adds its own place in the mesh."""

    def body(x: jax.Array) -> jax.Array:
        return x + lax.axis_index("X") * MESH["Y"] + lax.axis_index("Y")

    return per_shard(mesh, body, P("X", "Y"), dtype=jnp.int32)
