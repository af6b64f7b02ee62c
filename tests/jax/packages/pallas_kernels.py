"""The Pallas kernels for TPUs that come with JAX, each inside of a shard_map."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import shapes
from jax.experimental.pallas.ops.tpu import flash_attention as flash
from jax.experimental.pallas.ops.tpu import megablox
from jax.experimental.pallas.ops.tpu import paged_attention as paged
from jax.experimental.pallas.ops.tpu import ragged_paged_attention as ragged
from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as splash
from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks
from jax.sharding import PartitionSpec as P

BF16 = jnp.bfloat16


def flash_attention() -> Any:
    """Flash attention forwards and backwards, over batch and heads."""
    over = shapes.mesh(data=4, model=2)
    spec = P("data", "model")

    def attention(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        return flash.flash_attention(q, k, v, causal=True, sm_scale=128**-0.5)

    mapped = jax.shard_map(
        attention, mesh=over, in_specs=(spec,) * 3, out_specs=spec, check_vma=False
    )

    def loss(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        return jnp.square(mapped(q, k, v).astype(jnp.float32)).mean()

    array = shapes.shaped(over, (4 * 2, 16, 4096, 128), BF16, "data", "model")
    return jax.jit(jax.grad(loss, argnums=(0, 1, 2))), (array,) * 3


def splash_attention() -> Any:
    """Splash attention with a local mask forwards and backwards, over batch and heads."""
    over = shapes.mesh(data=4, model=2)
    heads, length = 8, 4096
    spec = P("data", "model")

    def attention(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        mask = masks.MultiHeadMask(
            [masks.LocalMask((length, length), (1024, 0), 0) for _ in range(heads)]
        )
        kernel = splash.make_splash_mha(
            mask=mask,
            head_shards=1,
            q_seq_shards=1,
            block_sizes=splash.BlockSizes(
                block_q=512,
                block_kv=512,
                block_kv_compute=512,
                block_q_dkv=512,
                block_kv_dkv=512,
                block_kv_dkv_compute=512,
                use_fused_bwd_kernel=True,
            ),
        )
        return jax.vmap(kernel)(q, k, v)

    mapped = jax.shard_map(
        attention, mesh=over, in_specs=(spec,) * 3, out_specs=spec, check_vma=False
    )

    def loss(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        return jnp.square(mapped(q, k, v).astype(jnp.float32)).mean()

    array = shapes.shaped(over, (4 * 2, 2 * heads, length, 128), BF16, "data", "model")
    return jax.jit(jax.grad(loss, argnums=(0, 1, 2))), (array,) * 3


def paged_attention() -> Any:
    """One token of 32 sequences against pages of keys and values, over heads."""
    over = shapes.mesh(model=8)
    heads, pages = P(None, "model"), P("model")
    mapped = jax.shard_map(
        functools.partial(paged.paged_attention, pages_per_compute_block=8),
        mesh=over,
        in_specs=(heads, pages, pages, P(), P()),
        out_specs=heads,
        check_vma=False,
    )
    q = shapes.shaped(over, (32, 64, 128), BF16, None, "model")
    kv = shapes.shaped(over, (8, 4096, 16, 128), BF16, "model")
    lengths = shapes.shaped(over, (32,), jnp.int32)
    indices = shapes.shaped(over, (32, 128), jnp.int32)
    return jax.jit(mapped), (q, kv, kv, lengths, indices)


def ragged_paged_attention() -> Any:
    """A mixed batch of prefill and decode, 1,024 tokens of 16 sequences, over heads."""
    over = shapes.mesh(model=4)
    q_spec, kv_spec = P(None, "model"), P(None, None, "model")
    mapped = jax.shard_map(
        ragged.ragged_paged_attention,
        mesh=over,
        in_specs=(q_spec, kv_spec, P(), P(), P(), P()),
        out_specs=q_spec,
        check_vma=False,
    )
    q = shapes.shaped(over, (1024, 32, 128), BF16, None, "model")
    kv = shapes.shaped(over, (2048, 16, 2 * 8, 128), BF16, None, None, "model")
    whole = [((16,), jnp.int32), ((16, 128), jnp.int32), ((17,), jnp.int32), ((1,), jnp.int32)]
    return jax.jit(mapped), (q, kv, *(shapes.shaped(over, s, d) for s, d in whole))


def mixture_of_experts() -> Any:
    """Megablox: grouped products of 16 experts forwards and backwards, data parallel."""
    over = shapes.mesh(data=8)
    tokens, width, hidden, experts = 4096, 2048, 4096, 16

    def layer(x: jax.Array, up: jax.Array, down: jax.Array, sizes: jax.Array) -> jax.Array:
        hidden = jax.nn.silu(megablox.gmm(x, up, sizes[0], preferred_element_type=BF16))
        return megablox.gmm(hidden, down, sizes[0], preferred_element_type=BF16)

    mapped = jax.shard_map(
        layer,
        mesh=over,
        in_specs=(P("data"), P(), P(), P("data")),
        out_specs=P("data"),
        check_vma=False,
    )

    def loss(x: jax.Array, up: jax.Array, down: jax.Array, sizes: jax.Array) -> jax.Array:
        return jnp.square(mapped(x, up, down, sizes).astype(jnp.float32)).mean()

    x = shapes.shaped(over, (8 * tokens, width), BF16, "data")
    up = shapes.shaped(over, (experts, width, hidden), BF16)
    down = shapes.shaped(over, (experts, hidden, width), BF16)
    sizes = shapes.shaped(over, (8, experts), jnp.int32, "data")
    return jax.jit(jax.grad(loss, argnums=(1, 2))), (x, up, down, sizes)
