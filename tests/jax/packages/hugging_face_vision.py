"""More of Hugging Face `transformers` and `diffusers` in Flax: images and speech."""

from typing import Any

import jax
import jax.numpy as jnp
import optax
import shapes
from diffusers import (
    FlaxAutoencoderKL,
    FlaxControlNetModel,
    FlaxDDIMScheduler,
    FlaxUNet2DConditionModel,
)
from hugging_face import ADAMW, model_parameters
from hugging_face_text import fully_sharded
from jax.sharding import PartitionSpec as P
from transformers import (
    BeitConfig,
    CLIPConfig,
    FlaxBeitForImageClassification,
    FlaxCLIPModel,
    FlaxRegNetForImageClassification,
    FlaxWav2Vec2ForCTC,
    FlaxWhisperForConditionalGeneration,
    RegNetConfig,
    Wav2Vec2Config,
    WhisperConfig,
)

BF16 = jnp.bfloat16


def whisper() -> Any:
    """Whisper small, fully sharded: 4 times 30 s of sound and 448 tokens per device."""
    over = shapes.mesh(data=16)
    config = WhisperConfig(
        d_model=768,
        encoder_layers=12,
        decoder_layers=12,
        encoder_attention_heads=12,
        decoder_attention_heads=12,
        encoder_ffn_dim=3072,
        decoder_ffn_dim=3072,
    )
    model = FlaxWhisperForConditionalGeneration(config, dtype=BF16, _do_init=False)

    def loss(params: Any, sound: jax.Array, tokens: jax.Array) -> jax.Array:
        logits = model(sound, decoder_input_ids=tokens, params=params).logits
        return shapes.cross_entropy(logits[:, :-1], tokens[:, 1:])

    sound = shapes.shaped(over, (16 * 4, 80, 3000), BF16, "data")
    tokens = shapes.shaped(over, (16 * 4, 448), jnp.int32, "data")
    return fully_sharded(model, loss, over, sound, tokens)


def wav2vec2() -> Any:
    """Wav2Vec2 base, fine-tuned with CTC on 10 s of sound, data parallel."""
    over = shapes.mesh(data=8)
    config = Wav2Vec2Config(
        do_stable_layer_norm=True,
        feat_extract_norm="layer",
        apply_spec_augment=False,
        mask_time_prob=0.0,
    )
    model = FlaxWav2Vec2ForCTC(config, dtype=BF16, _do_init=False)

    def loss(params: Any, sound: jax.Array, labels: jax.Array) -> jax.Array:
        logits = model(sound, params=params).logits.astype(jnp.float32)
        nothing = jnp.zeros(logits.shape[:2])
        return optax.ctc_loss(logits, nothing, labels, jnp.zeros(labels.shape)).mean()

    sound = shapes.shaped(over, (8 * 4, 160_000), jnp.float32, "data")
    labels = shapes.shaped(over, (8 * 4, 128), jnp.int32, "data")
    params = shapes.replicated(model_parameters(model), over)
    state = shapes.replicated(shapes.abstract(ADAMW.init, params), over)
    return shapes.train_step(loss, ADAMW), (params, state, sound, labels)


def clip() -> Any:
    """CLIP ViT-B/32: similarities of a global batch of 16,384 pairs, data parallel."""
    over = shapes.mesh(data=64)
    model = FlaxCLIPModel(CLIPConfig(), dtype=BF16, _do_init=False)

    def loss(params: Any, images: jax.Array, tokens: jax.Array) -> jax.Array:
        mask = jnp.ones_like(tokens)
        similar = model(tokens, images, mask, params=params).logits_per_text
        own = jnp.arange(similar.shape[0])
        return (shapes.cross_entropy(similar, own) + shapes.cross_entropy(similar.T, own)) / 2

    images = shapes.shaped(over, (64 * 256, 3, 224, 224), BF16, "data")
    tokens = shapes.shaped(over, (64 * 256, 77), jnp.int32, "data")
    params = shapes.abstract(lambda: model.init_weights(shapes.key(), ((1, 1), (1, 224, 224, 3))))
    params = shapes.replicated(params, over)
    state = shapes.replicated(shapes.abstract(ADAMW.init, params), over)
    return shapes.train_step(loss, ADAMW), (params, state, images, tokens)


def beit() -> Any:
    """BEiT base at 384 x 384 with relative positions, over data and model."""
    over = shapes.mesh(data=4, model=2)
    config = BeitConfig(
        image_size=384, num_labels=1000, use_relative_position_bias=True, drop_path_rate=0.0
    )
    model = FlaxBeitForImageClassification(config, dtype=BF16, _do_init=False)

    def loss(params: Any, images: jax.Array, labels: jax.Array) -> jax.Array:
        return shapes.cross_entropy(model(images, params=params).logits, labels)

    images = shapes.shaped(over, (4 * 32, 3, 384, 384), BF16, "data")
    labels = shapes.shaped(over, (4 * 32,), jnp.int32, "data")
    rules = (
        (r"(query|key|value|intermediate/dense)/kernel", P("data", "model")),
        (r"output/dense/kernel", P("model", "data")),
    )
    return fully_sharded(model, loss, over, images, labels, rules=rules)


def regnet() -> Any:
    """RegNet-Y 4.0GF: grouped convolutions, squeeze and excitation, batch norm, inference."""
    over = shapes.mesh(data=4)
    config = RegNetConfig(
        embedding_size=32,
        hidden_sizes=[128, 192, 512, 1088],
        depths=[2, 6, 12, 2],
        groups_width=64,
        layer_type="y",
        num_labels=1000,
    )
    model = FlaxRegNetForImageClassification(config, dtype=BF16, _do_init=False)
    params = shapes.replicated(shapes.as_dtype(model_parameters(model), BF16), over)

    def classify(params: Any, images: jax.Array) -> jax.Array:
        return model(images, params=params).logits.argmax(-1)

    images = shapes.shaped(over, (4 * 128, 3, 224, 224), BF16, "data")
    return jax.jit(classify), (params, images)


def autoencoder() -> Any:
    """The autoencoder of Stable Diffusion on images of 256 x 256, two per device."""
    over = shapes.mesh(data=8)
    model = FlaxAutoencoderKL(
        in_channels=3,
        out_channels=3,
        down_block_types=("DownEncoderBlock2D",) * 4,
        up_block_types=("UpDecoderBlock2D",) * 4,
        block_out_channels=(128, 256, 512, 512),
        layers_per_block=2,
        sample_size=256,
        dtype=BF16,
    )
    params = shapes.abstract(lambda: model.init_weights(shapes.key()))

    def loss(params: Any, images: jax.Array, seed: jax.Array) -> jax.Array:
        rngs = {"gaussian": jax.random.wrap_key_data(seed)}
        again = model.apply({"params": params}, images, sample_posterior=True, rngs=rngs).sample
        return jnp.abs(again.astype(jnp.float32) - images).mean()

    images = shapes.shaped(over, (8 * 2, 3, 256, 256), BF16, "data")
    seed = shapes.shaped(over, (2,), jnp.uint32)
    params = shapes.replicated(params, over)
    state = shapes.replicated(shapes.abstract(ADAMW.init, params), over)
    return shapes.train_step(loss, ADAMW), (params, state, images, seed)


def control_net() -> Any:
    """Stable Diffusion with a ControlNet: twenty DDIM steps with guidance, images parallel."""
    over = shapes.mesh(data=4)
    unet = FlaxUNet2DConditionModel(sample_size=64, cross_attention_dim=768, dtype=BF16)
    control = FlaxControlNetModel(sample_size=64, cross_attention_dim=768, dtype=BF16)
    trees = [shapes.abstract(lambda m=m: m.init_weights(shapes.key())) for m in (unet, control)]
    trees = [shapes.replicated(shapes.as_dtype(tree, BF16), over) for tree in trees]
    scheduler = FlaxDDIMScheduler()

    def sample(unet_tree: Any, tree: Any, latents: Any, text: Any, edges: Any) -> jax.Array:
        state = scheduler.set_timesteps(scheduler.create_state(), 20, latents.shape)

        def step(number: jax.Array, carried: Any) -> Any:
            latents, state = carried
            time = state.timesteps[number]
            both = jnp.concatenate([latents] * 2)
            times = jnp.broadcast_to(time, both.shape[:1])
            pictures = jnp.concatenate([edges] * 2)
            down, middle = control.apply(
                {"params": tree}, both, times, text, pictures, 1.0, return_dict=False
            )
            noise = unet.apply(
                {"params": unet_tree},
                both,
                times,
                text,
                down_block_additional_residuals=down,
                mid_block_additional_residual=middle,
            ).sample
            without, noise = jnp.split(noise, 2)
            noise = without + 7.5 * (noise - without)
            return scheduler.step(state, noise, time, latents).to_tuple()

        return jax.lax.fori_loop(0, 20, step, (latents, state))[0]

    latents = shapes.shaped(over, (4, 4, 64, 64), jnp.float32, "data")
    text = shapes.shaped(over, (8, 77, 768), BF16, "data")
    edges = shapes.shaped(over, (4, 3, 512, 512), BF16, "data")
    return jax.jit(sample), (*trees, latents, text, edges)
