"""A residual MLP (Dense, relu, Dense, add), trained and applied, under four axis-rule tables.

The layers are a Python loop over a dict of weights or one `lax.scan` over stacked weights; the
train step has its shardings on both sides and donates its state.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from workloads.examples import adam
from workloads.examples.example import AnyMesh, Program, example
from workloads.examples.rules import Array, Layout, Rules

SLICE = "v5e-4x2"
MESH = {"data": 2, "model": 4}
BATCH, WIDTH, HIDDEN, LAYERS = 64, 64, 256, 4

# "features" is the width of the activations, "embed" the same width of the weights.
TABLES: dict[str, Rules] = {
    # Data parallel: devices are alike and have all weights.
    "data_parallel": {"batch": ("data", "model")},
    # Hidden width over `model`: one all-reduce per layer and direction.
    "tensor_parallel": {"batch": "data", "hidden": "model"},
    # Weights are stored in shares and gathered when they are used.
    "fully_sharded": {"batch": ("data", "model"), "embed": ("data", "model")},
    # Two-dimensional: weights over both axes, activations stay sharded between the layers.
    "two_dimensional": {
        "batch": "data",
        "embed": "data",
        "hidden": "model",
        "features": "model",
    },
}

LAYER = {
    "w_in": Array((WIDTH, HIDDEN), ("embed", "hidden")),
    "b_in": Array((HIDDEN,), ("hidden",)),
    "w_out": Array((HIDDEN, WIDTH), ("hidden", "embed")),
    "b_out": Array((WIDTH,), ("embed",)),
}
ACTIVATIONS = Array((BATCH, WIDTH), ("batch", "features"))

Model = Callable[[Any, jax.Array], jax.Array]


def layer(layout: Layout, w: dict[str, jax.Array], x: jax.Array) -> jax.Array:
    """Dense, relu, Dense, plus what came in."""
    hidden = jax.nn.relu(x @ w["w_in"] + w["b_in"])
    hidden = layout.constrain(hidden, "batch", "hidden")
    return layout.constrain(x + hidden @ w["w_out"] + w["b_out"], *ACTIVATIONS.axes)


def looped(layout: Layout) -> tuple[Model, Any]:
    """The model with its layers one by one, and its weights."""

    def apply(weights: Any, x: jax.Array) -> jax.Array:
        for number in range(LAYERS):
            x = layer(layout, weights[f"layer_{number}"], x)
        return x

    weights = {f"layer_{n}": layout.shapes(LAYER, jnp.float32) for n in range(LAYERS)}
    return apply, weights


def scanned(layout: Layout) -> tuple[Model, Any]:
    """The model as a scan over stacked weights, and those."""

    def apply(weights: Any, x: jax.Array) -> jax.Array:
        def body(x: jax.Array, w: dict[str, jax.Array]) -> tuple[jax.Array, None]:
            return layer(layout, w, x), None

        return lax.scan(body, x, weights)[0]

    stacked = {n: Array((LAYERS, *a.shape), (None, *a.axes)) for n, a in LAYER.items()}
    return apply, layout.shapes(stacked, jnp.float32)


FORMS = {"loop": looped, "scan": scanned}


def train(form: str, table: str, mesh: AnyMesh) -> Program:
    """One step of Adam on a mean squared error."""
    layout = Layout(mesh, TABLES[table])
    apply, weights = FORMS[form](layout)

    def train_step(
        state: adam.TrainState, x: jax.Array, target: jax.Array
    ) -> tuple[adam.TrainState, jax.Array]:
        def loss(weights: Any) -> jax.Array:
            return jnp.mean(jnp.square(apply(weights, x) - target))

        value, gradients = jax.value_and_grad(loss)(state.weights)
        return adam.update(state, gradients), value

    state = adam.state_like(weights, layout.sharding())
    x = layout.shape(ACTIVATIONS, jnp.float32)
    step = jax.jit(
        train_step,
        in_shardings=(adam.shardings(state), x.sharding, x.sharding),
        out_shardings=(adam.shardings(state), layout.sharding()),
        donate_argnums=0,
    )
    return step, (state, x, x)


def infer(form: str, table: str, mesh: AnyMesh) -> Program:
    """The model applied to a batch."""
    layout = Layout(mesh, TABLES[table])
    apply, weights = FORMS[form](layout)
    x = layout.shape(ACTIVATIONS, jnp.float32)
    step = jax.jit(
        lambda weights, x: apply(weights, x),
        in_shardings=(jax.tree.map(lambda w: w.sharding, weights), x.sharding),
        out_shardings=x.sharding,
    )
    return step, (weights, x)


for _form in FORMS:
    for _table in TABLES:
        example(MESH, SLICE, f"residual_mlp_train_{_form}_{_table}", ranges=adam.RANGES)(
            functools.partial(train, _form, _table)
        )
        example(MESH, SLICE, f"residual_mlp_infer_{_form}_{_table}")(
            functools.partial(infer, _form, _table)
        )
