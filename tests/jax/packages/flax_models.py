"""Flax: a decoder of layers that are scanned (NNX and Linen) and a Muon optimizer from Optax."""

from typing import Any

import jax
import jax.numpy as jnp
import optax
import shapes
from flax import linen, nnx
from jax.sharding import PartitionSpec as P


def nnx_decoder() -> Any:
    """NNX: a 24-layer decoder of width 2,048, rematerialized, over data and model."""
    over = shapes.mesh(data=4, model=4)
    width, heads, vocabulary, length = 2048, 16, 32000, 2048

    class Layer(nnx.Module):
        def __init__(self, rngs: nnx.Rngs):
            self.norms = nnx.List([nnx.RMSNorm(width, rngs=rngs) for _ in range(2)])
            self.attention = nnx.MultiHeadAttention(
                heads, width, dtype=jnp.bfloat16, decode=False, rngs=rngs
            )
            self.up = nnx.Linear(width, 4 * width, dtype=jnp.bfloat16, rngs=rngs)
            self.down = nnx.Linear(4 * width, width, dtype=jnp.bfloat16, rngs=rngs)

        def __call__(self, x: jax.Array) -> jax.Array:
            x = shapes.along_batch(x, over)
            mask = nnx.make_causal_mask(jnp.ones(x.shape[:2]))
            x = x + self.attention(self.norms[0](x), mask=mask)
            return x + self.down(jax.nn.gelu(self.up(self.norms[1](x))))

    class Decoder(nnx.Module):
        def __init__(self, rngs: nnx.Rngs):
            @nnx.split_rngs(splits=24)
            @nnx.vmap(in_axes=0, out_axes=0)
            def layers(rngs: nnx.Rngs) -> Layer:
                return Layer(rngs)

            self.embed = nnx.Embed(vocabulary, width, rngs=rngs)
            self.layers = layers(rngs)

        def __call__(self, tokens: jax.Array) -> jax.Array:
            @nnx.scan(in_axes=(0, nnx.Carry), out_axes=nnx.Carry)
            @nnx.remat
            def apply(layer: Layer, x: jax.Array) -> jax.Array:
                return layer(x)

            x = apply(self.layers, self.embed(tokens).astype(jnp.bfloat16))
            return self.embed.attend(x)

    model = nnx.eval_shape(lambda: Decoder(nnx.Rngs(0)))
    graph, params, rest = nnx.split(model, nnx.Param, ...)

    def loss(params: Any, rest: Any, tokens: jax.Array) -> jax.Array:
        logits = nnx.merge(graph, params, rest)(tokens)
        return shapes.cross_entropy(logits[:, :-1], tokens[:, 1:])

    optimizer = optax.adamw(1e-4)
    # Heads and the hidden layer over model, what they come from and lead to over data.
    stated = {
        (24, width, heads, width // heads): P(None, "data", "model"),
        (24, heads, width // heads, width): P(None, "model", None, "data"),
        (24, width, 4 * width): P(None, "data", "model"),
        (24, 4 * width, width): P(None, "model", "data"),
        (vocabulary, width): P("model", "data"),
    }
    params = shapes.sharded(params, over, stated=stated)
    state = shapes.sharded(shapes.abstract(optimizer.init, params), over, stated=stated)
    tokens = shapes.shaped(over, (4 * 4, length), jnp.int32, "data")
    rest = shapes.replicated(rest, over)
    return shapes.train_step(loss, optimizer), (params, state, rest, tokens)


def linen_muon() -> Any:
    """Linen: a pre-norm transformer of eight layers, fully sharded, trained by Optax's Muon."""
    over = shapes.mesh(data=8)
    width = 1024

    class Layer(linen.Module):
        @linen.compact
        def __call__(self, x: jax.Array, _: Any) -> Any:
            x = shapes.along_batch(x, over)
            normed = linen.LayerNorm(dtype=jnp.bfloat16)(x)
            mask = linen.make_causal_mask(x[..., 0])
            x = x + linen.MultiHeadDotProductAttention(16, dtype=jnp.bfloat16)(normed, mask=mask)
            normed = linen.LayerNorm(dtype=jnp.bfloat16)(x)
            hidden = linen.gelu(linen.Dense(4 * width, dtype=jnp.bfloat16)(normed))
            return x + linen.Dense(width, dtype=jnp.bfloat16)(hidden), None

    class Model(linen.Module):
        @linen.compact
        def __call__(self, tokens: jax.Array) -> jax.Array:
            x = linen.Embed(32000, width, dtype=jnp.bfloat16)(tokens)
            layers = linen.scan(
                Layer, variable_axes={"params": 0}, split_rngs={"params": True}, length=8
            )
            x, _ = layers()(x, None)
            return linen.Dense(32000, dtype=jnp.bfloat16)(x)

    model = Model()

    def loss(params: Any, tokens: jax.Array) -> jax.Array:
        return shapes.cross_entropy(model.apply(params, tokens)[:, :-1], tokens[:, 1:])

    optimizer = optax.MultiSteps(optax.contrib.muon(0.02), every_k_schedule=4)
    tokens = shapes.shaped(over, (8 * 8, 1024), jnp.int32, "data")
    params = shapes.abstract(model.init, shapes.key(), tokens)
    state = shapes.abstract(optimizer.init, params)
    trees = (shapes.sharded(tree, over, "data") for tree in (params, state))
    return shapes.train_step(loss, optimizer.gradient_transformation()), (*trees, tokens)
