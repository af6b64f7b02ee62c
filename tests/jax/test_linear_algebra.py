"""Eigenvectors and singular values: loops on data whose length is assumed."""

import json
import pathlib
import subprocess
from collections.abc import Callable

import jax
import jax.numpy as jnp
import pytest
import tpusim
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

MESH = AbstractMesh((1,), ("x",), (AxisType.Auto,))


def array(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(MESH, P()))


@pytest.fixture
def priced(binary: str, tmp_path: pathlib.Path) -> Callable[..., dict]:
    """The report of a function of arrays."""

    def priced(
        function: Callable,
        *arguments: jax.ShapeDtypeStruct,
        options: tuple = (),
        config: str = "v5e-1x1",
    ) -> dict:
        path, report = tmp_path / "program.pb", tmp_path / "report.json"
        tpusim.export(jax.jit(function), *arguments, path=path, config=config)
        command = [binary, "run", path, "--report", report, *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(report.read_text())

    return priced


def assumed(report: dict, says: str) -> list[str]:
    return [line for line in report["assumptions"] if says in line]


def test_small_eigenproblems_are_sweeps(priced):
    """Eight sweeps of 127 rounds, 9 operations per element and 256 quotients and roots in each."""
    report = priced(jnp.linalg.eigh, array(128, 128))
    (line,) = assumed(report, "makes 8 sweeps")
    assert "--trip-count eigh" in line
    of_call = next(op["flops"] for op in report["ops"] if op["name"].startswith("eigh"))
    assert of_call == 8 * 127 * (9 * 128 * 128 + 256)
    half = priced(jnp.linalg.eigh, array(128, 128), options=("--trip-count", "eigh*=4"))
    assert assumed(half, "sweeps") == []
    assert len(assumed(half, "runs 4 times, as stated")) == 1
    assert half["step_time_ns"] == pytest.approx(report["step_time_ns"] / 2, rel=0.1)


def test_large_eigenproblems_are_halved(priced):
    """512 rows are split once and solved as two of 256; 1024 rows are split three times."""
    small = priced(jnp.linalg.eigh, array(512, 512))
    (line,) = assumed(small, "as every split is assumed to halve a block")
    assert "runs 3 times" in line
    # One Halley loop and two subspace iterations, at two sizes of which one has no turn.
    assert len(assumed(small, "QDWH is assumed to need 8 iterations, 4 of them before")) == 2
    assert len(assumed(small, "runs once, the most that it can")) == 4
    counts = {op["name"]: op["count"] for op in small["ops"]}
    assert next(n for name, n in counts.items() if name.startswith("eigh")) == 2
    large = priced(jnp.linalg.eigh, array(1024, 1024))
    (line,) = assumed(large, "as every split is assumed to halve a block")
    assert "runs 7 times" in line
    # Eight times the work at the first size, a little more at the second.
    assert 6 < large["flops"] / small["flops"] < 10
    # Of a stated count all passes are as the longest: six of 1024 rows instead of one and a bit.
    stated = priced(
        jnp.linalg.eigh, array(1024, 1024), options=("--trip-count", line.split(" ")[0] + "=6")
    )
    assert stated["flops"] > 4 * large["flops"]


@pytest.mark.parametrize(
    "function",
    [
        lambda a: jnp.linalg.svd(a, full_matrices=False),
        lambda a: jnp.linalg.svd(a, compute_uv=False),
        jnp.linalg.pinv,
        jnp.linalg.matrix_rank,
        lambda a: jnp.linalg.lstsq(a, a[:, 0])[0],
        lambda a: jax.scipy.linalg.polar(a)[0],
        lambda a: jax.vmap(jnp.linalg.svd)(jnp.stack([a, 2 * a])),
        jax.grad(lambda a: jnp.linalg.svd(a, compute_uv=False).sum()),
    ],
)
def test_functions_with_singular_values_have_a_price(priced, function):
    report = priced(function, array(96, 64))
    assert len(assumed(report, "runs 4 times, as QDWH is assumed")) == 1
    none = priced(function, array(96, 64), options=("--trip-count", "*=0"))
    assert none["step_time_ns"] < report["step_time_ns"]
    # No glob goes beyond what the loops can do: ten iterations with the four before.
    many = priced(function, array(96, 64), options=("--trip-count", "while*=1000"))
    assert len(assumed(many, "runs 6 times, the most that it can")) == 1


def test_batches_may_be_divided(priced):
    """Conditions of loops are sums over devices then."""
    mesh = AbstractMesh((4, 2), ("x", "y"), (AxisType.Auto,) * 2)
    matrices = jax.ShapeDtypeStruct(
        (8, 96, 64), jnp.float32, sharding=NamedSharding(mesh, P(("x", "y")))
    )
    report = priced(jnp.linalg.svd, matrices, config="v5e-4x2")
    assert len(assumed(report, "runs 4 times, as QDWH is assumed")) == 1
    assert len(assumed(report, "runs once, the most that it can")) == 2


def test_other_loops_ask_as_before(binary, tmp_path):
    def newton(x: jax.Array) -> jax.Array:
        return jax.lax.while_loop(lambda x: jnp.abs(x).max() > 1, lambda x: x / 2, x)

    path = tmp_path / "newton.pb"
    tpusim.export(jax.jit(newton), array(8, 128), path=path, config="v5e-1x1")
    done = subprocess.run([binary, "run", path], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "depends on data; state it with --trip-count" in done.stderr
