"""Shapes in place of weights: parameters that are never made, sharded over a mesh."""

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

# Leaves smaller than this stay whole: scales and biases are not worth a collective.
SMALLEST_SHARDED = 1 << 16


def mesh(**axes: int) -> AbstractMesh:
    """`mesh(data=4, model=2)`."""
    return AbstractMesh(tuple(axes.values()), tuple(axes), (AxisType.Auto,) * len(axes))


def shaped(
    over: AbstractMesh, shape: Sequence[int], dtype: Any = jnp.float32, *axes: Any
) -> jax.ShapeDtypeStruct:
    """One array, with these mesh axes along its dimensions."""
    return jax.ShapeDtypeStruct(tuple(shape), dtype, sharding=NamedSharding(over, P(*axes)))


def abstract(function: Callable[..., Any], *arguments: Any) -> Any:
    """Returns the shapes of the function's results."""
    return jax.eval_shape(function, *arguments)


def key() -> jax.Array:
    """A key for initializers that only their shapes are asked of."""
    return jax.random.key(0)


def replicated(tree: Any, over: AbstractMesh) -> Any:
    """Returns the tree with every leaf whole on every device."""
    return jax.tree.map(lambda leaf: shaped(over, leaf.shape, leaf.dtype), tree)


def batched(tree: Any, over: AbstractMesh, axis: Any = "data") -> Any:
    """Returns the tree with every leaf split along its first dimension."""
    return jax.tree.map(lambda leaf: shaped(over, leaf.shape, leaf.dtype, axis), tree)


def sharded(
    tree: Any, over: AbstractMesh, *axes: str, stated: dict[tuple[int, ...], P] | None = None
) -> Any:
    """Every large leaf split along its longest dimensions that divide, one for each of `axes`.

    Over one axis that is fully sharded data parallelism, over a second one something like tensor
    parallelism: which dimension it takes is left to sizes, or `stated` for shapes.
    """

    def one(leaf: Any) -> jax.ShapeDtypeStruct:
        if stated and leaf.shape in stated:
            return shaped(over, leaf.shape, leaf.dtype, *stated[leaf.shape])
        spec: list[str | None] = [None] * len(leaf.shape)
        if math.prod(leaf.shape) >= SMALLEST_SHARDED:
            longest = sorted(range(len(leaf.shape)), key=lambda d: -leaf.shape[d])
            for axis in axes:
                size = over.shape[axis]
                free = [d for d in longest if spec[d] is None and leaf.shape[d] % size == 0]
                if free:
                    spec[free[0]] = axis
        return shaped(over, leaf.shape, leaf.dtype, *spec)

    return jax.tree.map(one, tree)


def by_rules(tree: Any, over: AbstractMesh, rules: Sequence[tuple[str, P]]) -> Any:
    """Every leaf as the first rule says whose expression is found in its path.

    That is how most trainers state shardings. Leaves that no rule finds stay whole; a rule states
    the last dimensions of a leaf, those before them (such as layers that are scanned) stay whole.
    """

    def one(path: Any, leaf: Any) -> jax.ShapeDtypeStruct:
        name = jax.tree_util.keystr(path, simple=True, separator="/")
        spec = next((spec for rule, spec in rules if re.search(rule, name)), P())
        if len(spec) > len(leaf.shape):
            spec = P()
        whole = (None,) * (len(leaf.shape) - len(spec))
        return shaped(over, leaf.shape, leaf.dtype, *whole, *spec)

    return jax.tree_util.tree_map_with_path(one, tree)


def gathered(params: Any, like: Any, axis: str) -> Any:
    """Parameters as they are used: whole over `axis`, over which `like` keeps them in parts.

    Without this, propagation may split activations by the parts of weights instead of the batch.
    Gradients come back in parts, so that they are reduced and scattered.
    """

    def one(value: jax.Array, shape: jax.ShapeDtypeStruct) -> jax.Array:
        spec = (None if name == axis else name for name in shape.sharding.spec)
        whole = NamedSharding(shape.sharding.mesh, P(*spec))

        @jax.custom_vjp
        def gather(part: jax.Array) -> jax.Array:
            return jax.lax.with_sharding_constraint(part, whole)

        def scatter(_: None, gradient: jax.Array) -> tuple[jax.Array]:
            return (jax.lax.with_sharding_constraint(gradient, shape.sharding),)

        gather.defvjp(lambda part: (gather(part), None), scatter)
        return gather(value)

    return jax.tree.map(one, params, like)


def along_batch(value: jax.Array, over: AbstractMesh) -> jax.Array:
    """Activations split along the batch, as large models constrain them in every layer."""
    return jax.lax.with_sharding_constraint(value, NamedSharding(over, P("data")))


def as_dtype(tree: Any, dtype: Any) -> Any:
    """Shapes with floating point leaves of another type."""

    def one(leaf: Any) -> Any:
        floating = jnp.issubdtype(leaf.dtype, jnp.floating)
        return jax.ShapeDtypeStruct(leaf.shape, dtype if floating else leaf.dtype)

    return jax.tree.map(one, tree)


def train_step(
    loss: Callable[..., jax.Array], optimizer: optax.GradientTransformation
) -> Callable[..., Any]:
    """`step(params, state, *batch)` that donates both, as every training loop does."""

    def step(params: Any, state: Any, *batch: Any) -> Any:
        value, gradients = jax.value_and_grad(loss)(params, *batch)
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, value

    return jax.jit(step, donate_argnums=(0, 1))


def cross_entropy(logits: jax.Array, labels: jax.Array) -> jax.Array:
    """Mean over tokens, in float32."""
    losses = optax.softmax_cross_entropy_with_integer_labels(logits.astype(jnp.float32), labels)
    return losses.mean()
