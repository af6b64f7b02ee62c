"""Decoding with a decoder split over devices by heads and hidden columns, one sequence at a time.

As the FairScale layers of LLaMA split it: products of columns, then of rows with an all-reduce of
what they leave; the embedding along its width, the logits along the vocabulary, both gathered.
Weights are [outputs, inputs], as PyTorch keeps them. Layers are copies, each with arrays of its
own. The next token is drawn from the likeliest ones that together have a given probability, by
every device alike.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec

from validation.workloads.decoder import Decoder, Weights, normalize, turned
from workloads.examples.example import AnyMesh, Program
from workloads.examples.rules import Array, Layout, Rules

AXIS = "model"
AXES: Rules = {"heads": AXIS, "mlp": AXIS, "vocabulary": AXIS, "width": AXIS}
Cache = list[tuple[jax.Array, jax.Array]]  # Keys and values of each layer


@dataclasses.dataclass(frozen=True)
class Sampling:
    """Sampling of the next token from the logits; with a share of 0 it is the likeliest one."""

    temperature: float = 0.8
    share: float = 0.95


def weights_of(model: Decoder, layout: Layout) -> Weights:
    """Returns the weights as arguments: a list of layers."""
    norm = Array((model.width,), (None,))
    into = Array((model.heads, model.head, model.width), ("heads", None, None))
    widening = Array((model.mlp, model.width), ("mlp", None))
    layer = {
        "scale_attention": norm,
        **dict.fromkeys(("query", "key", "value"), into),
        "out": Array((model.width, model.heads, model.head), (None, "heads", None)),
        "scale_mlp": norm,
        **dict.fromkeys(("gate", "up"), widening),
        "down": Array((model.width, model.mlp), (None, "mlp")),
    }
    outside = {
        "embedding": Array((model.vocabulary, model.width), (None, "width")),
        "scale_final": norm,
        "unembedding": Array((model.vocabulary, model.width), ("vocabulary", None)),
    }
    layers = [layout.shapes(layer, model.weights) for _ in range(model.layers)]
    return {"layers": layers, **layout.shapes(outside, model.weights)}


def sample(sampling: Sampling, logits: jax.Array, noise: jax.Array) -> jax.Array:
    """The next token of each row; `noise` is the state of a generator of random bits."""
    if sampling.share == 0:
        return jnp.argmax(logits, axis=-1).astype(jnp.int32)
    likely = jax.nn.softmax(logits / sampling.temperature)
    words = lax.broadcasted_iota(jnp.int32, likely.shape, 1)
    falling, words = lax.sort((-likely, words), num_keys=1)
    likely = -falling
    before = jnp.cumsum(likely, axis=-1) - likely
    kept = jnp.where(before > sampling.share, 0, likely)
    key = jax.random.wrap_key_data(noise, impl="rbg")
    drawn = jax.random.categorical(key, jnp.log(kept), axis=-1)
    return jnp.take_along_axis(words, drawn[:, None], axis=-1)[:, 0]


def decode_layer(
    model: Decoder, position: jax.Array, x: jax.Array, w: Weights, cache: tuple[jax.Array, ...]
) -> tuple[jax.Array, tuple[jax.Array, ...]]:
    """One layer for one token: x [batch, width], the same on every device."""
    normal = normalize(x, w["scale_attention"], model.norm_epsilon)

    def heads(name: str) -> jax.Array:
        return jnp.einsum("bw,hdw->bhd", normal, w[name])[:, None]

    def turn(x: jax.Array) -> jax.Array:
        return turned(x, position[None].astype(jnp.float32), model.longest_turn, jnp.float32)

    query, key, value = turn(heads("query")), turn(heads("key")), heads("value")
    cache = tuple(
        lax.dynamic_update_slice(c, new, (0, position, 0, 0))
        for c, new in zip(cache, (key, value), strict=True)
    )
    scores = jnp.einsum("bqhd,bkhd->bhqk", query, cache[0]) * model.head**-0.5
    seen = jnp.arange(model.sequence) <= position
    shares = jax.nn.softmax(jnp.where(seen, scores.astype(jnp.float32), -1e9)).astype(x.dtype)
    context = jnp.einsum("bhqk,bkhd->bqhd", shares, cache[1])[:, 0]
    x += lax.psum(jnp.einsum("bhd,whd->bw", context, w["out"]), AXIS)
    normal = normalize(x, w["scale_mlp"], model.norm_epsilon)
    hidden = jax.nn.silu(normal @ w["gate"].T) * (normal @ w["up"].T)
    return x + lax.psum(hidden @ w["down"].T, AXIS), cache


def decode(model: Decoder, sampling: Sampling, mesh: AnyMesh) -> Program:
    """One token for each sequence, at the position that is given; the cache is overwritten."""
    layout = Layout(mesh, AXES)

    def step(
        weights: Weights, cache: Cache, tokens: jax.Array, position: jax.Array, noise: jax.Array
    ) -> tuple[Cache, jax.Array]:
        x = lax.all_gather(weights["embedding"][tokens], AXIS, axis=1, tiled=True)
        new = []
        for w, entry in zip(weights["layers"], cache, strict=True):
            x, entry = decode_layer(model, position, x, w, entry)
            new.append(entry)
        x = normalize(x, weights["scale_final"], model.norm_epsilon)
        logits = lax.all_gather(x @ weights["unembedding"].T, AXIS, axis=1, tiled=True)
        return new, sample(sampling, logits.astype(jnp.float32), noise)

    weights = weights_of(model, layout)
    rows = Array(
        (model.batch, model.sequence, model.heads, model.head), (None, None, "heads", None)
    )
    kept = layout.shape(rows, model.weights)
    arguments: tuple[Any, ...] = (
        weights,
        [(kept, kept)] * model.layers,
        layout.shape(Array((model.batch,), (None,)), jnp.int32),
        layout.shape(Array((), ()), jnp.int32),
        layout.shape(Array((4,), (None,)), jnp.uint32),
    )
    specs = jax.tree.map(lambda leaf: leaf.sharding.spec, arguments)
    function = jax.shard_map(
        step, mesh=mesh, in_specs=specs, out_specs=(specs[1], PartitionSpec()), check_vma=False
    )
    return jax.jit(function, donate_argnums=1), arguments
