"""Language models of Google and others: RecurrentGemma, Tunix, Penzai, Mamba 2, Haliax."""

import dataclasses
from typing import Any

import equinox as eqx
import haliax as hax
import jax
import jax.numpy as jnp
import optax
import recurrentgemma.jax as griffin
import shapes
from flax import nnx
from jax.sharding import AxisType
from mamba2_jax import modeling as mamba
from penzai import pz
from penzai.models.transformer.variants import llamalike_common
from recurrentgemma import common as griffin_common
from tunix.models.qwen3 import model as qwen

BF16 = jnp.bfloat16
ADAMW = optax.adamw(1e-4)


def recurrent_gemma() -> Any:
    """Six blocks of RecurrentGemma 2B: linear recurrences and local attention, fully sharded."""
    over = shapes.mesh(data=16)
    preset = griffin_common.GriffinConfig.from_preset(
        griffin_common.Preset.RECURRENT_GEMMA_2B_V1, vocab_size=256000
    )
    config = preset._replace(
        block_types=preset.block_types[:6], scan_type=griffin_common.ScanType.ASSOCIATIVE_NATIVE
    )
    model = griffin.Griffin(config, dtype=BF16)
    tokens = shapes.shaped(over, (16 * 2, 2048), jnp.int32, "data")
    params = shapes.abstract(lambda t: model.init(shapes.key(), t, t)["params"], tokens)
    params = shapes.sharded(params, over, "data")
    state = shapes.sharded(shapes.abstract(ADAMW.init, params), over, "data")

    def loss(parts: Any, tokens: jax.Array) -> jax.Array:
        whole = shapes.gathered(parts, params, "data")
        positions = jnp.broadcast_to(jnp.arange(tokens.shape[1]), tokens.shape)
        logits, _ = model.apply({"params": whole}, tokens, positions)
        return shapes.cross_entropy(logits[:, :-1], tokens[:, 1:])

    return shapes.train_step(loss, ADAMW), (params, state, tokens)


def tunix_experts() -> Any:
    """Four layers of Qwen3 30B-A3B from Tunix: 128 experts over fsdp by ragged all-to-all."""
    over = jax.make_mesh((4, 2), ("fsdp", "tp"), axis_types=(AxisType.Auto,) * 2)
    config = dataclasses.replace(
        qwen.ModelConfig.qwen3_30b_a3b(),
        num_layers=4,
        dtype=BF16,
        param_dtype=BF16,
        use_flash_attention=True,
        flash_attention_block_size=512,
        remat_config=qwen.RematConfig.BLOCK,
    )
    with jax.set_mesh(over):
        model = nnx.eval_shape(lambda: qwen.Qwen3(config, rngs=nnx.Rngs(0)))
    graph, params = nnx.split(model)
    specs = nnx.get_partition_spec(params)

    def place(leaf: Any, spec: Any) -> Any:
        return shapes.shaped(over, leaf.shape, leaf.dtype, *spec)

    params = jax.tree.map(place, params, specs)
    optimizer = optax.adafactor(1e-4)
    state = shapes.sharded(shapes.abstract(optimizer.init, params), over, "fsdp")
    tokens = shapes.shaped(over, (4 * 2, 2048), jnp.int32, "fsdp")

    def loss(params: Any, tokens: jax.Array) -> jax.Array:
        positions = jnp.broadcast_to(jnp.arange(tokens.shape[1]), tokens.shape)
        logits, _ = nnx.merge(graph, params)(tokens, positions, None, None)
        return shapes.cross_entropy(logits[:, :-1], tokens[:, 1:])

    step = shapes.train_step(loss, optimizer)

    def under_mesh(*arguments: Any) -> Any:
        with over:
            return step(*arguments)

    return jax.jit(under_mesh, donate_argnums=(0, 1)), (params, state, tokens)


def penzai_llama() -> Any:
    """A Llama of named axes from Penzai, width 2,048, 12 layers: forward over batch and model."""
    over = shapes.mesh(data=4, model=4)
    config = llamalike_common.LlamalikeTransformerConfig(
        num_kv_heads=8,
        query_head_multiplier=2,
        embedding_dim=2048,
        projection_dim=128,
        mlp_hidden_dim=8192,
        num_decoder_blocks=12,
        vocab_size=32000,
        mlp_variant="swiglu",
        tie_embedder_and_logits=False,
        parameter_dtype=BF16,
        activation_dtype=BF16,
        use_layer_stack=True,
    )

    def make() -> Any:
        model, params = pz.unbind_params(
            llamalike_common.build_llamalike_transformer(config, shapes.key()), freeze=True
        )
        slots.append(model)
        return params

    slots: list[Any] = []
    params = jax.eval_shape(make)
    # Penzai names the axes of its parameters, so a table of names says how they are sharded.
    names = {"neurons": "model", "kv_heads": "model", "vocabulary": "model"}

    def place(leaf: Any) -> Any:
        if not isinstance(leaf, pz.nx.NamedArray):
            return shapes.shaped(over, leaf.shape, leaf.dtype)
        axes = [names.get(name) for name in leaf.named_axes]
        data = leaf.data_array
        return leaf.__class__(leaf.named_axes, shapes.shaped(over, data.shape, data.dtype, *axes))

    params = jax.tree.map(place, params, is_leaf=lambda leaf: isinstance(leaf, pz.nx.NamedArray))

    def score(params: Any, tokens: jax.Array) -> jax.Array:
        model = pz.bind_variables(slots[0], params)
        named = pz.nx.wrap(tokens, "batch", "seq")
        logits = model(named, token_positions=pz.nx.arange("seq", tokens.shape[1]))
        logits = logits.unwrap("batch", "seq", "vocabulary")
        return shapes.cross_entropy(logits[:, :-1], tokens[:, 1:])

    tokens = shapes.shaped(over, (4 * 4, 2048), jnp.int32, "data")
    return jax.jit(score), (params, tokens)


def mamba2() -> Any:
    """Mamba 2 of 370M parameters, state space duality in chunks, fully sharded."""
    over = shapes.mesh(data=16)
    config = mamba.Mamba2Config(hidden_size=1024, num_hidden_layers=16)
    model = nnx.eval_shape(lambda: mamba.Mamba2ForCausalLM(config, rngs=nnx.Rngs(0)))
    graph, params, rest = nnx.split(model, nnx.Param, ...)
    params = shapes.sharded(params, over, "data")
    state = shapes.sharded(shapes.abstract(ADAMW.init, params), over, "data")
    tokens = shapes.shaped(over, (16 * 2, 2048), jnp.int32, "data")

    def loss(parts: Any, rest: Any, tokens: jax.Array) -> jax.Array:
        whole = shapes.gathered(parts, params, "data")
        half = jax.tree.map(lambda p: p.astype(BF16), whole)
        logits = nnx.merge(graph, half, rest)(tokens)["logits"]
        return shapes.cross_entropy(logits[:, :-1], tokens[:, 1:])

    step = shapes.train_step(loss, ADAMW)
    return step, (params, state, shapes.replicated(rest, over), tokens)


def haliax_decoder() -> Any:
    """Haliax: a decoder of named axes, layers scanned and computed again, as Levanter shards it."""
    over = shapes.mesh(data=8, model=4)
    embed, heads, head = hax.Axis("embed", 2048), hax.Axis("heads", 16), hax.Axis("head", 128)
    mlp, vocab, layers = hax.Axis("mlp", 8192), hax.Axis("vocab", 32000), hax.Axis("layers", 8)
    batch, position = hax.Axis("batch", 8 * 4), hax.Axis("position", 2048)
    keys = position.alias("key_position")
    for_parameters = {"embed": "data", "heads": "model", "mlp": "model", "vocab": "model"}
    for_compute = {"batch": "data", "heads": "model", "mlp": "model", "vocab": "model"}

    class Block(eqx.Module):
        qkv: hax.nn.Linear
        out: hax.nn.Linear
        feed: hax.nn.MLP
        norms: tuple[hax.nn.RmsNorm, hax.nn.RmsNorm]

        @staticmethod
        def init(*, key: jax.Array) -> Any:
            three = hax.Axis("qkv", 3)
            norms = (hax.nn.RmsNorm.init(embed), hax.nn.RmsNorm.init(embed))
            return Block(
                hax.nn.Linear.init(embed, (three, heads, head), key=key, use_bias=False),
                hax.nn.Linear.init((heads, head), embed, key=key, use_bias=False),
                hax.nn.MLP.init(embed, embed, mlp, 1, key=key, use_bias=False),
                norms,
            )

        def __call__(self, x: Any) -> Any:
            q, k, v = self.qkv(self.norms[0](x)).unbind("qkv")
            k, v = (t.rename({"position": "key_position"}) for t in (k, v))
            mask = hax.nn.attention.causal_mask(position, keys)
            mixed = hax.nn.attention.dot_product_attention(keys, head, q, k, v, mask=mask)
            x = x + self.out(mixed)
            return hax.auto_sharded(x + self.feed(self.norms[1](x)))

    class Model(eqx.Module):
        tokens: hax.nn.Embedding
        blocks: Any
        norm: hax.nn.RmsNorm

        def __call__(self, tokens: Any) -> Any:
            x = hax.auto_sharded(self.tokens(tokens))
            return self.tokens.unembed(self.norm(self.blocks.fold(x)))

    def make() -> Model:
        keys = jax.random.split(shapes.key(), layers.size)
        blocks = hax.nn.Stacked.init(layers, Block, gradient_checkpointing=True)(key=keys)
        table = hax.nn.Embedding.init(vocab, embed, key=shapes.key())
        return Model(table, blocks, hax.nn.RmsNorm.init(embed))

    model = eqx.filter_eval_shape(make)
    arrays, static = eqx.partition(model, lambda leaf: hasattr(leaf, "shape"))

    def named(leaf: Any) -> bool:
        return isinstance(leaf, hax.NamedArray)

    def place(leaf: Any) -> Any:
        if not named(leaf):
            return shapes.shaped(over, leaf.shape, leaf.dtype)
        axes = [for_parameters.get(axis.name) for axis in leaf.axes]
        data = shapes.shaped(over, leaf.array.shape, leaf.array.dtype, *axes)
        return hax.NamedArray(data, leaf.axes)

    def placed(tree: Any) -> Any:
        return jax.tree.map(place, tree, is_leaf=named)

    def loss(arrays: Any, tokens: jax.Array) -> jax.Array:
        with hax.axis_mapping(for_compute), jax.sharding.use_abstract_mesh(over):
            half = jax.tree.map(lambda p: p.astype(BF16), arrays)
            model = eqx.combine(half, static)
            logits = model(hax.named(tokens, (batch, position)))
            logits = logits.rearrange((batch, position, vocab)).array
            return shapes.cross_entropy(logits[:, :-1], tokens[:, 1:])

    params = placed(arrays)
    state = placed(jax.eval_shape(ADAMW.init, arrays))
    tokens = shapes.shaped(over, (batch.size, position.size), jnp.int32, "data")
    return shapes.train_step(loss, ADAMW), (params, state, tokens)
