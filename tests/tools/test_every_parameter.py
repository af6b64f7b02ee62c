"""Every parameter of a chip moves the report of some program, or says that it moves none."""

import json
import pathlib
import subprocess
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
import tpusim
from jax import lax
from jax.experimental import pallas as pl

from tests.tools.command_line import example

SLICE = "v5e-4x2"
ARRAY = jax.ShapeDtypeStruct


def product(precision: Any = None) -> Callable[..., Any]:
    def product(a: jax.Array, b: jax.Array) -> jax.Array:
        out = jnp.int32 if jnp.issubdtype(a.dtype, jnp.integer) else jnp.float32
        return lax.dot(a, b, precision=precision, preferred_element_type=out)

    return product


def kernel(x: jax.Array) -> jax.Array:
    """Many steps over one block; each keeps an array of 96 registers until it has been added up."""

    def body(x, out):
        more = x[...] + 1
        out[...] = more * jnp.sum(more, axis=0, keepdims=True)

    block = pl.BlockSpec(x.shape, lambda i: (0, 0))
    shape = ARRAY(x.shape, x.dtype)
    return pl.pallas_call(body, grid=(64,), in_specs=[block], out_specs=block, out_shape=shape)(x)


def square(dtype: Any) -> tuple[Any, Any]:
    return ARRAY((1024, 1024), dtype), ARRAY((1024, 1024), dtype)


# Programs of one device in which something decides.
PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "bf16": (product(), square(jnp.bfloat16)),
    "f32": (product(), square(jnp.float32)),
    "f32_high": (product(lax.Precision.HIGH), square(jnp.float32)),
    "f32_highest": (product(lax.Precision.HIGHEST), square(jnp.float32)),
    "int8": (product(), square(jnp.int8)),
    "int4": (product(), square(jnp.int4)),
    "fp8": (product(), square(jnp.float8_e4m3fn)),
    "int32": (product(), square(jnp.int32)),
    "small": (product(), (ARRAY((8, 128), jnp.bfloat16), ARRAY((128, 128), jnp.bfloat16))),
    "copy": (lambda x: x + 1, (ARRAY((4096, 4096), jnp.float32),)),
    "random": (lambda k: jax.random.bits(k, (256, 1024)), (ARRAY((2,), jnp.uint32),)),
    "tanh": (
        lambda x: jnp.tanh(jnp.tanh(jnp.tanh(jnp.tanh(jnp.tanh(jnp.tanh(x)))))),
        (ARRAY((1024, 1024), jnp.float32),),
    ),
    "turn": (lambda x: x.T * 2, (ARRAY((2048, 1024), jnp.float32),)),
    "sort": (lambda x: jnp.sort(x, axis=-1), (ARRAY((512, 1024), jnp.float32),)),
    "sum": (lambda x: jnp.sum(x, axis=-1), (ARRAY((2048, 2048), jnp.float32),)),
    "lookup": (
        lambda table, rows: table.at[rows].get(mode="clip"),
        (ARRAY((1 << 23, 8), jnp.float32), ARRAY((4096,), jnp.int32)),
    ),
    "kernel": (kernel, (ARRAY((256, 384), jnp.float32),)),
    "between": (lambda x: (x @ x.T) @ x, (ARRAY((4096, 128), jnp.float32),)),
}
# Examples on the whole slice, on one whose axes are rings, and on two slices.
SHARDED = {
    "psum": SLICE,
    "all_gather": SLICE,
    "all_to_all": SLICE,
    "weights_from_host": SLICE,
    "all_reduce_64mib_16x16": "v5e-16x16",
    "all_reduce_64mib_4x2": "2x(v5e-2x2)",
}
# Twice as much may be what the schema does not allow.
VALUES = {
    "chip.mxu.efficiency": 0.5,
    "chip.hbm.efficiency": 0.5,
    "ici.wrapped_efficiency": 0.5,
    "ici.unwrapped_efficiency": 0.5,
    "ici.pair_efficiency": 0.5,
    "chip.vmem.bytes": 1 << 26,
    "chip.vmem.scoped_bytes": 1 << 20,
    "chip.vmem.reserved_bytes": 1 << 27,
    "chip.vpu.alus_per_lane": 1,
    "chip.vpu.load_slots": 1,
    "chip.vpu.xlu_count": 1,
    "chip.mxu.count": 1,
    "chip.tensor_core.loop_buffers": 1,
}
# Parts of the machine that no model uses; every program warns.
UNUSED = {
    "chip.sparse_core.count",
    "chip.sparse_core.tiles",
    "chip.sparse_core.lanes",
    # The chips that share a network card; here all send alike.
    "host.chips_x",
    "host.chips_y",
    "host.chips_z",
    "ici.die_to_die_bytes_per_second",
}
# They say what kind of chip it is; a slice of another kind is another slice. The fastest clock
# counts with xla_tpu_dvfs_p_state=7 only (xla_flags_test.cc).
STRUCTURE = {"chip.tensor_cores", "chip.devices", "chip.fastest_clock_hz"}
# This chip has no SparseCores and no CMEM; see the last tests.
OFF_LOADING = "chip.sparse_core.offload_"
CMEM = "chip.cmem."
COLLECTIVES = ("all_gather", "all_reduce", "reduce_scatter")


@pytest.fixture(scope="module")
def simulate(
    binary: str, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., tuple[dict, str]]:
    """Report and diagnostics of a program with one parameter set."""
    folder = tmp_path_factory.mktemp("parameters")
    known: dict[tuple[str, str], tuple[dict, str]] = {}

    def simulate(program: str, setting: str = "") -> tuple[dict, str]:
        if (program, setting) in known:
            return known[program, setting]
        path: pathlib.Path = folder / f"{program}.pb"
        if program in SHARDED:
            path = example(program)
        elif not path.exists():
            function, arguments = PROGRAMS[program]
            tpusim.export(jax.jit(function), *arguments, path=path)
        output = folder / "report.json"
        command = [binary, "run", "--config", SHARDED.get(program, "v5e-1x1"), str(path)]
        command += ["--report", str(output)]
        command += ["--set", setting] if setting else []
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        report = json.loads(output.read_text())
        for words in ("assumptions", "warnings", "records", "command_line", "error_bar"):
            del report[words]
        # What was set, and no effect of it.
        report.get("vmem_at_peak", {}).pop("capacity_bytes", None)
        known[program, setting] = (report, done.stderr)
        return known[program, setting]

    return simulate


def parameters(binary: str) -> dict[str, float]:
    """Names and values, as `tpusim configs` lists them."""
    done = subprocess.run(
        [binary, "configs", "v5e", "--verbose"], capture_output=True, text=True, check=True
    )
    listed = {}
    for line in done.stdout.splitlines():
        name, *rest = line.split() or [""]
        if name.split(".")[0] in ("chip", "ici", "host"):
            listed[name] = float(rest[1])
    return listed


def test_every_parameter_moves_a_report(binary: str, simulate: Callable[..., tuple[dict, str]]):
    listed = parameters(binary)
    assert len(listed) > 40
    silent = []
    for name, value in listed.items():
        if name in STRUCTURE or name.startswith((OFF_LOADING, CMEM)):
            continue
        other = VALUES.get(name, 2 * value if value else 1000)
        setting = f"{name}={other:.15g}"
        moved = False
        for program in (*PROGRAMS, *SHARDED):
            report, said = simulate(program, setting)
            warned = f"--set {name} has no effect" in said
            changed = report != simulate(program)[0]
            assert not (warned and changed), f"{setting} changes {program}, but says it does not"
            if name in UNUSED:
                assert warned, f"{setting} has no effect on {program} and says nothing"
                moved = True
                break
            if changed:
                moved = True
                break
        if not moved:
            silent.append(setting)
    assert not silent, f"parameters that move no report: {silent}"


@pytest.mark.parametrize(
    "setting",
    [
        "chip.sparse_core.count=2",
        "chip.sparse_core.tiles=1",
        "chip.sparse_core.lanes=1",
        "chip.sparse_core.offload_all_gather_bytes=0",
        "chip.sparse_core.offload_all_reduce_bytes=0",
        "chip.sparse_core.offload_reduce_scatter_bytes=0",
    ],
)
def test_sparse_cores_move_a_report(report_of: Callable[..., dict], setting: str):
    # Large gradients, which v7x adds up and gathers on its SparseCores.
    workload = "residual_mlp_train_loop_fully_sharded"
    small = [f"--set=chip.sparse_core.offload_{kind}_bytes=1024" for kind in COLLECTIVES]
    plain = report_of(workload, "--config", "v7x-2x2x1", *small)
    assert {c["kind"] for c in plain["collectives"]} >= {"all-gather", "reduce-scatter"}
    changed = report_of(workload, "--config", "v7x-2x2x1", *small, "--set", setting)
    # Their own times, where compute hides the difference from the step.
    moved = [changed[key] != plain[key] for key in ("step_time_ns", "collectives")]
    assert any(moved)


@pytest.mark.parametrize("setting", ["bytes=0", "bytes=8192", "bytes_per_second=1e11"])
def test_cmem_moves_a_report(binary: str, tmp_path: pathlib.Path, setting: str):
    # The product in between is in CMEM, and too large for VMEM.
    def products(x: jax.Array) -> jax.Array:
        return (x @ x.T) @ x

    path = tmp_path / "products.pb"
    tpusim.export(jax.jit(products), ARRAY((4096, 128), jnp.float32), path=path)

    def report(*settings: str) -> tuple[dict, str]:
        command = [binary, "run", "--config", "v4-1x1x1", str(path)]
        command += ["--report", str(tmp_path / "report.json"), *settings]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return json.loads((tmp_path / "report.json").read_text()), done.stderr

    plain, _ = report()
    assert 0 < plain["peak_cmem_bytes"] <= plain["usable_cmem_bytes"] == 1 << 27
    changed, said = report("--set", CMEM + setting)
    assert changed["step_time_ns"] > plain["step_time_ns"]
    assert "has no effect" not in said
    if setting.startswith("bytes="):
        assert changed.get("usable_cmem_bytes", 0) == int(setting.split("=")[1])
        assert changed.get("peak_cmem_bytes", 0) < plain["peak_cmem_bytes"]
        assert changed["peak_hbm_bytes"] > plain["peak_hbm_bytes"]


def test_chips_without_cmem_keep_nothing_there(rejects):
    said = rejects(example("psum"), "--config", SLICE, "--set", "chip.cmem.bytes=1000")
    assert "has no chip.cmem.bytes_per_second beside it" in said


def test_collectives_on_chips_without_sparse_cores_cannot_be_off_loaded(rejects):
    said = rejects(
        example("psum"), "--config", SLICE, "--set", "chip.sparse_core.offload_all_reduce_bytes=1"
    )
    assert "send collectives to SparseCores" in said
