"""Dumps of XLA from every stage: run as what they are, or refused with what to give instead."""

import json
import pathlib
import subprocess
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec

SLICE = "v5e-4x2"


def train_step(w: dict[str, Any], x: Any) -> Any:
    loss = lambda w, x: (jax.nn.relu(x @ w["u"]) @ w["d"]).sum() ** 2  # noqa: E731
    return jax.tree.map(lambda p, g: p - 0.1 * g, w, jax.grad(loss)(w, x))


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Every stage of a train step over 2 x 4 devices, compiled for CPUs."""
    folder = tmp_path_factory.mktemp("dumps")
    devices = np.array(jax.devices()).reshape(2, 4)
    mesh = jax.sharding.Mesh(devices, ("data", "model"))

    def array(rows: str | None, columns: str | None) -> Any:
        sharding = NamedSharding(mesh, PartitionSpec(rows, columns))
        return jax.ShapeDtypeStruct((1024, 1024), jnp.float32, sharding=sharding)

    w = {"u": array(None, "model"), "d": array("model", None)}
    options = {
        "xla_dump_to": str(folder),
        "xla_dump_hlo_pass_re": "spmd.*|shardy.*",
        "xla_dump_hlo_as_proto": True,
        "xla_dump_hlo_as_text": True,
    }
    compiled = jax.jit(train_step).lower(w, array("data", None)).compile(compiler_options=options)
    (folder / "as_text.txt").write_text(compiled.as_text())
    return folder


def run(binary: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [binary, *map(str, arguments), "-c", SLICE]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def dump(dumps: pathlib.Path, stage: str) -> pathlib.Path:
    (file,) = dumps.glob(f"*train_step*{stage}")
    return file


@pytest.mark.parametrize("form", ["txt", "hlo.pb"])
def test_what_xla_has_partitioned_is_not_partitioned_again(
    binary: str, dumps: pathlib.Path, form: str
):
    reports = []
    for stage in ("before_optimizations", "after_spmd-partitioning*"):
        done = run(binary, "run", dump(dumps, f"{stage}.{form}"), "--json")
        assert done.returncode == 0, done.stderr
        reports.append(json.loads(done.stdout))
    before, after = reports
    # Five products of 512 x 1024 x 256, and what else the two partitioners make of one program.
    assert after["flops"] == pytest.approx(before["flops"], rel=0.01)
    assert after["flops"] > 5 * 2 * 512 * 1024 * 256
    assert after["step_time_ns"] == pytest.approx(before["step_time_ns"], rel=0.05)
    kinds = [sorted(c["kind"] for c in r["collectives"]) for r in reports]
    assert kinds[0] == kinds[1]


@pytest.mark.parametrize("form", ["txt", "hlo.pb"])
def test_partitioned_modules_take_no_shardings(binary: str, dumps: pathlib.Path, form: str):
    file = dump(dumps, f"after_spmd-partitioning*.{form}")
    done = run(binary, "run", file, "--mesh", "a=8")
    assert done.returncode == 1
    assert "--mesh: the module is partitioned already" in done.stderr
    # Printed and read again it is the same program.
    done = run(binary, "compile", file, "--emit", "partitioned")
    assert done.returncode == 0
    assert "sharding={" not in done.stdout


def test_what_was_compiled_for_cpus_is_refused(binary: str, dumps: pathlib.Path):
    files = [dumps / "as_text.txt", dump(dumps, "cpu_after_optimizations.txt")]
    for file in [*files, dump(dumps, "cpu_after_optimizations.hlo.pb")]:
        for command in ("run", "shard"):
            done = run(binary, command, file)
            assert done.returncode == 1
            assert done.stderr.startswith("tpusim: error: the module is compiled for CPUs, as ")
            assert "before_optimizations" in done.stderr
            assert done.stderr.count("\n") == 1
