"""One train step of a residual network: convolutions, batch norms, momentum.

After the ImageNet example of google/flax (examples/imagenet/models.py and train.py): bottleneck
blocks that stride in the 3x3 convolution, bfloat16 compute, running statistics, Nesterov momentum,
weight decay in the loss. Statistics are those of the whole batch, where Flax under pmap takes each
device's.
"""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from workloads.examples.example import AnyMesh, Program, example
from workloads.examples.rules import Array, Layout, Rules

SLICE = "v5e-4x2"
RATE, MOMENTUM, DECAY, KEPT, EPSILON = 0.1, 0.9, 1e-4, 0.9, 1e-5
Tree = dict[str, Any]

# examples/imagenet/train.py: the batch over all devices, everything else on each of them.
RULES: Rules = {"batch": ("data", "model")}


@dataclasses.dataclass(frozen=True)
class ResNet:
    """Sizes of the model and of its batch."""

    image: int = 32
    stages: tuple[int, ...] = (1, 2)  # Blocks of each; a stage has half the side of the one before
    width: int = 16
    classes: int = 32
    batch: int = 16

    def blocks(self) -> list[tuple[int, int, int]]:
        """Input width, inner width and stride of each block; its output is four inner widths."""
        found, channels = [], self.width
        for stage, count in enumerate(self.stages):
            for block in range(count):
                inside = self.width << stage
                found.append((channels, inside, 2 if stage and not block else 1))
                channels = 4 * inside
        return found

    def kernels(self) -> list[dict[str, tuple[int, ...]]]:
        """The convolutions of each block, [height, width, inputs, outputs]."""
        return [
            {
                "narrow": (1, 1, channels, inside),
                "square": (3, 3, inside, inside),
                "wide": (1, 1, inside, 4 * inside),
                **({"short": (1, 1, channels, 4 * inside)} if channels != 4 * inside else {}),
            }
            for channels, inside, _ in self.blocks()
        ]


class State(NamedTuple):
    """Arguments and results of a step."""

    weights: Tree
    momentum: Tree
    statistics: Tree  # Running mean and variance of every norm


def convolve(x: jax.Array, kernel: jax.Array, stride: int = 1) -> jax.Array:
    """Convolves [batch, height, width, channels]; the stride divides height and width."""
    return lax.conv_general_dilated(
        x,
        kernel.astype(x.dtype),
        (stride, stride),
        "SAME",
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )


def normalize(x: jax.Array, w: Tree, running: Tree) -> tuple[jax.Array, Tree]:
    """Normalizes by mean and variance of the batch; returns the running ones, too."""
    wide = x.astype(jnp.float32)
    mean = jnp.mean(wide, axis=(0, 1, 2))
    variance = jnp.mean(wide * wide, axis=(0, 1, 2)) - mean * mean
    scale = w["scale"] * lax.rsqrt(jnp.maximum(variance, 0) + EPSILON)
    new = {
        "mean": KEPT * running["mean"] + (1 - KEPT) * mean,
        "variance": KEPT * running["variance"] + (1 - KEPT) * variance,
    }
    return ((wide - mean) * scale + w["shift"]).astype(x.dtype), new


def unit(x: jax.Array, w: Tree, running: Tree, stride: int = 1) -> tuple[jax.Array, Tree]:
    """A convolution and its norm."""
    return normalize(convolve(x, w["kernel"], stride), w, running)


def block(x: jax.Array, w: Tree, running: Tree, stride: int) -> tuple[jax.Array, Tree]:
    """Three convolutions, added to what came in, or to a convolution of it."""
    new: Tree = {}
    h, new["narrow"] = unit(x, w["narrow"], running["narrow"])
    h, new["square"] = unit(jax.nn.relu(h), w["square"], running["square"], stride)
    h, new["wide"] = unit(jax.nn.relu(h), w["wide"], running["wide"])
    if "short" in w:
        x, new["short"] = unit(x, w["short"], running["short"], stride)
    return jax.nn.relu(x + h), new


def logits_of(
    model: ResNet, layout: Layout, weights: Tree, statistics: Tree, images: jax.Array
) -> tuple[jax.Array, Tree]:
    """A number for each class, in float32, and the running statistics."""
    x = images.astype(jnp.bfloat16)
    x, stem = unit(x, weights["stem"], statistics["stem"], 2)
    x = jax.nn.relu(x)
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
    blocks = []
    for w, running, (_, _, stride) in zip(
        weights["blocks"], statistics["blocks"], model.blocks(), strict=True
    ):
        x = layout.constrain(x, "batch", None, None, None)
        x, new = block(x, w, running, stride)
        blocks.append(new)
    pooled = jnp.mean(x.astype(jnp.float32), axis=(1, 2))
    return pooled @ weights["head"] + weights["head_bias"], {"stem": stem, "blocks": blocks}


def state_of(model: ResNet, layout: Layout) -> State:
    """Weights, momentum and statistics as arguments."""

    def shape(*sizes: int) -> jax.ShapeDtypeStruct:
        return layout.shape(Array(sizes, (None,) * len(sizes)), jnp.float32)

    def weights_of(kernel: tuple[int, ...]) -> Tree:
        channels = shape(kernel[-1])
        return {"kernel": shape(*kernel), "scale": channels, "shift": channels}

    def statistics_of(kernel: tuple[int, ...]) -> Tree:
        return {"mean": shape(kernel[-1]), "variance": shape(kernel[-1])}

    stem = (7, 7, 3, model.width)
    features = 4 * model.width << len(model.stages) - 1
    weights = {
        "stem": weights_of(stem),
        "blocks": [{n: weights_of(k) for n, k in each.items()} for each in model.kernels()],
        "head": shape(features, model.classes),
        "head_bias": shape(model.classes),
    }
    statistics = {
        "stem": statistics_of(stem),
        "blocks": [{n: statistics_of(k) for n, k in each.items()} for each in model.kernels()],
    }
    return State(weights, weights, statistics)


def train(model: ResNet, mesh: AnyMesh, rules: Rules = RULES) -> Program:
    """The step, its state and a batch."""
    layout = Layout(mesh, rules)

    def train_step(state: State, images: jax.Array, labels: jax.Array) -> tuple[State, jax.Array]:
        def loss(weights: Tree) -> tuple[jax.Array, Tree]:
            logits, statistics = logits_of(model, layout, weights, state.statistics, images)
            wanted = jax.nn.one_hot(labels, model.classes)
            entropy = jax.nn.logsumexp(logits, axis=-1) - jnp.sum(logits * wanted, axis=-1)
            products = [w for w in jax.tree.leaves(weights) if w.ndim > 1]
            decay = 0.5 * DECAY * sum(jnp.sum(w * w) for w in products)
            return jnp.mean(entropy) + decay, statistics

        (value, statistics), gradients = jax.value_and_grad(loss, has_aux=True)(state.weights)
        momentum = jax.tree.map(lambda m, g: MOMENTUM * m + g, state.momentum, gradients)
        weights = jax.tree.map(
            lambda w, m, g: w - RATE * (g + MOMENTUM * m), state.weights, momentum, gradients
        )
        return State(weights, momentum, statistics), value

    state = state_of(model, layout)
    images = Array((model.batch, model.image, model.image, 3), ("batch", None, None, None))
    kept = jax.tree.map(lambda leaf: leaf.sharding, state)
    step = jax.jit(train_step, out_shardings=(kept, layout.sharding()), donate_argnums=0)
    return step, (
        state,
        layout.shape(images, jnp.float32),
        layout.shape(Array((model.batch,), ("batch",)), jnp.int32),
    )


MODEL = ResNet()
# Blocks begin near the identity, as in the source, whose last scale of each is zero at first.
RANGES = {
    "labels": (0, MODEL.classes),
    "variance": (0.5, 1.5),
    "wide": (-0.2, 0.2),
    "scale": (0.5, 1.5),
}
example(
    {"data": 8, "model": 1},
    SLICE,
    "resnet_train",
    ranges=RANGES,
    precision="bfloat16",
)(functools.partial(train, MODEL))
