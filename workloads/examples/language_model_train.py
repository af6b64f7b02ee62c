"""One train step of the language model under five tables: float32 master weights, Adam, remat."""

import functools

import jax
import jax.numpy as jnp

from workloads.examples import adam
from workloads.examples.example import AnyMesh, Program, example
from workloads.examples.language_model import TABLES, Model, Weights, forward
from workloads.examples.rules import Array, Layout

SLICE = "v5e-4x2"
MESHES = {
    "data_parallel": {"data": 8, "model": 1},
    "fully_sharded": {"data": 8, "model": 1},
    "tensor_parallel": {"data": 2, "model": 4},
    "sequence_parallel": {"data": 2, "model": 4},
    "fully_sharded_tensor_parallel": {"data": 4, "model": 2},
}
MODEL = Model()
TOKENS = Array((8, 64), ("batch", None))


def train(table: str, mesh: AnyMesh) -> Program:
    """The step, its state and a batch."""
    layout = Layout(mesh, TABLES[table])

    def train_step(
        state: adam.TrainState, tokens: jax.Array, targets: jax.Array
    ) -> tuple[adam.TrainState, jax.Array]:
        def loss(weights: Weights) -> jax.Array:
            logits = forward(layout, weights, tokens)
            wanted = jax.nn.one_hot(targets, MODEL.vocabulary, dtype=logits.dtype)
            chosen = jnp.sum(logits * wanted, axis=-1)
            return jnp.mean(jax.nn.logsumexp(logits, axis=-1) - chosen)

        value, gradients = jax.value_and_grad(loss)(state.weights)
        return adam.update(state, gradients), value

    state = adam.state_like(layout.shapes(MODEL.arrays(), jnp.float32), layout.sharding())
    tokens = layout.shape(TOKENS, jnp.int32)
    step = jax.jit(
        train_step,
        in_shardings=(adam.shardings(state), tokens.sharding, tokens.sharding),
        out_shardings=(adam.shardings(state), layout.sharding()),
        donate_argnums=0,
    )
    return step, (state, tokens, tokens)


_RANGES = {
    **adam.RANGES,
    "tokens": (0, MODEL.vocabulary),
    "targets": (0, MODEL.vocabulary),
}
for _table, _mesh in MESHES.items():
    example(_mesh, SLICE, f"language_model_train_{_table}", ranges=_RANGES, precision="bfloat16")(
        functools.partial(train, _table)
    )
