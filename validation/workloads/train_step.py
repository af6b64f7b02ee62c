"""A train step of the decoder: cross-entropy, its gradient, Adam, the state donated."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from validation.workloads.decoder import Decoder, Weights, layers_output, logits_of
from workloads.examples.example import AnyMesh, Program
from workloads.examples.rules import Array, Layout, Rules


class TrainState(NamedTuple):
    """Arguments and results of a step: weights, first and second moments, the count of steps."""

    count: Any
    weights: Any
    mean: Any
    square: Any


@dataclasses.dataclass(frozen=True)
class Step:
    """Parts of the step beside the model.

    `clip` bounds the norm of all gradients together, 0 leaves them alone. `decay` is that of
    weights. `norms`: the step reports the norms of gradients, clipped and not, and of the weights.
    `vocabulary_tiles`: logits and loss are computed for so many parts of the batch in turn.
    """

    clip: float = 0.0
    decay: float = 0.0
    norms: bool = False
    vocabulary_tiles: int = 1


def adam(step: Step, state: TrainState, gradients: Any) -> TrainState:
    """One step of Adam; that both moments start at zero is made up for in the step size."""
    rate, decay_mean, decay_square = 1e-3, 0.9, 0.999
    count = state.count + 1
    steps = count.astype(jnp.float32)
    size = rate * jnp.sqrt(1 - decay_square**steps) / (1 - decay_mean**steps)
    mean = jax.tree.map(lambda m, g: decay_mean * m + (1 - decay_mean) * g, state.mean, gradients)
    square = jax.tree.map(
        lambda v, g: decay_square * v + (1 - decay_square) * (g * g), state.square, gradients
    )

    def update(w: jax.Array, m: jax.Array, v: jax.Array) -> jax.Array:
        change = size * (m / (jnp.sqrt(v) + 1e-8))
        if step.decay:
            change += rate * step.decay * w
        return (w - change).astype(w.dtype)

    weights = jax.tree.map(update, state.weights, mean, square)
    return TrainState(count, weights, mean, square)


def norm(tree: Any) -> jax.Array:
    """Returns the norm of all arrays of a tree together."""
    return jnp.sqrt(sum(jnp.sum(jnp.square(x.astype(jnp.float32))) for x in jax.tree.leaves(tree)))


def clipped(gradients: Any, most: float, length: jax.Array) -> Any:
    """Gradients scaled so that their norm, `length`, is `most` or less."""
    return jax.tree.map(
        lambda g: jnp.where(length < most, g, (g / length.astype(g.dtype)) * most), gradients
    )


def cross_entropy(model: Decoder, layout: Layout, logits: jax.Array, targets: jax.Array) -> Any:
    """Returns the loss of every position."""
    wanted = jax.nn.one_hot(targets, model.vocabulary, dtype=logits.dtype)
    wanted = layout.constrain(wanted, "batch", None, "vocabulary")
    return jax.nn.logsumexp(logits, axis=-1) - jnp.sum(logits * wanted, axis=-1)


def loss_of(
    model: Decoder,
    step: Step,
    layout: Layout,
    weights: Weights,
    tokens: jax.Array,
    targets: jax.Array,
) -> jax.Array:
    """The mean cross-entropy of all positions."""
    x = layers_output(model, layout, weights, tokens)
    table = weights["unembedding"]

    def of(x: jax.Array, targets: jax.Array) -> jax.Array:
        return cross_entropy(model, layout, logits_of(model, layout, table, x), targets)

    if step.vocabulary_tiles == 1:
        return jnp.mean(of(x, targets))

    # Parts of each sequence in turn: their logits are never all in memory, and computed again in
    # the backward pass.
    def tiles(array: jax.Array, *axes: str | None) -> jax.Array:
        count = step.vocabulary_tiles
        tiled = array.reshape(array.shape[0], count, -1, *array.shape[2:]).swapaxes(0, 1)
        return layout.constrain(tiled, None, "batch", None, *axes)

    def add(total: jax.Array, part: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        return total + jnp.sum(jax.checkpoint(of)(*part)), None

    parts = (tiles(x, "width"), tiles(targets))
    total, _ = lax.scan(add, jnp.zeros((), jnp.float32), parts)
    return total / targets.size


def train_step(model: Decoder, mesh: AnyMesh, rules: Rules, step: Step | None = None) -> Program:
    """The step, jitted, and its arguments: the state, tokens and the tokens wanted next."""
    options = step or Step()
    layout = Layout(mesh, rules)

    def one_step(
        state: TrainState, tokens: jax.Array, targets: jax.Array
    ) -> tuple[TrainState, Any]:
        def loss(weights: Weights) -> jax.Array:
            return loss_of(model, options, layout, weights, tokens, targets)

        value, gradients = jax.value_and_grad(loss)(state.weights)
        used, results = gradients, value
        if options.clip:
            used = clipped(gradients, options.clip, norm(gradients))
        new = adam(options, state, used)
        if options.norms:
            results = (value, norm(gradients), norm(used), norm(new.weights))
        return new, results

    weights = model.arguments(layout)
    count = jax.ShapeDtypeStruct((), jnp.int32, sharding=layout.sharding())
    state = TrainState(count, weights, weights, weights)
    tokens = layout.shape(Array((model.batch, model.sequence), ("batch", None)), jnp.int32)
    kept = jax.tree.map(lambda leaf: leaf.sharding, state)
    scalars = layout.sharding()
    results = (scalars,) * 4 if options.norms else scalars
    jitted = jax.jit(one_step, out_shardings=(kept, results), donate_argnums=0)
    return jitted, (state, tokens, tokens)
