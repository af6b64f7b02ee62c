"""`tpusim.export`: what is in the file, and what it does not depend on."""

import pathlib
import subprocess
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tpusim
import tpusim.export
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from tpusim import exporter, wire
from tpusim.files import write_atomically

from tests.tools.command_line import example_bytes, examples
from workloads.examples import EXAMPLES, export_all

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXPORTS = ROOT / "workloads" / "examples"


def product(x: jax.Array, w: jax.Array, unused: jax.Array) -> jax.Array:
    """Uses two of its three arguments."""
    return x @ jax.device_put(w, jax.memory.Space.Device)


def arguments(mesh, weight_memory: str | None = None):
    """Arguments of `product`, in[4, 8] @ [8, 16], sharded over x and y."""
    weights = NamedSharding(mesh, P(None, "y"), memory_kind=weight_memory)
    return (
        jax.ShapeDtypeStruct((4, 8), jnp.float32, sharding=NamedSharding(mesh, P("x", None))),
        jax.ShapeDtypeStruct((8, 16), jnp.float32, sharding=weights),
        jax.ShapeDtypeStruct((3,), jnp.float32, sharding=NamedSharding(mesh, P())),
    )


ABSTRACT = AbstractMesh((4, 2), ("x", "y"), (AxisType.Auto,) * 2)


@pytest.mark.parametrize("name", EXAMPLES)
def test_committed_exports_are_current(name: str):
    """Byte by byte with the JAX that wrote them; exports of others take the same step."""
    committed = tpusim.Workload.load(EXPORTS / f"{name}.pb.gz")
    exported = export_all.export(EXAMPLES[name])
    if exported.jax_version == committed.jax_version:
        assert exported == committed, "run workloads/examples/export_all.py and commit the result"
        return
    steps = [tpusim.simulate(workload).step_time_ns for workload in (exported, committed)]
    assert steps[0] == pytest.approx(steps[1], rel=0.01)


def test_every_committed_export_has_a_source():
    assert examples() == sorted(EXAMPLES)


def test_module_and_function_share_a_name(tmp_path: pathlib.Path):
    assert isinstance(tpusim.export, types.ModuleType)
    workload = tpusim.export(product, *arguments(ABSTRACT), path=tmp_path / "w.pb")
    assert tpusim.Workload.load(tmp_path / "w.pb") == workload


def test_fields_of_a_workload():
    workload = tpusim.export(
        product,
        *arguments(ABSTRACT, weight_memory="pinned_host"),
        path=None,
        config="v5e-4x2",
        coordinates=[(i % 4, i // 4) for i in range(8)],
        trip_counts={"while.1": 7, "*": 3},
        kernel_costs={"splash*": {"flops": 5, "bytes_accessed": 6}},
    )
    assert workload.name == "product"
    assert workload.num_partitions == 8
    assert workload.mesh == (tpusim.MeshAxis("x", 4), tpusim.MeshAxis("y", 2))
    assert workload.coordinates[5] == tpusim.DeviceCoordinates(1, 1, 0, 0)
    # Three arguments, but JAX drops the one without a use.
    assert workload.argument_memory_kinds == ("device", "pinned_host")
    assert workload.trip_counts == (tpusim.TripCount("while.1", 7), tpusim.TripCount("*", 3))
    assert workload.kernels == (tpusim.KernelCost("splash*", flops=5, bytes_accessed=6),)
    assert workload.jax_version == jax.__version__
    assert workload.config == "v5e-4x2"
    assert tpusim.Workload.from_bytes(workload.to_bytes()) == workload


def test_protoc_reads_what_we_write():
    workload = tpusim.Workload(
        hlo_module=b"\n\x03abc",
        name="step",
        num_partitions=300,
        mesh=(tpusim.MeshAxis("data", 300),),
        coordinates=(tpusim.DeviceCoordinates(1, 0, 2, 1), tpusim.DeviceCoordinates(0)),
        kernels=(tpusim.KernelCost("k", flops=1 << 40, remote_bytes=3),),
        trip_counts=(tpusim.TripCount("*", 4),),
    )
    decoded = subprocess.run(
        ["protoc", "--decode=tpusim.Workload", f"-I{ROOT / 'workloads'}", "workload.proto"],
        input=workload.to_bytes(),
        capture_output=True,
        check=True,
    ).stdout.decode()
    assert " ".join(decoded.split()) == (
        'format: "tpusim.workload/1" hlo_module: "\\n\\003abc" name: "step" num_partitions: 300 '
        'mesh { name: "data" size: 300 } coordinates { x: 1 z: 2 core_on_chip: 1 } coordinates { } '
        'trip_counts { loop: "*" count: 4 } '
        'kernels { name: "k" flops: 1099511627776 remote_bytes: 3 }'
    )


def test_concrete_and_abstract_meshes_give_the_same_module():
    devices = np.array(jax.devices()).reshape(4, 2)
    concrete = tpusim.export(product, *arguments(Mesh(devices, ("x", "y"))), path=None)
    abstract = tpusim.export(product, *arguments(ABSTRACT), path=None)
    assert concrete.mesh == abstract.mesh
    assert concrete.argument_memory_kinds == abstract.argument_memory_kinds == ()
    assert concrete.coordinates == ()  # CPU devices have no place on a torus.
    module = wire.parse(concrete.hlo_module)
    other = wire.parse(abstract.hlo_module)
    stack_frames = 17  # The two calls above are on different lines.
    assert [f for f in module if f[0] not in (3, stack_frames)] == [
        f for f in other if f[0] not in (3, stack_frames)
    ]
    assert len(wire.all_bytes(module, 3)) == len(wire.all_bytes(other, 3)) == 1


def test_unsharded_function_is_one_partition():
    workload = tpusim.export(jnp.tanh, jnp.ones(3), path=None)
    assert workload.num_partitions == 1
    assert workload.mesh == ()


def test_a_mesh_that_only_constraints_name_counts():
    mesh = AbstractMesh((4, 2), ("x", "y"), (AxisType.Auto,) * 2)

    def initialise(key):
        weights = jax.random.normal(jax.random.wrap_key_data(key), (64, 32))
        return jax.lax.with_sharding_constraint(weights, NamedSharding(mesh, P("x", "y")))

    workload = tpusim.export(initialise, jax.ShapeDtypeStruct((2,), jnp.uint32), path=None)
    assert workload.num_partitions == 8
    assert [axis.size for axis in workload.mesh] == [4, 2]


def test_keyword_arguments_reach_the_function():
    def scale(x, *, factor):
        return x * factor

    workload = tpusim.export(scale, jnp.ones(3), factor=jnp.ones(3), path=None)
    entry = wire.parse(wire.last_bytes(wire.parse(workload.hlo_module), 4))
    assert len(wire.all_bytes(entry, 1)) == 2  # parameters of the program shape


def test_coordinates_of_tpu_devices_are_kept():
    class Device:
        """The part of a TPU device that a mesh reads."""

        platform = device_kind = "tpu"
        process_index = 0

        def __init__(self, number: int):
            self.id, self.coords, self.core_on_chip = number, (number // 4, 0, 0), number % 2
            self.slice_index = number // 2 % 2

    mesh = Mesh(np.array([Device(i) for i in (3, 2, 1, 0)]), ("x",))
    sharding = types.SimpleNamespace(mesh=mesh)
    assert exporter._tpu_coordinates([sharding], 4) == (
        tpusim.DeviceCoordinates(0, 0, 0, 1, 1),
        tpusim.DeviceCoordinates(0, 0, 0, 0, 1),
        tpusim.DeviceCoordinates(0, 0, 0, 1),
        tpusim.DeviceCoordinates(0, 0, 0, 0),
    )


@pytest.mark.parametrize(
    ("text", "axes"),
    [
        ('{mesh = #sdy.mesh<["x"=4, "y"=2]>}', [("x", 4), ("y", 2)]),
        ('{empty_mesh = #sdy.mesh<[]>, mesh = #sdy.mesh<["x"=2]>}', [("x", 2)]),
        ('{a = #sdy.mesh<["x"=2]>, b = #sdy.mesh<["y"=8], device_ids=[1, 0]>}', [("y", 8)]),
        ("{empty_mesh = #sdy.mesh<[]>}", []),
    ],
)
def test_mesh_table(text: str, axes: list[tuple[str, int]]):
    entry = wire.serialize([wire.blob(1, "xla.sdy.meshes"), wire.blob(2, text)])
    module = wire.serialize([wire.blob(19, wire.serialize([wire.blob(1, entry)]))])
    assert [(a.name, a.size) for a in exporter.mesh_of(module)] == axes


def test_no_path_of_this_machine_in_an_export():
    workload = tpusim.export(jax.nn.gelu, jnp.ones(3), path=None)
    for name in EXAMPLES:
        assert str(ROOT).encode() not in example_bytes(name)
    assert b"/site-packages/" not in workload.hlo_module
    assert str(pathlib.Path.home()).encode() + b"/" not in workload.hlo_module


def test_source_files_are_relative_to_the_working_directory(monkeypatch: pytest.MonkeyPatch):
    def frames() -> list[bytes]:
        jax.clear_caches()
        workload = tpusim.export(product, *arguments(ABSTRACT), path=None)
        index = wire.parse(wire.last_bytes(wire.parse(workload.hlo_module), 17))
        return wire.all_bytes(index, 1)

    monkeypatch.chdir(ROOT)
    assert b"tests/jax/test_export.py" in frames()
    monkeypatch.chdir(ROOT / "tests")
    assert b"jax/test_export.py" in frames()
    # The plumbing of the exporter is not part of the program.
    assert not [f for f in frames() if b"python/tpusim/" in f]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"coordinates": [(0, 0)]}, "1 given for 8 partitions"),
        ({"coordinates": [(0, 0)] * 8}, "two partitions share one device"),
        ({"trip_counts": {"while.1": -1}}, "expected a whole number, 0 or more"),
    ],
)
def test_bad_options_write_nothing(options, message: str, tmp_path: pathlib.Path):
    with pytest.raises(ValueError, match=message):
        tpusim.export(product, *arguments(ABSTRACT), path=tmp_path / "w.pb", **options)
    assert list(tmp_path.iterdir()) == []


def test_atomic_write(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch):
    target = tmp_path / "w.pb"
    target.write_bytes(b"old")

    def fail(*_):
        raise OSError("disk full")

    with monkeypatch.context() as broken:
        broken.setattr("pathlib.Path.replace", fail)
        with pytest.raises(tpusim.Error, match=r"w\.pb: cannot be written: disk full"):
            write_atomically(target, b"new")
    assert [p.name for p in tmp_path.iterdir()] == ["w.pb"]
    assert target.read_bytes() == b"old"
    write_atomically(target, b"new")
    assert target.read_bytes() == b"new"


def test_other_files_are_not_workloads():
    module = tpusim.export(jnp.tanh, jnp.ones(3), path=None).hlo_module
    with pytest.raises(ValueError, match="not a tpusim"):
        tpusim.Workload.from_bytes(module)
    with pytest.raises(wire.WireError):
        tpusim.Workload.from_bytes(b"\xff\xff\xff")


def test_wire_format_round_trip():
    # A varint of two bytes, a negative number, both fixed widths, a nested message.
    fields = [
        wire.integer(1, 300),
        wire.integer(2, -1),
        (3, wire.FIXED64, b"12345678"),
        (4, wire.FIXED32, b"1234"),
        wire.blob(1000, wire.serialize([wire.blob(1, "x")])),
    ]
    data = wire.serialize(fields)
    # Key 1<<3, then 300 = 0b10_0101100 in groups of seven bits, low ones first.
    assert data[:3] == b"\x08\xac\x02"
    assert wire.serialize(wire.parse(data)) == data
    assert wire.number_of(wire.parse(data), 2) == -1
    module = example_bytes("mlp_scan_8_layers")
    assert wire.serialize(wire.parse(module)) == module


def test_what_cannot_fit_the_slice_stops_while_exporting(tmp_path: pathlib.Path):
    target = tmp_path / "w.pb"
    with pytest.raises(tpusim.Error, match=r"8 partitions, but v5e-2x2 has only 4 devices"):
        tpusim.export(product, *arguments(ABSTRACT), path=target, config="v5e-2x2")
    assert not target.exists()
