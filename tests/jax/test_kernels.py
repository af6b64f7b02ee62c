"""Prices of Pallas kernels by their bodies, against numbers by hand."""

import functools
import json
import pathlib
import re
import subprocess
from typing import Any

import jax
import jax.numpy as jnp
import pytest
import tpusim
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from tests.jax import kernel_bodies
from tests.jax.kernel_bodies import Block, Body, Product, bodies, exported


def matmul_kernel(x, w, out, total):
    """Accumulates over the last axis of the grid; writes the exponential of the sum."""

    @pl.when(pl.program_id(2) == 0)
    def _():
        total[...] = jnp.zeros_like(total)

    total[...] += jnp.dot(x[...], w[...], preferred_element_type=jnp.float32)

    @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
    def _():
        out[...] = jnp.exp(total[...]).astype(out.dtype)


def matmul(x: jax.Array, w: jax.Array, **options) -> jax.Array:
    """Blocks of 128 x 128 of x [M, K], 128 x 256 of w [K, N]."""
    (m, k), n = x.shape, w.shape[1]
    return pl.pallas_call(
        matmul_kernel,
        grid=(m // 128, n // 256, k // 128),
        in_specs=[
            pl.BlockSpec((128, 128), lambda i, j, k: (i, k)),
            pl.BlockSpec((128, 256), lambda i, j, k: (k, j)),
        ],
        out_specs=pl.BlockSpec((128, 256), lambda i, j, k: (i, j)),
        out_shape=jax.ShapeDtypeStruct((m, n), jnp.bfloat16),
        scratch_shapes=[pltpu.VMEM((128, 256), jnp.float32)],
        name="matmul",
        **options,
    )(x, w)


def struct(*shape: int, dtype=jnp.bfloat16) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype)


def one_price(function, *arguments, **options) -> Body:
    (kernel,) = exported(function, *arguments, **options)
    return kernel


# x[512, 1024] @ w[1024, 512]: grid (4, 2, 8), 64 points.
MATMUL_FLOPS = 64 * (2 * 128 * 256 * 128 + 128 * 256) + 8 * 128 * 256
#              the product, the addition to the sum;    the conversion to bf16
MATMUL_BYTES = 64 * 128 * 128 * 2 + 64 * 128 * 256 * 2 + 8 * 128 * 256 * 2
#              both operands have another block at every point, the result at every eighth


def test_grid_branches_and_blocks():
    price = one_price(matmul, struct(512, 1024), struct(1024, 512))
    assert re.fullmatch(r"pallas_call\.\d+", price.name)
    assert price.flops == MATMUL_FLOPS
    assert price.transcendentals == 8 * 128 * 256  # the last step of each sum
    assert price.bytes_accessed == MATMUL_BYTES
    assert price.remote_bytes == 0
    # x moves with its rows and the depth, w with its columns and the depth; bf16.
    assert price.grid == (4, 2, 8)
    assert price.blocks == (
        Block(128 * 128 * 2, False, (0, 2)),
        Block(128 * 256 * 2, False, (1, 2)),
        Block(128 * 256 * 2, True, (0, 1)),
    )
    assert price.products == (Product(128, 128, 256, "bf16", 64),)


def test_one_call_of_a_shard_is_one_device():
    mesh = AbstractMesh((4, 2), ("x", "y"), (AxisType.Auto,) * 2)
    sharded = jax.shard_map(
        matmul, mesh=mesh, in_specs=(P("x"), P(None, "y")), out_specs=P("x", "y"), check_vma=False
    )
    arguments = (
        jax.ShapeDtypeStruct((2048, 1024), jnp.bfloat16, sharding=NamedSharding(mesh, P("x"))),
        jax.ShapeDtypeStruct(
            (1024, 1024), jnp.bfloat16, sharding=NamedSharding(mesh, P(None, "y"))
        ),
    )
    price = one_price(jax.jit(sharded), *arguments)
    assert (price.flops, price.bytes_accessed) == (MATMUL_FLOPS, MATMUL_BYTES)


def test_an_estimate_does_not_hide_the_products(binary: str, tmp_path: pathlib.Path):
    estimate = pl.CostEstimate(flops=1, transcendentals=2, bytes_accessed=3)
    estimated = functools.partial(matmul, cost_estimate=estimate)
    arguments = struct(512, 1024), struct(1024, 512)
    kernel = one_price(estimated, *arguments)
    without = one_price(matmul, *arguments)
    assert kernel.products
    assert kernel.products == without.products
    assert kernel.flops == without.flops
    tpusim.export(estimated, *arguments, path=tmp_path / "w.pb")
    assert run_once(binary, tmp_path)["flops"] == MATMUL_FLOPS


def test_what_is_stated_wins(binary: str, tmp_path: pathlib.Path):
    arguments = struct(512, 1024), struct(1024, 512)
    stated = {"flops": 7, "bytes_accessed": 8}
    for name in ("matmul", "pallas_call*"):  # of the kernel, of the call
        workload = tpusim.export(
            matmul, *arguments, path=tmp_path / "w.pb", kernel_costs={name: stated}
        )
        assert workload.kernels == (tpusim.KernelCost(name, 7, bytes_accessed=8),)
        assert run_once(binary, tmp_path)["flops"] == 7
        # What the body does can be asked for nevertheless.
        assert bodies(workload)[0].flops == MATMUL_FLOPS


def test_calls_of_different_sizes_have_their_own_prices():
    def twice(x, w):
        return matmul(matmul(x, w), w)  # [128, 512] and then the same again

    def different(x, w, v):
        return matmul(matmul(x, w), v)

    same = exported(twice, struct(128, 512), struct(512, 512))
    assert len(same) == 2
    assert same[0].flops == same[1].flops
    first, second = exported(different, struct(128, 512), struct(512, 256), struct(256, 1024))
    # Grid (1, 1, 4), then (1, 4, 2).
    assert first.flops == 4 * (2 * 128 * 256 * 128 + 128 * 256) + 128 * 256
    assert second.flops == 8 * (2 * 128 * 256 * 128 + 128 * 256) + 4 * 128 * 256


def test_uneven_blocks_and_blocks_that_stay():
    def kernel(x, scale, out):
        out[...] = x[...] * scale[...]

    def scaled(x, scale):
        return pl.pallas_call(
            kernel,
            grid=(3,),
            in_specs=[
                pl.BlockSpec((128, 128), lambda i: (i, 0)),
                pl.BlockSpec((1, 128), lambda i: (0, 0)),
            ],
            out_specs=pl.BlockSpec((128, 128), lambda i: (i, 0)),
            out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        )(x, scale)

    price = one_price(
        scaled, struct(320, 128, dtype=jnp.float32), struct(1, 128, dtype=jnp.float32)
    )
    # 320 rows are two blocks and a half, in and out; the row of factors is fetched once.
    assert price.bytes_accessed == 2 * 320 * 128 * 4 + 128 * 4
    assert price.flops == 3 * 128 * 128


def loop_kernel(x, out):
    """Rows up to the own block's: a loop whose length is known from the grid."""

    def body(i, total):
        return total + jnp.tanh(x[pl.ds(i, 1), :])

    block = pl.program_id(0)
    zeros = jnp.zeros((1, 128), jnp.float32)
    out[...] = lax.fori_loop(0, block + 1, body, zeros)[None]


def stage_of(body, *shapes) -> kernel_bodies.Stage:
    """Prices a kernel without a grid that writes `body` of its operands."""

    def kernel(*references):
        *operands, out = references
        out[...] = body(*(operand[...] for operand in operands))

    arguments = [struct(*shape, dtype=jnp.float32) for shape in shapes]
    shape = jax.eval_shape(body, *arguments)
    (stage,) = one_price(pl.pallas_call(kernel, out_shape=shape), *arguments).stages
    return stage


def test_functions_cost_their_rows_per_register():
    # configs/compilers/instructions: a sine takes 148 operations on v5e; [16,256] are 4 registers.
    stage = stage_of(jnp.sin, (16, 256))
    assert (stage.valu, stage.eup, stage.xlu) == (4 * 148, 0, 0)
    assert stage_of(lambda x: pltpu.roll(x, 1, 1), (16, 256)).xlu == 4


def test_registers_that_are_equal_are_computed_once():
    def masked(x):
        rows = lax.broadcasted_iota(jnp.int32, x.shape, 0) << 2
        columns = lax.broadcasted_iota(jnp.int32, x.shape, 1) + 1
        return jnp.where(rows < columns, x, 0.0)

    # 64 rows of 16 registers: numbers of rows and their shift by rows, those of columns and their
    # sum by columns; the comparison and the choice everywhere.
    assert stage_of(masked, (512, 2048)).valu == 2 * 64 + 2 * 16 + 2 * 64 * 16


def test_loops_with_bounds_from_the_grid():
    def looped(x):
        return pl.pallas_call(
            loop_kernel,
            grid=(4,),
            in_specs=[pl.BlockSpec((8, 128), lambda i: (0, 0))],
            out_specs=pl.BlockSpec((1, 1, 128), lambda i: (i, 0, 0)),
            out_shape=jax.ShapeDtypeStruct((4, 1, 128), jnp.float32),
        )(x)

    price = one_price(looped, struct(8, 128, dtype=jnp.float32))
    # 1 + 2 + 3 + 4 turns.
    assert (price.flops, price.transcendentals) == (10 * 128, 10 * 128)


def copy_kernel(source, target, semaphore):
    """No blocks: the kernel copies by itself, to the device after it."""
    copy = pltpu.make_async_remote_copy(
        source,
        target,
        semaphore.at[0],
        semaphore.at[1],
        device_id=(lax.axis_index("x") + 1) % 4,
        device_id_type=pl.DeviceIdType.MESH,
    )
    copy.start()
    copy.wait()


def test_copies_to_other_devices(binary: str, tmp_path: pathlib.Path):
    mesh = AbstractMesh((4,), ("x",), (AxisType.Auto,))

    def shift(x):
        return pl.pallas_call(
            copy_kernel,
            in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
            out_specs=pl.BlockSpec(memory_space=pl.ANY),
            out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
            scratch_shapes=[pltpu.SemaphoreType.DMA((2,))],
            compiler_params=pltpu.CompilerParams(has_side_effects=True),
        )(x)

    sharded = jax.shard_map(shift, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)
    x = jax.ShapeDtypeStruct((32, 128), jnp.float32, sharding=NamedSharding(mesh, P("x")))
    price = one_price(jax.jit(sharded), x)
    # f32[8, 128] is read from HBM, sent, and written to HBM.
    assert price.remote_bytes == 8 * 128 * 4
    assert price.bytes_accessed == 2 * 8 * 128 * 4
    assert price.flops == 0
    tpusim.export(jax.jit(sharded), x, path=tmp_path / "shift.pb")
    command = [binary, "run", "--config", "v5e-2x2", "shift.pb", "--report", "shift.json"]
    subprocess.run([*command, "--quiet"], cwd=tmp_path, check=True)
    report = json.loads((tmp_path / "shift.json").read_text())
    (sent,) = report["collectives"]
    assert (sent["kind"], sent["bytes"]) == ("collective-permute", 8 * 128 * 4)
    assert sum(link["bytes"] for link in report["links"]) >= 4 * 8 * 128 * 4
    (sentence,) = [text for text in report["assumptions"] if "next partition" in text]
    assert "4096 bytes" in sentence


def repeated(count, x):
    """Doubles x as often as `count` says, and adds the squares of the rows `count` times that."""

    def kernel(count, x, out):
        def turn(_, total):
            return lax.fori_loop(0, count[1], lambda _, t: t + x[...] * x[...], total * 2)

        out[...] = lax.fori_loop(0, count[0], turn, x[...])

    return pl.pallas_call(
        kernel,
        in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM), pl.BlockSpec(memory_space=pltpu.VMEM)],
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        name="repeated",
    )(count, x)


REPEATED = struct(2, dtype=jnp.int32), struct(8, 128, dtype=jnp.float32)


def run_once(binary: str, folder: pathlib.Path, *options: str) -> dict[str, Any]:
    """The report of folder/w.pb; or, under "error", what the simulator says instead."""
    command = [binary, "run", "--config", "v5e-1x1", "w.pb", "--report", "r.json", "--quiet"]
    done = subprocess.run(
        [*command, *options], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        assert done.returncode == 1
        return {"error": done.stderr}
    return json.loads((folder / "r.json").read_text())


def test_loops_on_data_are_priced_by_their_passes(binary: str, tmp_path: pathlib.Path):
    price = one_price(repeated, *REPEATED, path=tmp_path / "w.pb")
    assert (price.flops, price.unpriced) == (0, "")
    (outer,) = price.loops
    assert outer.name == "repeated/loop.0"
    assert outer.source.startswith("tests/jax/test_kernels.py:")
    assert outer.once.flops == 8 * 128
    (inner,) = outer.once.loops
    assert (inner.name, inner.once.flops, inner.once.loops) == ("repeated/loop.1", 2 * 8 * 128, ())
    # Both arrays once: x and the result are whole in VMEM, the counts are scalars.
    moved = price.bytes_accessed
    assert moved >= 2 * 8 * 128 * 4

    error = run_once(binary, tmp_path)["error"]
    assert error.count("\n") == 1
    # Each is named once, as what to type.
    for loop in (outer, inner):
        assert error.count(f"--trip-count {loop.name}=N") == error.count(loop.name) == 1
    assert re.search(r"loop\.1=N \(jax/test_kernels\.py:\d+, inside loop\.0\)", error)
    assert "--trip-count '*=N'" in error
    # Three turns of 1 + 5 * 2 operations per element.
    counts = ("--trip-count", "repeated/loop.0=3", "--trip-count", "*loop.1=5")
    report = run_once(binary, tmp_path, *counts)
    assert report["flops"] == 3 * (1 + 5 * 2) * 8 * 128
    assert sum("repeated/loop" in line for line in report["assumptions"]) == 2
    stated = run_once(binary, tmp_path, "--kernel-cost", "repeated=7000,80")
    assert stated["flops"] == 7000
    assert "--kernel-cost" not in str(stated["warnings"])


def test_trip_counts_of_kernels_can_be_exported(binary: str, tmp_path: pathlib.Path):
    counts = {"repeated/*": 2}
    tpusim.export(repeated, *REPEATED, path=tmp_path / "w.pb", trip_counts=counts)
    assert run_once(binary, tmp_path)["flops"] == 2 * (1 + 2 * 2) * 8 * 128
    costs = {"pallas_call*": {"flops": 5}}
    tpusim.export(repeated, *REPEATED, path=tmp_path / "w.pb", kernel_costs=costs)
    assert run_once(binary, tmp_path)["flops"] == 5


def test_a_kernel_may_have_a_time(binary: str, tmp_path: pathlib.Path):
    arguments = struct(512, 1024), struct(1024, 512)
    times = {"matmul": {"seconds": 12.5e-6}}
    workload = tpusim.export(matmul, *arguments, path=tmp_path / "w.pb", kernel_costs=times)
    assert workload.kernels == (tpusim.KernelCost("matmul", picoseconds=12_500_000),)
    report = run_once(binary, tmp_path)
    # What is known of it stays.
    assert report["step_time_ns"] == pytest.approx(12_500, abs=0.02)
    assert report["flops"] == MATMUL_FLOPS
    assert any("takes 12.5 us, as stated" in line for line in report["assumptions"])
    # In a shell; 0.5 GFLOP of products and 7 MB take longer than 2 us.
    report = run_once(binary, tmp_path, "--kernel-cost", "mat*=2us")
    assert report["step_time_ns"] == pytest.approx(2000, abs=0.02)
    (line,) = [line for line in report["assumptions"] if "as stated" in line]
    assert re.search(r"FLOPs of products take at least .* us: .* are counted; its \d+ bytes", line)
    for wrong in (
        "matmul=12.5",
        "matmul=-1us",
        "matmul=0us",
        "matmul=1,us",
        "matmul=1,2,3",
        "=1us",
    ):
        command = [binary, "run", "--config", "v5e-1x1", "w.pb", "--kernel-cost", wrong]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert "NAME=TIME" in done.stderr


def test_a_time_needs_no_trip_counts(binary: str, tmp_path: pathlib.Path):
    times = {"repeated": {"seconds": 3e-6}}
    tpusim.export(repeated, *REPEATED, path=tmp_path / "w.pb", kernel_costs=times)
    assert run_once(binary, tmp_path)["step_time_ns"] == pytest.approx(3000, abs=0.02)
    tpusim.export(repeated, *REPEATED, path=tmp_path / "w.pb")
    report = run_once(binary, tmp_path, "--kernel-cost", "repeated=7,80,4us")
    assert report["step_time_ns"] == pytest.approx(4000, abs=0.02)
    assert report["flops"] == 7


def test_a_grid_on_data_is_a_loop():
    def kernel(x, out):
        out[...] = jnp.exp(x[...])

    def tanh_of_blocks(count, x):
        return pl.pallas_call(
            kernel,
            grid=(2, count),
            in_specs=[pl.BlockSpec((8, 128), lambda i, j: (i, j))],
            out_specs=pl.BlockSpec((8, 128), lambda i, j: (i, j)),
            out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
            name="blocks",
        )(x)

    price = one_price(tanh_of_blocks, struct(dtype=jnp.int32), struct(16, 1024, dtype=jnp.float32))
    (axis,) = price.loops
    assert axis.name == "blocks/grid.1"
    # Of one column of blocks: two blocks, in and out.
    assert axis.once.transcendentals == 2 * 8 * 128
    assert axis.once.bytes_accessed == 2 * 2 * 8 * 128 * 4
    assert price.transcendentals == 0


def test_kernels_without_a_rule_are_priced_later(binary: str, tmp_path: pathlib.Path):
    def kernel(x, out):
        out[...] = jnp.exp(x[...])

    def rows(x):
        shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return pl.pallas_call(kernel, out_shape=shape, name="rows")(x)

    x = struct(8, 128, dtype=jnp.float32)
    workload = kernel_bodies.with_another_operation(
        tpusim.export(rows, x, path=None), "math.exp", "math.exq"
    )
    workload.save(tmp_path / "w.pb")
    (price,) = bodies(workload)
    assert price.unpriced.startswith("there is no rule for math.exq at tests/jax/test_kernels.py:")
    error = run_once(binary, tmp_path)["error"]
    assert "there is no rule for math.exq" in error
    assert "--kernel-cost" in error
    assert run_once(binary, tmp_path, "--kernel-cost", "rows=100,8192")["flops"] == 100


def test_paged_attention(binary: str, tmp_path: pathlib.Path):
    from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention

    def decode(q, k, v, lengths, pages):
        return paged_attention(q, k, v, lengths, pages, pages_per_compute_block=4)

    kv = struct(8, 64, 16, 128)
    arguments = (struct(8, 16, 128), kv, kv, struct(8, dtype=jnp.int32))
    indices = struct(8, 8, dtype=jnp.int32)
    price = one_price(decode, *arguments, indices, path=tmp_path / "w.pb")
    assert "--trip-count paged_flash_attention_kernel" in run_once(binary, tmp_path)["error"]
    one = run_once(binary, tmp_path, "--trip-count", "*=1")
    two = run_once(binary, tmp_path, "--trip-count", "*=2")
    (loop,) = price.loops
    assert two["flops"] - one["flops"] == loop.once.flops > 0
    assert two["step_time_ns"] > one["step_time_ns"]


def test_ragged_paged_attention_asks_for_the_chip(binary: str, tmp_path: pathlib.Path):
    from jax.experimental.pallas.ops.tpu.ragged_paged_attention import ragged_paged_attention

    arguments = (struct(512, 16, 128), struct(64, 16, 16, 128), struct(8, dtype=jnp.int32))
    more = (struct(s, dtype=jnp.int32) for s in (9, 1))
    pages = struct(8, 16, dtype=jnp.int32)
    path = tmp_path / "w.pb"
    # Its block sizes are looked up by the kind of device.
    price = one_price(ragged_paged_attention, *arguments, pages, *more, path=path, config="v5e-1x1")
    (over_sequences,) = price.loops
    (over_pages,) = over_sequences.once.loops
    assert over_pages.once.flops > 0
    error = run_once(binary, tmp_path)["error"]
    assert len(error) <= 15 * 80  # a screen
    for loop in (over_sequences, over_pages):
        assert error.count(loop.name) == 1
    assert "inside loop.0" in error
    assert run_once(binary, tmp_path, "--trip-count", "*=2")["flops"] > 0


def test_splash_attention_is_priced():
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as kernel
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks

    heads, length, head = 4, 512, 128
    mask = masks.MultiHeadMask([masks.FullMask((length, length)) for _ in range(heads)])
    attention = kernel.make_splash_mha(mask=mask, head_shards=1, q_seq_shards=1)
    price = one_price(lambda q, k, v: attention(q, k, v), *[struct(heads, length, head)] * 3)
    products = 2 * 2 * heads * length * length * head
    assert products < price.flops < 1.1 * products
    # Two exponentials per key and query: of the score, and (in blocks of 128) to rescale.
    assert price.transcendentals == 2 * heads * length * length


@pytest.mark.parametrize(
    ("dtype", "number_format"),
    [(jnp.float16, "f32"), (jnp.int8, "int8"), (jnp.float8_e4m3fn, "fp8"), (jnp.int16, "int32")],
)
def test_products_have_the_format_of_their_operands(dtype, number_format):
    assert one_price(product_in_one_block, *operands(dtype)).products == (
        Product(128, 128, 128, number_format, 1),
    )


def operands(dtype):
    return (jax.ShapeDtypeStruct((128, 128), dtype),) * 2


@jax.jit
def product_in_one_block(x, y):
    def kernel(x, y, out):
        out[...] = jax.lax.dot(x[...], y[...], preferred_element_type=jnp.float32)

    shape = jax.ShapeDtypeStruct((128, 128), jnp.float32)
    return pl.pallas_call(kernel, grid=(1,), out_shape=shape)(x, y)
