"""Train steps in which transfers have compute to hide behind.

The same stack of residual MLPs under three strategies:

  - fully sharded: weights are gathered where they are used, gradients scattered;
  - data parallel: gradients are summed, those of one layer while the layer before it is worked on;
  - activations on the host: what the backward pass needs of every layer waits in host memory.

What hides depends on the chip: of collectives, all-gathers where products carry them, sums only
where SparseCores run them (v7x); copies to and from the host everywhere.
"""

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.ad_checkpoint import checkpoint_name
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from workloads.examples.example import AnyMesh, Program, array, example

LAYERS = 4
RATE = 0.01
Weights = dict[str, jax.Array]


def layer(x: jax.Array, w: Weights) -> jax.Array:
    """A residual MLP; its hidden values have a name for rematerialisation."""
    hidden = checkpoint_name(jax.nn.relu(x @ w["up"]), "hidden")
    return x + hidden @ w["down"]


def train_step(model, weights, x: jax.ShapeDtypeStruct) -> Program:
    """A step of gradient descent on the mean square of what the model makes of x."""

    def step(weights, x: jax.Array) -> tuple:
        def loss(weights) -> jax.Array:
            return jnp.mean(jnp.square(model(weights, x).astype(jnp.float32)))

        value, gradients = jax.value_and_grad(loss)(weights)
        return jax.tree.map(lambda w, g: w - RATE * g, weights, gradients), value

    kept = jax.tree.map(lambda w: w.sharding, weights)
    replicated = NamedSharding(x.sharding.mesh, P())
    return jax.jit(step, out_shardings=(kept, replicated), donate_argnums=0), (weights, x)


def layers_apart(axis: str | None, rows: int, width: int, mesh: AnyMesh) -> Program:
    """A copy of the layer for every layer; weights are split over `axis`, rows over the mesh."""
    rows_axis = mesh.axis_names[0]

    def model(weights: list[Weights], x: jax.Array) -> jax.Array:
        for w in weights:
            x = lax.with_sharding_constraint(layer(x, w), NamedSharding(mesh, P(rows_axis)))
        return x

    weights = [
        {
            "up": array(mesh, (width, 4 * width), jnp.bfloat16, axis),
            "down": array(mesh, (4 * width, width), jnp.bfloat16, None, axis),
        }
        for _ in range(LAYERS)
    ]
    return train_step(model, weights, array(mesh, (rows, width), jnp.bfloat16, rows_axis))


def activations_on_host(rows: int, width: int, mesh: AnyMesh) -> Program:
    """A scan over layers whose inputs and hidden values the policy of the checkpoint parts."""
    policy = jax.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=[],
        names_which_can_be_offloaded=["input"],
        offload_src="device",
        offload_dst="pinned_host",
    )

    def named(x: jax.Array, w: Weights) -> tuple[jax.Array, None]:
        return layer(checkpoint_name(jnp.tanh(x), "input"), w), None

    def model(weights: Weights, x: jax.Array) -> jax.Array:
        return lax.scan(jax.checkpoint(named, policy=policy), x, weights)[0]

    weights = {
        "up": array(mesh, (LAYERS, width, 4 * width), jnp.bfloat16),
        "down": array(mesh, (LAYERS, 4 * width, width), jnp.bfloat16),
    }
    return train_step(model, weights, array(mesh, (rows, width), jnp.bfloat16, "data"))


SMALL = (128, 128)
for _name, _axis, _config, _large in (
    ("fully_sharded_layers", "fsdp", "v5e-4x4", (65536, 2048)),
    ("data_parallel_layers", None, "v7x-2x2x2", (262144, 2048)),
):
    _mesh = _axis or "data"
    example({_mesh: 8}, "v5e-4x2", _name, precision="bfloat16")(
        functools.partial(layers_apart, _axis, *SMALL)
    )
    example({_mesh: 16}, _config, f"{_name}_large")(functools.partial(layers_apart, _axis, *_large))
example({"data": 8}, "v5e-4x2", "activations_on_host", precision="bfloat16")(
    functools.partial(activations_on_host, *SMALL)
)
example({"data": 4}, "v5e-2x2", "activations_on_host_large")(
    functools.partial(activations_on_host, 16384, 2048)
)
