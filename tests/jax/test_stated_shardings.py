"""One export, other meshes and shardings: as if it had been exported with them."""

import dataclasses
import pathlib

import jax
import jax.numpy as jnp
import pytest
import tpusim
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec

from workloads.examples import export_all

P = PartitionSpec

# Programs that say names of axes and global shapes alone.
ON_OTHER_MESHES = [
    "language_model_train_fully_sharded_tensor_parallel",
    "language_model_train_sequence_parallel",
    "residual_mlp_train_scan_two_dimensional",
    "residual_mlp_infer_loop_tensor_parallel",
]


def of_mesh(name: str, mesh: dict[str, int]) -> tpusim.Workload:
    """The example, exported for this shape of its mesh."""
    example = export_all.EXAMPLES[name]
    assert example.mesh.keys() == mesh.keys()
    return export_all.export(dataclasses.replace(example, mesh=mesh))


@pytest.mark.parametrize("name", ON_OTHER_MESHES)
def test_another_mesh_is_another_export(name: str, tmp_path: pathlib.Path) -> None:
    first = export_all.EXAMPLES[name].mesh
    other = dict(zip(first, reversed(first.values()), strict=True))
    assert other != first
    file = tmp_path / "first.pb"
    of_mesh(name, first).save(file)
    exported = tpusim.simulate(of_mesh(name, other))
    stated = tpusim.simulate(file, mesh=other)
    assert stated.step_time_ns == exported.step_time_ns
    assert stated.peak_hbm_bytes == exported.peak_hbm_bytes
    assert stated.step_time_ns != tpusim.simulate(file).step_time_ns


MESH = AbstractMesh((4, 2), ("data", "model"), (AxisType.Auto,) * 2)


def step(weights: dict[str, jax.Array], x: jax.Array) -> tuple[dict[str, jax.Array], jax.Array]:
    def loss(weights: dict[str, jax.Array]) -> jax.Array:
        hidden = jax.nn.gelu(x @ weights["up"])
        return jnp.sum((hidden @ weights["down"]) ** 2)

    value, gradients = jax.value_and_grad(loss)(weights)
    return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients), value


def exported(up: PartitionSpec, down: PartitionSpec, path: pathlib.Path) -> pathlib.Path:
    """The step with results like its weights, as train steps have them."""
    named = {"up": NamedSharding(MESH, up), "down": NamedSharding(MESH, down)}
    shapes = {"up": (1024, 4096), "down": (4096, 1024)}
    weights = {
        name: jax.ShapeDtypeStruct(shape, jnp.float32, sharding=named[name])
        for name, shape in shapes.items()
    }
    x = jax.ShapeDtypeStruct((512, 1024), jnp.float32, sharding=NamedSharding(MESH, P("data")))
    program = jax.jit(step, out_shardings=(named, None), donate_argnums=0)
    tpusim.export(program, weights, x, config="v5e-4x2").save(path)
    return path


def test_arguments_are_sharded_as_stated(tmp_path: pathlib.Path) -> None:
    rows = exported(P("data"), P("data"), tmp_path / "rows.pb")
    columns = exported(P(None, "model"), P("model", None), tmp_path / "columns.pb")
    stated = tpusim.simulate(
        rows, shardings={"weights['up']": P(None, "model"), "weights['down']": "P('model')"}
    )
    there, here = tpusim.simulate(columns), tpusim.simulate(rows)
    assert stated.step_time_ns == there.step_time_ns != here.step_time_ns
    assert stated.peak_hbm_bytes == there.peak_hbm_bytes
    assert list(stated.collectives) == list(there.collectives)


def test_both_at_once(tmp_path: pathlib.Path) -> None:
    file = exported(P("data"), P("data"), tmp_path / "rows.pb")
    report = tpusim.simulate(file, mesh={"data": 8}, shardings={"weights[*]": P(None, "data")})
    assert report.step_time_ns > 0
    with pytest.raises(tpusim.Error, match="the mesh has no axis 'model'; its axes are data"):
        tpusim.simulate(file, mesh={"data": 8}, shardings={"weights['up']": P("model")})
    assert tpusim.simulate(file, mesh={"data": 4}).step_time_ns > 0  # half of the slice


def test_a_shard_map_has_its_mesh(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "manual.pb"
    export_all.export(export_all.EXAMPLES["layers_manual"]).save(file)
    with pytest.raises(tpusim.Error, match="the program has a shard_map"):
        tpusim.simulate(file, mesh={"X": 2, "Y": 4})


def test_wrong_arguments_are_named() -> None:
    for wrong in (4, {"data": "4"}, {4: 2}, {"data": 0}):
        with pytest.raises((TypeError, ValueError), match="mesh"):
            tpusim.simulate("step.pb", mesh=wrong)
    with pytest.raises(TypeError, match=r"shardings: w: .*PartitionSpec"):
        tpusim.simulate("step.pb", shardings={"w": 3})
