"""A decoder-only language model with the switches that published train steps differ by.

Root-mean-square norms, causal attention with rotary positions over groups of query heads, a gated
MLP (or a plain one), float32 or bfloat16 weights, bfloat16 compute. Layers are one scan over
stacked weights, or copies. What a layer keeps for the backward pass, what it gives to the host and
what it computes again goes by the names of its products (`NAMES`).

Arrays name their dimensions (`workloads/examples/rules.py`); the table of a mesh says which axes
share them:

    batch                  sequences
    width, hidden          of activations between the blocks of a layer, and inside the MLP
    embed, mlp_embed       the model's width in weights: of attention and tables, of the MLP
    mlp                    of weights: the hidden width of the MLP
    heads, vocabulary      of weights and activations
    norm                   scales of norms
"""

import dataclasses
from typing import Any, Literal

import jax
import jax.numpy as jnp
from jax import lax
from jax.ad_checkpoint import checkpoint_name

from workloads.examples.rules import Array, Layout, spec

Weights = dict[str, Any]

# Names of a layer's values for rematerialization policies, in its order. `context` is the weighted
# sum of attention's values, before the output projection.
NAMES = (
    "layer_input",
    "query",
    "key",
    "value",
    "context",
    "out",
    "gate",
    "up",
    "down",
)


@dataclasses.dataclass(frozen=True)
class Remat:
    """The values of a layer's forward pass that the backward pass finds; others are recomputed.

    `save` and `offload` hold names out of `NAMES`: what stays in HBM and what the host keeps.
    `products`: all products by weights stay, as under `checkpoint_dots_with_no_batch_dims`.
    """

    save: tuple[str, ...] = ()
    offload: tuple[str, ...] = ()
    products: bool = False
    barrier: bool = False  # Also before layers of a scan, where it keeps nothing from being merged

    def policy(self) -> Any:
        """Returns a policy for `jax.checkpoint`; None keeps only the inputs of the layer."""
        if self.products:
            return jax.checkpoint_policies.checkpoint_dots_with_no_batch_dims
        if not self.save and not self.offload:
            return None
        return jax.checkpoint_policies.save_and_offload_only_these_names(
            names_which_can_be_saved=list(self.save),
            names_which_can_be_offloaded=list(self.offload),
            offload_src="device",
            offload_dst="pinned_host",
        )


@dataclasses.dataclass(frozen=True)
class Splash:
    """Block sizes of JAX's splash attention kernels: forward, backward of keys, of queries.

    `fused`: one backward kernel makes all three gradients.
    """

    forward: int = 512
    backward_key: int = 512
    backward_query: int = 512
    fused: bool = False

    def block_sizes(self, length: int) -> Any:
        """Returns the block sizes as the kernel takes them."""
        from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel

        forward, key, query = (
            min(size, length) for size in (self.forward, self.backward_key, self.backward_query)
        )
        return splash_attention_kernel.BlockSizes(
            block_q=forward,
            block_kv=forward,
            block_kv_compute=forward,
            block_q_dkv=key,
            block_kv_dkv=key,
            block_kv_dkv_compute=key,
            block_q_dq=None if self.fused else query,
            block_kv_dq=None if self.fused else query,
            use_fused_bwd_kernel=self.fused,
        )


@dataclasses.dataclass(frozen=True)
class Decoder:
    """Sizes of the model and of its batch, and how it is written."""

    layers: int
    width: int
    mlp: int
    heads: int
    vocabulary: int
    sequence: int
    batch: int  # Of all devices together
    kv_heads: int = 0  # 0: as many as heads
    head: int = 0  # Width of a head; 0: width / heads
    gated: bool = True
    fused_projections: bool = False  # One product makes q, k and v, one makes gate and up
    unroll: bool = False
    layers_axis: int = 0  # Where the stacked weights count layers
    weights: Any = jnp.float32
    remat: Remat | None = None  # None: everything is kept
    splash: Splash | None = None  # None: plain, with a float32 softmax
    query_block: int = 0  # Plain attention by blocks of so many queries
    one_hot_embedding: bool = False  # A product looks tokens up
    narrow_logits: bool = False  # bfloat16 out of the product
    longest_turn: float = 500_000.0  # Of rotary positions
    query_key_norms: bool = False  # Each head's queries and keys are normalized
    narrow_turns: bool = False  # Rotary positions in bfloat16, but for the angles
    norm_epsilon: float = 1e-6

    def __post_init__(self) -> None:
        object.__setattr__(self, "kv_heads", self.kv_heads or self.heads)
        object.__setattr__(self, "head", self.head or self.width // self.heads)
        if self.fused_projections and self.kv_heads != self.heads:
            raise ValueError("fused projections need as many key and value heads as query heads")

    def layer_arrays(self) -> dict[str, Array]:
        """The weights of one layer."""
        scale = Array((self.width,), ("norm",))
        query = Array((self.width, self.heads, self.head), ("embed", "heads", None))
        grouped = Array((self.width, self.kv_heads, self.head), ("embed", "heads", None))
        widening = Array((self.width, self.mlp), ("mlp_embed", "mlp"))
        out = Array((self.heads, self.head, self.width), ("heads", None, "embed"))
        down = Array((self.mlp, self.width), ("mlp", "mlp_embed"))
        arrays = {"scale_attention": scale}
        if self.fused_projections:
            arrays["qkv"] = Array(
                (self.width, 3, self.heads, self.head), ("embed", None, "heads", None)
            )
        else:
            arrays |= {"query": query, "key": grouped, "value": grouped}
        if self.query_key_norms:
            of_head = Array((self.head,), (None,))
            arrays |= {"scale_query": of_head, "scale_key": of_head}
        arrays |= {"out": out, "scale_mlp": scale}
        if self.fused_projections and self.gated:
            arrays["gate_up"] = Array((self.width, 2, self.mlp), ("mlp_embed", None, "mlp"))
        elif self.gated:
            arrays |= {"gate": widening, "up": widening}
        else:
            arrays["up"] = widening
        return arrays | {"down": down}

    def arguments(self, layout: Layout) -> Weights:
        """Returns the weights as arguments: a list of layers, or one layer of stacked arrays."""
        layer = self.layer_arrays()
        outside = {
            "embedding": Array((self.vocabulary, self.width), ("vocabulary", "embed")),
            "scale_final": Array((self.width,), ("norm",)),
            "unembedding": Array((self.width, self.vocabulary), ("embed", "vocabulary")),
        }
        if self.unroll:
            layers: Any = [layout.shapes(layer, self.weights) for _ in range(self.layers)]
        else:
            at = self.layers_axis
            stacked = {
                name: Array(
                    (*array.shape[:at], self.layers, *array.shape[at:]),
                    (*array.axes[:at], None, *array.axes[at:]),
                )
                for name, array in layer.items()
            }
            layers = layout.shapes(stacked, self.weights)
        return {"layers": layers, **layout.shapes(outside, self.weights)}

    def parameters(self) -> int:
        """Numbers in all weights."""
        mlp = (3 if self.gated else 2) * self.width * self.mlp
        attention = 2 * self.width * (self.heads + self.kv_heads) * self.head
        return self.layers * (mlp + attention + 2 * self.width) + self.width * (
            2 * self.vocabulary + 1
        )

    def model_flops(self, *, causal: bool = False) -> int:
        """Returns FLOPs of a train step of all devices together, as model FLOP rates are published.

        Three times those of a forward pass: products by weights and logits, and attention as if no
        position were masked, or half of it if `causal`. What is computed again does not count.
        """
        tokens = self.batch * self.sequence
        mlp = (3 if self.gated else 2) * self.width * self.mlp
        projections = 2 * self.width * (self.heads + self.kv_heads) * self.head
        attention = (1 if causal else 2) * self.sequence * self.heads * self.head
        layer = mlp + projections + attention
        return 6 * tokens * (self.layers * layer + self.width * self.vocabulary)


def normalize(x: jax.Array, scale: jax.Array, epsilon: float) -> jax.Array:
    """Normalizes by the root of the mean square, in float32."""
    wide = x.astype(jnp.float32)
    wide *= lax.rsqrt(jnp.mean(wide * wide, axis=-1, keepdims=True) + epsilon)
    return (wide * scale).astype(x.dtype)


def turned(x: jax.Array, positions: jax.Array, longest_turn: float, kind: Any) -> jax.Array:
    """Pairs of a head's halves turn by angles that grow with the position, computed in `kind`."""
    half = x.shape[-1] // 2
    turns = longest_turn ** (-jnp.arange(half, dtype=jnp.float32) / half)
    angles = positions[:, None, None] * turns
    sine, cosine = jnp.sin(angles).astype(kind), jnp.cos(angles).astype(kind)
    first, second = jnp.split(x.astype(kind), 2, axis=-1)
    both = (first * cosine - second * sine, second * cosine + first * sine)
    return jnp.concatenate(both, axis=-1).astype(x.dtype)


def rotate(model: Decoder, x: jax.Array) -> jax.Array:
    """Rotary positions, from the first on."""
    positions = jnp.arange(x.shape[1], dtype=jnp.float32)
    return turned(x, positions, model.longest_turn, x.dtype if model.narrow_turns else jnp.float32)


def splash(
    sizes: Splash, layout: Layout, query: jax.Array, key: jax.Array, value: jax.Array
) -> jax.Array:
    """Causal attention by the kernel that JAX ships, each device for its sequences and heads."""
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as kernel
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks

    axes = spec(layout.rules, ("batch", None, "heads", None))

    def local(query: jax.Array, key: jax.Array, value: jax.Array) -> jax.Array:
        length = query.shape[1]
        mask = masks.MultiHeadMask([masks.CausalMask((length, length))] * query.shape[2])
        attend = kernel.make_splash_mha(
            mask=mask,
            head_shards=1,
            q_seq_shards=1,
            block_sizes=sizes.block_sizes(length),
            residual_checkpoint_name="context",
        )
        query *= query.shape[-1] ** -0.5
        heads_first = [x.swapaxes(1, 2) for x in (query, key, value)]
        return jax.vmap(attend)(*heads_first).swapaxes(1, 2)

    return jax.shard_map(
        local, mesh=layout.mesh, in_specs=(axes, axes, axes), out_specs=axes, check_vma=False
    )(query, key, value)


def attend(query: jax.Array, first: jax.Array | int, key: jax.Array, value: jax.Array) -> jax.Array:
    """Causal attention of queries at the positions from `first` on, over all keys."""
    scores = jnp.einsum("bqhd,bkhd->bhqk", query, key, preferred_element_type=jnp.float32)
    seen = first + jnp.arange(query.shape[1])[:, None] >= jnp.arange(key.shape[1])
    scores = jnp.where(seen, scores * query.shape[-1] ** -0.5, -1e9)
    shares = jax.nn.softmax(scores).astype(value.dtype)
    return jnp.einsum("bhqk,bkhd->bqhd", shares, value)


def plain_attention(
    model: Decoder, layout: Layout, query: jax.Array, key: jax.Array, value: jax.Array
) -> jax.Array:
    """Causal attention whose scores are arrays: of all queries, or of a block of them at a time.

    All scores at once are too large for HBM if sequences are long; those of a block are computed
    again in the backward pass.
    """
    if key.shape[2] < query.shape[2]:
        key, value = (jnp.repeat(x, query.shape[2] // x.shape[2], axis=2) for x in (key, value))
    if not model.query_block:
        return attend(query, 0, key, value)
    count = model.sequence // model.query_block
    blocks = query.reshape(query.shape[0], count, model.query_block, *query.shape[2:])
    blocks = layout.constrain(blocks.swapaxes(0, 1), None, "batch", None, "heads", None)
    firsts = jnp.arange(count) * model.query_block
    block = jax.checkpoint(lambda pair: attend(pair[0], pair[1], key, value))
    return lax.map(block, (blocks, firsts)).swapaxes(0, 1).reshape(query.shape)


def attention(model: Decoder, layout: Layout, w: Weights, x: jax.Array) -> jax.Array:
    """Causal self-attention, with its projections."""

    def split(heads: jax.Array, name: str) -> jax.Array:
        return checkpoint_name(layout.constrain(heads, "batch", None, "heads", None), name)

    if model.fused_projections:
        qkv = jnp.einsum("bsw,wphd->bsphd", x, w["qkv"].astype(x.dtype))
        query, key, value = (split(qkv[:, :, i], NAMES[i + 1]) for i in range(3))
    else:
        query, key, value = (
            split(jnp.einsum("bsw,whd->bshd", x, w[name].astype(x.dtype)), name)
            for name in ("query", "key", "value")
        )
    if model.query_key_norms:
        query = normalize(query, w["scale_query"], model.norm_epsilon)
        key = normalize(key, w["scale_key"], model.norm_epsilon)
    query, key = rotate(model, query), rotate(model, key)
    if model.splash:
        mixed = splash(model.splash, layout, query, key, value)
    else:
        mixed = plain_attention(model, layout, query, key, value)
        mixed = checkpoint_name(mixed, "context")
    mixed = layout.constrain(mixed, "batch", None, "heads", None)
    out = jnp.einsum("bshd,hdw->bsw", mixed, w["out"].astype(x.dtype))
    return checkpoint_name(layout.constrain(out, "batch", None, "width"), "out")


def mlp(model: Decoder, layout: Layout, w: Weights, x: jax.Array) -> jax.Array:
    """The MLP: gated by a sigmoid-weighted product, or with a rectifier."""

    def product(name: str) -> jax.Array:
        return checkpoint_name(x @ w[name].astype(x.dtype), name)

    if model.fused_projections and model.gated:
        both = jnp.einsum("bsw,wpm->bspm", x, w["gate_up"].astype(x.dtype))
        gate, up = (checkpoint_name(both[:, :, i], name) for i, name in enumerate(("gate", "up")))
        wide = jax.nn.silu(gate) * up
    elif model.gated:
        wide = jax.nn.silu(product("gate")) * product("up")
    else:
        wide = jax.nn.relu(product("up"))
    wide = layout.constrain(wide, "batch", None, "hidden")
    return checkpoint_name(
        layout.constrain(wide @ w["down"].astype(x.dtype), "batch", None, "width"), "down"
    )


def decoder_layer(model: Decoder, layout: Layout, x: jax.Array, w: Weights) -> jax.Array:
    """Attention, then the MLP, each added to what came in."""
    x = checkpoint_name(layout.constrain(x, "batch", None, "width"), "layer_input")
    x += attention(model, layout, w, normalize(x, w["scale_attention"], model.norm_epsilon))
    return x + mlp(model, layout, w, normalize(x, w["scale_mlp"], model.norm_epsilon))


def embed(model: Decoder, layout: Layout, weights: Weights, tokens: jax.Array) -> jax.Array:
    """Rows of the embedding: looked up, or by a product with one-hot vectors."""
    table = weights["embedding"].astype(jnp.bfloat16)
    if model.one_hot_embedding:
        x = jax.nn.one_hot(tokens, model.vocabulary, dtype=table.dtype) @ table
    else:
        x = table[tokens]
    return layout.constrain(x, "batch", None, "width")


def layers_output(model: Decoder, layout: Layout, weights: Weights, tokens: jax.Array) -> jax.Array:
    """Returns the normalized output of the last layer."""

    def layer(x: jax.Array, w: Weights) -> jax.Array:
        return decoder_layer(model, layout, x, w)

    if model.remat:
        barrier = model.unroll or model.remat.barrier
        layer = jax.checkpoint(layer, policy=model.remat.policy(), prevent_cse=barrier)
    x = embed(model, layout, weights, tokens)
    if model.unroll:
        for w in weights["layers"]:
            x = layer(x, w)
    else:
        stacked = weights["layers"]
        if model.layers_axis:
            stacked = jax.tree.map(lambda a: jnp.moveaxis(a, model.layers_axis, 0), stacked)
        x, _ = lax.scan(lambda x, w: (layer(x, w), None), x, stacked)
    return normalize(x, weights["scale_final"], model.norm_epsilon)


def logits_of(model: Decoder, layout: Layout, table: jax.Array, x: jax.Array) -> jax.Array:
    """Logits of every position, in float32."""
    kind: Literal["bfloat16", "float32"] = "bfloat16" if model.narrow_logits else "float32"
    logits = jnp.einsum("bsw,wv->bsv", x, table.astype(x.dtype), preferred_element_type=kind)
    return layout.constrain(logits, "batch", None, "vocabulary").astype(jnp.float32)
