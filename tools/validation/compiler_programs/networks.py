"""Train steps of a small ResNet and of a plain MLP."""

import functools
import itertools
from typing import Any

import jax
import jax.numpy as jnp

from compiler_programs.convolutions import conv
from compiler_programs.elementwise import adamw
from compiler_programs.registry import EIGHT_DEVICES, ONE_DEVICE, program
from workloads.examples.example import AnyMesh, Program
from workloads.examples.rules import Array, Layout

Weights = dict[str, Any]
STAGES = ((64, 1), (128, 2), (256, 2))


def scaled(x: jax.Array, w: Weights, relu: bool) -> jax.Array:
    """Batch norm in training."""
    wide = x.astype(jnp.float32)
    mean = jnp.mean(wide, (0, 1, 2))
    variance = jnp.mean(wide * wide, (0, 1, 2)) - mean * mean
    y = (wide - mean) * jax.lax.rsqrt(variance + 1e-5) * w["scale"] + w["shift"]
    return (jax.nn.relu(y) if relu else y).astype(x.dtype)


def resnet_weights() -> dict[str, Any]:
    """A stem, a block of two convolutions per stage, a head."""

    def norm(channels: int) -> dict[str, Array]:
        return {n: Array((channels,), (None,)) for n in ("scale", "shift")}

    def kernel(size: int, before: int, after: int) -> Array:
        return Array((size, size, before, after), (None,) * 4)

    weights: dict[str, Any] = {"stem": kernel(7, 3, 64), "stem_norm": norm(64)}
    before = 64
    for channels, stride in STAGES:
        part = {
            "first": kernel(3, before, channels),
            "first_norm": norm(channels),
            "second": kernel(3, channels, channels),
            "second_norm": norm(channels),
        }
        if stride > 1:
            part |= {"way": kernel(1, before, channels), "way_norm": norm(channels)}
        weights[f"stage_{channels}"] = part
        before = channels
    weights["head"] = Array((before, 1000), (None, None))
    return weights


def resnet(w: Weights, x: jax.Array) -> jax.Array:
    """Logits."""
    half = jax.tree.map(lambda a: a.astype(x.dtype), w)
    x = scaled(conv(x, half["stem"], 2), w["stem_norm"], True)
    x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
    for channels, stride in STAGES:
        part, cast = w[f"stage_{channels}"], half[f"stage_{channels}"]
        y = scaled(conv(x, cast["first"], stride), part["first_norm"], True)
        y = scaled(conv(y, cast["second"]), part["second_norm"], False)
        if stride > 1:
            x = scaled(conv(x, cast["way"], stride), part["way_norm"], False)
        x = jax.nn.relu(x + y)
    return jnp.mean(x.astype(jnp.float32), (1, 2)) @ w["head"]


def train_resnet(batch: int, mesh: AnyMesh) -> Program:
    """Momentum, data parallel; statistics over the whole batch."""
    layout = Layout(mesh, {"batch": "data"})

    def train_step(weights: Weights, momentum: Weights, x: jax.Array, labels: jax.Array) -> Any:
        def loss(w: Weights) -> jax.Array:
            logits = resnet(w, x)
            chosen = jnp.take_along_axis(logits, labels[:, None], axis=-1)[:, 0]
            return jnp.mean(jax.nn.logsumexp(logits, -1) - chosen)

        value, gradients = jax.value_and_grad(loss)(weights)
        momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, gradients)
        weights = jax.tree.map(lambda w, m: w - 0.1 * m, weights, momentum)
        return weights, momentum, value

    arrays = resnet_weights()
    weights = jax.tree.map(
        lambda a: layout.shape(a, jnp.float32), arrays, is_leaf=lambda a: isinstance(a, Array)
    )
    x = layout.shape(Array((batch, 224, 224, 3), ("batch", None, None, None)), jnp.bfloat16)
    labels = layout.shape(Array((batch,), ("batch",)), jnp.int32)
    return jax.jit(train_step, donate_argnums=(0, 1)), (weights, weights, x, labels)


def train_mlp(sharded: bool, mesh: AnyMesh) -> Program:
    """Four layers with biases, mean squared error, AdamW."""
    layout = Layout(mesh, {"batch": "data", **({"in": "data"} if sharded else {})})
    sizes = (1024, 4096, 4096, 4096, 1024)

    def train_step(state: Any, x: jax.Array, y: jax.Array) -> Any:
        def loss(weights: Any) -> jax.Array:
            out = x
            for number, (w, b) in enumerate(weights):
                out = out @ w.astype(out.dtype) + b.astype(out.dtype)
                out = jax.nn.relu(out) if number + 1 < len(weights) else out
            return jnp.mean((out.astype(jnp.float32) - y) ** 2)

        weights, mean, square, count = state
        value, gradients = jax.value_and_grad(loss)(weights)
        *state, _ = adamw(weights, mean, square, gradients, count)
        return (*state, count + 1), value

    weights = [
        (
            layout.shape(Array((before, after), ("in", None)), jnp.float32),
            layout.shape(Array((after,), (None,)), jnp.float32),
        )
        for before, after in itertools.pairwise(sizes)
    ]
    state = (weights, weights, weights, layout.shape(Array((), ()), jnp.int32))
    batch = Array((8192, 1024), ("batch", None))
    kept = jax.tree.map(lambda leaf: leaf.sharding, state)
    step = jax.jit(train_step, out_shardings=(kept, layout.sharding()), donate_argnums=0)
    return step, (state, layout.shape(batch, jnp.bfloat16), layout.shape(batch, jnp.float32))


for _name, _mesh, _slices, _batch in (
    ("resnet_1", {"data": 1}, ONE_DEVICE, 16),
    ("resnet_data_parallel", {"data": 8}, EIGHT_DEVICES, 128),
):
    program(_name, _mesh, _slices, functools.partial(train_resnet, _batch), "training")
for _name, _mesh, _slices, _sharded in (
    ("mlp_train_1", {"data": 1}, ONE_DEVICE, False),
    ("mlp_train_data_parallel", {"data": 8}, EIGHT_DEVICES, False),
    ("mlp_train_fsdp", {"data": 8}, EIGHT_DEVICES, True),
):
    program(_name, _mesh, _slices, functools.partial(train_mlp, _sharded), "training")
