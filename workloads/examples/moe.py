"""A mixture of experts in five ways: out[b] = x[b] @ weights[expert of b].

Tokens and experts are sharded over the same axis, one expert per device; a token's expert is
rarely where the token is. The ways differ in what moves: weights, activations, or only those
activations that have to.
"""

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from workloads.examples.example import AnyMesh, Program, array, example

SLICE = "v5e-4x2"
MESH = {"X": 8}
TOKENS, WIDTH, HIDDEN, EXPERTS = 256, 128, 256, 8
ROUTED = {"expert": (0, EXPERTS)}


def routed(mesh: AnyMesh) -> tuple[jax.ShapeDtypeStruct, ...]:
    """Tokens, the expert of each, the weights of all experts."""
    return (
        array(mesh, (TOKENS, WIDTH), jnp.float32, "X", None),
        array(mesh, (TOKENS,), jnp.int32, "X"),
        array(mesh, (EXPERTS, WIDTH, HIDDEN), jnp.float32, "X", None, None),
    )


@example(mesh=MESH, config=SLICE, ranges=ROUTED)
def moe_masked_loop(mesh: AnyMesh) -> Program:
    """Automatic: a loop over the experts, every one sees all tokens and keeps its own."""

    def moe_masked_loop(x: jax.Array, expert: jax.Array, w: jax.Array) -> jax.Array:
        def add(total: jax.Array, entry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
            number, weights = entry
            mine = jnp.where((expert == number)[:, None], x, 0)
            return total + mine @ weights, None

        zeros = jnp.zeros((x.shape[0], w.shape[2]), x.dtype)
        return lax.scan(add, zeros, (jnp.arange(EXPERTS), w))[0]

    step = jax.jit(moe_masked_loop, out_shardings=NamedSharding(mesh, P("X", None)))
    return step, routed(mesh)


@example(mesh=MESH, config=SLICE, ranges=ROUTED)
def moe_all_gather(mesh: AnyMesh) -> Program:
    """Manual: all activations to every expert, the results back by a reduce-scatter."""

    def moe_all_gather(x: jax.Array, expert: jax.Array, w: jax.Array) -> jax.Array:
        every_x = lax.all_gather(x, "X", tiled=True)
        every_expert = lax.all_gather(expert, "X", tiled=True)
        mine = (every_expert == lax.axis_index("X"))[:, None]
        out = jnp.where(mine, every_x, 0) @ w[0]
        return lax.psum_scatter(out, "X", scatter_dimension=0, tiled=True)

    sharded = jax.shard_map(
        moe_all_gather, mesh=mesh, in_specs=(P("X"), P("X"), P("X")), out_specs=P("X")
    )
    return jax.jit(sharded), routed(mesh)


@example(mesh=MESH, config=SLICE, ranges=ROUTED, trip_counts={"*": 2})
def moe_all_to_all(mesh: AnyMesh) -> Program:
    """Manual: in every round a few tokens for each expert, until no device has any left."""
    capacity = 4

    def moe_all_to_all(x: jax.Array, expert: jax.Array, w: jax.Array) -> jax.Array:
        def anything_left(state: tuple[jax.Array, jax.Array]) -> jax.Array:
            return lax.psum(jnp.sum(state[0].astype(jnp.int32)), "X") > 0

        def exchange(state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            waiting, out = state
            wants = (expert[:, None] == jnp.arange(EXPERTS)) & waiting[:, None]
            place = jnp.sum(jnp.where(wants, jnp.cumsum(wants, axis=0) - 1, 0), axis=1)
            sent = waiting & (place < capacity)
            # A token that has to wait is put beyond the end of the buffer, and so nowhere.
            place = jnp.where(sent, place, capacity)
            buffer = jnp.zeros((EXPERTS, capacity, WIDTH), x.dtype)
            buffer = buffer.at[expert, place].set(x, mode="drop")
            arrived = lax.all_to_all(buffer, "X", split_axis=0, concat_axis=0)
            back = lax.all_to_all(arrived @ w[0], "X", split_axis=0, concat_axis=0)
            result = back.at[expert, place].get(mode="clip")
            return waiting & ~sent, jnp.where(sent[:, None], result, out)

        waiting = jnp.ones(expert.shape, bool)
        out = jnp.zeros((x.shape[0], w.shape[2]), x.dtype)
        state = lax.pcast((waiting, out), "X", to="varying")
        return lax.while_loop(anything_left, exchange, state)[1]

    sharded = jax.shard_map(
        moe_all_to_all, mesh=mesh, in_specs=(P("X"), P("X"), P("X")), out_specs=P("X")
    )
    return jax.jit(sharded), routed(mesh)


@example(mesh=MESH, config=SLICE, ranges=ROUTED)
def moe_ragged_dot(mesh: AnyMesh) -> Program:
    """Manual: tokens in the order of their experts, one ragged product per device.

    Every device has its own columns of all experts, so that no token has to leave for good.
    """

    def moe_ragged_dot(x: jax.Array, expert: jax.Array, w: jax.Array) -> jax.Array:
        order = jnp.argsort(expert)
        sizes = jnp.sum(expert[:, None] == jnp.arange(EXPERTS), axis=0, dtype=jnp.int32)
        every_x = lax.all_gather(x[order], "X", axis=1, tiled=True)
        out = lax.ragged_dot(every_x, w, sizes)
        return out[jnp.argsort(order)]

    sharded = jax.shard_map(
        moe_ragged_dot,
        mesh=mesh,
        in_specs=(P(None, "X"), P(), P(None, None, "X")),
        out_specs=P(None, "X"),
    )
    return jax.jit(sharded), (
        array(mesh, (TOKENS, WIDTH), jnp.float32, None, "X"),
        array(mesh, (TOKENS,), jnp.int32, None),
        array(mesh, (EXPERTS, WIDTH, HIDDEN), jnp.float32, None, None, "X"),
    )


@example(mesh=MESH, config=SLICE)
def moe_top_2_capacity(mesh: AnyMesh) -> Program:
    """Automatic: two experts per token, each with room for so many tokens of a group.

    Dispatch and combination are products with a mask; the constraint between them, from groups to
    experts, is the all-to-all.
    """
    groups, capacity, chosen = 8, 16, 2

    def by(axis: int) -> NamedSharding:
        return NamedSharding(mesh, P(*("X" if i == axis else None for i in range(4))))

    def moe_top_2_capacity(x: jax.Array, router: jax.Array, w: jax.Array) -> jax.Array:
        x = x.reshape(groups, TOKENS // groups, WIDTH)
        scores = jax.nn.softmax(jnp.einsum("gtd,de->gte", x, router))
        weight, expert = lax.top_k(scores, chosen)
        # Places are given out first by choice, then by position.
        wants = jax.nn.one_hot(expert, EXPERTS, dtype=jnp.float32)
        in_turn = wants.transpose(0, 2, 1, 3).reshape(groups, -1, EXPERTS)
        place = jnp.cumsum(in_turn, axis=1) * in_turn - 1
        place = place.reshape(groups, chosen, -1, EXPERTS).transpose(0, 2, 1, 3)
        slot = jax.nn.one_hot(place.astype(jnp.int32), capacity, dtype=jnp.float32)
        combine = jnp.einsum("gtk,gtkec->gtec", weight, slot)
        dispatch = (combine > 0).astype(x.dtype)
        sent = jnp.einsum("gtec,gtd->gecd", dispatch, x)
        sent = lax.with_sharding_constraint(sent, by(1))
        out = jnp.einsum("gecd,edh->gech", sent, w)
        out = lax.with_sharding_constraint(out, by(0))
        return jnp.einsum("gtec,gech->gth", combine, out).reshape(-1, HIDDEN)

    step = jax.jit(moe_top_2_capacity, out_shardings=NamedSharding(mesh, P("X", None)))
    return step, (
        array(mesh, (TOKENS, WIDTH), jnp.float32, "X", None),
        array(mesh, (WIDTH, EXPERTS), jnp.float32, None, None),
        array(mesh, (EXPERTS, WIDTH, HIDDEN), jnp.float32, "X", None, None),
    )
