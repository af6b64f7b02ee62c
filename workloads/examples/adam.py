"""Adam, written out: https://arxiv.org/abs/1412.6980, algorithm 1."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding

RATE, DECAY_MEAN, DECAY_SQUARE, EPSILON = 1e-3, 0.9, 0.999, 1e-8

# Random moments would be no moments: squares are not negative, and never near zero here, so that
# what divides by their root is well-conditioned.
RANGES = {"count": (0, 1000), "square": (0.5, 1.5)}


class TrainState(NamedTuple):
    """Arguments and results of a step: weights, first and second moments, the count of steps."""

    count: Any
    weights: Any
    mean: Any
    square: Any


def state_like(weights: Any, replicated: NamedSharding) -> TrainState:
    """The state as arguments, for weights given as `jax.ShapeDtypeStruct`s; moments like them."""
    count = jax.ShapeDtypeStruct((), jnp.int32, sharding=replicated)
    return TrainState(count, weights, weights, weights)


def shardings(state: TrainState) -> TrainState:
    """The shardings of such a state."""
    return jax.tree.map(lambda leaf: leaf.sharding, state)


def update(state: TrainState, gradients: Any) -> TrainState:
    """One step of the optimiser."""
    count = state.count + 1
    mean = jax.tree.map(lambda m, g: DECAY_MEAN * m + (1 - DECAY_MEAN) * g, state.mean, gradients)
    square = jax.tree.map(
        lambda v, g: DECAY_SQUARE * v + (1 - DECAY_SQUARE) * g * g, state.square, gradients
    )
    # Both moments start at zero, which the first steps have to make up for.
    correction_mean = 1 - DECAY_MEAN ** count.astype(jnp.float32)
    correction_square = 1 - DECAY_SQUARE ** count.astype(jnp.float32)
    weights = jax.tree.map(
        lambda w, m, v: (
            w - RATE * (m / correction_mean) / (jnp.sqrt(v / correction_square) + EPSILON)
        ),
        state.weights,
        mean,
        square,
    )
    return TrainState(count, weights, mean, square)
