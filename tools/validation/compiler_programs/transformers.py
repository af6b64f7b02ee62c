"""Train steps of encoders and of GPT-2, and of a vision transformer: layer norms, biases, GELU."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp

from compiler_programs.elementwise import adamw
from compiler_programs.normalization import layer_norm_of
from compiler_programs.registry import EIGHT_DEVICES, ONE_DEVICE, program
from workloads.examples.example import AnyMesh, Program
from workloads.examples.rules import Array, Layout

Weights = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Transformer:
    """Sizes; `classes` is of what is predicted, per token or, for pictures, per picture."""

    layers: int = 2
    width: int = 768
    heads: int = 12
    sequence: int = 512
    batch: int = 8
    classes: int = 30522
    causal: bool = False
    before: bool = True  # Norms before the blocks rather than behind.
    pictures: bool = False

    def layer(self) -> dict[str, Array]:
        """The weights of one layer."""
        w, head = self.width, self.width // self.heads
        return {
            "scale_1": Array((w,), (None,)),
            "shift_1": Array((w,), (None,)),
            "qkv": Array((w, 3, self.heads, head), ("embed", None, None, None)),
            "qkv_bias": Array((3, self.heads, head), (None, None, None)),
            "out": Array((self.heads, head, w), (None, None, "embed")),
            "out_bias": Array((w,), (None,)),
            "scale_2": Array((w,), (None,)),
            "shift_2": Array((w,), (None,)),
            "up": Array((w, 4 * w), ("embed", None)),
            "up_bias": Array((4 * w,), (None,)),
            "down": Array((4 * w, w), (None, "embed")),
            "down_bias": Array((w,), (None,)),
        }

    def weights(self, layout: Layout) -> Weights:
        """Returns the weights as arguments."""
        patch = Array((16, 16, 3, self.width), (None, None, None, "embed"))
        table = Array((self.classes, self.width), (None, "embed"))
        ends = {
            "table": patch if self.pictures else table,
            "position": Array((self.sequence, self.width), (None, "embed")),
            "scale": Array((self.width,), (None,)),
            "shift": Array((self.width,), (None,)),
        }
        if self.pictures:
            ends["head"] = Array((self.width, self.classes), ("embed", None))
        layers = [layout.shapes(self.layer(), jnp.float32) for _ in range(self.layers)]
        return {"layers": layers, **layout.shapes(ends, jnp.float32)}


def block(model: Transformer, w: Weights, x: jax.Array) -> jax.Array:
    """One layer."""

    def attend(x: jax.Array) -> jax.Array:
        qkv = jnp.einsum("bsw,wnhd->nbshd", x, w["qkv"].astype(x.dtype))
        q, k, v = qkv + w["qkv_bias"].astype(x.dtype)[:, None, None]
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k, preferred_element_type=jnp.float32)
        scores *= q.shape[-1] ** -0.5
        if model.causal:
            place = jnp.arange(x.shape[1])
            scores = jnp.where(place[:, None] >= place, scores, -1e9)
        mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores).astype(x.dtype), v)
        out = jnp.einsum("bshd,hdw->bsw", mixed, w["out"].astype(x.dtype))
        return out + w["out_bias"].astype(x.dtype)

    def mlp(x: jax.Array) -> jax.Array:
        wide = jax.nn.gelu(x @ w["up"].astype(x.dtype) + w["up_bias"].astype(x.dtype))
        return wide @ w["down"].astype(x.dtype) + w["down_bias"].astype(x.dtype)

    norms = [(w["scale_1"], w["shift_1"]), (w["scale_2"], w["shift_2"])]
    for part, norm in zip((attend, mlp), norms, strict=True):
        after = x + part(layer_norm_of(x, *norm) if model.before else x)
        x = after if model.before else layer_norm_of(after, *norm)
    return x


def loss_of(model: Transformer, w: Weights, data: jax.Array, labels: jax.Array) -> jax.Array:
    """Cross entropy with integer labels."""
    table = w["table"].astype(jnp.bfloat16)
    if model.pictures:
        numbers = ("NHWC", "HWIO", "NHWC")
        x = jax.lax.conv_general_dilated(data, table, (16, 16), "VALID", dimension_numbers=numbers)
        x = x.reshape(x.shape[0], -1, model.width)
    else:
        x = table[data]
    x = x + w["position"].astype(x.dtype)
    for layer in w["layers"]:
        x = block(model, layer, x)
    x = layer_norm_of(x, w["scale"], w["shift"])
    if model.pictures:
        logits = jnp.mean(x.astype(jnp.float32), axis=1) @ w["head"]
    else:
        logits = jnp.einsum("bsw,vw->bsv", x, table, preferred_element_type=jnp.float32)
    chosen = jnp.take_along_axis(logits, labels[..., None], axis=-1)[..., 0]
    return jnp.mean(jax.nn.logsumexp(logits, axis=-1) - chosen)


def train(model: Transformer, sharded: bool, mesh: AnyMesh) -> Program:
    """A step with AdamW; `sharded` splits weights along the width, like the batch."""
    layout = Layout(mesh, {"batch": "data", **({"embed": "data"} if sharded else {})})

    def train_step(state: Any, data: jax.Array, labels: jax.Array) -> Any:
        weights, mean, square, count = state
        value, gradients = jax.value_and_grad(loss_of, argnums=1)(model, weights, data, labels)
        *state, _ = adamw(weights, mean, square, gradients, count)
        return (*state, count + 1), value

    weights = model.weights(layout)
    state = (weights, weights, weights, layout.shape(Array((), ()), jnp.int32))
    tokens = layout.shape(Array((model.batch, model.sequence), ("batch", None)), jnp.int32)
    data, labels = tokens, tokens
    if model.pictures:
        pictures = Array((model.batch, 224, 224, 3), ("batch", None, None, None))
        data = layout.shape(pictures, jnp.bfloat16)
        labels = layout.shape(Array((model.batch,), ("batch",)), jnp.int32)
    kept = jax.tree.map(lambda leaf: leaf.sharding, state)
    step = jax.jit(train_step, out_shardings=(kept, layout.sharding()), donate_argnums=0)
    return step, (state, data, labels)


MODELS = {
    "bert": Transformer(before=False),
    "gpt2": Transformer(classes=50257, causal=True, sequence=1024),
    "vit": Transformer(pictures=True, sequence=196, classes=1000, batch=64),
}
for _name, _model in MODELS.items():
    _alone = dataclasses.replace(_model, batch=max(2, _model.batch // 4))
    program(
        f"{_name}_1", {"data": 1}, ONE_DEVICE, functools.partial(train, _alone, False), "training"
    )
    for _kind, _sharded in (("data_parallel", False), ("fsdp", True)):
        program(
            f"{_name}_{_kind}",
            {"data": 8},
            EIGHT_DEVICES,
            functools.partial(train, _model, _sharded),
            "training",
        )
