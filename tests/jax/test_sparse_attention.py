"""Kernels that tables tell which blocks to work on: what a mask leaves out costs nothing."""

import jax
import jax.numpy as jnp
import pytest
import tpusim
from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as kernel
from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from tests.jax.kernel_bodies import Body, bodies, exported

LENGTH, BLOCK, HEAD = 2048, 256, 128
BLOCKS = LENGTH // BLOCK


def attention(mask, heads: int, **options):
    sizes = kernel.BlockSizes(
        block_q=BLOCK,
        block_kv=BLOCK,
        block_kv_compute=BLOCK,
        block_q_dkv=BLOCK,
        block_kv_dkv=BLOCK,
        block_kv_dkv_compute=BLOCK,
        block_q_dq=BLOCK,
        block_kv_dq=BLOCK,
    )
    per_head = masks.MultiHeadMask([mask] * heads)
    options = {"head_shards": 1, "q_seq_shards": 1, **options}
    return kernel.make_splash_mha(mask=per_head, block_sizes=sizes, **options)


def struct(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.bfloat16)


def blocks_of(kernel: Body) -> set[int]:
    """Returns the numbers of blocks that the kernel multiplies, by kind of product."""
    return {product.count for product in kernel.products}


CAUSAL = masks.CausalMask((LENGTH, LENGTH))
# Every block of queries sees its own keys and those of up to two blocks before.
LOCAL = masks.LocalMask((LENGTH, LENGTH), window_size=(2 * BLOCK - 1, 0), offset=0)


@pytest.mark.parametrize(
    ("mask", "blocks"),
    [
        (masks.FullMask((LENGTH, LENGTH)), BLOCKS * BLOCKS),
        (CAUSAL, BLOCKS * (BLOCKS + 1) // 2),
        (LOCAL, 1 + 2 + 3 * (BLOCKS - 2)),
    ],
)
def test_blocks_that_a_mask_leaves_out_are_not_multiplied(mask, blocks: int):
    heads = 2
    (price,) = exported(attention(mask, heads), *[struct(heads, LENGTH, HEAD)] * 3)
    assert blocks_of(price) == {heads * blocks}
    # Keys and values of blocks that are left out do not move either; of the others also the mask,
    # a byte per score, where it leaves out part of them.
    moved = 2 * blocks * BLOCK * HEAD * 2 + 2 * LENGTH * HEAD * 2
    masked = blocks * BLOCK * BLOCK
    assert heads * moved * 0.95 < price.bytes_accessed < heads * (moved + masked) * 1.05
    assert price.grid


def test_tables_are_found_through_a_train_step():
    """Differentiated, rematerialized, in a scan over layers, vmapped, and on a mesh."""
    mesh = AbstractMesh((2, 2), ("data", "model"), (AxisType.Auto,) * 2)
    axes = P("data", "model", None, None)

    def layer(x, w):
        def local(x):
            return jax.vmap(attention(CAUSAL, 2))(x, x, x)

        # Axes for outputs and inputs: sequences over data, heads over model.
        mixed = jax.shard_map(local, mesh=mesh, in_specs=axes, out_specs=axes, check_vma=False)(x)
        return mixed @ w, None

    def loss(ws, x):
        out, _ = jax.lax.scan(jax.checkpoint(layer), x, ws)
        return out.astype(jnp.float32).sum()

    x = jax.ShapeDtypeStruct((4, 4, LENGTH, HEAD), jnp.bfloat16, sharding=NamedSharding(mesh, axes))
    ws = jax.ShapeDtypeStruct((3, HEAD, HEAD), jnp.bfloat16, sharding=NamedSharding(mesh, P()))
    found = exported(jax.jit(jax.grad(loss)), ws, x)
    assert len(found) == 4  # Forward, again, keys' and queries' gradients
    causal = BLOCKS * (BLOCKS + 1) // 2
    for price in found:
        # Of 2 sequences and 2 heads on each device; gradients have two products of a size.
        assert {count / (2 * 2 * causal) for count in blocks_of(price)} <= {1, 2}


def test_where_devices_differ_the_dearest_counts():
    shards = 4
    mesh = AbstractMesh((shards,), ("sequence",), (AxisType.Auto,))
    sharding = NamedSharding(mesh, P(None, "sequence"))
    attend = attention(CAUSAL, 1, q_seq_shards=shards)
    specs = attend.manual_sharding_spec(sharding)

    def sharded(q, k, v):
        return jax.shard_map(
            lambda attend, q, k, v: attend(q, k, v),
            mesh=mesh,
            in_specs=(specs, P(None, "sequence"), P(), P()),
            out_specs=P(None, "sequence"),
            check_vma=False,
        )(attend, q, k, v)

    q = jax.ShapeDtypeStruct((1, LENGTH, HEAD), jnp.bfloat16, sharding=sharding)
    (price,) = exported(jax.jit(sharded), q, *[struct(1, LENGTH, HEAD)] * 2)
    # The last device has the last two of eight rows of blocks.
    assert blocks_of(price) == {(BLOCKS - 1) + BLOCKS}


def test_forward_waits_for_rows_and_backward_does_not():
    q, k, v = [struct(1, LENGTH, HEAD)] * 3
    attend = attention(CAUSAL, 1)

    def loss(q, k, v):
        return attend(q, k, v).astype(jnp.float32).sum()

    step = jax.jit(jax.grad(loss, argnums=(0, 1, 2)))
    workload = tpusim.export(step, q, k, v, path=None)
    forward, *backward = bodies(workload)
    scores, softmax, values = forward.stages
    assert [len(stage.products) for stage in forward.stages] == [1, 0, 1]
    assert scores.products[0].k == HEAD
    assert values.products[0].n == HEAD
    assert scores.transcendentals == 0
    # An exponential per score, and some to rescale.
    causal = BLOCKS * (BLOCKS + 1) // 2
    assert 1 < softmax.transcendentals / (causal * BLOCK * BLOCK) < 2
    # Blocks of 256 KiB fit into 64 registers, and not into fewer.
    assert {stage.spilled_bytes for stage in forward.stages} == {0}
    fewer = bodies(workload, options=("--set", "chip.vpu.registers=63"))[0].stages
    assert fewer[0].spilled_bytes >= causal * BLOCK * BLOCK * 4
    assert all(stage.spilled_bytes % (BLOCK * BLOCK * 4) == 0 for stage in fewer)
    assert [len(price.stages) for price in backward] == [1, 1]
    for price in (forward, *backward):
        assert sum(stage.flops for stage in price.stages) == price.flops
