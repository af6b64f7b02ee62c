"""Copies that Pallas kernels start by themselves: slices, also of sizes that are data."""

import dataclasses
import json
import pathlib
import subprocess
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tpusim
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import AxisType, PartitionSpec

from tests.jax import kernel_bodies
from tests.jax.kernel_bodies import Block, Body, bodies, exported

ROWS = 1024
# Bytes of a row of f32[ROWS, 128].
ROW_BYTES = 128 * 4


def copies(body: Callable, *, grid: int = 1, window: int = 256, path=None) -> Body:
    """Prices a kernel with scalars that are data, x in HBM, and a buffer of `window` rows."""

    def call(numbers, x):
        return pl.pallas_call(
            body,
            grid=(grid,),
            in_specs=[
                pl.BlockSpec(memory_space=pltpu.SMEM),
                pl.BlockSpec(memory_space=pl.ANY),
            ],
            out_specs=pl.BlockSpec(memory_space=pl.ANY),
            out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
            scratch_shapes=[pltpu.VMEM((window, 128), jnp.float32), pltpu.SemaphoreType.DMA],
            name="copies",
        )(numbers, x)

    numbers = jax.ShapeDtypeStruct((4,), jnp.int32)
    x = jax.ShapeDtypeStruct((ROWS, 128), jnp.float32)
    (kernel,) = exported(call, numbers, x, path=path, config="v5e-1x1")
    assert kernel.unpriced == ""
    # The scalars are read once, and are not what this is about.
    return dataclasses.replace(kernel, bytes_accessed=kernel.bytes_accessed - 4 * 4)


def copy_in(size: Callable) -> Callable:
    """A body that copies the first rows of x to its buffer, as many as `size` of the scalars."""

    def body(n, x, out, buffer, semaphore):
        del out, semaphore
        rows = size(n)
        pltpu.sync_copy(x.at[pl.ds(0, rows)], buffer.at[pl.ds(0, rows)])

    return body


BOUNDED = {
    "the buffer": (lambda n: n[0], 256),
    "a minimum": (lambda n: jnp.minimum(n[0], 64), 64),
    "a minimum of three": (lambda n: jnp.minimum(jnp.minimum(n[0] - n[1], 96), n[2]), 96),
    "clip": (lambda n: jnp.clip(n[0] - 7, 0, 48), 48),
    "remainder": (lambda n: n[0] % 32, 31),
    "what is left of a page": (lambda n: jnp.minimum(16 - n[0] % 16, n[1]), 16),
    "quotient": (lambda n: jnp.clip(n[0], 0, 128) // 4, 32),
    "sum": (lambda n: jnp.clip(n[0], 0, 10) + jnp.clip(n[1], 0, 20), 30),
    "product": (lambda n: 8 * jnp.clip(n[0], 1, 5), 40),
    "select": (lambda n: jnp.where(n[0] > 0, 24, jnp.clip(n[1], 0, 16)), 24),
    "the greater of both": (lambda n: jnp.maximum(jnp.minimum(n[0], 8), 12), 12),
}


@pytest.mark.parametrize("name", BOUNDED)
def test_the_largest_copy_counts(name):
    size, most = BOUNDED[name]
    kernel = copies(copy_in(size))
    assert kernel.bytes_accessed == most * ROW_BYTES
    (sentence,) = kernel.assumed
    assert sentence.startswith(
        f"copies slices whose size is data, counted at their largest: float32[{most},128] at "
    )
    assert "test_kernel_copies.py:" in sentence


def test_sizes_that_the_grid_knows_are_exact():
    def body(n, x, out, buffer, semaphore):
        del n, buffer
        start = pl.program_id(0) * 300
        rows = pl.ds(start, jnp.minimum(300, ROWS - start))
        copy = pltpu.make_async_copy(x.at[rows], out.at[rows], semaphore)
        copy.start()
        copy.wait()

    kernel = copies(body, grid=4)
    # 300 + 300 + 300 + 124 rows, read and written.
    assert kernel.bytes_accessed == 2 * ROWS * ROW_BYTES
    assert kernel.assumed == ()


def test_known_and_unknown_sizes_in_one_copy():
    def body(n, x, out, buffer, semaphore):
        del out, semaphore
        rows, columns = 8 * (pl.program_id(0) + 1), jnp.minimum(n[0], 64)
        pltpu.sync_copy(
            x.at[pl.ds(0, rows), pl.ds(0, columns)], buffer.at[pl.ds(0, rows), pl.ds(0, columns)]
        )

    kernel = copies(body, grid=3)
    # 8 + 16 + 24 rows of 64 columns
    assert kernel.bytes_accessed == (8 + 16 + 24) * 64 * 4
    assert "float32[8,64]" in kernel.assumed[0]
    assert "float32[24,64]" in kernel.assumed[0]


def test_a_condition_bounds_what_it_lets_through():
    def body(n, x, out, buffer, semaphore):
        del out, semaphore

        @pl.when(n[0] <= 40)
        def _():
            pltpu.sync_copy(x.at[pl.ds(0, n[0])], buffer.at[pl.ds(0, n[0])])

    assert copies(body).bytes_accessed == 40 * ROW_BYTES


def test_views_of_views():
    def body(n, x, out, buffer, semaphore):
        del out, semaphore
        # [1024, 128] as [8, 128, 128]; of one of the 8 some rows, as 16-bit numbers [2 * 128, 128].
        part = x.reshape(8, 128, 128).at[n[1]].bitcast(jnp.bfloat16)
        rows = pl.ds(0, jnp.minimum(n[0], 32))
        pltpu.sync_copy(part.at[rows], buffer.bitcast(jnp.bfloat16).at[rows])

    assert copies(body).bytes_accessed == 32 * 128 * 2


def test_loops_that_carry_what_is_left():
    def body(n, x, out, buffer, semaphore):
        del out, semaphore

        def page(i, state):
            left, skipped = state
            rows = jnp.minimum(16 - skipped, left)
            pltpu.sync_copy(x.at[pl.ds(16 * i + skipped, rows)], buffer.at[pl.ds(0, rows)])
            return left - rows, 0

        lax.fori_loop(0, n[0], page, (n[1], n[2] % 16))

    (loop,) = copies(body).loops
    assert loop.once.bytes_accessed == 16 * ROW_BYTES
    assert loop.at_most is None


def test_a_loop_says_how_often_it_can_run():
    def body(n, x, out, buffer, semaphore):
        del out, semaphore

        @pl.loop(0, pl.cdiv(jnp.minimum(n[0], 256), 64))
        def _(i):
            rows = pl.ds(i * 64, 64)
            pltpu.sync_copy(x.at[rows], buffer.at[rows])

    (loop,) = copies(body).loops
    assert loop.once.bytes_accessed == 64 * ROW_BYTES
    assert loop.at_most == 4


def test_the_report_states_it(binary: str, tmp_path: pathlib.Path):
    copies(copy_in(lambda n: jnp.minimum(n[0], 64)), path=tmp_path / "w.pb")
    command = [binary, "run", "w.pb", "--report", "r.json", "--quiet"]
    subprocess.run(command, cwd=tmp_path, check=True)
    report = json.loads((tmp_path / "r.json").read_text())
    (sentence,) = [text for text in report["assumptions"] if "whose size is data" in text]
    assert sentence.startswith("pallas_call.")
    assert "float32[64,128]" in sentence
    # A stated cost assumes nothing of the kind.
    subprocess.run([*command, "--kernel-cost", "copies=7,8192"], cwd=tmp_path, check=True)
    report = json.loads((tmp_path / "r.json").read_text())
    assert not any("whose size is data" in text for text in report["assumptions"])


def test_pipelines_inside_of_kernels_copy_blocks_that_change():
    blocks = 4

    def body(x, w, out):
        @pl.when(pl.program_id(2) == 0)
        def _():
            out[...] = jnp.zeros_like(out)

        out[...] += jnp.dot(x[...], w[...], preferred_element_type=jnp.float32)

    def kernel(x, w, out):
        pltpu.emit_pipeline(
            body,
            grid=(blocks,) * 3,
            in_specs=[
                pl.BlockSpec((128, 128), lambda i, j, k: (i, k)),
                pl.BlockSpec((128, 128), lambda i, j, k: (k, j)),
            ],
            out_specs=[pl.BlockSpec((128, 128), lambda i, j, k: (i, j))],
        )(x, w, out)

    def call(x, w):
        anywhere = pl.BlockSpec(memory_space=pl.ANY)
        return pl.pallas_call(
            kernel,
            in_specs=[anywhere, anywhere],
            out_specs=anywhere,
            out_shape=jax.ShapeDtypeStruct((512, 512), jnp.float32),
        )(x, w)

    operand = jax.ShapeDtypeStruct((512, 512), jnp.bfloat16)
    (cost,) = exported(call, operand, operand, config="v5e-1x1")
    # Both operands at every one of the 64 steps, the result after every fourth.
    assert cost.bytes_accessed == 64 * 2 * 128 * 128 * 2 + 16 * 128 * 128 * 4
    assert sum(product.count for product in cost.products) == 64


def test_own_copies_take_their_time_beside_blocks(binary: str, tmp_path: pathlib.Path):
    def kernel(x, y, out, buffer, semaphore):
        copy = pltpu.make_async_copy(y, buffer, semaphore)
        copy.start()
        copy.wait()
        out[...] = x[...] + buffer[:8]

    def call(x, y):
        return pl.pallas_call(
            kernel,
            grid=(16,),
            in_specs=[
                pl.BlockSpec((8, 1024), lambda i: (i, 0)),
                pl.BlockSpec(memory_space=pl.ANY),
            ],
            out_specs=pl.BlockSpec((8, 1024), lambda i: (i, 0)),
            out_shape=jax.ShapeDtypeStruct((128, 1024), jnp.float32),
            scratch_shapes=[pltpu.VMEM((256, 1024), jnp.float32), pltpu.SemaphoreType.DMA],
        )(x, y)

    x = jax.ShapeDtypeStruct((128, 1024), jnp.float32)
    y = jax.ShapeDtypeStruct((256, 1024), jnp.float32)
    (cost,) = exported(call, x, y, path=tmp_path / "w.pb", config="v5e-1x1")
    # 1 MiB at each of 16 points, 0.5 MiB in and as much out in blocks.
    assert cost.bytes_accessed == 17 << 20
    assert cost.blocks[-1] == Block(1 << 20, False, (0,))
    command = [binary, "run", "w.pb", "--report", "r.json", "--quiet"]
    subprocess.run(command, cwd=tmp_path, check=True)
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["step_time_ns"] > (17 << 20) / 819  # bytes over GB/s


def test_grids_whose_length_is_computed_from_constants():
    table = np.array([3, 3, 5, 7, 7, 7], np.int32)

    def kernel(first, rows, x, out):
        del rows

        @pl.when(first[pl.program_id(0)] != 0)
        def _():
            out[...] = jnp.exp(x[...])

    def call(x):
        rows = jnp.asarray(table)
        # Where a number of the table is another than the one before: 3, 5, 7.
        first = (rows != jnp.roll(rows, 1)).astype(jnp.int32).at[0].set(1)
        return pl.pallas_call(
            kernel,
            grid_spec=pltpu.PrefetchScalarGridSpec(
                num_scalar_prefetch=2,
                grid=(jnp.sum(rows > 2),),
                in_specs=[pl.BlockSpec((8, 128), lambda i, first, rows: (rows[i], 0))],
                out_specs=pl.BlockSpec((8, 128), lambda i, first, rows: (rows[i], 0)),
            ),
            out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        )(first, rows, x)

    x = jax.ShapeDtypeStruct((64, 128), jnp.float32)
    (cost,) = exported(call, x)
    assert cost.loops == ()
    assert cost.transcendentals == 3 * 8 * 128
    # Three blocks in, three out, and two tables.
    assert cost.bytes_accessed == 6 * 8 * 128 * 4 + 2 * 6 * 4


def test_values_inside_of_kernels_may_be_resharded():
    mesh = jax.sharding.AbstractMesh((1,), ("x",), axis_types=(AxisType.Explicit,))

    def kernel(x, out):
        out[...] = jnp.exp(jax.sharding.reshard(x[...], PartitionSpec()))

    def call(x):
        return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

    sharding = jax.sharding.NamedSharding(mesh, PartitionSpec())
    x = jax.ShapeDtypeStruct((8, 128), jnp.float32, sharding=sharding)
    with jax.sharding.use_abstract_mesh(mesh):
        (cost,) = exported(call, x)
    assert (cost.unpriced, cost.transcendentals) == ("", 8 * 128)


def test_an_operation_without_a_rule_is_named_with_its_place():
    def kernel(x, out):
        def turn(_, total):
            return jnp.exp(total)  # the place

        out[...] = lax.fori_loop(0, 3, turn, x[...])

    def call(x):
        return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

    x = jax.ShapeDtypeStruct((8, 128), jnp.float32)
    workload = tpusim.export(call, x, path=None)
    (cost,) = bodies(kernel_bodies.with_another_operation(workload, "math.exp", "math.exq"))
    lines = pathlib.Path(__file__).read_text().splitlines()
    line = next(n for n, text in enumerate(lines, 1) if text.endswith("# the place"))
    expected = f"there is no rule for math.exq at tests/jax/test_kernel_copies.py:{line}"
    assert cost.unpriced == expected
