r"""Exports a train step of a decoder-only language model, of any size, on any mesh.

Root-mean-square norms, causal attention with rotary positions, plain with a float32 softmax or by
JAX's splash kernel, of as many heads for keys and values as for queries or fewer; a gated MLP,
cross-entropy; float32 weights and Adam, bfloat16 compute, the state donated. Layers are one scan
over stacked weights, or unrolled, one copy per layer. Going backward each layer is kept, computed
again, or computed again from what the projections of its attention made, which the host keeps.

    python benchmarks/decoder_train.py --unroll --layers 100 --hidden 1024 --fsdp 4 --tp 4 \
        --config v5e-4x4 -o decoder_100.pb
    python benchmarks/decoder_train.py --layers 32 --hidden 5120 --batch-per-device 8 --fsdp 256 \
        --remat --query-block 512 --config v5e-16x16 -o decoder_fsdp_256.pb

Llama 3 8B on eight chips, once with full rematerialisation, once with --offload in its place:

    python benchmarks/decoder_train.py --layers 32 --hidden 4096 --ffn 14336 --kv-heads 8 \
        --vocab 128256 --seq 8192 --batch-per-device 3 --fsdp 8 --splash --narrow-logits --remat \
        --config v6e-4x2 -o decoder_8b.pb

Weights and norm scales are split over `fsdp` along the model's width, weights also over `tp` along
heads, the hidden width of the MLP and the vocabulary; the batch over `data` and `fsdp`. Nothing is
executed and no device is needed: shapes over an abstract mesh.
"""

import argparse
import dataclasses
import pathlib
import sys
from typing import Any, NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[1]
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "tools" / "python")]

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import tpusim  # noqa: E402
from jax import lax  # noqa: E402
from jax.ad_checkpoint import checkpoint_name  # noqa: E402
from jax.sharding import AbstractMesh  # noqa: E402

from workloads.examples.example import AnyMesh, Program  # noqa: E402
from workloads.examples.rules import Array, Layout, Rules, spec  # noqa: E402

Weights = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Decoder:
    """Sizes of the model and of its batch, and how the step is written."""

    layers: int
    hidden: int
    ffn: int
    heads: int
    vocabulary: int
    sequence: int
    batch: int  # Of all devices together
    kv_heads: int = 0  # 0: as many as heads
    unroll: bool = False
    remat: bool = False
    offload: bool = False
    query_block: int = 0
    splash: bool = False
    narrow_logits: bool = False

    def layer_arrays(self) -> dict[str, Array]:
        """The weights of one layer."""
        head = self.hidden // self.heads
        scale = Array((self.hidden,), ("embed",))
        projection = Array((self.hidden, self.heads, head), ("embed", "heads", None))
        grouped = Array((self.hidden, self.kv_heads or self.heads, head), ("embed", "heads", None))
        widening = Array((self.hidden, self.ffn), ("embed", "ffn"))
        return {
            "scale_attention": scale,
            "query": projection,
            "key": grouped,
            "value": grouped,
            "out": Array((self.heads, head, self.hidden), ("heads", None, "embed")),
            "scale_mlp": scale,
            "gate": widening,
            "up": widening,
            "down": Array((self.ffn, self.hidden), ("ffn", "embed")),
        }

    def arguments(self, layout: Layout) -> Weights:
        """All weights as arguments: a list of layers, or one layer of stacked arrays."""
        layer = self.layer_arrays()
        stacked = {
            name: Array((self.layers, *array.shape), (None, *array.axes))
            for name, array in layer.items()
        }
        outside = {
            "embedding": Array((self.vocabulary, self.hidden), ("vocabulary", "embed")),
            "scale_final": Array((self.hidden,), ("embed",)),
            "unembedding": Array((self.hidden, self.vocabulary), ("embed", "vocabulary")),
        }
        layers: Any = layout.shapes(stacked, jnp.float32)
        if self.unroll:
            layers = [layout.shapes(layer, jnp.float32) for _ in range(self.layers)]
        return {"layers": layers, **layout.shapes(outside, jnp.float32)}


class TrainState(NamedTuple):
    """What a step reads and writes: weights, first and second moments, how many steps so far."""

    count: Any
    weights: Any
    mean: Any
    square: Any


def adam(state: TrainState, gradients: Any) -> TrainState:
    """One step of Adam; that both moments start at zero is made up for in the step size."""
    rate, decay_mean, decay_square = 1e-3, 0.9, 0.999
    count = state.count + 1
    steps = count.astype(jnp.float32)
    size = rate * jnp.sqrt(1 - decay_square**steps) / (1 - decay_mean**steps)
    mean = jax.tree.map(lambda m, g: decay_mean * m + (1 - decay_mean) * g, state.mean, gradients)
    square = jax.tree.map(
        lambda v, g: decay_square * v + (1 - decay_square) * (g * g), state.square, gradients
    )
    weights = jax.tree.map(
        lambda w, m, v: w - size * (m / (jnp.sqrt(v) + 1e-8)), state.weights, mean, square
    )
    return TrainState(count, weights, mean, square)


def normalize(x: jax.Array, scale: jax.Array) -> jax.Array:
    """By the root of the mean square, in float32."""
    wide = x.astype(jnp.float32)
    wide *= lax.rsqrt(jnp.mean(wide * wide, axis=-1, keepdims=True) + 1e-6)
    return (wide * scale).astype(x.dtype)


def rotate(x: jax.Array) -> jax.Array:
    """Rotary positions: pairs of a head's halves turn by angles that grow with the position."""
    half = x.shape[-1] // 2
    turns = 500_000.0 ** (-jnp.arange(half, dtype=jnp.float32) / half)
    angles = jnp.arange(x.shape[1], dtype=jnp.float32)[:, None, None] * turns
    sine, cosine = jnp.sin(angles), jnp.cos(angles)
    first, second = jnp.split(x.astype(jnp.float32), 2, axis=-1)
    turned = (first * cosine - second * sine, second * cosine + first * sine)
    return jnp.concatenate(turned, axis=-1).astype(x.dtype)


def splash(layout: Layout, query: jax.Array, key: jax.Array, value: jax.Array) -> jax.Array:
    """Causal attention by the kernel that JAX ships, each device for its sequences and heads."""
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as kernel
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks

    size = min(512, query.shape[1])
    sizes = dict.fromkeys((f.name for f in dataclasses.fields(kernel.BlockSizes)), size)
    for layouts_and_switches in ("use_fused_bwd_kernel", "q_layout", "k_layout", "v_layout"):
        sizes.pop(layouts_and_switches)
    axes = spec(layout.rules, ("batch", None, "heads", None))

    def local(query: jax.Array, key: jax.Array, value: jax.Array) -> jax.Array:
        length = query.shape[1]
        mask = masks.MultiHeadMask([masks.CausalMask((length, length))] * query.shape[2])
        attend = kernel.make_splash_mha(
            mask=mask, head_shards=1, q_seq_shards=1, block_sizes=kernel.BlockSizes(**sizes)
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


def attention(model: Decoder, layout: Layout, w: Weights, x: jax.Array) -> jax.Array:
    """Causal self-attention, with its projections."""

    def project(name: str) -> jax.Array:
        heads = jnp.einsum("bsw,whd->bshd", x, w[name].astype(x.dtype))
        return checkpoint_name(layout.constrain(heads, "batch", None, "heads", None), name)

    query, key, value = rotate(project("query")), rotate(project("key")), project("value")
    if not model.splash and key.shape[2] < query.shape[2]:
        key, value = (jnp.repeat(x, query.shape[2] // x.shape[2], axis=2) for x in (key, value))
    if model.splash:
        mixed = splash(layout, query, key, value)
    elif model.query_block:
        # All scores at once are too large for HBM if sequences are long. The scores of a block are
        # computed again in the backward pass.
        count = model.sequence // model.query_block
        blocks = query.reshape(query.shape[0], count, model.query_block, *query.shape[2:])
        blocks = layout.constrain(blocks.swapaxes(0, 1), None, "batch", None, "heads", None)
        firsts = jnp.arange(count) * model.query_block
        block = jax.checkpoint(lambda pair: attend(pair[0], pair[1], key, value))
        mixed = lax.map(block, (blocks, firsts)).swapaxes(0, 1).reshape(query.shape)
    else:
        mixed = attend(query, 0, key, value)
    mixed = layout.constrain(mixed, "batch", None, "heads", None)
    out = jnp.einsum("bshd,hdw->bsw", mixed, w["out"].astype(x.dtype))
    return checkpoint_name(layout.constrain(out, "batch", None, None), "out")


def mlp(layout: Layout, w: Weights, x: jax.Array) -> jax.Array:
    """The gated MLP."""
    wide = jax.nn.silu(x @ w["gate"].astype(x.dtype)) * (x @ w["up"].astype(x.dtype))
    wide = layout.constrain(wide, "batch", None, "ffn")
    return layout.constrain(wide @ w["down"].astype(x.dtype), "batch", None, None)


def logits_of(model: Decoder, layout: Layout, weights: Weights, tokens: jax.Array) -> jax.Array:
    """Logits of every position, in float32."""

    def layer(x: jax.Array, w: Weights) -> jax.Array:
        x += attention(model, layout, w, normalize(x, w["scale_attention"]))
        return x + mlp(layout, w, normalize(x, w["scale_mlp"]))

    if model.offload:
        layer = jax.checkpoint(
            layer,
            policy=jax.checkpoint_policies.save_and_offload_only_these_names(
                names_which_can_be_saved=[],
                names_which_can_be_offloaded=["query", "key", "value", "out"],
                offload_src="device",
                offload_dst="pinned_host",
            ),
        )
    elif model.remat:
        layer = jax.checkpoint(layer)
    x = weights["embedding"].astype(jnp.bfloat16)[tokens]
    x = layout.constrain(x, "batch", None, None)
    if model.unroll:
        for w in weights["layers"]:
            x = layer(x, w)
    else:
        x, _ = lax.scan(lambda x, w: (layer(x, w), None), x, weights["layers"])
    x = normalize(x, weights["scale_final"])
    table = weights["unembedding"].astype(x.dtype)
    kind = x.dtype if model.narrow_logits else jnp.float32
    logits = jnp.einsum("bsw,wv->bsv", x, table, preferred_element_type=kind)
    return layout.constrain(logits, "batch", None, "vocabulary").astype(jnp.float32)


def rules_of(mesh: AnyMesh) -> Rules:
    """By the names of the axes: `data` and `fsdp` share the batch, `fsdp` and `tp` the weights."""
    names = mesh.axis_names
    return {
        "batch": tuple(name for name in ("data", "fsdp") if name in names),
        **{axis: "fsdp" for axis in ("embed",) if "fsdp" in names},
        **{axis: "tp" for axis in ("heads", "ffn", "vocabulary") if "tp" in names},
    }


def train_step(model: Decoder, mesh: AnyMesh, rules: Rules | None = None) -> Program:
    """The step, jitted, and its arguments: the state, tokens and the tokens wanted next."""
    layout = Layout(mesh, rules_of(mesh) if rules is None else rules)

    def step(
        state: TrainState, tokens: jax.Array, targets: jax.Array
    ) -> tuple[TrainState, jax.Array]:
        def loss(weights: Weights) -> jax.Array:
            logits = logits_of(model, layout, weights, tokens)
            wanted = jax.nn.one_hot(targets, model.vocabulary, dtype=logits.dtype)
            chosen = jnp.sum(logits * wanted, axis=-1)
            return jnp.mean(jax.nn.logsumexp(logits, axis=-1) - chosen)

        value, gradients = jax.value_and_grad(loss)(state.weights)
        return adam(state, gradients), value

    weights = model.arguments(layout)
    count = jax.ShapeDtypeStruct((), jnp.int32, sharding=layout.sharding())
    state = TrainState(count, weights, weights, weights)
    tokens = layout.shape(Array((model.batch, model.sequence), ("batch", None)), jnp.int32)
    kept = jax.tree.map(lambda leaf: leaf.sharding, state)
    jitted = jax.jit(step, out_shardings=(kept, layout.sharding()), donate_argnums=0)
    return jitted, (state, tokens, tokens)


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line; sizes that depend on others are filled in, and checked."""
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--layers", type=int, default=4)
    p.add_argument("--hidden", type=int, default=1024, help="width of the model")
    p.add_argument("--ffn", type=int, help="hidden width of the MLP; default 4 x hidden")
    p.add_argument("--heads", type=int, help="default: hidden / 128")
    p.add_argument("--kv-heads", type=int, help="of keys and values; default: as many as heads")
    p.add_argument("--seq", type=int, default=2048, help="tokens per sequence")
    p.add_argument("--batch-per-device", type=int, default=1, help="sequences on a device")
    p.add_argument("--vocab", type=int, default=32768)
    p.add_argument("--data", type=int, default=1, help="replicas of the split weights")
    p.add_argument("--fsdp", type=int, default=1, help="devices that share weights and batch")
    p.add_argument("--tp", type=int, default=1, help="devices that share heads, ffn, vocabulary")
    form = p.add_mutually_exclusive_group()
    form.add_argument("--scan", action="store_true", help="layers are a loop (the default)")
    form.add_argument("--unroll", action="store_true", help="layers are copies")
    again = p.add_mutually_exclusive_group()
    again.add_argument("--remat", action="store_true", help="recompute each layer going backward")
    again.add_argument(
        "--offload",
        action="store_true",
        help="recompute, but for query, key, value and output projections: the host keeps them",
    )
    kind = p.add_mutually_exclusive_group()
    kind.add_argument("--query-block", type=int, default=0, help="attention by blocks of N queries")
    kind.add_argument("--splash", action="store_true", help="attention by JAX's splash kernel")
    p.add_argument("--narrow-logits", action="store_true", help="bfloat16 logits, float32 loss")
    p.add_argument("--config", required=True, help="slice, such as v5e-4x4")
    p.add_argument("-o", "--output", required=True, help="where the workload is written")
    flags = p.parse_args(arguments)
    flags.ffn = flags.ffn or 4 * flags.hidden
    flags.heads = flags.heads or max(1, flags.hidden // 128)
    flags.kv_heads = flags.kv_heads or flags.heads
    sizes = ("layers", "hidden", "ffn", "heads", "kv_heads", "seq", "batch_per_device", "vocab")
    for name in (*sizes, "data", "fsdp", "tp"):
        if getattr(flags, name) < 1:
            p.error(f"--{name.replace('_', '-')} must be positive")
    for name, over in (
        ("hidden", "heads"),
        ("hidden", "fsdp"),
        ("heads", "kv_heads"),
        ("kv_heads", "tp"),
        ("ffn", "tp"),
        ("vocab", "tp"),
    ):
        if getattr(flags, name) % getattr(flags, over):
            p.error(f"--{name} {getattr(flags, name)} is not a multiple of --{over}")
    if flags.query_block < 0 or (flags.query_block and flags.seq % flags.query_block):
        p.error("--seq is not a multiple of --query-block")
    return flags


def main(arguments: list[str] | None = None) -> None:
    """Exports what the command line says."""
    flags = parse(arguments)
    axes = {name: getattr(flags, name) for name in ("data", "fsdp", "tp")}
    axes = {name: size for name, size in axes.items() if size > 1} or {"fsdp": 1}
    model = Decoder(
        layers=flags.layers,
        hidden=flags.hidden,
        ffn=flags.ffn,
        heads=flags.heads,
        vocabulary=flags.vocab,
        sequence=flags.seq,
        batch=flags.batch_per_device * flags.data * flags.fsdp,
        kv_heads=flags.kv_heads,
        unroll=flags.unroll,
        remat=flags.remat,
        offload=flags.offload,
        query_block=flags.query_block,
        splash=flags.splash,
        narrow_logits=flags.narrow_logits,
    )
    step, inputs = train_step(model, AbstractMesh(tuple(axes.values()), tuple(axes)))
    tpusim.export(
        step,
        *inputs,
        path=flags.output,
        config=flags.config,
        name=pathlib.Path(flags.output).name.split(".")[0],
    )


if __name__ == "__main__":
    main()
