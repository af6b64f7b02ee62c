"""Fully sharded data parallelism in Flax NNX whose lookup loses the batch's sharding.

The table of embeddings is split by columns, as the other weights are; so are the activations then.
With CONSTRAINED=1 they are split by the batch.
"""

import os

import jax
import jax.numpy as jnp
from flax import nnx
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

MESH = jax.make_mesh((8,), ("fsdp",), axis_types=(jax.sharding.AxisType.Auto,))
CONSTRAINED = os.environ.get("CONSTRAINED") == "1"


class Block(nnx.Module):
    """Two products with a residual."""

    def __init__(self, rngs: nnx.Rngs):
        self.up = nnx.Linear(1024, 4096, use_bias=False, rngs=rngs, dtype=jnp.bfloat16)
        self.down = nnx.Linear(4096, 1024, use_bias=False, rngs=rngs, dtype=jnp.bfloat16)

    def __call__(self, x: jax.Array) -> jax.Array:
        """Applies the layer to activations."""
        return x + self.down(jax.nn.gelu(self.up(x)))


class Model(nnx.Module):
    """Embeddings and blocks."""

    def __init__(self, rngs: nnx.Rngs):
        self.embed = nnx.Embed(8192, 1024, rngs=rngs, dtype=jnp.bfloat16)
        self.layers = nnx.List([Block(rngs) for _ in range(2)])

    def __call__(self, tokens: jax.Array) -> jax.Array:
        """Applies the model to tokens."""
        x = self.embed(tokens)
        if CONSTRAINED:
            x = jax.lax.with_sharding_constraint(x, NamedSharding(MESH, P("fsdp", None, None)))
        for layer in self.layers:
            x = layer(x)
        return x


graph, state = nnx.split(nnx.eval_shape(lambda: Model(nnx.Rngs(0))))


@jax.jit
def train_step(state, tokens):
    def loss(state):
        return jnp.mean(nnx.merge(graph, state)(tokens).astype(jnp.float32) ** 2)

    value, gradients = jax.value_and_grad(loss)(state)
    return jax.tree.map(lambda p, g: p - 1e-3 * g, state, gradients), value


def sharded(array, *spec):
    return jax.device_put(jnp.zeros(array.shape, array.dtype), NamedSharding(MESH, P(*spec)))


state = jax.tree.map(lambda a: sharded(a, None, "fsdp"), state)
tokens = sharded(jax.ShapeDtypeStruct((8, 2048), jnp.int32), "fsdp", None)
for step in range(3):
    state, value = train_step(state, tokens)
    print(f"loss of step {step}: {value:.3f}")
