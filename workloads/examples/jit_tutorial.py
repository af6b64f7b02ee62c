"""Sharded arguments of jit, from one array to small layers, in all three modes.

Automatic: the arguments are sharded and the compiler does the rest. Explicit: shardings are part
of the types and checked while tracing. Manual: `shard_map`, every device's share by hand.
"""

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from workloads.examples.example import AnyMesh, Program, array, example

SLICE = "v5e-4x2"
LINE = {"X": 8}
GRID = {"X": 4, "Y": 2}
BATCH, WIDTH, HIDDEN = 256, 128, 512


@example(mesh=LINE, config=SLICE)
def elementwise(mesh: AnyMesh) -> Program:
    """Every device works on its own share."""

    def elementwise(x: jax.Array) -> jax.Array:
        return 2 * jnp.sin(x) + 1

    return jax.jit(elementwise), (array(mesh, (1024, 128), jnp.float32, "X", None),)


@example(mesh=LINE, config=SLICE)
def contract(mesh: AnyMesh) -> Program:
    """A sum over the sharded dimension: partial sums, then an all-reduce."""

    def contract(x: jax.Array) -> jax.Array:
        return x.sum(axis=0)

    return jax.jit(contract), (array(mesh, (1024, 128), jnp.float32, "X", None),)


@example(mesh=LINE, config=SLICE)
def contract_constrained_input(mesh: AnyMesh) -> Program:
    """The input is moved to the other dimension first: an all-to-all, and sums without another."""

    def contract_constrained_input(x: jax.Array) -> jax.Array:
        x = lax.with_sharding_constraint(x, NamedSharding(mesh, P(None, "X")))
        return x.sum(axis=0)

    return jax.jit(contract_constrained_input), (array(mesh, (1024, 128), jnp.float32, "X", None),)


@example(mesh=LINE, config=SLICE)
def contract_constrained_output(mesh: AnyMesh) -> Program:
    """The result is wanted in shares: a reduce-scatter instead of an all-reduce."""

    def contract_constrained_output(x: jax.Array) -> jax.Array:
        return lax.with_sharding_constraint(x.sum(axis=0), NamedSharding(mesh, P("X")))

    return jax.jit(contract_constrained_output), (array(mesh, (1024, 128), jnp.float32, "X", None),)


def layer_arguments(mesh: AnyMesh) -> tuple[jax.ShapeDtypeStruct, ...]:
    """x[X, -], weights [-, Y] and [Y, -] with their biases."""
    return (
        array(mesh, (BATCH, WIDTH), jnp.float32, "X", None),
        array(mesh, (WIDTH, HIDDEN), jnp.float32, None, "Y"),
        array(mesh, (HIDDEN,), jnp.float32, "Y"),
        array(mesh, (HIDDEN, WIDTH), jnp.float32, "Y", None),
        array(mesh, (WIDTH,), jnp.float32, None),
    )


@example(mesh=GRID, config=SLICE)
def layers_auto(mesh: AnyMesh) -> Program:
    """Two layers; the compiler finds the all-reduce over Y after the second product."""

    def layers_auto(
        x: jax.Array, w_in: jax.Array, b_in: jax.Array, w_out: jax.Array, b_out: jax.Array
    ) -> jax.Array:
        return jax.nn.sigmoid(jax.nn.sigmoid(x @ w_in + b_in) @ w_out + b_out)

    return jax.jit(layers_auto), layer_arguments(mesh)


@example(mesh=GRID, config=SLICE, explicit=("X", "Y"))
def layers_explicit(mesh: AnyMesh) -> Program:
    """Layers in explicit mode; the second product states the sharding of its result."""

    def layers_explicit(
        x: jax.Array, w_in: jax.Array, b_in: jax.Array, w_out: jax.Array, b_out: jax.Array
    ) -> jax.Array:
        hidden = jax.nn.sigmoid(x @ w_in + b_in)
        out = jnp.einsum("bh,hw->bw", hidden, w_out, out_sharding=NamedSharding(mesh, P("X", None)))
        return jax.nn.sigmoid(out + b_out)

    return jax.jit(layers_explicit), layer_arguments(mesh)


@example(mesh=GRID, config=SLICE)
def layers_manual(mesh: AnyMesh) -> Program:
    """Layers in manual mode; the all-reduce is a psum in the program."""

    def layers(
        x: jax.Array, w_in: jax.Array, b_in: jax.Array, w_out: jax.Array, b_out: jax.Array
    ) -> jax.Array:
        hidden = jax.nn.sigmoid(x @ w_in + b_in)
        return jax.nn.sigmoid(lax.psum(hidden @ w_out, "Y") + b_out)

    sharded = jax.shard_map(
        layers,
        mesh=mesh,
        in_specs=(P("X", None), P(None, "Y"), P("Y"), P("Y", None), P(None)),
        out_specs=P("X", None),
    )
    return jax.jit(sharded), layer_arguments(mesh)


@example(mesh=GRID, config=SLICE)
def layers_partly_manual(mesh: AnyMesh) -> Program:
    """Manual over Y only: X stays with the compiler, also inside."""

    def layers(
        x: jax.Array, w_in: jax.Array, b_in: jax.Array, w_out: jax.Array, b_out: jax.Array
    ) -> jax.Array:
        hidden = jax.nn.sigmoid(x @ w_in + b_in)
        return jax.nn.sigmoid(lax.psum(hidden @ w_out, "Y") + b_out)

    sharded = jax.shard_map(
        layers,
        mesh=mesh,
        in_specs=(P(), P(None, "Y"), P("Y"), P("Y", None), P()),
        out_specs=P(),
        axis_names={"Y"},
    )
    return jax.jit(sharded), layer_arguments(mesh)


@example(mesh=GRID, config=SLICE, explicit=("X", "Y"))
def reshards_explicit(mesh: AnyMesh) -> Program:
    """Unreduced sums, resolved by a reshard, between two changes of sharding."""

    def reshards_explicit(x: jax.Array, w: jax.Array) -> tuple[jax.Array, jax.Array]:
        x = jax.sharding.reshard(x, NamedSharding(mesh, P("X", "Y")))
        partial = jnp.einsum(
            "bw,wh->bh", x, w, out_sharding=NamedSharding(mesh, P("X", None, unreduced={"Y"}))
        )
        scattered = jax.sharding.reshard(partial, NamedSharding(mesh, P("X", "Y")))
        return scattered, jax.sharding.reshard(scattered, NamedSharding(mesh, P("Y", "X")))

    return jax.jit(reshards_explicit), (
        array(mesh, (BATCH, WIDTH), jnp.float32, "X", None),
        array(mesh, (WIDTH, HIDDEN), jnp.float32, "Y", None),
    )


@example(mesh=LINE, config=SLICE)
def sum_per_shard(mesh: AnyMesh) -> Program:
    """`shard_map` without a psum: every device's own sum, eight rows."""

    def sum_per_shard(x: jax.Array) -> jax.Array:
        return x.sum(axis=0, keepdims=True)

    sharded = jax.shard_map(sum_per_shard, mesh=mesh, in_specs=P("X", None), out_specs=P("X", None))
    return jax.jit(sharded), (array(mesh, (1024, 128), jnp.int32, "X", None),)


@example(mesh=LINE, config=SLICE)
def sum_over_shards(mesh: AnyMesh) -> Program:
    """Sums over shards with a psum: one row, the same on all devices."""

    def sum_over_shards(x: jax.Array) -> jax.Array:
        return lax.psum(x.sum(axis=0, keepdims=True), "X")

    sharded = jax.shard_map(sum_over_shards, mesh=mesh, in_specs=P("X", None), out_specs=P())
    return jax.jit(sharded), (array(mesh, (1024, 128), jnp.int32, "X", None),)
