"""Published inference steps, tiny, over eight CPU devices: against a plain forward pass.

The weights of the parallel block are stored in tiles, one for each device; the plain pass puts
them together again. float32 throughout, so that the order of sums is all that differs.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from validation.workloads import inference, parallel_block, tensor_parallel
from validation.workloads.decoder import Decoder, turned
from validation.workloads.parallel_block import ParallelBlock
from workloads.examples.example import Example

BLOCK = ParallelBlock(
    layers=3,
    width=32,
    mlp=64,
    heads=8,
    head=4,
    vocabulary=48,
    batch=8,
    room=6,
    compute=jnp.float32,
)
POSITION = 4
LLAMA = Decoder(
    layers=2,
    width=32,
    mlp=48,
    heads=8,
    vocabulary=40,
    batch=2,
    sequence=6,
    weights=jnp.float32,
    longest_turn=10_000.0,
    norm_epsilon=1e-5,
)
CLOSE = {"rtol": 2e-4, "atol": 2e-5}


def drawn(arguments: Any, seed: int = 0) -> Any:
    """Values for a tree of arguments, on their devices."""
    random = np.random.default_rng(seed)

    def draw(path: Any, leaf: jax.ShapeDtypeStruct) -> jax.Array:
        name = str(path[-1])
        if leaf.dtype == jnp.int8:
            values = random.integers(-127, 128, leaf.shape)
        elif "_scale" in name:
            values = random.uniform(0.5, 1.5, leaf.shape) / 400
        else:
            values = random.normal(0, 0.3, leaf.shape)
        return jax.device_put(values.astype(leaf.dtype), leaf.sharding)

    return jax.tree_util.tree_map_with_path(draw, arguments)


def norm(x: jax.Array, scale: jax.Array, epsilon: float) -> jax.Array:
    return x / jnp.sqrt(jnp.mean(x * x, axis=-1, keepdims=True) + epsilon) * scale


def attention(query: jax.Array, key: jax.Array, value: jax.Array) -> jax.Array:
    """Causal, of [batch, positions, heads, head]; one head of keys serves all."""
    scores = jnp.einsum("bqhd,bkhd->bhqk", *jnp.broadcast_arrays(query, key))
    seen = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    shares = jax.nn.softmax(jnp.where(seen, scores / query.shape[-1] ** 0.5, -jnp.inf))
    return jnp.einsum("bhqk,bkhd->bqhd", shares, jnp.broadcast_to(value, query.shape))


def turn(x: jax.Array) -> jax.Array:
    return turned(x, jnp.arange(x.shape[1], dtype=jnp.float32), 10_000.0, jnp.float32)


def whole(weights: Any) -> Any:
    """Products' weights of all layers as plain matrices, without scales."""
    w = {name: np.asarray(array, np.float32) for name, array in weights["layers"].items()}
    if "into_scale" in w:
        w["into"] = w["into"] * w["into_scale"][:, :, None]
        w["key_value"] = w["key_value"] * w["key_value_scale"][:, None]
        w["out"] = w["out"] * w["out_scale"][:, None, None]
    hidden = BLOCK.mlp // w["into"].shape[1]
    flat = w["into"].transpose(0, 2, 1, 3)
    parts = np.split(flat, (hidden, 2 * hidden), axis=-1)
    gate, up, query = (p.reshape(BLOCK.layers, BLOCK.width, -1) for p in parts)
    down, out = (
        p.reshape(BLOCK.layers, -1, BLOCK.width) for p in np.split(w["out"], (hidden,), axis=2)
    )
    names = ("gate", "up", "query", "key_value", "down", "out", "norm")
    return [
        dict(zip(names, layer, strict=True))
        for layer in zip(gate, up, query, w["key_value"], down, out, w["norm"], strict=True)
    ]


def plain_block(weights: Any, tokens: jax.Array) -> tuple[list[Any], jax.Array]:
    """Keys and values of each layer, and the tokens after each position."""
    table = np.asarray(weights["embedding"])
    x, cache = jnp.asarray(table)[tokens], []
    for w in whole(weights):
        normal = norm(x, w["norm"], BLOCK.norm_epsilon)
        heads = (*tokens.shape, BLOCK.heads, BLOCK.head)
        key, value = jnp.split((normal @ w["key_value"])[:, :, None], 2, axis=-1)
        query, key = turn((normal @ w["query"]).reshape(heads)), turn(key)
        cache.append((key[:, :, 0], value[:, :, 0]))
        context = attention(query, key, value).reshape(*tokens.shape, -1)
        hidden = jax.nn.silu(normal @ w["gate"]) * (normal @ w["up"])
        x = x + hidden @ w["down"] + context @ w["out"]
    logits = norm(x, np.asarray(weights["norm"]), BLOCK.norm_epsilon) @ table.T
    return cache, jnp.argmax(logits, axis=-1)


def tokens_of(batch: int, positions: int, vocabulary: int) -> np.ndarray:
    return np.random.default_rng(7).integers(0, vocabulary, (batch, positions)).astype(np.int32)


def placed(value: Any, leaf: jax.ShapeDtypeStruct) -> jax.Array:
    return jax.device_put(np.asarray(value).astype(leaf.dtype), leaf.sharding)


def on_cube(program: Any, model: ParallelBlock) -> tuple[Any, Any]:
    example = Example("", {"x": 2, "y": 2, "z": 2}, "", lambda mesh: program(model, mesh))
    return example(example.concrete_mesh(jax.devices()))


@pytest.mark.parametrize("int8", [False, True])
def test_a_decoded_token_is_that_of_the_forward_pass(*, int8: bool) -> None:
    step, arguments = on_cube(parallel_block.decode, dataclasses.replace(BLOCK, int8=int8))
    weights = drawn(arguments[0])
    tokens = tokens_of(BLOCK.batch, POSITION + 1, BLOCK.vocabulary)
    expected, made = plain_block(weights, tokens)
    # What earlier steps left; no step reads what is behind its position.
    room = np.full(arguments[1][0].shape, 1e3, np.float32)
    cache = []
    for at, leaf in enumerate(arguments[1]):
        filled = room.copy()
        for layer, pair in enumerate(expected):
            filled[layer, :, :POSITION] = pair[at][:, :POSITION]
        cache.append(placed(filled, leaf))
    last = placed(tokens[:, -1], arguments[2])
    new, out = step(weights, tuple(cache), last, placed(POSITION, arguments[3]))
    np.testing.assert_array_equal(out, made[:, -1])
    for at, array in enumerate(new):
        for layer, pair in enumerate(expected):
            np.testing.assert_allclose(array[layer, :, : POSITION + 1], pair[at], **CLOSE)
            assert np.all(array[layer, :, POSITION + 1 :] == 1e3)


def test_prefill_leaves_the_cache_and_the_next_tokens() -> None:
    step, arguments = on_cube(parallel_block.prefill, BLOCK)
    weights = drawn(arguments[0])
    tokens = tokens_of(BLOCK.batch, BLOCK.room, BLOCK.vocabulary)
    expected, made = plain_block(weights, tokens)
    cache, out = step(weights, placed(tokens, arguments[1]))
    np.testing.assert_array_equal(out, made[:, -1])
    for at, array in enumerate(cache):
        for layer, pair in enumerate(expected):
            np.testing.assert_allclose(array[layer], pair[at], **CLOSE)


def plain_llama(weights: Any, tokens: jax.Array) -> tuple[list[Any], jax.Array]:
    """Keys and values of each layer, and the logits."""
    weights = jax.tree.map(np.asarray, weights)
    x, cache = jnp.asarray(weights["embedding"])[tokens], []
    for w in weights["layers"]:
        normal = norm(x, w["scale_attention"], LLAMA.norm_epsilon)
        query, key, value = (
            jnp.einsum("bsw,hdw->bshd", normal, w[name]) for name in ("query", "key", "value")
        )
        query, key = turn(query), turn(key)
        cache.append((key, value))
        x = x + jnp.einsum("bshd,whd->bsw", attention(query, key, value), w["out"])
        normal = norm(x, w["scale_mlp"], LLAMA.norm_epsilon)
        x = x + (jax.nn.silu(normal @ w["gate"].T) * (normal @ w["up"].T)) @ w["down"].T
    return cache, norm(x, weights["scale_final"], LLAMA.norm_epsilon) @ weights["unembedding"].T


@pytest.mark.parametrize("share", [0.0, 1e-6])
def test_tensor_parallel_decoding_is_the_forward_pass(share: float) -> None:
    """A share of next to nothing leaves the likeliest token alone."""
    sampling = tensor_parallel.Sampling(share=share)
    example = Example("", {"model": 8}, "", lambda m: tensor_parallel.decode(LLAMA, sampling, m))
    step, arguments = example(example.concrete_mesh(jax.devices()))
    weights = drawn(arguments[0])
    tokens = tokens_of(LLAMA.batch, POSITION + 1, LLAMA.vocabulary)
    expected, logits = plain_llama(weights, tokens)

    def filled(values: Any, leaf: jax.ShapeDtypeStruct) -> jax.Array:
        room = np.zeros(leaf.shape, np.float32)
        room[:, :POSITION] = values[:, :POSITION]
        return placed(room, leaf)

    cache = jax.tree.map(filled, expected, arguments[1])
    last = placed(tokens[:, -1], arguments[2])
    position, noise = placed(POSITION, arguments[3]), placed([1, 2, 3, 4], arguments[4])
    new, out = step(weights, cache, last, position, noise)
    np.testing.assert_array_equal(out, jnp.argmax(logits[:, -1], axis=-1))
    for pair, wanted in zip(new, expected, strict=True):
        for array, values in zip(pair, wanted, strict=True):
            np.testing.assert_allclose(array[:, : POSITION + 1], values, **CLOSE)


def test_drawn_tokens_are_among_the_likeliest() -> None:
    """Only the first two of shares 1/2, 1/4, 1/8, 1/8 are drawn if 0.7 is enough, as 2 to 1."""
    logits = jnp.broadcast_to(jnp.log(jnp.array([1 / 8, 1 / 2, 1 / 8, 1 / 4])), (2000, 4))
    sampling = tensor_parallel.Sampling(temperature=1.0, share=0.7)
    drawn_tokens = tensor_parallel.sample(sampling, logits, jnp.arange(4, dtype=jnp.uint32))
    counts = np.bincount(drawn_tokens, minlength=4)
    assert counts[0] == counts[2] == 0
    assert counts[1] / counts[3] == pytest.approx(2, rel=0.15)


def test_sizes_and_flops_of_the_published_model() -> None:
    """540 billion parameters, 18 billion more with 64 heads."""
    unpadded = dataclasses.replace(inference.DECODED, heads=48)
    assert unpadded.parameters() == pytest.approx(540e9, rel=0.005)
    more = inference.DECODED.parameters() - unpadded.parameters()
    assert more == 118 * 2 * 18432 * 16 * 256
    assert 2 * unpadded.parameters() * 512 * 2048 == inference.PREFILL_FLOPS * 64
