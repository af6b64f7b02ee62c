"""Serving the language model: prefill fills the KV cache, decoding adds one token at a time."""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax

from workloads.examples.example import AnyMesh, Program, example
from workloads.examples.language_model import (
    STACKED,
    Model,
    Weights,
    attend,
    embed,
    finish,
    logits_of,
    project,
)
from workloads.examples.rules import Array, Layout, Rules

SLICE = "v5e-4x2"
MESH = {"data": 2, "model": 4}
MODEL = Model(layers=2)
BATCH, PROMPT, ROOM = 8, 32, 64
GENERATED = 4  # tokens of one call

# Rules of the cache; "context" is the dimension that grows.
TABLES: dict[str, Rules] = {
    "heads": {"batch": "data", "heads": "model", "hidden": "model", "vocabulary": "model"},
    "context": {"batch": "data", "context": "model", "hidden": "model", "vocabulary": "model"},
}
CACHE = Array(
    (MODEL.layers, BATCH, ROOM, MODEL.heads, MODEL.head),
    (None, "batch", "context", "heads", None),
)
Cache = tuple[jax.Array, jax.Array]  # keys and values
RANGES = {"tokens": (0, MODEL.vocabulary), "length": (0, ROOM)}


def prefill(table: str, mesh: AnyMesh) -> Program:
    """The prompt at once: a cache with room for more, and the first token after it."""
    layout = Layout(mesh, TABLES[table])

    def prefill(weights: Weights, tokens: jax.Array) -> tuple[Cache, jax.Array]:
        position = jnp.arange(PROMPT)
        seen = position[:, None] >= position

        def layer(x: jax.Array, w: Weights) -> tuple[jax.Array, Cache]:
            q, k, v = project(layout, w, x, position)
            room = ((0, 0), (0, ROOM - PROMPT), (0, 0), (0, 0))
            return finish(layout, w, x, attend(q, k, v, seen)), (jnp.pad(k, room), jnp.pad(v, room))

        x, cache = lax.scan(
            layer, embed(layout, weights, tokens), {name: weights[name] for name in STACKED}
        )
        return cache, jnp.argmax(logits_of(layout, weights, x[:, -1:])[:, 0], axis=-1)

    cache = layout.sharding(*CACHE.axes)
    step = jax.jit(prefill, out_shardings=((cache, cache), layout.sharding("batch")))
    return step, (
        layout.shapes(MODEL.arrays(), jnp.bfloat16),
        layout.shape(Array((BATCH, PROMPT), ("batch", None)), jnp.int32),
    )


def advance(
    layout: Layout, weights: Weights, cache: Cache, tokens: jax.Array, length: jax.Array
) -> tuple[Cache, jax.Array]:
    """One token per sequence, at position `length` of the cache, and the tokens after it."""
    seen = jnp.arange(ROOM)[None] <= length

    def layer(x: jax.Array, entry: tuple[Weights, Cache]) -> tuple[jax.Array, Cache]:
        w, (keys, values) = entry
        q, k, v = project(layout, w, x, length[None])
        keys = lax.dynamic_update_slice_in_dim(keys, k, length, axis=1)
        values = lax.dynamic_update_slice_in_dim(values, v, length, axis=1)
        return finish(layout, w, x, attend(q, keys, values, seen)), (keys, values)

    stacked = {name: weights[name] for name in STACKED}
    x, cache = lax.scan(layer, embed(layout, weights, tokens[:, None]), (stacked, cache))
    return cache, jnp.argmax(logits_of(layout, weights, x)[:, 0], axis=-1)


def decode(table: str, mesh: AnyMesh) -> Program:
    """One step, with a cache that is updated in place."""
    layout = Layout(mesh, TABLES[table])

    def decode_step(
        weights: Weights, cache: Cache, tokens: jax.Array, length: jax.Array
    ) -> tuple[Cache, jax.Array]:
        return advance(layout, weights, cache, tokens, length)

    return serve(layout, decode_step)


def generate(table: str, mesh: AnyMesh) -> Program:
    """A loop of steps, each with the tokens of the one before."""
    layout = Layout(mesh, TABLES[table])

    def generate(
        weights: Weights, cache: Cache, tokens: jax.Array, length: jax.Array
    ) -> tuple[Cache, jax.Array]:
        def step(carry: tuple[Cache, jax.Array], done: jax.Array) -> tuple[tuple, jax.Array]:
            cache, tokens = advance(layout, weights, *carry, length + done)
            tokens = tokens.astype(jnp.int32)
            return (cache, tokens), tokens

        (cache, _), made = lax.scan(step, (cache, tokens), jnp.arange(GENERATED))
        return cache, made[-1]

    return serve(layout, generate)


def serve(layout: Layout, step: Callable[..., tuple[Cache, jax.Array]]) -> Program:
    """The step over weights, a cache that it may overwrite, tokens and how long they are so far."""
    cache = layout.shape(CACHE, jnp.bfloat16)
    tokens = layout.shape(Array((BATCH,), ("batch",)), jnp.int32)
    jitted = jax.jit(
        step,
        out_shardings=((cache.sharding, cache.sharding), tokens.sharding),
        donate_argnums=1,
    )
    return jitted, (
        layout.shapes(MODEL.arrays(), jnp.bfloat16),
        (cache, cache),
        tokens,
        jax.ShapeDtypeStruct((), jnp.int32, sharding=layout.sharding()),
    )


for _table in TABLES:
    example(MESH, SLICE, f"prefill_{_table}_sharded", ranges=RANGES)(
        functools.partial(prefill, _table)
    )
    example(MESH, SLICE, f"decode_{_table}_sharded", ranges=RANGES)(
        functools.partial(decode, _table)
    )
example(MESH, SLICE, "generate_heads_sharded", ranges={**RANGES, "length": (0, ROOM - GENERATED)})(
    functools.partial(generate, "heads")
)
