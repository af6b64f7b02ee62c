"""Custom calls with a sharding rule of the user: `custom_partitioning` with `sharding_rule=`."""

import json
import pathlib
import re
import subprocess
from typing import Any

import jax
import jax.numpy as jnp
import pytest
import tpusim
from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

SLICE = ("--config", "v5e-4x2")


def exported(folder: pathlib.Path, rule: str, a_spec: P, b_spec: P, **factors: Any) -> pathlib.Path:
    """sin(a) through a product that only its sharding rule describes."""
    mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

    @custom_partitioning
    def product(a: jax.Array, b: jax.Array) -> jax.Array:
        return a @ b

    product.def_partition(
        partition=lambda mesh, arguments, result: pytest.fail("only XLA partitions"),
        infer_sharding_from_operands=None,
        sharding_rule=rule,
        **factors,
    )

    def array(shape: tuple[int, ...], spec: P) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, spec))

    path = folder / "program.pb"
    step = jax.jit(lambda a, b: product(jnp.sin(a), b) * 2)
    tpusim.export(step, array((64, 32), a_spec), array((32, 16), b_spec), path=path)
    return path


def tool(binary: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [binary, *map(str, arguments)], capture_output=True, text=True, check=False
    )


def test_rule_is_honoured(binary: str, tmp_path: pathlib.Path):
    path = exported(tmp_path, "i j, j k -> i k", P("x", None), P(None, "y"))
    partitioned = tool(binary, "compile", *SLICE, path, "--emit", "partitioned")
    assert partitioned.returncode == 0, partitioned.stderr
    # Rows over x and columns over y, to the result; nothing has to be gathered.
    (call,) = re.findall(r"^.* custom-call.*$", partitioned.stdout, re.MULTILINE)
    assert "f32[16,8]" in call
    assert "f32[64" not in partitioned.stdout
    assert "all-gather" not in partitioned.stdout

    # The body of the call is Python that XLA calls back: its cost must be stated.
    unknown = tool(binary, "run", *SLICE, path)
    assert unknown.returncode == 1
    assert "--kernel-cost" in unknown.stderr
    report = tmp_path / "report.json"
    stated = ("--kernel-cost", "custom_partitioning*=8192,3584")
    done = tool(binary, "run", *SLICE, path, "--quiet", "--report", report, *stated)
    assert done.returncode == 0, done.stderr
    result = json.loads(report.read_text())
    assert result["collectives"] == []
    assert result["flops"] >= 8192


def test_factor_without_result_is_whole(binary: str, tmp_path: pathlib.Path):
    """Both arguments are divided over x along j: the call gets all of it."""
    path = exported(tmp_path, "i j, j k -> i k", P(None, "x"), P("x", "y"))
    partitioned = tool(binary, "compile", *SLICE, path, "--emit", "partitioned")
    assert partitioned.returncode == 0, partitioned.stderr
    assert "all-gather" in partitioned.stdout
    (call,) = re.findall(r"^.* custom-call.*$", partitioned.stdout, re.MULTILINE)
    # The rows take over x; what is summed is whole on both sides.
    assert "f32[16,8]" in call
    assert re.search(r"all-gather.*= f32\[32,8\]", partitioned.stdout)


def test_reduction_is_refused(binary: str, tmp_path: pathlib.Path):
    path = exported(
        tmp_path, "i j, j k -> i k", P(None, "x"), P("x", None), reduction_factors=("j",)
    )
    done = tool(binary, "compile", *SLICE, path)
    assert done.returncode == 1
    assert "reduction factor 'j'" in done.stderr
    assert "test_sharding_rule.py:" in done.stderr
