"""A decoder-only language model: weights, forward pass, and the tables that shard them.

Bfloat16 activations and products, float32 where sums are long; layers in a scan, recomputed in the
backward pass. `language_model_train.py` trains it, `decode.py` serves it.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from workloads.examples.rules import Array, Layout, Rules

Weights = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Model:
    """Sizes."""

    vocabulary: int = 512
    width: int = 128
    layers: int = 4
    heads: int = 8
    head: int = 16
    hidden: int = 256

    def arrays(self) -> dict[str, Array]:
        """The weights; those of the layers are stacked."""
        return {
            "embedding": Array((self.vocabulary, self.width), ("vocabulary", "embed")),
            "unembedding": Array((self.width, self.vocabulary), ("embed", "vocabulary")),
            "scale_final": Array((self.width,), (None,)),
            "scale_attention": Array((self.layers, self.width), (None, None)),
            "qkv": Array(
                (self.layers, self.width, 3, self.heads, self.head),
                (None, "embed", None, "heads", None),
            ),
            "out": Array(
                (self.layers, self.heads, self.head, self.width), (None, "heads", None, "embed")
            ),
            "scale_mlp": Array((self.layers, self.width), (None, None)),
            "gate": Array((self.layers, self.width, self.hidden), (None, "embed", "hidden")),
            "up": Array((self.layers, self.width, self.hidden), (None, "embed", "hidden")),
            "down": Array((self.layers, self.hidden, self.width), (None, "hidden", "embed")),
        }


# Axes of weights: vocabulary, embed, heads, hidden. Axes of activations: batch, sequence (between
# the blocks), heads, hidden, vocabulary.
TABLES: dict[str, Rules] = {
    "data_parallel": {"batch": ("data", "model")},
    "fully_sharded": {"batch": ("data", "model"), "embed": ("data", "model")},
    "tensor_parallel": {
        "batch": "data",
        "heads": "model",
        "hidden": "model",
        "vocabulary": "model",
    },
    "sequence_parallel": {
        "batch": "data",
        "sequence": "model",
        "heads": "model",
        "hidden": "model",
        "vocabulary": "model",
    },
    "fully_sharded_tensor_parallel": {
        "batch": "data",
        "embed": "data",
        "heads": "model",
        "hidden": "model",
        "vocabulary": "model",
    },
}

STACKED = ("scale_attention", "qkv", "out", "scale_mlp", "gate", "up", "down")


def normalize(x: jax.Array, scale: jax.Array) -> jax.Array:
    """Normalizes by the root of the mean square, in float32."""
    wide = x.astype(jnp.float32)
    wide *= lax.rsqrt(jnp.mean(wide * wide, axis=-1, keepdims=True) + 1e-6)
    return (wide * scale).astype(x.dtype)


def rotate(x: jax.Array, position: jax.Array) -> jax.Array:
    """Rotary embedding of [batch, sequence, heads, head] by `position` [sequence]."""
    half = x.shape[-1] // 2
    frequency = 10000.0 ** (-jnp.arange(half, dtype=jnp.float32) / half)
    angle = position[:, None].astype(jnp.float32) * frequency
    sine, cosine = jnp.sin(angle)[None, :, None], jnp.cos(angle)[None, :, None]
    low, high = jnp.split(x.astype(jnp.float32), 2, axis=-1)
    turned = jnp.concatenate([low * cosine - high * sine, high * cosine + low * sine], axis=-1)
    return turned.astype(x.dtype)


def attend(q: jax.Array, k: jax.Array, v: jax.Array, seen: jax.Array) -> jax.Array:
    """Attention of q over k and v wherever `seen` [queries, keys]."""
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k, preferred_element_type=jnp.float32)
    scores = jnp.where(seen, scores * q.shape[-1] ** -0.5, -1e9)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores).astype(q.dtype), v)


def project(layout: Layout, w: Weights, x: jax.Array, position: jax.Array) -> Any:
    """Queries, keys and values of one layer."""
    h = normalize(x, w["scale_attention"])
    h = layout.constrain(h, "batch", None, None)
    qkv = jnp.einsum("bsw,wnhd->nbshd", h, w["qkv"].astype(h.dtype))
    q, k, v = layout.constrain(qkv, None, "batch", None, "heads", None)
    return rotate(q, position), rotate(k, position), v


def finish(layout: Layout, w: Weights, x: jax.Array, mixed: jax.Array) -> jax.Array:
    """The rest of a layer: the end of attention, and the MLP."""
    out = jnp.einsum("bshd,hdw->bsw", mixed, w["out"].astype(x.dtype))
    x += layout.constrain(out, "batch", "sequence", None)
    h = layout.constrain(normalize(x, w["scale_mlp"]), "batch", None, None)
    hidden = jax.nn.silu(h @ w["gate"].astype(h.dtype)) * (h @ w["up"].astype(h.dtype))
    hidden = layout.constrain(hidden, "batch", None, "hidden")
    return x + layout.constrain(hidden @ w["down"].astype(x.dtype), "batch", "sequence", None)


def embed(layout: Layout, weights: Weights, tokens: jax.Array) -> jax.Array:
    """Tokens to activations."""
    x = weights["embedding"].astype(jnp.bfloat16)[tokens]
    return layout.constrain(x, "batch", "sequence", None)


def logits_of(layout: Layout, weights: Weights, x: jax.Array) -> jax.Array:
    """Activations to logits, in float32."""
    h = layout.constrain(normalize(x, weights["scale_final"]), "batch", None, None)
    table = weights["unembedding"].astype(h.dtype)
    logits = jnp.einsum("bsw,wv->bsv", h, table, preferred_element_type=jnp.float32)
    return layout.constrain(logits, "batch", None, "vocabulary")


def forward(layout: Layout, weights: Weights, tokens: jax.Array) -> jax.Array:
    """Logits of every position."""
    position = jnp.arange(tokens.shape[1])
    seen = position[:, None] >= position

    @jax.checkpoint
    def layer(x: jax.Array, w: Weights) -> tuple[jax.Array, None]:
        q, k, v = project(layout, w, x, position)
        return finish(layout, w, x, attend(q, k, v, seen)), None

    stacked = {name: weights[name] for name in STACKED}
    x, _ = lax.scan(layer, embed(layout, weights, tokens), stacked)
    return logits_of(layout, weights, x)
