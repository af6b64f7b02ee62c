"""Train steps and generation of Hugging Face `transformers` and `diffusers` (Flax)."""

from typing import Any

import jax
import jax.numpy as jnp
import optax
import shapes
from diffusers import FlaxDDPMScheduler, FlaxUNet2DConditionModel
from transformers import (
    BartConfig,
    BertConfig,
    FlaxBartForConditionalGeneration,
    FlaxBertForMaskedLM,
    FlaxGPT2LMHeadModel,
    FlaxLlamaForCausalLM,
    FlaxViTForImageClassification,
    GPT2Config,
    LlamaConfig,
    ViTConfig,
)

BART_BASE = BartConfig(
    d_model=768,
    encoder_layers=6,
    decoder_layers=6,
    encoder_ffn_dim=3072,
    decoder_ffn_dim=3072,
    encoder_attention_heads=12,
    decoder_attention_heads=12,
)
ADAMW = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(3e-4, weight_decay=0.1))


def model_parameters(model: Any) -> Any:
    """Shapes of a model that was made with `_do_init=False`."""
    return shapes.abstract(lambda: model.init_weights(shapes.key(), model.input_shape))


def training(model: Any, loss: Any, over: Any, axes: tuple[str, ...], *batch: Any) -> Any:
    """A step whose parameters are kept in parts over `axes` and gathered over data for use."""
    params = shapes.sharded(model_parameters(model), over, *axes)
    state = shapes.sharded(shapes.abstract(ADAMW.init, params), over, *axes)

    def gathering_loss(parts: Any, *batch: Any) -> jax.Array:
        return loss(shapes.gathered(parts, params, "data"), *batch)

    return shapes.train_step(gathering_loss, ADAMW), (params, state, *batch)


def gpt2() -> Any:
    """GPT-2 small, fully sharded: 4 sequences of 1,024 tokens per device."""
    over = shapes.mesh(data=16)
    config = GPT2Config()
    model = FlaxGPT2LMHeadModel(config, dtype=jnp.bfloat16, _do_init=False)

    def loss(params: Any, tokens: jax.Array) -> jax.Array:
        logits = model(input_ids=tokens, params=params, train=False).logits
        return shapes.cross_entropy(logits[:, :-1], tokens[:, 1:])

    tokens = shapes.shaped(over, (16 * 4, 1024), jnp.int32, "data")
    return training(model, loss, over, ("data",), tokens)


def llama() -> Any:
    """Eight layers of Llama 7B over data and model: 2 sequences of 2,048 tokens per shard."""
    over = shapes.mesh(data=16, model=4)
    config = LlamaConfig(max_position_embeddings=2048, num_hidden_layers=8)
    model = FlaxLlamaForCausalLM(config, dtype=jnp.bfloat16, _do_init=False)

    def loss(params: Any, tokens: jax.Array) -> jax.Array:
        logits = model(input_ids=tokens, params=params, train=True).logits
        return shapes.cross_entropy(logits[:, :-1], tokens[:, 1:])

    tokens = shapes.shaped(over, (16 * 2, 2048), jnp.int32, "data")
    return training(model, loss, over, ("data", "model"), tokens)


def bert() -> Any:
    """BERT base, masked language model, data parallel with dropout: 8 sequences per device."""
    over = shapes.mesh(data=16)
    model = FlaxBertForMaskedLM(BertConfig(), dtype=jnp.bfloat16, _do_init=False)
    params = shapes.replicated(model_parameters(model), over)
    state = shapes.replicated(shapes.abstract(ADAMW.init, params), over)

    def loss(params: Any, tokens: jax.Array, labels: jax.Array, seed: jax.Array) -> jax.Array:
        key = jax.random.wrap_key_data(seed)
        mask = jnp.ones_like(tokens)
        logits = model(tokens, mask, params=params, dropout_rng=key, train=True).logits
        return shapes.cross_entropy(logits, labels)

    tokens = shapes.shaped(over, (16 * 8, 512), jnp.int32, "data")
    seed = shapes.shaped(over, (2,), jnp.uint32)
    return shapes.train_step(loss, ADAMW), (params, state, tokens, tokens, seed)


def bart() -> Any:
    """BART base, encoder and decoder, fully sharded: 4 pairs of 512 and 128 tokens per device."""
    over = shapes.mesh(data=16)
    model = FlaxBartForConditionalGeneration(BART_BASE, dtype=jnp.bfloat16, _do_init=False)

    def loss(params: Any, source: jax.Array, target: jax.Array) -> jax.Array:
        logits = model.module.apply(
            {"params": params},
            source,
            jnp.ones_like(source),
            target,
            jnp.ones_like(target),
            *(jnp.broadcast_to(jnp.arange(ids.shape[1]), ids.shape) for ids in (source, target)),
        ).logits
        return shapes.cross_entropy(logits[:, :-1], target[:, 1:])

    source = shapes.shaped(over, (16 * 4, 512), jnp.int32, "data")
    target = shapes.shaped(over, (16 * 4, 128), jnp.int32, "data")
    return training(model, loss, over, ("data",), source, target)


def vit() -> Any:
    """ViT-B/16, data parallel: 32 images of 224 x 224 per device."""
    over = shapes.mesh(data=16)
    model = FlaxViTForImageClassification(
        ViTConfig(num_labels=1000), dtype=jnp.bfloat16, _do_init=False
    )

    def loss(params: Any, images: jax.Array, labels: jax.Array) -> jax.Array:
        return shapes.cross_entropy(model(images, params=params).logits, labels)

    images = shapes.shaped(over, (16 * 32, 3, 224, 224), jnp.bfloat16, "data")
    labels = shapes.shaped(over, (16 * 32,), jnp.int32, "data")
    params = shapes.replicated(model_parameters(model), over)
    state = shapes.replicated(shapes.abstract(ADAMW.init, params), over)
    return shapes.train_step(loss, ADAMW), (params, state, images, labels)


def bart_beam_search() -> Any:
    """BART base writes summaries: four beams with a cache of keys and values, batch parallel."""
    over = shapes.mesh(data=8)
    model = FlaxBartForConditionalGeneration(BART_BASE, dtype=jnp.bfloat16, _do_init=False)
    params = shapes.as_dtype(model_parameters(model), jnp.bfloat16)

    def generate(params: Any, tokens: jax.Array) -> jax.Array:
        generated = model.generate(
            tokens, params=params, num_beams=4, max_length=64, early_stopping=True
        )
        return generated.sequences

    tokens = shapes.shaped(over, (8 * 4, 512), jnp.int32, "data")
    return jax.jit(generate), (shapes.replicated(params, over), tokens)


def unet() -> Any:
    """The U-Net of Stable Diffusion 1.5, fully sharded: a latent of 64 x 64 per device."""
    over = shapes.mesh(data=16)
    model = FlaxUNet2DConditionModel(sample_size=64, cross_attention_dim=768, dtype=jnp.bfloat16)
    params = shapes.abstract(lambda: model.init_weights(shapes.key()))
    params = shapes.sharded(params, over, "data")
    state = shapes.sharded(shapes.abstract(ADAMW.init, params), over, "data")
    scheduler = FlaxDDPMScheduler(num_train_timesteps=1000)

    def loss(parts: Any, latents: jax.Array, text: jax.Array, seed: jax.Array) -> jax.Array:
        whole = shapes.gathered(parts, params, "data")
        noise_key, time_key = jax.random.split(jax.random.wrap_key_data(seed))
        noise = jax.random.normal(noise_key, latents.shape, latents.dtype)
        times = jax.random.randint(time_key, latents.shape[:1], 0, 1000)
        noisy = scheduler.add_noise(scheduler.create_state(), latents, noise, times)
        predicted = model.apply({"params": whole}, noisy, times, text).sample
        return jnp.square(predicted.astype(jnp.float32) - noise).mean()

    latents = shapes.shaped(over, (16, 4, 64, 64), jnp.float32, "data")
    text = shapes.shaped(over, (16, 77, 768), jnp.bfloat16, "data")
    seed = shapes.shaped(over, (2,), jnp.uint32)
    return shapes.train_step(loss, ADAMW), (params, state, latents, text, seed)
