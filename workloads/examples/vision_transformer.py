"""One train step of a vision transformer: patches, encoder layers, the mean of what they make.

After google-research/big_vision, models/vit.py: learned positions, layers that normalize first, a
sigmoid for each class; Adam, bfloat16 compute, layers in a scan and recomputed going backward.
"""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from workloads.examples import adam
from workloads.examples.example import AnyMesh, Program, example
from workloads.examples.rules import Array, Layout, Rules

SLICE = "v5e-4x2"
Weights = dict[str, Any]

# big_vision/configs: the batch over all devices; weights are replicated unless a configuration asks
# for the rule `fsdp` of big_vision/sharding.py, which splits the largest dimension that it can.
TABLES: dict[str, Rules] = {
    "data_parallel": {"batch": ("data", "model")},
    "fully_sharded": {"batch": ("data", "model"), "largest": ("data", "model")},
}


@dataclasses.dataclass(frozen=True)
class VisionTransformer:
    """Sizes of the model and of its batch."""

    image: int = 32
    patch: int = 8
    width: int = 64
    layers: int = 2
    heads: int = 4
    head: int = 16
    hidden: int = 128
    classes: int = 32
    batch: int = 16

    @property
    def patches(self) -> int:
        """The number of patches of an image."""
        return (self.image // self.patch) ** 2

    def arguments(self, layout: Layout) -> Weights:
        """Returns the weights as arguments; those of the layers are stacked."""
        layers, width, hidden = self.layers, self.width, self.hidden
        heads = (layers, width, self.heads, self.head)
        of_width = Array((layers, width), (None, None))
        stacked = {
            "scale_attention": of_width,
            "shift_attention": of_width,
            **dict.fromkeys(("query", "key", "value"), Array(heads, (None, "largest", None, None))),
            "out": Array((layers, self.heads, self.head, width), (None, None, None, "largest")),
            "scale_mlp": of_width,
            "shift_mlp": of_width,
            "up": Array((layers, width, hidden), (None, None, "largest")),
            "up_bias": Array((layers, hidden), (None, None)),
            "down": Array((layers, hidden, width), (None, "largest", None)),
            "down_bias": of_width,
        }
        outside = {
            "patches": Array((self.patch**2 * 3, width), (None, None)),
            "positions": Array((self.patches, width), (None, None)),
            "scale_final": Array((width,), (None,)),
            "shift_final": Array((width,), (None,)),
            "head": Array((width, self.classes), ("largest", None)),
            "head_bias": Array((self.classes,), (None,)),
        }
        return {
            **layout.shapes(outside, jnp.float32),
            "layers": layout.shapes(stacked, jnp.float32),
        }


def normalize(x: jax.Array, scale: jax.Array, shift: jax.Array) -> jax.Array:
    """To mean 0 and variance 1, in float32."""
    wide = x.astype(jnp.float32)
    wide -= jnp.mean(wide, axis=-1, keepdims=True)
    wide *= lax.rsqrt(jnp.mean(wide * wide, axis=-1, keepdims=True) + 1e-6)
    return (wide * scale + shift).astype(x.dtype)


def attention(query: jax.Array, key: jax.Array, value: jax.Array) -> jax.Array:
    """Attention of all positions over all."""
    scores = jnp.einsum("bqhd,bkhd->bhqk", query, key, preferred_element_type=jnp.float32)
    shares = jax.nn.softmax(scores * query.shape[-1] ** -0.5).astype(value.dtype)
    return jnp.einsum("bhqk,bkhd->bqhd", shares, value)


def patches_of(images: jax.Array, patch: int) -> jax.Array:
    """Square parts [batch, patch, values] of [batch, height, width, channels]."""
    batch, height, width, channels = images.shape
    x = images.reshape(batch, height // patch, patch, width // patch, patch, channels)
    return x.transpose(0, 1, 3, 2, 4, 5).reshape(batch, -1, patch * patch * channels)


def encode(layout: Layout, x: jax.Array, w: Weights) -> jax.Array:
    """One layer."""
    h = normalize(x, w["scale_attention"], w["shift_attention"])
    heads = [
        jnp.einsum("bsw,whd->bshd", h, w[name].astype(h.dtype))
        for name in ("query", "key", "value")
    ]
    x += jnp.einsum("bshd,hdw->bsw", attention(*heads), w["out"].astype(x.dtype))
    h = normalize(x, w["scale_mlp"], w["shift_mlp"])
    hidden = jax.nn.gelu(h @ w["up"].astype(h.dtype) + w["up_bias"].astype(h.dtype))
    x += hidden @ w["down"].astype(h.dtype) + w["down_bias"].astype(h.dtype)
    return layout.constrain(x, "batch", None, None)


def logits_of(
    model: VisionTransformer, layout: Layout, weights: Weights, images: jax.Array
) -> jax.Array:
    """A number for each class, in float32."""
    layer = jax.checkpoint(functools.partial(encode, layout))
    x = patches_of(images.astype(jnp.bfloat16), model.patch)
    x = x @ weights["patches"].astype(x.dtype) + weights["positions"].astype(x.dtype)
    x = layout.constrain(x, "batch", None, None)
    x, _ = lax.scan(lambda x, w: (layer(x, w), None), x, weights["layers"])
    x = normalize(x, weights["scale_final"], weights["shift_final"])
    pooled = jnp.mean(x.astype(jnp.float32), axis=1)
    return pooled @ weights["head"] + weights["head_bias"]


def train(model: VisionTransformer, rules: Rules, mesh: AnyMesh) -> Program:
    """The step, its state and a batch."""
    layout = Layout(mesh, rules)

    def train_step(
        state: adam.TrainState, images: jax.Array, labels: jax.Array
    ) -> tuple[adam.TrainState, jax.Array]:
        def loss(weights: Weights) -> jax.Array:
            logits = logits_of(model, layout, weights, images)
            wanted = jax.nn.one_hot(labels, model.classes)
            entropy = jax.nn.softplus(logits) - wanted * logits
            return jnp.mean(jnp.sum(entropy, axis=-1))

        value, gradients = jax.value_and_grad(loss)(state.weights)
        return adam.update(state, gradients), value

    state = adam.state_like(model.arguments(layout), layout.sharding())
    images = Array((model.batch, model.image, model.image, 3), ("batch", None, None, None))
    step = jax.jit(
        train_step,
        out_shardings=(adam.shardings(state), layout.sharding()),
        donate_argnums=0,
    )
    return step, (
        state,
        layout.shape(images, jnp.float32),
        layout.shape(Array((model.batch,), ("batch",)), jnp.int32),
    )


MODEL = VisionTransformer()
for _table, _rules in TABLES.items():
    example(
        {"data": 8, "model": 1},
        SLICE,
        f"vision_transformer_train_{_table}",
        ranges={**adam.RANGES, "labels": (0, MODEL.classes)},
        precision="bfloat16",
    )(functools.partial(train, MODEL, _rules))
