"""Matrix products and what is fused to them: bias, activation, residual, norms of operands."""

import jax
import jax.numpy as jnp

from compiler_programs.registry import bf16, f32, kernel, s8

Array = jax.Array


@kernel(bf16(4096, 1024), bf16(1024, 4096))
def matmul(x: Array, w: Array) -> Array:
    """Nothing else."""
    return x @ w


@kernel(f32(2048, 1024), f32(1024, 2048))
def matmul_f32(x: Array, w: Array) -> Array:
    """In float32 at the default precision."""
    return x @ w


@kernel(s8(4096, 1024), s8(1024, 4096))
def matmul_s8(x: Array, w: Array) -> Array:
    """In int8, summed in int32."""
    return jnp.matmul(x, w, preferred_element_type=jnp.int32)


@kernel(bf16(8, 4096), bf16(4096, 4096))
def matmul_few_rows(x: Array, w: Array) -> Array:
    """Eight rows: bound by the weights."""
    return x @ w


@kernel(bf16(4096, 1024), f32(1024, 4096))
def matmul_master_weights(x: Array, w: Array) -> Array:
    """The weights are kept in float32 and converted for the product."""
    return x @ w.astype(jnp.bfloat16)


@kernel(bf16(4096, 1024), bf16(1024, 4096), bf16(4096))
def matmul_bias(x: Array, w: Array, b: Array) -> Array:
    """A product with a bias."""
    return x @ w + b


@kernel(bf16(4096, 1024), bf16(1024, 4096), bf16(4096))
def matmul_bias_relu(x: Array, w: Array, b: Array) -> Array:
    """A product with a bias and ReLU."""
    return jax.nn.relu(x @ w + b)


@kernel(bf16(4096, 1024), bf16(1024, 4096), bf16(4096))
def matmul_bias_gelu(x: Array, w: Array, b: Array) -> Array:
    """A product with a bias and GELU."""
    return jax.nn.gelu(x @ w + b)


@kernel(bf16(4096, 4096), bf16(4096, 1024), bf16(1024), bf16(4096, 1024))
def matmul_bias_residual(x: Array, w: Array, b: Array, residual: Array) -> Array:
    """A product with a bias and a residual."""
    return residual + x @ w + b


@kernel(bf16(4096, 1024), bf16(1024, 2816), bf16(1024, 2816))
def gated_silu(x: Array, gate: Array, up: Array) -> Array:
    """Two products of one operand, one of which gates the other."""
    return jax.nn.silu(x @ gate) * (x @ up)


@kernel(bf16(2048, 1024), bf16(1024, 4096), bf16(4096), bf16(4096, 1024), bf16(1024))
def mlp_forward(x: Array, w1: Array, b1: Array, w2: Array, b2: Array) -> Array:
    """Two layers with a GELU between."""
    return jax.nn.gelu(x @ w1 + b1) @ w2 + b2


@kernel(bf16(2048, 1024), bf16(1024, 4096), bf16(4096), bf16(4096, 1024), bf16(1024))
def mlp_gradient(x: Array, w1: Array, b1: Array, w2: Array, b2: Array) -> tuple[Array, ...]:
    """Gradients of the MLP."""

    def loss(*w: Array) -> Array:
        out = mlp_forward(*w)
        return jnp.sum(out.astype(jnp.float32) ** 2)

    return jax.grad(loss, argnums=(0, 1, 2, 3, 4))(x, w1, b1, w2, b2)


@kernel(bf16(4096, 1024), bf16(4096, 4096))
def weight_gradient(x: Array, dy: Array) -> Array:
    """Contracts the rows of both operands, in float32."""
    return jnp.einsum("bi,bo->io", x, dy, preferred_element_type=jnp.float32)


@kernel(bf16(4096, 4096), bf16(1024, 4096))
def input_gradient(dy: Array, w: Array) -> Array:
    """Contracts the columns of both operands."""
    return dy @ w.T


@kernel(bf16(64, 512, 128), bf16(64, 128, 512))
def batched_matmul(a: Array, b: Array) -> Array:
    """One product per head."""
    return jnp.einsum("bik,bkj->bij", a, b)


@kernel(bf16(2, 1024, 1024), bf16(1024, 3, 8, 128))
def qkv_projection(x: Array, w: Array) -> Array:
    """Queries, keys and values, heads before the sequence."""
    return jnp.einsum("bsw,wnhd->nbhsd", x, w)


@kernel(bf16(2, 1024, 8, 128), bf16(8, 128, 1024), bf16(2, 1024, 1024))
def output_projection(mixed: Array, w: Array, residual: Array) -> Array:
    """Two contracted dimensions, and a residual."""
    return residual + jnp.einsum("bshd,hdw->bsw", mixed, w)


@kernel(bf16(2048, 1024), f32(1024), bf16(1024, 3072))
def rms_norm_matmul(x: Array, scale: Array, w: Array) -> Array:
    """A product of what an RMS norm makes."""
    wide = x.astype(jnp.float32)
    normal = wide * jax.lax.rsqrt(jnp.mean(wide * wide, -1, keepdims=True) + 1e-6) * scale
    return normal.astype(x.dtype) @ w


@kernel(bf16(2048, 1024), bf16(1024, 32000))
def logits_f32(x: Array, table: Array) -> Array:
    """Logits, kept in float32."""
    return jnp.matmul(x, table, preferred_element_type=jnp.float32)
