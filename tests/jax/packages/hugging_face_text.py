"""More of Hugging Face `transformers` in Flax: language models, generation and translation."""

from typing import Any

import jax
import jax.numpy as jnp
import optax
import shapes
from hugging_face import ADAMW, model_parameters
from jax.sharding import PartitionSpec as P
from transformers import (
    BigBirdConfig,
    BloomConfig,
    ElectraConfig,
    FlaxBigBirdForMaskedLM,
    FlaxBloomForCausalLM,
    FlaxElectraForPreTraining,
    FlaxGemmaForCausalLM,
    FlaxGPTNeoForCausalLM,
    FlaxLongT5ForConditionalGeneration,
    FlaxMarianMTModel,
    FlaxMistralForCausalLM,
    FlaxT5ForConditionalGeneration,
    GemmaConfig,
    GPTNeoConfig,
    LongT5Config,
    MarianConfig,
    MistralConfig,
    T5Config,
)

BF16 = jnp.bfloat16


_clip = jnp.clip


def _clip_by_old_names(x: Any, *bounds: Any, a_min: Any = None, a_max: Any = None) -> jax.Array:
    return _clip(x, *(bounds or (a_min, a_max)))


# This version of transformers, the last with Flax models, passes names that JAX has dropped.
jnp.clip = _clip_by_old_names

# Columns of what spreads, rows of what joins, and the vocabulary, over model; the rest over data.
TENSOR_PARALLEL = (
    (r"(q_proj|k_proj|v_proj|gate_proj|up_proj|c_fc)/kernel", P("data", "model")),
    (r"(o_proj|out_proj|down_proj|c_proj)/kernel", P("model", "data")),
    (r"(embed_tokens|wte)/embedding", P("model", "data")),
    (r"lm_head/kernel", P("data", "model")),
)


def fully_sharded(
    model: Any, loss: Any, over: Any, *batch: Any, rules: Any = None, optimizer: Any = ADAMW
) -> Any:
    """A step whose parameters are kept in parts and gathered over data where they are used."""

    def split(tree: Any) -> Any:
        return shapes.by_rules(tree, over, rules) if rules else shapes.sharded(tree, over, "data")

    params = split(model_parameters(model))
    state = split(shapes.abstract(optimizer.init, params))

    def gathering_loss(parts: Any, *batch: Any) -> jax.Array:
        return loss(shapes.gathered(parts, params, "data"), *batch)

    return shapes.train_step(gathering_loss, optimizer), (params, state, *batch)


def t5() -> Any:
    """T5 base by Adafactor, fully sharded over 64 chips: 4 pairs of 512 and 114 tokens each."""
    over = shapes.mesh(data=64)
    config = T5Config(d_model=768, d_ff=3072, num_layers=12, num_heads=12, dropout_rate=0.0)
    model = FlaxT5ForConditionalGeneration(config, dtype=BF16, _do_init=False)

    def loss(params: Any, source: jax.Array, target: jax.Array) -> jax.Array:
        logits = model(source, decoder_input_ids=target, params=params).logits
        return shapes.cross_entropy(logits, target)

    source = shapes.shaped(over, (64 * 4, 512), jnp.int32, "data")
    target = shapes.shaped(over, (64 * 4, 114), jnp.int32, "data")
    optimizer = optax.adafactor(1e-3)
    return fully_sharded(model, loss, over, source, target, optimizer=optimizer)


def long_t5() -> Any:
    """LongT5 base with transient global attention, 4,096 tokens a sequence, data parallel."""
    over = shapes.mesh(data=16)
    config = LongT5Config(
        d_model=768,
        d_ff=2048,
        num_layers=12,
        num_heads=12,
        encoder_attention_type="transient-global",
        dropout_rate=0.0,
    )
    model = FlaxLongT5ForConditionalGeneration(config, dtype=BF16, _do_init=False)

    def loss(params: Any, source: jax.Array, target: jax.Array) -> jax.Array:
        logits = model(source, decoder_input_ids=target, params=params).logits
        return shapes.cross_entropy(logits, target)

    source = shapes.shaped(over, (16, 4096), jnp.int32, "data")
    target = shapes.shaped(over, (16, 256), jnp.int32, "data")
    return fully_sharded(model, loss, over, source, target)


def gemma_2b() -> Any:
    """Six layers of Gemma 2B over 32 x 8: fully sharded and tensor parallel on 256 chips."""
    over = shapes.mesh(data=32, model=8)
    config = GemmaConfig(
        hidden_size=2048,
        intermediate_size=16384,
        num_hidden_layers=6,
        num_attention_heads=8,
        num_key_value_heads=1,
        head_dim=256,
        max_position_embeddings=2048,
    )
    model = FlaxGemmaForCausalLM(config, dtype=BF16, _do_init=False)

    def loss(params: Any, tokens: jax.Array) -> jax.Array:
        logits = model(input_ids=tokens, params=params, train=True).logits
        return shapes.cross_entropy(logits[:, :-1], tokens[:, 1:])

    tokens = shapes.shaped(over, (32 * 4, 2048), jnp.int32, "data")
    return fully_sharded(model, loss, over, tokens, rules=TENSOR_PARALLEL)


def mistral_decode() -> Any:
    """Eight layers of Mistral 7B write 32 tokens with a cache, tensor parallel, batch of 16."""
    over = shapes.mesh(model=8)
    config = MistralConfig(num_hidden_layers=8, max_position_embeddings=1024)
    model = FlaxMistralForCausalLM(config, dtype=BF16, _do_init=False)
    params = shapes.as_dtype(model_parameters(model), BF16)

    def generate(params: Any, tokens: jax.Array) -> jax.Array:
        written = model.generate(
            tokens, params=params, max_new_tokens=32, do_sample=False, pad_token_id=0
        )
        return written.sequences

    tokens = shapes.shaped(over, (16, 480), jnp.int32)
    rules = [
        (rule, P(*(name if name == "model" else None for name in spec)))
        for rule, spec in TENSOR_PARALLEL
    ]
    return jax.jit(generate), (shapes.by_rules(params, over, rules), tokens)


def gpt_neo() -> Any:
    """Six layers of GPT-Neo 1.3B, local and global attention in turns, over data and model."""
    over = shapes.mesh(data=8, model=2)
    config = GPTNeoConfig(
        vocab_size=50304,
        num_layers=6,
        attention_types=[[["global", "local"], 3]],
        hidden_size=2048,
        num_heads=16,
        max_position_embeddings=2048,
        resid_dropout=0.1,
        embed_dropout=0.1,
    )
    model = FlaxGPTNeoForCausalLM(config, dtype=BF16, _do_init=False)

    def loss(params: Any, tokens: jax.Array, seed: jax.Array) -> jax.Array:
        key = jax.random.wrap_key_data(seed)
        logits = model(tokens, params=params, dropout_rng=key, train=True).logits
        return shapes.cross_entropy(logits[:, :-1], tokens[:, 1:])

    tokens = shapes.shaped(over, (8 * 2, 2048), jnp.int32, "data")
    seed = shapes.shaped(over, (2,), jnp.uint32)
    return fully_sharded(model, loss, over, tokens, seed, rules=TENSOR_PARALLEL)


def bloom() -> Any:
    """Bloom 560M (ALiBi, layers unrolled), the optimizer's state alone sharded (ZeRO 1)."""
    over = shapes.mesh(data=32)
    config = BloomConfig(
        hidden_size=1024, n_layer=24, n_head=16, hidden_dropout=0.0, attention_dropout=0.0
    )
    model = FlaxBloomForCausalLM(config, dtype=BF16, _do_init=False)

    def loss(params: Any, tokens: jax.Array) -> jax.Array:
        mask = jnp.ones_like(tokens)
        logits = model(tokens, attention_mask=mask, params=params).logits
        return shapes.cross_entropy(logits[:, :-1], tokens[:, 1:])

    params = model_parameters(model)
    state = shapes.sharded(shapes.abstract(ADAMW.init, params), over, "data")
    tokens = shapes.shaped(over, (32, 1024), jnp.int32, "data")
    return shapes.train_step(loss, ADAMW), (shapes.replicated(params, over), state, tokens)


def big_bird() -> Any:
    """BigBird base, block-sparse attention over 4,096 tokens, masked language model."""
    over = shapes.mesh(data=16)
    config = BigBirdConfig(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    model = FlaxBigBirdForMaskedLM(
        config, dtype=BF16, _do_init=False, input_shape=(1, 12 * config.block_size)
    )

    def loss(params: Any, tokens: jax.Array, labels: jax.Array, seed: jax.Array) -> jax.Array:
        key = jax.random.wrap_key_data(seed)
        mask = jnp.ones_like(tokens)
        logits = model(
            tokens, mask, params=params, train=True, dropout_rng=key, indices_rng=key
        ).logits
        return shapes.cross_entropy(logits, labels)

    tokens = shapes.shaped(over, (16 * 2, 4096), jnp.int32, "data")
    seed = shapes.shaped(over, (2,), jnp.uint32)
    return fully_sharded(model, loss, over, tokens, tokens, seed)


def electra() -> Any:
    """Electra large's discriminator: which tokens were replaced; data parallel, LAMB."""
    over = shapes.mesh(data=32)
    config = ElectraConfig(
        hidden_size=1024,
        embedding_size=1024,
        num_hidden_layers=24,
        num_attention_heads=16,
        intermediate_size=4096,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    model = FlaxElectraForPreTraining(config, dtype=BF16, _do_init=False)
    optimizer = optax.lamb(1e-3)

    def loss(params: Any, tokens: jax.Array, replaced: jax.Array) -> jax.Array:
        logits = model(tokens, jnp.ones_like(tokens), params=params).logits
        return optax.sigmoid_binary_cross_entropy(logits.astype(jnp.float32), replaced).mean()

    params = model_parameters(model)
    state = shapes.replicated(shapes.abstract(optimizer.init, params), over)
    tokens = shapes.shaped(over, (32 * 8, 512), jnp.int32, "data")
    replaced = shapes.shaped(over, (32 * 8, 512), jnp.float32, "data")
    step = shapes.train_step(loss, optimizer)
    return step, (shapes.replicated(params, over), state, tokens, replaced)


def marian_sampling() -> Any:
    """Marian translates: sampling by top-k and nucleus with a cache, batch parallel."""
    over = shapes.mesh(data=4)
    config = MarianConfig(
        vocab_size=58101,
        d_model=512,
        encoder_layers=6,
        decoder_layers=6,
        encoder_ffn_dim=2048,
        decoder_ffn_dim=2048,
        encoder_attention_heads=8,
        decoder_attention_heads=8,
        pad_token_id=58100,
        decoder_start_token_id=58100,
        eos_token_id=0,
        forced_eos_token_id=0,
    )
    model = FlaxMarianMTModel(config, dtype=BF16, _do_init=False)
    params = shapes.as_dtype(model_parameters(model), BF16)

    def generate(params: Any, tokens: jax.Array, seed: jax.Array) -> jax.Array:
        written = model.generate(
            tokens,
            params=params,
            prng_key=jax.random.wrap_key_data(seed),
            do_sample=True,
            top_k=50,
            top_p=0.9,
            temperature=0.8,
            max_length=48,
        )
        return written.sequences

    tokens = shapes.shaped(over, (4 * 32, 128), jnp.int32, "data")
    seed = shapes.shaped(over, (2,), jnp.uint32)
    return jax.jit(generate), (shapes.replicated(params, over), tokens, seed)
