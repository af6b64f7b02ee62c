"""The kernels of Tokamax for TPUs, forwards and backwards, each inside of a shard_map.

Layer norm and gated linear unit have none for TPUs there: they are what Tokamax does instead.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import shapes
import tokamax
from jax.sharding import PartitionSpec as P

BF16 = jnp.bfloat16


def _gradients(mapped: Callable[..., jax.Array], *numbers: int) -> Any:
    def loss(*arguments: jax.Array) -> jax.Array:
        return jnp.square(mapped(*arguments).astype(jnp.float32)).mean()

    return jax.jit(jax.grad(loss, argnums=numbers))


def tokamax_attention() -> Any:
    """Causal attention of 32 heads that share 8 keys and values, over batch and heads."""
    over = shapes.mesh(data=4, model=4)
    attention = functools.partial(
        tokamax.dot_product_attention, is_causal=True, implementation="mosaic_tpu"
    )
    spec = P("data", None, "model")
    mapped = jax.shard_map(
        attention, mesh=over, in_specs=(spec,) * 3, out_specs=spec, check_vma=False
    )
    q = shapes.shaped(over, (4, 4096, 32, 128), BF16, *spec)
    kv = shapes.shaped(over, (4, 4096, 8, 128), BF16, *spec)
    return _gradients(mapped, 0, 1, 2), (q, kv, kv)


def tokamax_cross_entropy() -> Any:
    """The loss of 4,096 tokens over a vocabulary of 128,000 without its logits, data parallel."""
    over = shapes.mesh(data=8)

    def loss(x: jax.Array, labels: jax.Array, weights: jax.Array) -> jax.Array:
        value = tokamax.linear_softmax_cross_entropy_loss(
            x, labels, weights, reduction="mean", implementation="mosaic_tpu"
        )
        return jax.lax.pmean(value, "data")

    mapped = jax.shard_map(
        loss, mesh=over, in_specs=(P("data"), P("data"), P()), out_specs=P(), check_vma=False
    )
    x = shapes.shaped(over, (8 * 4096, 2048), BF16, "data")
    labels = shapes.shaped(over, (8 * 4096,), jnp.int32, "data")
    weights = shapes.shaped(over, (2048, 128_000), BF16)
    return jax.jit(jax.grad(mapped, argnums=(0, 2))), (x, labels, weights)


def tokamax_ragged_dot() -> Any:
    """Grouped products of 64 experts, 8 on each chip, up and down."""
    over = shapes.mesh(expert=8)
    tokens, width, hidden, experts = 8192, 2048, 1024, 64

    def layer(x: jax.Array, up: jax.Array, down: jax.Array, sizes: jax.Array) -> jax.Array:
        dot = functools.partial(tokamax.ragged_dot, implementation="mosaic_tpu")
        return dot(jax.nn.silu(dot(x, up, sizes)), down, sizes)

    spec = P("expert")
    mapped = jax.shard_map(layer, mesh=over, in_specs=(spec,) * 4, out_specs=spec, check_vma=False)
    x = shapes.shaped(over, (8 * tokens, width), BF16, "expert")
    up = shapes.shaped(over, (experts, width, hidden), BF16, "expert")
    down = shapes.shaped(over, (experts, hidden, width), BF16, "expert")
    sizes = shapes.shaped(over, (experts,), jnp.int32, "expert")
    return _gradients(mapped, 0, 1, 2), (x, up, down, sizes)


def tokamax_feed_forward() -> Any:
    """Layer norm and a gated linear unit of 2,048 and 8,192, over data and model."""
    over = shapes.mesh(data=8, model=4)

    def layer(x: jax.Array, scale: jax.Array, weights: jax.Array, down: jax.Array) -> jax.Array:
        normed = tokamax.layer_norm(x, scale, None, subtract_mean=False)
        hidden = tokamax.gated_linear_unit(normed, weights, activation=jax.nn.silu)
        return x + jax.lax.psum(hidden @ down, "model")

    weights_spec = P(None, None, "model")
    mapped = jax.shard_map(
        layer,
        mesh=over,
        in_specs=(P("data"), P(), weights_spec, P("model")),
        out_specs=P("data"),
        check_vma=False,
    )
    x = shapes.shaped(over, (8 * 4, 2048, 2048), BF16, "data")
    scale = shapes.shaped(over, (2048,), BF16)
    weights = shapes.shaped(over, (2048, 2, 8192), BF16, *weights_spec)
    down = shapes.shaped(over, (8192, 2048), BF16, "model")
    return _gradients(mapped, 1, 2, 3), (x, scale, weights, down)
