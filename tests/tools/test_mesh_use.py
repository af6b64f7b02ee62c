"""Warnings of unused parts of the slice and its mesh."""

import jax
import jax.numpy as jnp
import pytest
import tpusim
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from tests.tools.command_line import SLICE, examples


@pytest.fixture
def warnings_of(report_of, tmp_path):
    def warnings_of(step, *arguments):
        path = tmp_path / "step.pb"
        tpusim.export(step, *arguments, path=path, config=SLICE)
        return report_of(path)["warnings"]

    return warnings_of


def array(mesh, *axes):
    sharding = None if mesh is None else NamedSharding(mesh, P(*axes))
    return jax.ShapeDtypeStruct((1024, 1024), jnp.bfloat16, sharding=sharding)


def test_an_axis_that_no_value_uses(warnings_of):
    mesh = AbstractMesh((2, 4), ("data", "model"), (AxisType.Auto,) * 2)
    step = jax.jit(lambda a, b: a @ b)
    assert warnings_of(step, array(mesh, "data"), array(mesh)) == [
        "nothing is split over axis `model` of the mesh: the 4 devices along it all do the same"
    ]
    assert warnings_of(step, array(mesh, "data"), array(mesh, None, "model")) == []
    # One of a pair that splits a dimension together is used, too.
    assert warnings_of(step, array(mesh, ("data", "model")), array(mesh)) == []


def test_manual_exchange_uses_an_axis(warnings_of):
    mesh = AbstractMesh((2, 4), ("data", "model"), (AxisType.Auto,) * 2)

    def summed(axis):
        def body(x):
            return jax.lax.psum(x, axis)

        return jax.jit(
            jax.shard_map(body, mesh=mesh, in_specs=P("data"), out_specs=P(), check_vma=False)
        )

    unused = "nothing is split over axis `model`"
    assert not any(unused in w for w in warnings_of(summed(("data", "model")), array(mesh, "data")))
    assert any(unused in w for w in warnings_of(summed("data"), array(mesh, "data")))


def test_one_partition_on_eight_devices(warnings_of):
    (warning,) = warnings_of(jax.jit(lambda a, b: a @ b), array(None), array(None))
    assert warning == (
        "7 of the 8 devices of v5e-4x2 are idle: the program has one partition; no argument is "
        "sharded over several devices"
    )


def test_idle_devices(report_of):
    report = report_of("mlp_two_layers", "--config", "v5e-4x4")
    assert (
        "8 of the 16 devices of v5e-4x4 are idle: the program has 8 partitions"
        in (report["warnings"])
    )


@pytest.mark.parametrize("name", [name for name in examples() if "train" in name])
def test_examples_use_all_that_they_have(report_of, name):
    said = [w for w in report_of(name)["warnings"] if "idle" in w or "nothing is split" in w]
    assert said == []
