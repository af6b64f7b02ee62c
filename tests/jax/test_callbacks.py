"""Callbacks to Python: what is exported in their place, and what a report says of it."""

import json
import pathlib
import subprocess
from typing import Any

import jax
import jax.numpy as jnp
import pytest
import tpusim
from jax.experimental import io_callback
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

MESH = AbstractMesh((8,), ("x",), (AxisType.Auto,))
X = jax.ShapeDtypeStruct((64, 128), jnp.float32, sharding=NamedSharding(MESH, P("x")))


def on_host(value: Any) -> Any:
    """Fails: nothing is called back while exporting."""
    raise AssertionError("called back")


def doubled(x):
    return x * 2


def printed(x):
    jax.debug.print("sum {}", x.sum())
    return x * 2


def called(x):
    jax.debug.callback(on_host, x, ordered=True)
    return x * 2


def inspected(x):
    jax.debug.inspect_array_sharding(x, callback=on_host)
    io_callback(on_host, None, x, ordered=True)
    return x * 2


def module_of(function: Any) -> bytes:
    return tpusim.export(function, X, path=None, name="f").hlo_module


@pytest.mark.parametrize(
    ("function", "left_out"),
    [
        (printed, ["jax.debug.print"]),
        (called, ["jax.debug.callback"]),
        (inspected, ["jax.debug.inspect_array_sharding", "io_callback"]),
    ],
)
def test_what_gives_no_value_is_left_out(function, left_out: list[str]):
    workload = tpusim.export(function, X, path=None)
    assert [line.split(" at ")[0] for line in workload.assumptions] == left_out
    for line in workload.assumptions:
        assert line.startswith(left_out[0]) or "io_callback" in line
        assert " at tests/jax/test_callbacks.py:" in line
        assert line.endswith(" is left out")
    assert b"custom_call_target" not in workload.hlo_module
    assert b"callback" not in workload.hlo_module.replace(b"test_callbacks", b"")
    # The same operations as without; only source lines and names differ.
    operations = [
        [i.opcode for i in tpusim_module(w).entry.instructions]
        for w in (workload.hlo_module, module_of(doubled))
    ]
    assert operations[0][-2:] == operations[1][-2:]


def tpusim_module(data: bytes) -> Any:
    from tpusim import hlo

    return hlo.Module(data)


def test_callbacks_work_again_after_the_export():
    seen = []

    @jax.jit
    def step(x):
        jax.debug.callback(lambda v: seen.append(float(v)), x.sum())
        return jax.pure_callback(lambda v: v + 1, jax.ShapeDtypeStruct((), jnp.float32), x.sum())

    x = jnp.ones(4)
    assert float(step(x)) == 5
    tpusim.export(step, x, path=None)
    assert float(step(x)) == 5
    jax.effects_barrier()
    assert seen == [4.0, 4.0]
    # Exported again, the same is assumed again.
    assert len(tpusim.export(step, x, path=None).assumptions) == 1
    assert len(tpusim.export(step, x, path=None).assumptions) == 1


def scaled_by_the_host(x):
    scale = jax.pure_callback(on_host, jax.ShapeDtypeStruct((), jnp.float32), x[0, 0])
    return x * scale


def counted_in_a_loop(x):
    def body(total, _):
        jax.debug.print("{}", total)
        count = io_callback(on_host, jax.ShapeDtypeStruct((), jnp.float32), total, ordered=True)
        return total + count, None

    return jax.lax.scan(body, x.sum(), None, length=3)[0]


def in_every_shard(x):
    def shard(x):
        return jax.pure_callback(
            on_host, jax.ShapeDtypeStruct(x.shape, x.dtype), x, vmap_method="sequential"
        )

    return jax.shard_map(shard, mesh=MESH, in_specs=P("x"), out_specs=P("x"), check_vma=False)(x)


def checked(x):
    equinox = pytest.importorskip("equinox")
    return equinox.error_if(x, x.sum() > 0, "too large") * 2


@pytest.mark.parametrize(
    "function", [scaled_by_the_host, counted_in_a_loop, in_every_shard, checked]
)
def test_values_of_callbacks_cost_nothing_unless_stated(
    function, binary: str, tmp_path: pathlib.Path
):
    path = tmp_path / "w.pb"
    tpusim.export(function, X, path=path, config="v5e-4x2")

    def report(*options: str) -> dict[str, Any]:
        command = [binary, "run", "w.pb", "--quiet", "--report", "r.json", *options]
        subprocess.run(command, cwd=tmp_path, check=True)
        return json.loads((tmp_path / "r.json").read_text())

    free = report()
    lines = [a for a in free["assumptions"] if "waits for the host" in a]
    # An error is found in one callback and raised in another.
    assert len(lines) == (2 if function is checked else 1)
    for line in lines:
        assert "no time" in line
        assert "--kernel-cost" in line
    if function is checked:
        return  # Its callbacks are equinox's.
    stated = report("--kernel-cost", "on_host=1e9,1e6")
    assert not any("waits for the host" in a for a in stated["assumptions"])
    times = 3 if function is counted_in_a_loop else 1
    assert stated["flops"] == free["flops"] + times * 1_000_000_000
    assert stated["step_time_ns"] > free["step_time_ns"]
