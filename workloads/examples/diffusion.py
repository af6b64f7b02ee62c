"""One train step of a diffusion transformer: the noise in latent images is to be predicted.

After DiT, https://arxiv.org/abs/2212.09748: patches of a latent image, layers whose norms are
scaled, shifted and gated by what the time and the class say (adaLN-Zero). Adam, bfloat16 compute,
layers in a scan and recomputed going backward. It predicts the noise alone, no variance.
"""

import dataclasses
import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from workloads.examples import adam
from workloads.examples.example import AnyMesh, Program, example
from workloads.examples.rules import Array, Layout, Rules
from workloads.examples.vision_transformer import attention, patches_of

SLICE = "v5e-4x2"
TIMES, FREQUENCIES = 1000, 256
Weights = dict[str, Any]

# AI-Hypercomputer/maxdiffusion, configs/base_flux_dev.yml, logical_axis_rules: the batch over
# `data` and `fsdp`, the width of weights over `fsdp`; the axis `tensor` has one device.
RULES: Rules = {"batch": ("data", "fsdp"), "embed": "fsdp"}


@dataclasses.dataclass(frozen=True)
class Diffusion:
    """Sizes of the model and of its batch."""

    side: int = 8  # Of a latent image
    channels: int = 4
    patch: int = 2
    width: int = 64
    layers: int = 2
    heads: int = 4
    head: int = 16
    classes: int = 32
    batch: int = 16

    def arguments(self, layout: Layout) -> Weights:
        """Returns the weights as arguments; those of the layers are stacked."""
        layers, width, hidden = self.layers, self.width, 4 * self.width
        values = self.patch**2 * self.channels
        heads = (layers, width, self.heads, self.head)
        stacked = {
            "condition": Array((layers, 6, width, width), (None, None, "embed", None)),
            "condition_bias": Array((layers, 6, width), (None, None, None)),
            **dict.fromkeys(("query", "key", "value"), Array(heads, (None, "embed", None, None))),
            "out": Array((layers, self.heads, self.head, width), (None, None, None, "embed")),
            "up": Array((layers, width, hidden), (None, "embed", None)),
            "up_bias": Array((layers, hidden), (None, None)),
            "down": Array((layers, hidden, width), (None, None, "embed")),
            "down_bias": Array((layers, width), (None, None)),
        }
        outside = {
            "patches": Array((values, width), (None, "embed")),
            "time_in": Array((FREQUENCIES, width), (None, "embed")),
            "time_out": Array((width, width), ("embed", None)),
            "class_table": Array((self.classes, width), (None, "embed")),
            "final_condition": Array((2, width, width), (None, "embed", None)),
            "final": Array((width, values), ("embed", None)),
        }
        return {
            **layout.shapes(outside, jnp.float32),
            "layers": layout.shapes(stacked, jnp.float32),
        }


def waves(x: jax.Array, count: int) -> jax.Array:
    """Sines and cosines [number, count] of numbers, from fast to slow."""
    half = count // 2
    frequency = jnp.exp(-math.log(10_000.0) * jnp.arange(half, dtype=jnp.float32) / half)
    angle = x.astype(jnp.float32)[:, None] * frequency
    return jnp.concatenate([jnp.cos(angle), jnp.sin(angle)], axis=-1)


def modulated(x: jax.Array, shift: jax.Array, scale: jax.Array) -> jax.Array:
    """To mean 0 and variance 1, in float32, then by what the condition says."""
    wide = x.astype(jnp.float32)
    wide -= jnp.mean(wide, axis=-1, keepdims=True)
    wide *= lax.rsqrt(jnp.mean(wide * wide, axis=-1, keepdims=True) + 1e-6)
    return (wide * (1 + scale[:, None]) + shift[:, None]).astype(x.dtype)


def denoise_layer(layout: Layout, condition: jax.Array, x: jax.Array, w: Weights) -> jax.Array:
    """One layer; `condition` is what time and class say [batch, width]."""
    product = jnp.einsum("bw,nwv->nbv", condition, w["condition"].astype(condition.dtype))
    said = product.astype(jnp.float32) + w["condition_bias"][:, None]
    h = modulated(x, said[0], said[1])
    heads = [
        jnp.einsum("bsw,whd->bshd", h, w[name].astype(h.dtype))
        for name in ("query", "key", "value")
    ]
    mixed = jnp.einsum("bshd,hdw->bsw", attention(*heads), w["out"].astype(x.dtype))
    x += said[2][:, None].astype(x.dtype) * mixed
    h = modulated(x, said[3], said[4])
    hidden = jax.nn.gelu(h @ w["up"].astype(h.dtype) + w["up_bias"].astype(h.dtype))
    out = hidden @ w["down"].astype(h.dtype) + w["down_bias"].astype(h.dtype)
    return layout.constrain(x + said[5][:, None].astype(x.dtype) * out, "batch", None, None)


def predicted(
    model: Diffusion,
    layout: Layout,
    weights: Weights,
    noisy: jax.Array,
    time: jax.Array,
    label: jax.Array,
) -> jax.Array:
    """The noise in each patch [batch, patch, values], in float32."""
    narrow = {name: w.astype(jnp.bfloat16) for name, w in weights.items() if name != "layers"}
    hidden = jax.nn.silu(waves(time, FREQUENCIES).astype(jnp.bfloat16) @ narrow["time_in"])
    condition = jax.nn.silu(hidden @ narrow["time_out"] + narrow["class_table"][label])
    condition = layout.constrain(condition, "batch", None)
    x = patches_of(noisy.astype(jnp.bfloat16), model.patch) @ narrow["patches"]
    places = waves(jnp.arange(x.shape[1]), model.width)
    x = layout.constrain(x + places.astype(x.dtype), "batch", None, None)
    layer = jax.checkpoint(functools.partial(denoise_layer, layout, condition))
    x, _ = lax.scan(lambda x, w: (layer(x, w), None), x, weights["layers"])
    said = jnp.einsum("bw,nwv->nbv", condition, narrow["final_condition"]).astype(jnp.float32)
    h = modulated(x, said[0], said[1])
    return jnp.dot(h, narrow["final"], preferred_element_type=jnp.float32)


def train(model: Diffusion, mesh: AnyMesh, rules: Rules = RULES) -> Program:
    """The step, its state and a batch: latents, noise, the time of each, and its class."""
    layout = Layout(mesh, rules)

    def train_step(
        state: adam.TrainState,
        latents: jax.Array,
        noise: jax.Array,
        time: jax.Array,
        label: jax.Array,
    ) -> tuple[adam.TrainState, jax.Array]:
        # What is left of the latents: a cosine of the time.
        angle = (time.astype(jnp.float32) + 0.5)[:, None, None, None] * (0.5 * math.pi / TIMES)
        noisy = jnp.cos(angle) * latents + jnp.sin(angle) * noise

        def loss(weights: Weights) -> jax.Array:
            made = predicted(model, layout, weights, noisy, time, label)
            return jnp.mean((made - patches_of(noise, model.patch)) ** 2)

        value, gradients = jax.value_and_grad(loss)(state.weights)
        return adam.update(state, gradients), value

    state = adam.state_like(model.arguments(layout), layout.sharding())
    image = layout.shape(
        Array((model.batch, model.side, model.side, model.channels), ("batch", None, None, None)),
        jnp.float32,
    )
    of_batch = layout.shape(Array((model.batch,), ("batch",)), jnp.int32)
    step = jax.jit(
        train_step,
        out_shardings=(adam.shardings(state), layout.sharding()),
        donate_argnums=0,
    )
    return step, (state, image, image, of_batch, of_batch)


MODEL = Diffusion()
example(
    {"data": 1, "fsdp": 8},
    SLICE,
    "diffusion_train",
    ranges={**adam.RANGES, "time": (0, TIMES), "label": (0, MODEL.classes)},
    precision="bfloat16",
)(functools.partial(train, MODEL))
