"""Programs made of layers: an elementwise chain, a two-layer MLP, eight MLPs in a loop."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from workloads.examples.example import AnyMesh, Program, array, example

SLICE = "v5e-4x2"
GRID = {"X": 4, "Y": 2}
DATA_MODEL = {"data": 4, "model": 2}
BATCH, WIDTH, HIDDEN, LAYERS = 512, 1024, 4096, 8


@example(mesh=GRID, config=SLICE)
def elementwise_chain(mesh: AnyMesh) -> Program:
    """Sharded the same all along: no communication, and one pass over memory if fused."""

    def elementwise_chain(x: jax.Array, y: jax.Array) -> jax.Array:
        z = jnp.tanh(x) * y + 0.5
        return jnp.maximum(z, -z) * jnp.exp(-x * x)

    arguments = (array(mesh, (4096, 2048), jnp.float32, "X", "Y"),) * 2
    return jax.jit(elementwise_chain), arguments


def mlp(x: jax.Array, w_in: jax.Array, w_out: jax.Array) -> jax.Array:
    """Two products around an activation; a sharded hidden width leaves partial sums."""
    return jax.nn.gelu(x @ w_in) @ w_out


@example(mesh=DATA_MODEL, config=SLICE)
def mlp_two_layers(mesh: AnyMesh) -> Program:
    """Data x model: x[data, -] @ w[-, model] @ w[model, -], one all-reduce over model."""
    step = jax.jit(mlp, out_shardings=NamedSharding(mesh, P("data", None)))
    return step, (
        array(mesh, (BATCH, WIDTH), jnp.bfloat16, "data", None),
        array(mesh, (WIDTH, HIDDEN), jnp.bfloat16, None, "model"),
        array(mesh, (HIDDEN, WIDTH), jnp.bfloat16, "model", None),
    )


@example(mesh=DATA_MODEL, config=SLICE)
def mlp_scan_8_layers(mesh: AnyMesh) -> Program:
    """Eight residual MLP layers, weights stacked, as one `lax.scan`."""

    def mlp_scan_8_layers(x: jax.Array, w_in: jax.Array, w_out: jax.Array) -> jax.Array:
        def layer(x: jax.Array, weights: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
            return x + mlp(x, *weights), None

        return lax.scan(layer, x, (w_in, w_out))[0]

    step = jax.jit(mlp_scan_8_layers, out_shardings=NamedSharding(mesh, P("data", None)))
    return step, (
        array(mesh, (BATCH, WIDTH), jnp.bfloat16, "data", None),
        array(mesh, (LAYERS, WIDTH, HIDDEN), jnp.bfloat16, None, None, "model"),
        array(mesh, (LAYERS, HIDDEN, WIDTH), jnp.bfloat16, None, "model", None),
    )
