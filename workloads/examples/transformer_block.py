"""One Transformer block, tensor and sequence parallel, end to end in automatic and manual mode.

Between its halves the activations are x[data, model, -]: the sequence is sharded, too. Attention
has its heads, the MLP its hidden width, sharded over `model`; each gathers the sequence and
scatters its sums back.
"""

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from workloads.examples.example import AnyMesh, Program, array, example

SLICE = "v5e-4x2"
MESH = {"data": 2, "model": 4}
BATCH, SEQUENCE, WIDTH, HEADS, HEAD, HIDDEN = 4, 64, 128, 8, 16, 512

Weights = dict[str, jax.Array]
SPECS = {
    "scale_attention": P(None),
    "qkv": P(None, None, "model", None),
    "out": P("model", None, None),
    "scale_mlp": P(None),
    "up": P(None, "model"),
    "down": P("model", None),
}
SHAPES = {
    "scale_attention": (WIDTH,),
    "qkv": (WIDTH, 3, HEADS, HEAD),
    "out": (HEADS, HEAD, WIDTH),
    "scale_mlp": (WIDTH,),
    "up": (WIDTH, HIDDEN),
    "down": (HIDDEN, WIDTH),
}
ACTIVATIONS = P("data", "model", None)


def arguments(mesh: AnyMesh) -> tuple[jax.ShapeDtypeStruct, dict[str, jax.ShapeDtypeStruct]]:
    """Activations and weights, in bfloat16."""
    return array(mesh, (BATCH, SEQUENCE, WIDTH), jnp.bfloat16, *ACTIVATIONS), {
        name: array(mesh, shape, jnp.bfloat16, *SPECS[name]) for name, shape in SHAPES.items()
    }


def normalize(x: jax.Array, scale: jax.Array) -> jax.Array:
    """Normalizes by the root of the mean square, in float32."""
    wide = x.astype(jnp.float32)
    wide *= lax.rsqrt(jnp.mean(wide * wide, axis=-1, keepdims=True) + 1e-6)
    return wide.astype(x.dtype) * scale


def attention(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    """Causal attention of [batch, sequence, heads, head] arrays."""
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(jnp.float32) * HEAD**-0.5
    seen = jnp.tril(jnp.ones((q.shape[1], k.shape[1]), bool))
    weights = jax.nn.softmax(jnp.where(seen, scores, -1e9)).astype(q.dtype)
    return jnp.einsum("bhqk,bkhd->bqhd", weights, v)


@example(mesh=MESH, config=SLICE)
def transformer_block_auto(mesh: AnyMesh) -> Program:
    """Constraints where the sharding of the activations changes; the compiler does the rest."""

    def constrain(x: jax.Array, *spec: str | None) -> jax.Array:
        return lax.with_sharding_constraint(x, NamedSharding(mesh, P(*spec)))

    def transformer_block_auto(x: jax.Array, w: Weights) -> jax.Array:
        h = constrain(normalize(x, w["scale_attention"]), "data", None, None)
        qkv = jnp.einsum("bsw,wnhd->nbshd", h, w["qkv"])
        qkv = constrain(qkv, None, "data", None, "model", None)
        mixed = jnp.einsum("bshd,hdw->bsw", attention(*qkv), w["out"])
        x += constrain(mixed, *ACTIVATIONS)
        h = constrain(normalize(x, w["scale_mlp"]), "data", None, None)
        hidden = constrain(jax.nn.gelu(h @ w["up"]), "data", None, "model")
        return x + constrain(hidden @ w["down"], *ACTIVATIONS)

    step = jax.jit(transformer_block_auto, out_shardings=NamedSharding(mesh, ACTIVATIONS))
    return step, arguments(mesh)


@example(mesh=MESH, config=SLICE)
def transformer_block_manual(mesh: AnyMesh) -> Program:
    """The transformer block with its collectives written out."""

    def gather(x: jax.Array) -> jax.Array:
        return lax.all_gather(x, "model", axis=1, tiled=True)

    def scatter(x: jax.Array) -> jax.Array:
        return lax.psum_scatter(x, "model", scatter_dimension=1, tiled=True)

    def transformer_block_manual(x: jax.Array, w: Weights) -> jax.Array:
        h = gather(normalize(x, w["scale_attention"]))
        q, k, v = jnp.einsum("bsw,wnhd->nbshd", h, w["qkv"])
        x += scatter(jnp.einsum("bshd,hdw->bsw", attention(q, k, v), w["out"]))
        h = gather(normalize(x, w["scale_mlp"]))
        return x + scatter(jax.nn.gelu(h @ w["up"]) @ w["down"])

    sharded = jax.shard_map(
        transformer_block_manual, mesh=mesh, in_specs=(ACTIVATIONS, SPECS), out_specs=ACTIVATIONS
    )
    return jax.jit(sharded), arguments(mesh)
