"""Flags of the TPU compiler that a program runs with are defaults of its simulation."""

import os
import pathlib

import jax
import jax.numpy as jnp
import pytest
import tpusim
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

SHARED_MEMORY = "--xla_tpu_scheduler_percent_shared_memory_limit=150"
NO_WINDOWS = "--xla_jf_spmd_threshold_for_windowed_einsum_mib=1000000"
WINDOWS = "--xla_jf_spmd_threshold_for_windowed_einsum_mib=0"
FLAG = "xla_tpu_seen"


def product(x: jax.Array, w: jax.Array) -> jax.Array:
    return x @ w


def arguments() -> tuple[jax.ShapeDtypeStruct, ...]:
    """Returns arrays whose gathered operand the compiler multiplies window by window."""
    mesh = AbstractMesh((4, 4), ("x", "y"), (AxisType.Auto,) * 2)

    def array(*axes: str | None) -> jax.ShapeDtypeStruct:
        sharding = NamedSharding(mesh, P(*axes))
        return jax.ShapeDtypeStruct((8192, 8192), jnp.bfloat16, sharding=sharding)

    return array("x", "y"), array(None, "y")


@pytest.fixture(autouse=True)
def no_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LIBTPU_INIT_ARGS", raising=False)


def test_of_the_environment_when_the_step_is_captured(tmp_path, monkeypatch: pytest.MonkeyPatch):
    """Also those that a program sets itself; not those of CPU devices or of other libraries."""
    monkeypatch.setenv("LIBTPU_INIT_ARGS", f"{SHARED_MEMORY} --megascale_x=1")
    flags = os.environ.get("XLA_FLAGS", "")
    with tpusim.capture(tmp_path / "w.pb", config="v5e-1x1") as captured:
        monkeypatch.setenv("LIBTPU_INIT_ARGS", f"{SHARED_MEMORY} --{FLAG}=true")
        monkeypatch.setenv(
            "XLA_FLAGS", f"{flags} --xla_allow_excess_precision=false --xla_dump_to=/tmp/dump"
        )
        jax.jit(product)(jnp.ones((8, 8)), jnp.ones((8, 8)))
    assert (
        captured.workload.xla_flags
        == f"--xla_allow_excess_precision=false {SHARED_MEMORY} --{FLAG}=true"
    )
    assert tpusim.Workload.load(tmp_path / "w.pb") == captured.workload


def test_of_the_calls_that_compile(tmp_path: pathlib.Path):
    x = jnp.ones((8, 8))
    jitted = jax.jit(product, compiler_options={"xla_tpu_of_jit": 3})
    assert tpusim.export(jitted, x, x, path=None).xla_flags == "--xla_tpu_of_jit=3"
    with tpusim.capture(tmp_path / "w.pb", config="v5e-1x1", largest=True) as captured:
        compiled = jitted.lower(x, x).compile(compiler_options={FLAG: True})
        compiled(x, x)
    assert captured.workload.xla_flags == f"--xla_tpu_of_jit=3 --{FLAG}=true"


def test_a_run_takes_them_unless_it_says_otherwise(tmp_path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LIBTPU_INIT_ARGS", f"{NO_WINDOWS} {SHARED_MEMORY} --{FLAG}=1")
    whole = tpusim.export(product, *arguments(), config="v5e-4x4", path=tmp_path / "w.pb")
    monkeypatch.delenv("LIBTPU_INIT_ARGS")
    plain = tpusim.export(product, *arguments(), config="v5e-4x4", path=None)
    assert plain.xla_flags == ""

    def kinds(workload: tpusim.Workload, flags: str = "") -> set[str]:
        report = tpusim.simulate(workload, xla_flags=flags)
        return {record.kind for record in report.collective_records}

    assert "collective-permute" in kinds(plain, WINDOWS)
    assert "collective-permute" not in kinds(whole)
    assert "collective-permute" in kinds(whole, WINDOWS)
    report = tpusim.simulate(str(tmp_path / "w.pb"), config="v5e-4x4")
    said = "\n".join(report.warnings)
    assert (
        "flags of the program: xla_tpu_scheduler_percent_shared_memory_limit=150 is taken as 100, "
        "the most that it can be" in said
    )
    assert f"flags of the program: without effect here: {FLAG}" in said
    monkeypatch.setenv("LIBTPU_INIT_ARGS", "--xla_tpu_scoped_vmem_limit_kib=much")
    wrong = tpusim.export(product, *arguments(), config="v5e-4x4", path=None)
    with pytest.raises(tpusim.Error, match="flags of the program: --xla_tpu_scoped_vmem_limit_kib"):
        tpusim.simulate(wrong)
