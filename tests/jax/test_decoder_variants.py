"""The decoder of the published train steps computes one thing, whatever its switches say.

Two layers on eight CPU devices, 4 x 2: the loss and the gradients of one batch, without splash
attention, which is no kernel for CPUs.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType

from validation.workloads.decoder import Decoder, Remat, Weights
from validation.workloads.train_step import Step, loss_of, train_step
from validation.workloads.training import FULLY_SHARDED, TRANSPOSED, present
from workloads.examples.example import AnyMesh
from workloads.examples.rules import Layout, Rules

MODEL = Decoder(
    layers=2, width=32, mlp=64, heads=4, kv_heads=2, vocabulary=48, sequence=16, batch=8
)
PLAIN = Step()
# bfloat16 has eight bits: sums in another order differ in the last.
LOSS, GRADIENT = 2e-3, 3e-2
# Compiling is what takes time here.
QUICKLY = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}


@pytest.fixture(scope="module")
def mesh() -> jax.sharding.Mesh:
    return jax.make_mesh((4, 2), ("fsdp", "tensor"), axis_types=(AxisType.Auto,) * 2)


def weights_of(model: Decoder, mesh: AnyMesh) -> Weights:
    """Random weights, the same every time."""
    random = np.random.default_rng(0)
    return jax.tree.map(
        lambda leaf: jnp.asarray(0.2 * random.standard_normal(leaf.shape), leaf.dtype),
        model.arguments(Layout(mesh, {})),
    )


def tokens() -> tuple[jax.Array, jax.Array]:
    """Returns the tokens of a batch, and their successors."""
    random = np.random.default_rng(1)
    drawn = random.integers(0, MODEL.vocabulary, (MODEL.batch, MODEL.sequence + 1))
    return jnp.asarray(drawn[:, :-1], jnp.int32), jnp.asarray(drawn[:, 1:], jnp.int32)


def step(
    model: Decoder,
    mesh: AnyMesh,
    weights: Weights,
    options: Step = PLAIN,
    rules: Rules = FULLY_SHARDED,
) -> tuple[float, Weights]:
    """Loss and gradients."""
    layout = Layout(mesh, present(rules, mesh))
    placed = jax.tree.map(
        lambda value, leaf: jax.device_put(value, leaf.sharding), weights, model.arguments(layout)
    )

    def loss(weights: Weights) -> jax.Array:
        return loss_of(model, options, layout, weights, *tokens())

    value, gradients = jax.jit(jax.value_and_grad(loss), compiler_options=QUICKLY)(placed)
    return float(value), jax.tree.map(np.asarray, gradients)


def check(actual: tuple[float, Weights], expected: tuple[float, Weights]) -> None:
    """One loss, one gradient."""
    assert actual[0] == pytest.approx(expected[0], rel=LOSS)

    def close(a: Any, b: Any) -> None:
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, atol=GRADIENT * np.abs(b).max())

    jax.tree.map(close, actual[1], expected[1])


@pytest.fixture(scope="module")
def weights(mesh: jax.sharding.Mesh) -> Weights:
    return weights_of(MODEL, mesh)


@pytest.fixture(scope="module")
def plain(mesh: jax.sharding.Mesh, weights: Weights) -> tuple[float, Weights]:
    """Returns loss and gradients of the model without any switch."""
    return step(MODEL, mesh, weights)


def test_the_loss_is_that_of_numpy(weights: Weights, plain: tuple[float, Weights]) -> None:
    """In float64, from the definition."""
    w = jax.tree.map(lambda x: np.asarray(x, np.float64), weights)
    read, wanted = (np.asarray(x) for x in tokens())

    def norm(x: np.ndarray, scale: np.ndarray) -> np.ndarray:
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * scale

    half = MODEL.head // 2
    turns = MODEL.longest_turn ** (-np.arange(half) / half)
    angles = np.arange(MODEL.sequence)[:, None] * turns
    # A pair of halves is a complex number, a turn a factor.
    factor = np.exp(1j * angles)[:, None, :]

    def rotated(x: np.ndarray) -> np.ndarray:
        pair = (x[..., :half] + 1j * x[..., half:]) * factor
        return np.concatenate([pair.real, pair.imag], -1)

    x = w["embedding"][read]
    for i in range(MODEL.layers):
        layer = {name: value[i] for name, value in w["layers"].items()}
        y = norm(x, layer["scale_attention"])
        q, k, v = (np.einsum("bsw,whd->bshd", y, layer[n]) for n in ("query", "key", "value"))
        groups = MODEL.heads // MODEL.kv_heads
        k, v = np.repeat(rotated(k), groups, 2), np.repeat(v, groups, 2)
        scores = np.einsum("bqhd,bkhd->bhqk", rotated(q), k) / np.sqrt(MODEL.head)
        scores[:, :, ~np.tri(MODEL.sequence, dtype=bool)] = -np.inf
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        x = x + np.einsum("bhqk,bkhd,hdw->bqw", shares, v, layer["out"])
        y = norm(x, layer["scale_mlp"])
        gate = y @ layer["gate"]
        x = x + (gate / (1 + np.exp(-gate)) * (y @ layer["up"])) @ layer["down"]
    logits = norm(x, w["scale_final"]) @ w["unembedding"]
    sums = np.log(np.exp(logits).sum(-1))
    chosen = np.take_along_axis(logits, wanted[..., None], -1)[..., 0]
    assert plain[0] == pytest.approx((sums - chosen).mean(), rel=1e-2)


@pytest.mark.parametrize(
    "remat",
    [
        Remat(),
        Remat(barrier=True),
        Remat(products=True),
        Remat(save=("query", "key", "value", "context")),
        Remat(save=("layer_input", "out", "gate", "up", "down")),
    ],
    ids=["full", "full_behind_a_barrier", "products", "attention", "others"],
)
def test_rematerialization(mesh, weights, plain, remat: Remat) -> None:
    check(step(dataclasses.replace(MODEL, remat=remat), mesh, weights), plain)


def test_vocabulary_tiles(mesh, weights, plain) -> None:
    check(step(MODEL, mesh, weights, Step(vocabulary_tiles=4)), plain)


def test_tokens_looked_up_by_a_product(mesh, weights, plain) -> None:
    check(step(dataclasses.replace(MODEL, one_hot_embedding=True), mesh, weights), plain)


def test_attention_by_blocks_of_queries(mesh, weights, plain) -> None:
    check(step(dataclasses.replace(MODEL, query_block=4), mesh, weights), plain)


def test_other_shardings(mesh, weights, plain) -> None:
    check(step(MODEL, mesh, weights, rules=TRANSPOSED), plain)
    check(step(MODEL, mesh, weights, rules={}), plain)


def test_layers_as_copies(mesh, weights, plain) -> None:
    model = dataclasses.replace(MODEL, unroll=True, remat=Remat())
    layers = [jax.tree.map(lambda x, i=i: x[i], weights["layers"]) for i in range(MODEL.layers)]
    loss, gradients = step(model, mesh, weights | {"layers": layers})
    stacked = jax.tree.map(lambda *x: np.stack(x), *gradients["layers"])
    check((loss, gradients | {"layers": stacked}), plain)


def test_layers_on_the_second_axis(mesh, weights, plain) -> None:
    model = dataclasses.replace(MODEL, layers_axis=1)
    moved = jax.tree.map(lambda x: jnp.moveaxis(x, 0, 1), weights["layers"])
    loss, gradients = step(model, mesh, weights | {"layers": moved})
    back = jax.tree.map(lambda x: np.moveaxis(x, 1, 0), gradients["layers"])
    check((loss, gradients | {"layers": back}), plain)


def test_fused_projections(mesh) -> None:
    separate = dataclasses.replace(MODEL, kv_heads=MODEL.heads)
    weights = weights_of(separate, mesh)
    expected = step(separate, mesh, weights)
    fused = dataclasses.replace(separate, fused_projections=True)

    def stacked(layers: Weights) -> Weights:
        parts = {"qkv": ("query", "key", "value"), "gate_up": ("gate", "up")}
        joined = {
            name: jnp.stack([layers[part] for part in names], 2) for name, names in parts.items()
        }
        gone = {part for names in parts.values() for part in names}
        return {n: x for n, x in layers.items() if n not in gone} | joined

    loss, gradients = step(fused, mesh, weights | {"layers": stacked(weights["layers"])})
    wanted = expected[1] | {"layers": stacked(expected[1]["layers"])}
    check((loss, gradients), (expected[0], wanted))


def test_a_step_reports_norms_and_clips(mesh, weights, plain) -> None:
    """The whole step: the norm of what it learns from is bounded, all else is reported."""
    options = Step(clip=0.1, decay=0.1, norms=True, vocabulary_tiles=2)
    rules = present(FULLY_SHARDED, mesh)
    jitted, (state, _, _) = train_step(MODEL, mesh, rules, options)
    zeros = jax.tree.map(jnp.zeros_like, weights)
    first = jax.tree.map(
        lambda value, leaf: jax.device_put(jnp.copy(value), leaf.sharding),
        type(state)(jnp.zeros((), jnp.int32), weights, zeros, jax.tree.map(jnp.copy, zeros)),
        state,
    )
    after, (loss, whole, used, _) = jitted(first, *tokens())
    norm = np.sqrt(sum((x.astype(np.float64) ** 2).sum() for x in jax.tree.leaves(plain[1])))
    assert float(loss) == pytest.approx(plain[0], rel=LOSS)
    assert float(whole) == pytest.approx(norm, rel=1e-2)
    assert float(whole) > options.clip
    assert float(used) == pytest.approx(options.clip, rel=1e-3)
    assert int(after.count) == 1
    # The first step of Adam has the size of its rate, unless gradients are as small as what keeps
    # it from dividing by zero; and weights decay.
    moved = np.asarray(after.weights["unembedding"]) - np.asarray(weights["unembedding"])
    decayed = moved + 1e-3 * 0.1 * np.asarray(weights["unembedding"])
    assert np.median(np.abs(decayed)) == pytest.approx(1e-3, rel=0.02)
    assert np.abs(decayed).max() < 1.001e-3


def test_fused_projections_need_as_many_heads() -> None:
    with pytest.raises(ValueError, match="as many key and value heads"):
        dataclasses.replace(MODEL, fused_projections=True)
