"""Modules that the TPU compiler makes while the test runs, for slices that the corpus lacks.

Small programs, a few seconds each; only where the libtpu wheel is installed.
"""

import functools
import importlib.util
import math
import pathlib
from collections.abc import Callable

import jax
import jax.numpy as jnp
import pytest
import tpusim
from compiled_modules import SELECTION
from compiler_programs import PROGRAMS
from jax import lax, shard_map
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P
from tpusim import slices
from tpusim.hlo import Module

from tests.tools.executed import assert_all_is_executed
from workloads.examples.example import AnyMesh, Program, array

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        importlib.util.find_spec("libtpu") is None,
        reason="no libtpu in this Python: pip install 'libtpu==0.0.42.*' (CONTRIBUTING.md)",
    ),
]
# 1 to 256 chips; v7x has two devices each.
SLICES = (
    *("v5e-4x8", "v5e-8x4", "v5e-8x8"),
    *("v5p-2x2x1", "v5p-2x2x4", "v5p-2x4x4", "v5p-4x4x8"),
    *("v6e-2x2", "v6e-2x4", "v6e-4x4", "v6e-4x8", "v6e-8x16", "v6e-16x16"),
    *("v7x-2x2x4", "v7x-2x4x4", "v7x-4x4x4"),
)
# On one chip: programs of the comparison with the compiler.
ALONE = {
    "v5e-1x1": ("one_hot", "gated_silu", "gather_batch_parallel"),
    "v5p-1x1x1": ("cast_to_bf16", "reduce_columns", "cumsum_rows"),
    "v6e-1x1": ("argsort", "row_and_column_sums", "transpose_channels"),
    "v7x-1x1x1": ("top_2_of_experts", "take_along_rows", "small_matrices"),
}


def gathered_product(mesh: AnyMesh) -> Program:
    """Rows over one axis, what is contracted over the other: something must be gathered."""
    x = array(mesh, (2048, 1024), jnp.bfloat16, "rows", "columns")
    w = array(mesh, (1024, 2048), jnp.bfloat16, "columns", None)
    return jax.jit(lambda x, w: jax.nn.relu(x @ w)), (x, w)


def gradient_step(mesh: AnyMesh) -> Program:
    """Two layers, the batch over all devices: gradients are all-reduced."""

    def step(weights: list[jax.Array], x: jax.Array) -> list[jax.Array]:
        def loss(weights: list[jax.Array]) -> jax.Array:
            y = functools.reduce(lambda x, w: jax.nn.gelu(x @ w), weights, x)
            return jnp.mean(jnp.square(y.astype(jnp.float32)))

        return jax.tree.map(lambda w, g: w - 0.1 * g, weights, jax.grad(loss)(weights))

    weights = [array(mesh, (512, 512), jnp.bfloat16) for _ in range(2)]
    return jax.jit(step, donate_argnums=0), (
        weights,
        array(mesh, (4096, 512), jnp.bfloat16, ("rows", "columns")),
    )


def exchange(mesh: AnyMesh) -> Program:
    """Communicates by each operation of `shard_map`, over one axis each."""

    def body(x: jax.Array) -> jax.Array:
        x = lax.all_to_all(x, "columns", 1, 0, tiled=True)
        size = lax.axis_size("rows")
        x = lax.ppermute(jnp.sin(x), "rows", [(i, (i + 1) % size) for i in range(size)])
        return lax.psum_scatter(x, "columns", scatter_dimension=1, tiled=True)

    spec = P(("rows", "columns"))
    x = array(mesh, (8192, 2048), jnp.bfloat16, ("rows", "columns"))
    return jax.jit(shard_map(body, mesh=mesh, in_specs=spec, out_specs=spec)), (x,)


def over(build: Callable[[AnyMesh], Program], slice_name: str) -> Program:
    """A program over all devices of the slice, as near to a square as a mesh can be."""
    devices = slices.devices_of(slice_name)
    assert devices is not None
    rows = next(n for n in range(math.isqrt(devices), 0, -1) if devices % n == 0)
    return build(AbstractMesh((rows, devices // rows), ("rows", "columns"), (AxisType.Auto,) * 2))


CASES = {
    **{
        f"{slice_name}-{name}": (slice_name, PROGRAMS[name].example)
        for slice_name, names in ALONE.items()
        for name in names
    },
    **{
        f"{slice_name}-{build.__name__}": (slice_name, functools.partial(over, build, slice_name))
        for slice_name in SLICES
        for build in (gathered_product, gradient_step, exchange)
    },
}


def test_these_are_not_in_the_corpus():
    assert len(CASES) >= 50
    kept = {f"{config}-{name}" for config, names in SELECTION.items() for name in names.split()}
    assert not kept & CASES.keys()


@pytest.mark.parametrize("case", CASES)
def test_a_module_that_is_new_runs(
    case: str, report_of: Callable[..., dict], tmp_path: pathlib.Path
):
    slice_name, build = CASES[case]
    step, arguments = build()
    workload = tpusim.export(
        step, *arguments, path=tmp_path / "m.pb", config=slice_name, compiled=True
    )
    report = report_of(tmp_path / "m.pb")
    assert report["devices"] == slices.devices_of(slice_name) or slice_name in ALONE
    assert_all_is_executed(Module(workload.hlo_module), report)
