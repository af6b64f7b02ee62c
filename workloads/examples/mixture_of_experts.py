"""One train step of a decoder with experts in place of MLPs: two for each token, with limited room.

Layers as in Mixtral (https://arxiv.org/abs/2401.04088), fewer heads for keys and values than for
queries; dispatch and combination are products with masks, and what an expert has no room for is
left out, as in GShard (https://arxiv.org/abs/2006.16668). Each sequence is a group that has its own
room. Adam, bfloat16 compute, layers in a scan and recomputed going backward.
"""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from workloads.examples import adam
from workloads.examples.example import AnyMesh, Program, example
from workloads.examples.language_model import attend, embed, logits_of, normalize, rotate
from workloads.examples.rules import Array, Layout, Rules

SLICE = "v5e-4x2"
CHOSEN = 2
Weights = dict[str, Any]

# AI-Hypercomputer/maxtext, configs/base.yml, logical_axis_rules: the batch over `fsdp` and `expert`
# but where tokens are with their experts, the width of weights over `fsdp`.
RULES: Rules = {
    "batch": ("fsdp", "expert"),
    "batch_of_expert": "fsdp",
    "experts": "expert",
    "embed": "fsdp",
}


@dataclasses.dataclass(frozen=True)
class Experts:
    """Sizes of the model and of its batch."""

    vocabulary: int = 512
    width: int = 64
    layers: int = 2
    heads: int = 8
    kv_heads: int = 4
    head: int = 16
    hidden: int = 128
    experts: int = 4
    room: float = 1.25  # Of an expert, over what it would get if all got as much
    batch: int = 8
    sequence: int = 32

    @property
    def capacity(self) -> int:
        """Tokens of a sequence for which an expert has room."""
        return int(self.room * CHOSEN * self.sequence / self.experts)

    def arguments(self, layout: Layout) -> Weights:
        """Returns the weights as arguments; those of the layers are stacked."""
        layers, width = self.layers, self.width
        scale = Array((layers, width), (None, None))
        grouped = (layers, width, self.kv_heads, self.head)
        wide = Array(
            (layers, self.experts, width, self.hidden), (None, "experts", "embed", "hidden")
        )
        stacked = {
            "scale_attention": scale,
            "query": Array((layers, width, self.heads, self.head), (None, "embed", "heads", None)),
            **dict.fromkeys(("key", "value"), Array(grouped, (None, "embed", "heads", None))),
            "out": Array((layers, self.heads, self.head, width), (None, "heads", None, "embed")),
            "scale_experts": scale,
            "router": Array((layers, width, self.experts), (None, "embed", None)),
            "gate": wide,
            "up": wide,
            "down": Array(
                (layers, self.experts, self.hidden, width), (None, "experts", "hidden", "embed")
            ),
        }
        outside = {
            "embedding": Array((self.vocabulary, width), ("vocabulary", "embed")),
            "unembedding": Array((width, self.vocabulary), ("embed", "vocabulary")),
            "scale_final": Array((width,), (None,)),
        }
        return {
            **layout.shapes(outside, jnp.float32),
            "layers": layout.shapes(stacked, jnp.float32),
        }


def attention(layout: Layout, w: Weights, x: jax.Array) -> jax.Array:
    """Causal attention with rotary positions."""
    position = jnp.arange(x.shape[1])

    def heads(name: str) -> jax.Array:
        made = jnp.einsum("bsw,whd->bshd", x, w[name].astype(x.dtype))
        return layout.constrain(made, "batch", None, "heads", None)

    query, key, value = (
        rotate(heads("query"), position),
        rotate(heads("key"), position),
        heads("value"),
    )
    shared = query.shape[2] // key.shape[2]
    key, value = jnp.repeat(key, shared, axis=2), jnp.repeat(value, shared, axis=2)
    mixed = attend(query, key, value, position[:, None] >= position)
    out = jnp.einsum("bshd,hdw->bsw", mixed, w["out"].astype(x.dtype))
    return layout.constrain(out, "batch", None, None)


def routed(model: Experts, router: jax.Array, x: jax.Array) -> jax.Array:
    """The share of each place of each expert in each token [batch, token, expert, place]."""
    scores = jnp.einsum(
        "btw,we->bte", x, router.astype(x.dtype), preferred_element_type=jnp.float32
    )
    weight, expert = lax.top_k(scores, CHOSEN)
    weight = jax.nn.softmax(weight)
    # Places are given out first by choice, then by position.
    wants = jax.nn.one_hot(expert, model.experts, dtype=jnp.float32)
    in_turn = wants.transpose(0, 2, 1, 3).reshape(x.shape[0], -1, model.experts)
    place = jnp.cumsum(in_turn, axis=1) * in_turn - 1
    place = place.reshape(x.shape[0], CHOSEN, -1, model.experts).transpose(0, 2, 1, 3)
    slot = jax.nn.one_hot(place.astype(jnp.int32), model.capacity, dtype=x.dtype)
    return jnp.einsum("btk,btkec->btec", weight.astype(x.dtype), slot)


def experts(model: Experts, layout: Layout, w: Weights, x: jax.Array) -> jax.Array:
    """Tokens go to their experts and come back."""
    combine = layout.constrain(routed(model, w["router"], x), "batch", None, None, None)
    dispatch = (combine > 0).astype(x.dtype)
    there = ("batch_of_expert", "experts", None)
    sent = layout.constrain(jnp.einsum("btec,btw->becw", dispatch, x), *there, None)
    gate = jnp.einsum("becw,ewh->bech", sent, w["gate"].astype(x.dtype))
    up = jnp.einsum("becw,ewh->bech", sent, w["up"].astype(x.dtype))
    hidden = layout.constrain(jax.nn.silu(gate) * up, *there, "hidden")
    made = jnp.einsum("bech,ehw->becw", hidden, w["down"].astype(x.dtype))
    made = layout.constrain(made, "batch", None, None, None)
    out = jnp.einsum("btec,becw->btw", combine, made)
    return layout.constrain(out, "batch", None, None)


def forward(model: Experts, layout: Layout, weights: Weights, tokens: jax.Array) -> jax.Array:
    """Logits of every position."""

    @jax.checkpoint
    def layer(x: jax.Array, w: Weights) -> tuple[jax.Array, None]:
        x += attention(layout, w, normalize(x, w["scale_attention"]))
        return x + experts(model, layout, w, normalize(x, w["scale_experts"])), None

    x, _ = lax.scan(layer, embed(layout, weights, tokens), weights["layers"])
    return logits_of(layout, weights, x)


def train(model: Experts, mesh: AnyMesh, rules: Rules = RULES) -> Program:
    """The step, its state and a batch."""
    layout = Layout(mesh, rules)

    def train_step(
        state: adam.TrainState, tokens: jax.Array, targets: jax.Array
    ) -> tuple[adam.TrainState, jax.Array]:
        def loss(weights: Weights) -> jax.Array:
            logits = forward(model, layout, weights, tokens)
            wanted = jax.nn.one_hot(targets, model.vocabulary, dtype=logits.dtype)
            chosen = jnp.sum(logits * wanted, axis=-1)
            return jnp.mean(jax.nn.logsumexp(logits, axis=-1) - chosen)

        value, gradients = jax.value_and_grad(loss)(state.weights)
        return adam.update(state, gradients), value

    state = adam.state_like(model.arguments(layout), layout.sharding())
    tokens = layout.shape(Array((model.batch, model.sequence), ("batch", None)), jnp.int32)
    step = jax.jit(
        train_step,
        out_shardings=(adam.shardings(state), layout.sharding()),
        donate_argnums=0,
    )
    return step, (state, tokens, tokens)


MODEL = Experts()
example(
    {"fsdp": 2, "expert": 4},
    SLICE,
    "mixture_of_experts_train",
    ranges={**adam.RANGES, "tokens": (0, MODEL.vocabulary), "targets": (0, MODEL.vocabulary)},
    precision="bfloat16",
)(functools.partial(train, MODEL))
