"""Cross entropy over logits whose vocabulary is sharded: no device ever sees a whole row."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from workloads.examples.example import AnyMesh, Program, array, example

SLICE = "v5e-4x2"
MESH = {"data": 2, "model": 4}
TOKENS, WIDTH, VOCABULARY = 128, 64, 1024
LABELS = {"label": (0, VOCABULARY)}


def arguments(mesh: AnyMesh) -> tuple[jax.ShapeDtypeStruct, ...]:
    """Activations, table of the output layer, the right answers."""
    return (
        array(mesh, (TOKENS, WIDTH), jnp.float32, "data", None),
        array(mesh, (WIDTH, VOCABULARY), jnp.float32, None, "model"),
        array(mesh, (TOKENS,), jnp.int32, "data"),
    )


def with_gradients(
    mesh: AnyMesh, loss: Callable[[jax.Array, jax.Array, jax.Array], jax.Array]
) -> Program:
    """The loss and its gradients, sharded like what they belong to."""
    arrays = arguments(mesh)
    shardings = (NamedSharding(mesh, P()), (arrays[0].sharding, arrays[1].sharding))
    step = jax.value_and_grad(loss, argnums=(0, 1))
    return jax.jit(step, out_shardings=shardings), arrays


@example(mesh=MESH, config=SLICE, ranges=LABELS)
def cross_entropy_gathered(mesh: AnyMesh) -> Program:
    """Automatic: the label's logit is looked up."""

    def loss(x: jax.Array, w: jax.Array, label: jax.Array) -> jax.Array:
        logits = lax.with_sharding_constraint(x @ w, NamedSharding(mesh, P("data", "model")))
        chosen = jnp.take_along_axis(logits, label[:, None], axis=1)[:, 0]
        return jnp.mean(jax.nn.logsumexp(logits, axis=1) - chosen)

    return with_gradients(mesh, loss)


@example(mesh=MESH, config=SLICE, ranges=LABELS)
def cross_entropy_one_hot(mesh: AnyMesh) -> Program:
    """Automatic: the label's logit is picked out by a mask."""

    def loss(x: jax.Array, w: jax.Array, label: jax.Array) -> jax.Array:
        logits = lax.with_sharding_constraint(x @ w, NamedSharding(mesh, P("data", "model")))
        target = jax.nn.one_hot(label, VOCABULARY, dtype=logits.dtype)
        return -jnp.mean(jnp.sum(jax.nn.log_softmax(logits) * target, axis=1))

    return with_gradients(mesh, loss)


@example(mesh=MESH, config=SLICE, ranges=LABELS)
def cross_entropy_manual(mesh: AnyMesh) -> Program:
    """Manual: three small all-reduces per token, for the maximum, the sum and the label."""

    def loss(x: jax.Array, w: jax.Array, label: jax.Array) -> jax.Array:
        logits = x @ w
        first = lax.axis_index("model") * logits.shape[1]
        largest = lax.pmax(lax.stop_gradient(logits.max(axis=1)), "model")
        total = lax.psum(jnp.exp(logits - largest[:, None]).sum(axis=1), "model")
        here = (label >= first) & (label < first + logits.shape[1])
        place = jnp.where(here, label - first, 0)
        chosen = jnp.take_along_axis(logits, place[:, None], axis=1)[:, 0]
        chosen = lax.psum(jnp.where(here, chosen, 0), "model")
        return lax.pmean(jnp.mean(jnp.log(total) + largest - chosen), "data")

    sharded = jax.shard_map(
        loss, mesh=mesh, in_specs=(P("data"), P(None, "model"), P("data")), out_specs=P()
    )
    return with_gradients(mesh, sharded)
