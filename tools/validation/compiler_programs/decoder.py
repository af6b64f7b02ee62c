"""Train steps of a decoder-only language model as they are written today.

Rotary embeddings, grouped queries, RMS norms, a gated MLP, float32 master weights, integer labels,
AdamW after clipping by the global norm; layers as copies or as a scan, with or without
recomputation. Weights are split over `fsdp` along the model's width and over `tp` along heads, the
hidden width and the vocabulary; the batch over `data` and `fsdp`.
"""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from compiler_programs.elementwise import adamw, rotate
from compiler_programs.normalization import rms_norm_of
from compiler_programs.registry import EIGHT_DEVICES, FOUR_DEVICES, ONE_DEVICE, program
from workloads.examples.example import AnyMesh, Program
from workloads.examples.rules import Array, Layout, Rules

Weights = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Decoder:
    """Sizes of the model and the batch."""

    layers: int = 2
    width: int = 1024
    hidden: int = 2816
    heads: int = 8
    groups: int = 2
    head: int = 128
    vocabulary: int = 32000
    sequence: int = 1024
    batch: int = 8
    scan: bool = False
    remat: bool = False

    def layer(self) -> dict[str, Array]:
        """The weights of one layer."""
        per_group = self.heads // self.groups
        grouped = (self.width, self.groups, per_group, self.head)
        return {
            "norm_attention": Array((self.width,), (None,)),
            "query": Array(grouped, ("embed", "groups", None, None)),
            "key": Array((self.width, self.groups, self.head), ("embed", "groups", None)),
            "value": Array((self.width, self.groups, self.head), ("embed", "groups", None)),
            "out": Array((*grouped[1:], self.width), ("groups", None, None, "embed")),
            "norm_mlp": Array((self.width,), (None,)),
            "gate": Array((self.width, self.hidden), ("embed", "hidden")),
            "up": Array((self.width, self.hidden), ("embed", "hidden")),
            "down": Array((self.hidden, self.width), ("hidden", "embed")),
        }

    def weights(self, layout: Layout) -> Weights:
        """Returns the weights as arguments."""
        layer = self.layer()
        if self.scan:
            layer = {n: Array((self.layers, *a.shape), (None, *a.axes)) for n, a in layer.items()}
        some = layout.shapes(layer, jnp.float32)
        ends = {
            "embedding": Array((self.vocabulary, self.width), ("vocabulary", "embed")),
            "norm": Array((self.width,), (None,)),
            "unembedding": Array((self.width, self.vocabulary), ("embed", "vocabulary")),
        }
        layers = some if self.scan else [dict(some) for _ in range(self.layers)]
        return {"layers": layers, **layout.shapes(ends, jnp.float32)}


def attention(layout: Layout, w: Weights, x: jax.Array) -> jax.Array:
    """Causal, with grouped queries."""
    position = jnp.arange(x.shape[1])
    q = jnp.einsum("bsw,wgnd->bsgnd", x, w["query"].astype(x.dtype))
    k = jnp.einsum("bsw,wgd->bsgd", x, w["key"].astype(x.dtype))
    v = jnp.einsum("bsw,wgd->bsgd", x, w["value"].astype(x.dtype))
    q = layout.constrain(q, "batch", None, "groups", None, None)
    q = rotate(q.reshape(*q.shape[:2], -1, q.shape[-1]), position).reshape(q.shape)
    k = rotate(k, position)
    scores = jnp.einsum("bqgnd,bkgd->bgnqk", q, k, preferred_element_type=jnp.float32)
    seen = position[:, None] >= position
    scores = jnp.where(seen, scores * q.shape[-1] ** -0.5, -1e9)
    mixed = jnp.einsum("bgnqk,bkgd->bqgnd", jax.nn.softmax(scores).astype(x.dtype), v)
    out = jnp.einsum("bsgnd,gndw->bsw", mixed, w["out"].astype(x.dtype))
    return layout.constrain(out, "batch", None, None)


def mlp(layout: Layout, w: Weights, x: jax.Array) -> jax.Array:
    """Gated."""
    wide = jax.nn.silu(x @ w["gate"].astype(x.dtype)) * (x @ w["up"].astype(x.dtype))
    wide = layout.constrain(wide, "batch", None, "hidden")
    return layout.constrain(wide @ w["down"].astype(x.dtype), "batch", None, None)


def logits_of(model: Decoder, layout: Layout, weights: Weights, tokens: jax.Array) -> jax.Array:
    """The forward pass."""

    def layer(x: jax.Array, w: Weights) -> jax.Array:
        x += attention(layout, w, rms_norm_of(x, w["norm_attention"]))
        return x + mlp(layout, w, rms_norm_of(x, w["norm_mlp"]))

    if model.remat:
        layer = jax.checkpoint(layer)
    x = weights["embedding"].astype(jnp.bfloat16)[tokens]
    x = layout.constrain(x, "batch", None, None)
    if model.scan:
        x, _ = lax.scan(lambda x, w: (layer(x, w), None), x, weights["layers"])
    else:
        for w in weights["layers"]:
            x = layer(x, w)
    x = rms_norm_of(x, weights["norm"])
    logits = jnp.matmul(
        x, weights["unembedding"].astype(x.dtype), preferred_element_type=jnp.float32
    )
    return layout.constrain(logits, "batch", None, "vocabulary")


def rules_of(mesh: AnyMesh) -> Rules:
    """Returns which mesh axes shard which axes of the model."""
    names = mesh.axis_names
    rules: dict[str, str | tuple[str, ...]] = {
        "batch": tuple(n for n in ("data", "fsdp") if n in names)
    }
    if "fsdp" in names:
        rules["embed"] = "fsdp"
    if "tp" in names:
        rules |= dict.fromkeys(("groups", "hidden", "vocabulary"), "tp")
    return rules


def train(model: Decoder, mesh: AnyMesh) -> Program:
    """The step, its state and a batch."""
    layout = Layout(mesh, rules_of(mesh))

    def train_step(state: Any, tokens: jax.Array, labels: jax.Array) -> Any:
        def loss(weights: Weights) -> jax.Array:
            logits = logits_of(model, layout, weights, tokens)
            chosen = jnp.take_along_axis(logits, labels[..., None], axis=-1)[..., 0]
            return jnp.mean(jax.nn.logsumexp(logits, axis=-1) - chosen)

        weights, mean, square, count = state
        value, gradients = jax.value_and_grad(loss)(weights)
        *state, norm = adamw(weights, mean, square, gradients, count)
        return (*state, count + 1), value, norm

    weights = model.weights(layout)
    count = layout.shape(Array((), ()), jnp.int32)
    state = (weights, weights, weights, count)
    tokens = layout.shape(Array((model.batch, model.sequence), ("batch", None)), jnp.int32)
    kept = jax.tree.map(lambda leaf: leaf.sharding, state)
    step = jax.jit(
        train_step,
        out_shardings=(kept, layout.sharding(), layout.sharding()),
        donate_argnums=0,
    )
    return step, (state, tokens, tokens)


# Two layers on eight devices, one sequence of 1024 tokens on each.
MESHES: dict[str, dict[str, int]] = {
    "data_parallel": {"data": 8},
    "fsdp": {"fsdp": 8},
    "tensor_parallel": {"data": 4, "tp": 2},
    "fsdp_tensor_parallel": {"fsdp": 4, "tp": 2},
}
for _name, _mesh in MESHES.items():
    program(
        f"decoder_{_name}",
        _mesh,
        EIGHT_DEVICES,
        functools.partial(train, Decoder()),
        "training",
    )

FOUR: dict[str, dict[str, int]] = {
    "data_parallel": {"data": 4},
    "fsdp": {"fsdp": 4},
    "fsdp_tensor_parallel": {"fsdp": 2, "tp": 2},
}
for _name, _mesh in FOUR.items():
    program(
        f"decoder_{_name}_4",
        _mesh,
        FOUR_DEVICES,
        functools.partial(train, Decoder(batch=4)),
        "training",
    )

program(
    "decoder_1", {"data": 1}, ONE_DEVICE, functools.partial(train, Decoder(batch=2)), "training"
)
program(
    "decoder_scan_remat",
    {"fsdp": 8},
    EIGHT_DEVICES,
    functools.partial(train, Decoder(layers=4, scan=True, remat=True)),
    "training",
)
program(
    "decoder_fsdp_16",
    {"fsdp": 16},
    ("v5e-4x4", "v6e-4x4", "v7x-2x2x2", "v5p-2x2x4"),
    functools.partial(train, Decoder(batch=16, scan=True)),
    "training",
)
program(
    "decoder_fsdp_tensor_parallel_64",
    {"fsdp": 32, "tp": 2},
    ("v5e-8x8", "v5p-4x4x4", "v6e-8x8", "v7x-2x4x4"),
    functools.partial(train, Decoder(width=2048, hidden=5632, heads=16, batch=64, scan=True)),
    "training",
)
