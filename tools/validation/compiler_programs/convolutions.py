"""Convolutions: stems with few channels, patches, depthwise, one dimension, gradients."""

import jax
import jax.numpy as jnp
from jax import lax

from compiler_programs.registry import ONE_DEVICE, bf16, kernel

Array = jax.Array


def conv(x: Array, w: Array, stride: int = 1, padding: str = "SAME", groups: int = 1) -> Array:
    """Over [batch, ..., channels]."""
    letters = "HW"[: x.ndim - 2]
    return lax.conv_general_dilated(
        x,
        w,
        (stride,) * len(letters),
        padding,
        dimension_numbers=(f"N{letters}C", f"{letters}IO", f"N{letters}C"),
        feature_group_count=groups,
    )


@kernel(bf16(32, 224, 224, 3), bf16(7, 7, 3, 64))
def conv_stem_7x7(x: Array, w: Array) -> Array:
    """The stem of ResNet."""
    return conv(x, w, 2)


@kernel(bf16(32, 224, 224, 3), bf16(3, 3, 3, 32))
def conv_stem_3x3(x: Array, w: Array) -> Array:
    """The stem of EfficientNet."""
    return conv(x, w, 2)


@kernel(bf16(32, 224, 224, 3), bf16(7, 7, 3, 64), bf16(32, 112, 112, 64))
def conv_stem_weight_gradient(x: Array, w: Array, dy: Array) -> Array:
    """The gradient of the stem's weights."""
    return jax.vjp(lambda w: conv(x, w, 2), w)[1](dy)[0]


@kernel(bf16(32, 224, 224, 3), bf16(16, 16, 3, 768), bf16(768))
def patch_embedding(x: Array, w: Array, b: Array) -> Array:
    """Patches of 16 x 16 by a convolution."""
    return conv(x, w, 16, "VALID") + b


@kernel(bf16(32, 224, 224, 3), bf16(768, 768))
def patch_embedding_by_reshape(x: Array, w: Array) -> Array:
    """The patch embedding by a transpose and a product."""
    patches = x.reshape(32, 14, 16, 14, 16, 3).transpose(0, 1, 3, 2, 4, 5)
    return patches.reshape(32, 196, 768) @ w


@kernel(bf16(32, 56, 56, 64), bf16(3, 3, 64, 64))
def conv_3x3_64(x: Array, w: Array) -> Array:
    """64 channels."""
    return conv(x, w)


@kernel(bf16(32, 28, 28, 128), bf16(3, 3, 128, 128))
def conv_3x3_128(x: Array, w: Array) -> Array:
    """128 channels."""
    return conv(x, w)


@kernel(bf16(32, 14, 14, 256), bf16(3, 3, 256, 256))
def conv_3x3_256(x: Array, w: Array) -> Array:
    """256 channels."""
    return conv(x, w)


@kernel(bf16(32, 56, 56, 256), bf16(1, 1, 256, 512))
def conv_1x1_stride_2(x: Array, w: Array) -> Array:
    """The projection of a residual."""
    return conv(x, w, 2)


@kernel(bf16(32, 28, 28, 128), bf16(3, 3, 128, 128), bf16(32, 28, 28, 128))
def conv_3x3_gradients(x: Array, w: Array, dy: Array) -> tuple[Array, Array]:
    """Gradients of both operands."""
    return jax.vjp(conv, x, w)[1](dy)


@kernel(bf16(32, 28, 28, 192), bf16(3, 3, 1, 192))
def conv_depthwise(x: Array, w: Array) -> Array:
    """One channel at a time."""
    return conv(x, w, groups=192)


@kernel(bf16(16, 3000, 80), bf16(3, 80, 384), bf16(384))
def conv_1d_80(x: Array, w: Array, b: Array) -> Array:
    """80 channels of a spectrum, as in Whisper."""
    return jax.nn.gelu(conv(x, w) + b)


@kernel(bf16(8, 2048, 1536), bf16(4, 1, 1536))
def conv_1d_causal_depthwise(x: Array, w: Array) -> Array:
    """Four taps, as in Mamba."""
    x = jnp.pad(x, ((0, 0), (3, 0), (0, 0)))
    return conv(x, w, padding="VALID", groups=1536)


V5E = ONE_DEVICE[:1]


@kernel(bf16(32, 112, 112, 1), bf16(7, 7, 1, 64), slices=V5E)
def conv_stem_gray(x: Array, w: Array) -> Array:
    """A stem with one channel."""
    return conv(x, w, 2)


@kernel(bf16(32, 112, 112, 3), bf16(1, 1, 3, 64), slices=V5E)
def conv_1x1_of_3(x: Array, w: Array) -> Array:
    """One tap of three channels."""
    return conv(x, w, 2)


@kernel(bf16(32, 112, 112, 8), bf16(3, 3, 8, 64), slices=V5E)
def conv_3x3_8(x: Array, w: Array) -> Array:
    """8 channels, as many as sublanes."""
    return conv(x, w)


@kernel(bf16(32, 112, 112, 16), bf16(3, 3, 16, 64), slices=V5E)
def conv_3x3_16(x: Array, w: Array) -> Array:
    """16 channels, of two registers' sublanes."""
    return conv(x, w)


@kernel(bf16(32, 56, 56, 32), bf16(5, 5, 32, 64), slices=V5E)
def conv_5x5_32(x: Array, w: Array) -> Array:
    """32 channels, a quarter of the arrays' rows."""
    return conv(x, w)


@kernel(bf16(32, 56, 56, 64), bf16(7, 7, 64, 64), slices=V5E)
def conv_7x7_64(x: Array, w: Array) -> Array:
    """Many taps of 64 channels."""
    return conv(x, w)


@kernel(bf16(32, 28, 28, 192), bf16(7, 7, 1, 192), slices=V5E)
def conv_depthwise_7x7(x: Array, w: Array) -> Array:
    """Many taps of one channel at a time, as in ConvNeXt."""
    return conv(x, w, groups=192)


@kernel(bf16(32, 56, 56, 128), bf16(3, 3, 128, 64), bf16(32, 56, 56, 64), slices=V5E)
def conv_gradient_of_weights(x: Array, w: Array, dy: Array) -> Array:
    """Twice as many columns for the input as for the other gradient."""
    return jax.vjp(lambda w: conv(x, w), w)[1](dy)[0]


@kernel(bf16(32, 56, 56, 64), bf16(3, 3, 64, 128), bf16(32, 28, 28, 128), slices=V5E)
def conv_input_gradient_stride_2(x: Array, w: Array, dy: Array) -> Array:
    """Over an input with holes."""
    return jax.vjp(lambda x: conv(x, w, 2), x)[1](dy)[0]


@kernel(bf16(32, 112, 112, 64))
def max_pool(x: Array) -> Array:
    """The maximum over windows of 3 x 3 with stride 2."""
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
