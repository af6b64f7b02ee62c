"""One train step of an encoder-decoder: float32 master weights, Adam, layers in a scan, remat.

After T5 1.1: root-mean-square norms, gated MLPs, logits of their own, biases of attention by the
distance of positions that all layers of a stack share. Unlike there, distances count one by one up
to the last bucket, scores are scaled, and the optimiser is Adam.
"""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from workloads.examples import adam
from workloads.examples.example import AnyMesh, Program, example
from workloads.examples.language_model import normalize
from workloads.examples.rules import Array, Layout, Rules

SLICE = "v5e-4x2"
Weights = dict[str, Any]

# google-research/t5x, t5x/partitioning.py, standard_logical_axis_rules with one dimension of
# parameters and of activations split: batch over `data`; heads, MLP and vocabulary over `model`.
RULES: Rules = {"batch": "data", "heads": "model", "hidden": "model", "vocabulary": "model"}


@dataclasses.dataclass(frozen=True)
class EncoderDecoder:
    """Sizes of the model and of its batch."""

    vocabulary: int = 512
    width: int = 64
    layers: int = 2  # Of the encoder, and of the decoder
    heads: int = 8
    head: int = 16
    hidden: int = 128
    buckets: int = 8
    batch: int = 8
    inputs: int = 32
    targets: int = 16

    def attention(self, name: str) -> dict[str, Array]:
        """One attention of all layers of a stack."""
        stacked = (self.layers, self.width, self.heads, self.head)
        product = Array(stacked, (None, "embed", "heads", None))
        out = Array(
            (self.layers, self.heads, self.head, self.width), (None, "heads", None, "embed")
        )
        return {
            f"{name}_scale": Array((self.layers, self.width), (None, None)),
            **{f"{name}_{kind}": product for kind in ("query", "key", "value")},
            f"{name}_out": out,
        }

    def mlp(self) -> dict[str, Array]:
        """The MLP of all layers of a stack."""
        wide = Array((self.layers, self.width, self.hidden), (None, "embed", "hidden"))
        return {
            "mlp_scale": Array((self.layers, self.width), (None, None)),
            "gate": wide,
            "up": wide,
            "down": Array((self.layers, self.hidden, self.width), (None, "hidden", "embed")),
        }

    def arguments(self, layout: Layout) -> Weights:
        """Returns the weights as arguments."""
        outside = {
            "embedding": Array((self.vocabulary, self.width), ("vocabulary", "embed")),
            "unembedding": Array((self.width, self.vocabulary), ("embed", "vocabulary")),
            **{
                f"{stack}_distances": Array((self.buckets, self.heads), (None, "heads"))
                for stack in ("encoder", "decoder")
            },
            **{f"{stack}_scale": Array((self.width,), (None,)) for stack in ("encoder", "decoder")},
        }
        encoder = self.attention("self") | self.mlp()
        decoder = self.attention("self") | self.attention("cross") | self.mlp()
        return {
            **layout.shapes(outside, jnp.float32),
            "encoder": layout.shapes(encoder, jnp.float32),
            "decoder": layout.shapes(decoder, jnp.float32),
        }


def bias_of(model: EncoderDecoder, table: jax.Array, length: int, causal: bool) -> jax.Array:
    """Returns the bias of scores [heads, queries, keys]: by distance, and the mask."""
    position = jnp.arange(length)
    distance = position[:, None] - position
    bucket = jnp.clip(distance if causal else jnp.abs(distance), 0, model.buckets - 1)
    bias = jnp.einsum("qkn,nh->hqk", jax.nn.one_hot(bucket, model.buckets), table)
    return jnp.where(distance >= 0, bias, -1e9) if causal else bias


def attention(
    layout: Layout, w: Weights, name: str, x: jax.Array, source: jax.Array, bias: Any
) -> jax.Array:
    """Attention of x over the source, which is x itself, or what the encoder made."""

    def heads(kind: str, x: jax.Array) -> jax.Array:
        made = jnp.einsum("bsw,whd->bshd", x, w[f"{name}_{kind}"].astype(x.dtype))
        return layout.constrain(made, "batch", None, "heads", None)

    query, key, value = heads("query", x), heads("key", source), heads("value", source)
    scores = jnp.einsum("bqhd,bkhd->bhqk", query, key, preferred_element_type=jnp.float32)
    shares = jax.nn.softmax(scores * query.shape[-1] ** -0.5 + bias).astype(x.dtype)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", shares, value)
    out = jnp.einsum("bshd,hdw->bsw", mixed, w[f"{name}_out"].astype(x.dtype))
    return layout.constrain(out, "batch", None, None)


def mlp(layout: Layout, w: Weights, x: jax.Array) -> jax.Array:
    """Gated, with its norm."""
    h = normalize(x, w["mlp_scale"])
    hidden = jax.nn.gelu(h @ w["gate"].astype(h.dtype)) * (h @ w["up"].astype(h.dtype))
    hidden = layout.constrain(hidden, "batch", None, "hidden")
    return layout.constrain(hidden @ w["down"].astype(h.dtype), "batch", None, None)


def forward(
    model: EncoderDecoder, layout: Layout, weights: Weights, inputs: jax.Array, targets: jax.Array
) -> jax.Array:
    """Logits of every target."""

    def embed(tokens: jax.Array) -> jax.Array:
        x = weights["embedding"].astype(jnp.bfloat16)[tokens]
        return layout.constrain(x, "batch", None, None)

    bias = bias_of(model, weights["encoder_distances"], model.inputs, causal=False)

    @jax.checkpoint
    def encode(x: jax.Array, w: Weights) -> tuple[jax.Array, None]:
        h = normalize(x, w["self_scale"])
        x += attention(layout, w, "self", h, h, bias)
        return x + mlp(layout, w, x), None

    encoded, _ = lax.scan(encode, embed(inputs), weights["encoder"])
    encoded = normalize(encoded, weights["encoder_scale"])
    seen = bias_of(model, weights["decoder_distances"], model.targets, causal=True)

    @jax.checkpoint
    def decode(x: jax.Array, w: Weights) -> tuple[jax.Array, None]:
        h = normalize(x, w["self_scale"])
        x += attention(layout, w, "self", h, h, seen)
        x += attention(layout, w, "cross", normalize(x, w["cross_scale"]), encoded, 0.0)
        return x + mlp(layout, w, x), None

    before = jnp.pad(targets[:, :-1], ((0, 0), (1, 0)))
    x, _ = lax.scan(decode, embed(before), weights["decoder"])
    x = normalize(x, weights["decoder_scale"])
    table = weights["unembedding"].astype(x.dtype)
    logits = jnp.einsum("bsw,wv->bsv", x, table, preferred_element_type=jnp.float32)
    return layout.constrain(logits, "batch", None, "vocabulary")


def train(model: EncoderDecoder, mesh: AnyMesh, rules: Rules = RULES) -> Program:
    """The step, its state and a batch."""
    layout = Layout(mesh, rules)

    def train_step(
        state: adam.TrainState, inputs: jax.Array, targets: jax.Array
    ) -> tuple[adam.TrainState, jax.Array]:
        def loss(weights: Weights) -> jax.Array:
            logits = forward(model, layout, weights, inputs, targets)
            wanted = jax.nn.one_hot(targets, model.vocabulary, dtype=logits.dtype)
            chosen = jnp.sum(logits * wanted, axis=-1)
            return jnp.mean(jax.nn.logsumexp(logits, axis=-1) - chosen)

        value, gradients = jax.value_and_grad(loss)(state.weights)
        return adam.update(state, gradients), value

    state = adam.state_like(model.arguments(layout), layout.sharding())
    inputs, targets = (
        layout.shape(Array((model.batch, length), ("batch", None)), jnp.int32)
        for length in (model.inputs, model.targets)
    )
    step = jax.jit(
        train_step,
        out_shardings=(adam.shardings(state), layout.sharding()),
        donate_argnums=0,
    )
    return step, (state, inputs, targets)


MODEL = EncoderDecoder()
example(
    {"data": 2, "model": 4},
    SLICE,
    "encoder_decoder_train",
    ranges={
        **adam.RANGES,
        "embedding": (-1.0, 1.0),  # As large as what layers add to it
        "inputs": (0, MODEL.vocabulary),
        "targets": (0, MODEL.vocabulary),
    },
    precision="bfloat16",
)(functools.partial(train, MODEL))
