"""A decoder whose layers run attention and the MLP side by side, served on a torus of x, y and z.

    x + (MLP and attention)(norm(x))

One product makes the MLP's hidden values and the queries out of the normalized input, another one
joins what comes of both; all query heads share one head of keys and values. Collectives are
written out. T is the number of devices; hidden columns and query heads are dealt out in T tiles.

Decoding, weights stationary in two dimensions: an array of the model's width is shared over x, y
and z between layers; it is gathered over y and z, and the first product's partial sums are
scattered over x, which leaves each device one tile. Queries go from one tile of heads of all
sequences to all heads of a few sequences and back (all-to-all), as the cache is shared along the
batch. Tiles are gathered over x, and the second product's partial sums scattered over y and z.

Prefill, weights gathered: each device keeps whole sequences, and gathers the weights of each layer
from all others, a part of the tiles at a time.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec

from validation.workloads.decoder import Weights, normalize, turned
from workloads.examples.example import AnyMesh, Program
from workloads.examples.rules import Array, Layout, Rules, spec

WIDTH = ("x", "y", "z")
TILES = ("y", "z", "x")
PLANE = ("y", "z")
AXES: Rules = {"width": WIDTH, "row": "x", "tile_rows": PLANE, "tiles": TILES, "batch": WIDTH}
Cache = tuple[jax.Array, jax.Array]  # Keys and values


@dataclasses.dataclass(frozen=True)
class ParallelBlock:
    """Sizes of the model and of its batch; `room` counts the positions of the cache."""

    layers: int
    width: int
    mlp: int
    heads: int
    head: int
    vocabulary: int
    batch: int
    room: int
    int8: bool = False  # Weights of layers, with a scale per output
    compute: Any = jnp.bfloat16
    longest_turn: float = 10_000.0
    norm_epsilon: float = 1e-6

    def parameters(self) -> int:
        """Numbers in all weights; the embedding makes the logits as well."""
        layer = self.width * (3 * self.mlp + 2 * (self.heads + 1) * self.head + 1)
        return self.layers * layer + self.width * (self.vocabulary + 1)

    def weights(self, layout: Layout) -> Weights:
        """Returns the weights as arguments, those of layers stacked."""
        tiles = layout.mesh.size
        hidden, queries = self.mlp // tiles, self.heads // tiles * self.head
        n = self.layers
        layer = {
            "into": Array(
                (n, tiles, self.width, 2 * hidden + queries), (None, "tile_rows", "row", None)
            ),
            "key_value": Array((n, self.width, 2 * self.head), (None, "width", None)),
            "out": Array(
                (n, tiles, hidden + queries, self.width), (None, "tile_rows", None, "row")
            ),
        }
        scales = {
            "into_scale": Array((n, tiles, 2 * hidden + queries), (None, "tiles", None)),
            "key_value_scale": Array((n, 2 * self.head), (None, None)),
            "out_scale": Array((n, self.width), (None, "width")),
        }
        norms = {"norm": Array((n, self.width), (None, "width"))}
        outside = {
            "embedding": Array((self.vocabulary, self.width), (None, "width")),
            "norm": Array((self.width,), ("width",)),
        }
        kept = layout.shapes(layer, jnp.int8 if self.int8 else self.compute)
        if self.int8:
            kept |= layout.shapes(scales, jnp.float32)
        return {
            "layers": kept | layout.shapes(norms, jnp.float32),
            **layout.shapes(outside, self.compute),
        }


def part_normalized(model: ParallelBlock, x: jax.Array, scale: jax.Array) -> jax.Array:
    """Root-mean-square norm of vectors that are shared along their width."""
    wide = x.astype(jnp.float32)
    squares = lax.psum(jnp.sum(wide * wide, axis=-1, keepdims=True), WIDTH) / model.width
    return (wide * lax.rsqrt(squares + model.norm_epsilon) * scale).astype(x.dtype)


def scaled(w: Weights, name: str, x: jax.Array) -> jax.Array:
    """Multiplies by the scale of int8 weights, after their product."""
    return x * w[f"{name}_scale"].astype(x.dtype) if f"{name}_scale" in w else x


def gated(model: ParallelBlock, wide: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Hidden values and queries [..., heads of the tile, head] out of tiles [..., columns]."""
    hidden = (wide.shape[-1] * model.mlp) // (2 * model.mlp + model.heads * model.head)
    gate, up, query = jnp.split(wide, (hidden, 2 * hidden), axis=-1)
    return jax.nn.silu(gate) * up, query.reshape(*query.shape[:-1], -1, model.head)


def attend(query: jax.Array, first: Any, key: jax.Array, value: jax.Array) -> jax.Array:
    """Attention of queries [b, q, heads, head] from position `first` on, over one head of keys."""
    scores = jnp.einsum("bqhd,bkd->bhqk", query, key, preferred_element_type=jnp.float32)
    seen = first + jnp.arange(query.shape[1])[:, None] >= jnp.arange(key.shape[1])
    scores = jnp.where(seen, scores * query.shape[-1] ** -0.5, -1e9)
    return jnp.einsum("bhqk,bkd->bqhd", jax.nn.softmax(scores).astype(value.dtype), value)


def next_tokens(table: jax.Array, x: jax.Array) -> jax.Array:
    """The likeliest token of each sequence of a device, of x shared along its width."""
    logits = lax.psum_scatter(x @ table.T, WIDTH, scatter_dimension=0, tiled=True)
    return jnp.argmax(logits, axis=-1).astype(jnp.int32)


def decode_layer(
    model: ParallelBlock,
    position: jax.Array,
    x: jax.Array,
    w: Weights,
    layer: jax.Array,
    cache: Cache,
) -> tuple[jax.Array, Cache]:
    """One layer for one token of every sequence: x [batch, width / T]."""
    normal = part_normalized(model, x, w["norm"])
    kind = x.dtype
    pair = lax.psum_scatter(
        normal @ w["key_value"].astype(kind), WIDTH, scatter_dimension=0, tiled=True
    )
    key, value = jnp.split(scaled(w, "key_value", pair)[:, None], 2, axis=-1)
    row = lax.all_gather(normal, PLANE, axis=1, tiled=True)
    wide = jnp.einsum("bw,twc->btc", row, w["into"].astype(kind))
    wide = lax.psum_scatter(wide, "x", scatter_dimension=1, tiled=True)
    hidden, query = gated(model, scaled(w, "into", wide)[:, 0])

    def turn(heads: jax.Array) -> jax.Array:
        return turned(heads, position[None].astype(jnp.float32), model.longest_turn, jnp.float32)

    query = turn(lax.all_to_all(query, WIDTH, 0, 1, tiled=True)[:, None])
    key = turn(key[:, :, None])[:, :, 0]

    def put(cache: jax.Array, new: jax.Array) -> jax.Array:
        return lax.dynamic_update_slice(cache, new[None], (layer, 0, position, 0))

    cache = (put(cache[0], key), put(cache[1], value))
    keys, values = (lax.dynamic_index_in_dim(c, layer, keepdims=False) for c in cache)
    context = attend(query, position, keys, values)[:, 0]
    context = lax.all_to_all(context, WIDTH, 1, 0, tiled=True).reshape(x.shape[0], -1)
    tile = jnp.concatenate((hidden, context), axis=-1)
    tiles = lax.all_gather(tile, "x", axis=1)
    out = jnp.einsum("btc,tcw->bw", tiles, w["out"].astype(kind))
    out = lax.psum_scatter(out, PLANE, scatter_dimension=1, tiled=True)
    return x + scaled(w, "out", out), cache


def on_mesh(layout: Layout, function: Callable[..., Any], arguments: Any, results: Any) -> Any:
    """The function of one device over the mesh."""
    specs = jax.tree.map(lambda leaf: leaf.sharding.spec, arguments)
    return jax.shard_map(
        function, mesh=layout.mesh, in_specs=specs, out_specs=results, check_vma=False
    )


def cache_of(model: ParallelBlock, layout: Layout) -> tuple[jax.ShapeDtypeStruct, ...]:
    """Keys and values of all layers and positions."""
    array = Array((model.layers, model.batch, model.room, model.head), (None, "batch", None, None))
    return (layout.shape(array, model.compute),) * 2


def decode(model: ParallelBlock, mesh: AnyMesh) -> Program:
    """One token for every sequence, at the position that is given; the cache is overwritten."""
    layout = Layout(mesh, AXES)

    def step(
        weights: Weights, cache: Cache, tokens: jax.Array, position: jax.Array
    ) -> tuple[Cache, jax.Array]:
        def layer(
            carry: tuple[jax.Array, Cache], entry: tuple[Weights, jax.Array]
        ) -> tuple[tuple[jax.Array, Cache], None]:
            return decode_layer(model, position, carry[0], *entry, carry[1]), None

        x = weights["embedding"][tokens]
        entries = (weights["layers"], jnp.arange(model.layers))
        (x, cache), _ = lax.scan(layer, (x, cache), entries)
        made = next_tokens(weights["embedding"], part_normalized(model, x, weights["norm"]))
        return cache, lax.all_gather(made, WIDTH, tiled=True)

    cache = cache_of(model, layout)
    arguments = (
        model.weights(layout),
        cache,
        layout.shape(Array((model.batch,), (None,)), jnp.int32),
        layout.shape(Array((), ()), jnp.int32),
    )
    shared = cache[0].sharding.spec
    function = on_mesh(layout, step, arguments, ((shared, shared), PartitionSpec()))
    return jax.jit(function, donate_argnums=1), arguments


def prefill_layer(model: ParallelBlock, x: jax.Array, w: Weights) -> tuple[jax.Array, Cache]:
    """One layer for all positions of a device's sequences: x [b, positions, width]."""
    positions = jnp.arange(x.shape[1], dtype=jnp.float32)

    def whole(part: jax.Array, axes: Any, axis: int) -> jax.Array:
        return lax.all_gather(part, axes, axis=axis, tiled=True)

    normal = normalize(x, whole(w["norm"], WIDTH, 0), model.norm_epsilon)
    key, value = jnp.split(normal @ whole(w["key_value"], WIDTH, 0), 2, axis=-1)
    key = turned(key[:, :, None], positions, model.longest_turn, jnp.float32)[:, :, 0]
    # One tile of every plane at a time: gathered weights of a whole layer would not fit.
    for part in range(w["into"].shape[0]):
        into = whole(whole(w["into"][part : part + 1], PLANE, 0), "x", 1)
        out = whole(whole(w["out"][part : part + 1], PLANE, 0), "x", 2)
        hidden, query = gated(model, jnp.einsum("bsw,twc->bstc", normal, into))
        query = query.reshape(*query.shape[:2], -1, model.head)
        query = turned(query, positions, model.longest_turn, jnp.float32)
        context = attend(query, 0, key, value).reshape(*hidden.shape[:3], -1)
        tile = jnp.concatenate((hidden, context), axis=-1)
        x += jnp.einsum("bstc,tcw->bsw", tile, out)
    return x, (key, value)


def prefill(model: ParallelBlock, mesh: AnyMesh) -> Program:
    """Runs the prompts: returns the cache, and the token after each position."""
    layout = Layout(mesh, AXES)

    def step(weights: Weights, tokens: jax.Array) -> tuple[Cache, jax.Array]:
        # Each device has all rows of the embedding, but a part of their width.
        all_tokens = lax.all_gather(tokens, WIDTH, tiled=True)
        x = lax.all_to_all(weights["embedding"][all_tokens], WIDTH, 0, 2, tiled=True)
        x, cache = lax.scan(lambda x, w: prefill_layer(model, x, w), x, weights["layers"])
        last = lax.all_to_all(x[:, -1], WIDTH, 1, 0, tiled=True)
        last = part_normalized(model, last, weights["norm"])
        return cache, next_tokens(weights["embedding"], last)

    cache = cache_of(model, layout)
    tokens = layout.shape(Array((model.batch, model.room), ("batch", None)), jnp.int32)
    arguments = (model.weights(layout), tokens)
    shared = cache[0].sharding.spec
    results = ((shared, shared), spec(AXES, ("batch",)))
    return jax.jit(on_mesh(layout, step, arguments, results)), arguments
