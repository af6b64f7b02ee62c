"""Seven transformations in one train step: jit, grad, vmap, scan, remat, pmap and a 2-D mesh.

The model is a stack of tanh layers, written for a single example; `vmap` makes it a batch, `scan`
a stack, `checkpoint` lets the backward pass recompute, `value_and_grad(has_aux=True)` returns
metrics beside the loss. What differs is how it is spread over devices.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from workloads.examples.example import AnyMesh, Program, array, example

SLICE = "v5e-4x2"
GRID = {"data": 4, "model": 2}
DEVICES = 8
BATCH, WIDTH, LAYERS, RATE = 64, 128, 4, 0.1

Metrics = dict[str, jax.Array]


def apply(weights: jax.Array, x: jax.Array) -> jax.Array:
    """One example through all layers."""

    @jax.checkpoint
    def layer(x: jax.Array, w: jax.Array) -> tuple[jax.Array, None]:
        return jnp.tanh(x @ w), None

    return lax.scan(layer, x, weights)[0]


def loss(weights: jax.Array, x: jax.Array, target: jax.Array) -> tuple[jax.Array, Metrics]:
    """The mean squared error of a batch, and what else is worth knowing."""
    out = jax.vmap(apply, in_axes=(None, 0))(weights, x)
    error = jnp.mean(jnp.square(out - target))
    return error, {"largest": jnp.max(jnp.abs(out)), "mean": jnp.mean(out)}


def step(
    weights: jax.Array, x: jax.Array, target: jax.Array
) -> tuple[jax.Array, jax.Array, Metrics]:
    """Gradient descent."""
    (value, metrics), gradient = jax.value_and_grad(loss, has_aux=True)(weights, x, target)
    return weights - RATE * gradient, value, metrics


@example(mesh=GRID, config=SLICE)
def transformations_jit(mesh: AnyMesh) -> Program:
    """Jitted over data x model; the weights are donated."""
    weights = array(mesh, (LAYERS, WIDTH, WIDTH), jnp.float32, None, None, "model")
    x = array(mesh, (BATCH, WIDTH), jnp.float32, "data", None)
    jitted = jax.jit(
        step,
        in_shardings=(weights.sharding, x.sharding, x.sharding),
        out_shardings=(weights.sharding, None, None),
        donate_argnums=0,
    )
    return jitted, (weights, x, x)


@example(mesh={"data": DEVICES}, config=SLICE)
def transformations_pmap(mesh: AnyMesh) -> Program:
    """Pmapped over the data: every device has a copy of the weights and averages the gradients.

    pmap takes all devices there are; `mesh` only says how its arguments are laid out.
    """

    def replica_step(weights: jax.Array, x: jax.Array, target: jax.Array) -> tuple[Any, ...]:
        (value, metrics), gradient = jax.value_and_grad(loss, has_aux=True)(weights, x, target)
        gradient, value = lax.pmean((gradient, value), "data")
        metrics = {
            "largest": lax.pmax(metrics["largest"], "data"),
            "mean": lax.pmean(metrics["mean"], "data"),
        }
        return weights - RATE * gradient, value, metrics

    per_device = BATCH // DEVICES
    return jax.pmap(replica_step, axis_name="data", donate_argnums=0), (
        array(mesh, (DEVICES, LAYERS, WIDTH, WIDTH), jnp.float32, "data"),
        array(mesh, (DEVICES, per_device, WIDTH), jnp.float32, "data"),
        array(mesh, (DEVICES, per_device, WIDTH), jnp.float32, "data"),
    )


@example(mesh=GRID, config=SLICE)
def transformations_accumulated(mesh: AnyMesh) -> Program:
    """The jitted step with its batch in a scan of micro-batches, gradients added up."""
    parts = 4

    def accumulated(weights: jax.Array, x: jax.Array, target: jax.Array) -> tuple[Any, ...]:
        spread = NamedSharding(mesh, P(None, "data", None))

        def split(x: jax.Array) -> jax.Array:
            return lax.with_sharding_constraint(x.reshape(parts, BATCH // parts, WIDTH), spread)

        def add(total: jax.Array, part: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, Any]:
            (value, _), gradient = jax.value_and_grad(loss, has_aux=True)(weights, *part)
            return total + gradient / parts, value

        total, values = lax.scan(add, jnp.zeros_like(weights), (split(x), split(target)))
        return weights - RATE * total, values

    weights = array(mesh, (LAYERS, WIDTH, WIDTH), jnp.float32, None, None, "model")
    x = array(mesh, (BATCH, WIDTH), jnp.float32, "data", None)
    jitted = jax.jit(accumulated, out_shardings=(weights.sharding, None), donate_argnums=0)
    return jitted, (weights, x, x)
