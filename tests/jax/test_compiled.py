"""`compiled=True`: modules that the TPU compiler makes, where its wheel is installed.

Tests of the compiler itself are skipped without the wheel; it is no dependency.
"""

import dataclasses
import importlib.util
import json
import pathlib
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tpusim
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from tpusim import compiling, hlo, topology, wire
from tpusim.topology import Topology, topology_of
from tpusim.workload import Compilation, CompilerOption, MemoryAnalysis

needs_libtpu = pytest.mark.skipif(
    importlib.util.find_spec("libtpu") is None, reason="no libtpu in this Python"
)
X = jax.ShapeDtypeStruct((256, 256), jnp.bfloat16)
ABSTRACT = AbstractMesh((4, 2), ("x", "y"), (AxisType.Auto,) * 2)


def product(x: jax.Array, w: jax.Array) -> jax.Array:
    """Relu of x @ w."""
    return jnp.maximum(x @ w, 0)


def arguments(mesh: Mesh | AbstractMesh) -> tuple[jax.ShapeDtypeStruct, ...]:
    """Returns arguments of `product`, rows over x, columns over y, which needs collectives."""
    left, right = NamedSharding(mesh, P("x", "y")), NamedSharding(mesh, P("x", "y"))
    return (
        jax.ShapeDtypeStruct((1024, 1024), jnp.bfloat16, sharding=left),
        jax.ShapeDtypeStruct((1024, 2048), jnp.bfloat16, sharding=right),
    )


def scheduled(workload: tpusim.Workload) -> bool:
    """Whether a module has a schedule, which only compilers give it."""
    return bool(wire.all_bytes(wire.parse(workload.hlo_module), 7))


def opcodes(workload: tpusim.Workload) -> list[str]:
    """Returns the opcodes of a module's instructions."""
    computations = hlo.Module(workload.hlo_module).computations.values()
    return sorted(i.opcode for c in computations for i in c.instructions)


# libtpu 0.0.46 to 0.0.52 on v6e, with flags that are recommended for v5e.
REFUSAL = (
    "FAILED_PRECONDITION: Continuation fusion for AllGather is enabled on platform ghostlite "
    "(variant: ), but it is not supported/recommended on platforms other than TPU v5e, and this "
    "might lead to many errors including but not limited to: incorrect results, hang, SDC, etc. "
    "Please disable it with xla_tpu_enable_async_collective_fusion=false"
)


def test_a_refusal_is_quoted_up_to_its_remedy(monkeypatch: pytest.MonkeyPatch):
    def refuses(*_: object) -> None:
        raise compiling.compiling.refusal()(REFUSAL)

    monkeypatch.setattr(compiling.compiling, "compiled", refuses)
    monkeypatch.setattr(compiling, "_libtpu_of", lambda _: "0.0.52")
    monkeypatch.setattr(topology, "placed", lambda *_: jax.devices()[:1])
    monkeypatch.setattr(topology, "coordinates_of", lambda _: None)
    monkeypatch.setattr(topology, "require_libtpu", lambda: "0.0.52")
    with pytest.raises(tpusim.Error) as refused:
        tpusim.export(product, X, X, path=None, config="v6e-1x1", compiled=True)
    assert str(refused.value) == f"the TPU compiler refuses the program: {REFUSAL}"


def test_the_wheel_is_asked_for(monkeypatch: pytest.MonkeyPatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *a: None if name == "libtpu" else find(name, *a)
    )
    said = r"^compiled=True needs the TPU compiler, .*: pip install 'libtpu==0\.0\.42\.\*'$"
    with pytest.raises(tpusim.Error, match=said):
        tpusim.export(product, X, X, path=None, config="v5e-1x1", compiled=True)
    with pytest.raises(tpusim.Error, match=said):
        tpusim.simulate(product, X, X, config="v5e-1x1", compiled=True)
    called = []
    with (
        pytest.raises(tpusim.Error, match=said),
        tpusim.capture("never.pb", config="v5e-1x1", compiled=True),
    ):
        called.append("the block")
    assert not called
    monkeypatch.setattr(jax, "__version__", "0.99.0")
    with pytest.raises(tpusim.Error, match=r"pip install 'libtpu'$"):
        topology.require_libtpu()


@pytest.mark.parametrize(
    ("config", "name", "options"),
    [
        ("v5e-4x2", "v5e:4x2", {}),
        ("v5e-2x4", "v5e:2x4", {}),
        ("v5p-4x4x4", "v5p:4x4x4", {}),
        ("v6e-1x1", "v6e:1x1", {"chips_per_host_bounds": [1, 1, 1]}),
        ("v4-2x2x2", "v4:2x2x2", {"chip_config_name": "megacore"}),
        ("v7x-2x2x1", "tpu7x:2x2x1", {}),
        ("v7x-1x1x1", "tpu7x:1x1x1", {"chips_per_host_bounds": [1, 1, 1]}),
        ("2x(v5p-2x2x2)", "v5p:2x2x2", {"num_slices": 2}),
        # The simulator says what these names mean.
        ("v5e-8", "v5e:2x4", {}),
        ("v5litepod-16", "v5e:4x4", {}),
        ("v4-32", "v4:2x2x4", {"chip_config_name": "megacore"}),
    ],
)
def test_topologies_by_name(binary: str, config: str, name: str, options: dict):
    found = topology_of(config)
    assert (found.name, found.options()) == (name, options)


def test_topologies_of_files(tmp_path: pathlib.Path):
    (tmp_path / "fast.json").write_text(json.dumps({"base": "v5p", "name": "fast", "chip": {}}))
    for chip, slices, expected in (
        ("v5e", {"slice": "4x2"}, Topology("v5e", (4, 2))),
        ("fast.json", {"slice": "2x2x1", "slices": 2}, Topology("v5p", (2, 2, 1), 2)),
    ):
        file = tmp_path / "config.json"
        file.write_text(json.dumps({"chip": chip, **slices}))
        assert topology_of(str(file)) == expected


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ("", r"config: '': expected the slice to compile for, such as \"v5e-4x2\""),
        ("v4-4x4x8_twisted", r"does not describe twisted tori"),
        ("8t-2x2", r"8t-2x2: the TPU compiler does not describe 8t, but v2, .*v7x"),
        ("none.json", r"none\.json: names no slice"),
        ("v5e-7", r"v5e has no slice of 7 chips"),
    ],
)
def test_slices_that_cannot_be_compiled_for(binary: str, config: str, said: str):
    with pytest.raises(tpusim.Error, match=said):
        tpusim.export(product, X, X, path=None, config=config, compiled=True)


def test_options_are_those_of_the_compiler():
    with pytest.raises(ValueError, match=r"^compiler_options: only with compiled=True$"):
        tpusim.export(product, X, X, path=None, compiler_options={"xla_a": 1})
    for options, said in (
        ({"--xla_a": 1}, "expected a name without dashes"),
        ({"xla_a": [1]}, "expected True, False, a number or text"),
        ("xla_a=1", r"expected \{option: value\}"),
    ):
        with pytest.raises(tpusim.Error, match=said):
            tpusim.export(product, X, X, path=None, compiler_options=options)
    with pytest.raises(TypeError, match=r"^compiled: 'yes': expected True or False$"):
        tpusim.export(product, X, X, path=None, compiled="yes")


def test_a_program_compiled_for_another_platform_is_refused():
    compiled = jax.jit(product).lower(X, X).compile()
    said = "^the program is compiled for cpu, not for TPUs: compile it with devices of jax.exp"
    with pytest.raises(TypeError, match=said):
        tpusim.export(compiled, path=None)
    with pytest.raises(TypeError, match=said):
        tpusim.simulate(compiled, config="v5e-1x1")
    with pytest.raises(TypeError, match=r"^arguments: the program is compiled already$"):
        tpusim.export(compiled, X, X, path=None)


def test_how_it_was_compiled_is_part_of_a_workload():
    plain = tpusim.export(product, X, X, path=None)
    assert plain.compilation is None
    made = Compilation(
        "0.0.42.1",
        "v5e:4x2",
        (CompilerOption("xla_a", "true"), CompilerOption("xla_b", "")),
        "--xla_c=1",
        MemoryAnalysis(1, 2, 3, 4, 5, 1 << 40),
    )
    for compilation in (made, Compilation()):
        whole = dataclasses.replace(plain, compilation=compilation)
        assert tpusim.Workload.from_bytes(whole.to_bytes()) == whole


@needs_libtpu
@pytest.mark.parametrize(
    "mesh", [ABSTRACT, Mesh(np.array(jax.devices()[:8]).reshape(4, 2), ("x", "y"))]
)
def test_a_program_over_any_mesh(mesh: Mesh | AbstractMesh, tmp_path: pathlib.Path):
    path = tmp_path / "w.pb"
    given = {"path": path, "config": "v5e-4x2", "compiled": True}
    workload, again = (tpusim.export(product, *arguments(mesh), **given) for _ in range(2))
    assert again == workload
    assert tpusim.Workload.load(path) == workload
    assert (workload.name, workload.num_partitions, workload.config) == ("product", 8, "v5e-4x2")
    assert workload.mesh == (tpusim.MeshAxis("x", 4), tpusim.MeshAxis("y", 2))
    # As jax.make_mesh goes over this slice: along one row of chips and back along the other.
    xy = [(c.x, c.y) for c in workload.coordinates]
    assert sorted(xy) == sorted((x, y) for x in range(4) for y in range(2))
    assert scheduled(workload)
    assert "fusion" in opcodes(workload)
    assert workload.compilation is not None
    assert workload.compilation.topology == "v5e:4x2"
    assert re.fullmatch(r"0\.0\.\d+(\.\d+)?", workload.compilation.libtpu_version)
    # bf16[256, 512] and bf16[256, 1024].
    assert workload.compilation.memory.argument_bytes == 2 * 256 * (512 + 1024)
    assert workload.compilation.memory.peak_bytes > 0


@needs_libtpu
def test_shardings_that_are_closed_over():
    mesh = Mesh(np.array(jax.devices()[:8]).reshape(4, 2), ("x", "y"))

    def step(x: jax.Array) -> jax.Array:
        return jax.lax.with_sharding_constraint(x * 2, NamedSharding(mesh, P(None, "x")))

    x = jax.ShapeDtypeStruct((64, 64), jnp.float32, sharding=NamedSharding(mesh, P("x")))
    workload = tpusim.export(step, x, path=None, config="v5p-2x2x2", compiled=True)
    assert "all-to-all" in opcodes(workload)
    assert len(set(workload.coordinates)) == 8


@needs_libtpu
def test_places_that_are_stated():
    places = [(i % 2, i // 2) for i in range(8)]
    given = {"path": None, "config": "v5e-2x4", "compiled": True, "coordinates": places}
    workload = tpusim.export(product, *arguments(ABSTRACT), **given)
    assert [(c.x, c.y) for c in workload.coordinates] == places
    given["coordinates"] = [(i % 4, i // 4) for i in range(8)]
    with pytest.raises(tpusim.Error, match=r"^coordinates: .*x=2.* is not on v5e:2x4$"):
        tpusim.export(product, *arguments(ABSTRACT), **given)


@needs_libtpu
def test_a_mesh_that_has_no_order_there():
    mesh = AbstractMesh((32, 2), ("x", "y"), (AxisType.Auto,) * 2)
    said = (
        r"^jax\.make_mesh has no order of v5p:4x4x4 for the mesh 32x2: state where .* coordinates=$"
    )
    with pytest.raises(tpusim.Error, match=said):
        tpusim.export(product, *arguments(mesh), path=None, config="v5p-4x4x4", compiled=True)


@needs_libtpu
def test_several_slices():
    workload = tpusim.export(
        product, *arguments(ABSTRACT), path=None, config="2x(v5e-2x2)", compiled=True
    )
    # The leading axis of four goes over two slices first.
    assert [c.slice_index for c in workload.coordinates] == [0, 0, 0, 0, 1, 1, 1, 1]
    assert len(set(workload.coordinates)) == 8


@needs_libtpu
def test_options_reach_the_compiler(monkeypatch: pytest.MonkeyPatch):
    given = {"path": None, "config": "v6e-1x1", "compiled": True}
    large = jax.ShapeDtypeStruct((8192, 8192), jnp.bfloat16)
    plain = tpusim.export(product, large, large, **given)
    options = {"xla_tpu_scoped_vmem_limit_kib": 65536}
    monkeypatch.setenv("LIBTPU_INIT_ARGS", "--xla_tpu_seen=1")
    tuned = tpusim.export(product, large, large, **given, compiler_options=options)
    assert tuned.compilation is not None
    assert tuned.compilation.options == (CompilerOption("xla_tpu_scoped_vmem_limit_kib", "65536"),)
    assert tuned.compilation.init_args == "--xla_tpu_seen=1"
    assert tuned.hlo_module != plain.hlo_module
    with pytest.raises(tpusim.Error, match=r"^the TPU compiler refuses the program: .*xla_none"):
        tpusim.export(product, X, X, **given, compiler_options={"xla_none": True})


@needs_libtpu
def test_a_program_that_does_not_fit():
    huge = jax.ShapeDtypeStruct((1 << 17, 1 << 17), jnp.bfloat16)
    with pytest.raises(tpusim.Error, match=r"^the TPU compiler refuses the program: .*memory"):
        tpusim.export(product, huge, huge, path=None, config="v5e-1x1", compiled=True)
    with pytest.raises(tpusim.Error, match=r"8 partitions, but v5e-2x2 has only 4 devices"):
        tpusim.export(product, *arguments(ABSTRACT), path=None, config="v5e-2x2", compiled=True)


@needs_libtpu
def test_a_program_that_jax_has_compiled():
    devices = topology.devices_of(topology_of("v5e-4x2"))
    mesh = Mesh(np.array(devices).reshape(4, 2), ("x", "y"))
    compiled = jax.jit(product).lower(*arguments(mesh)).compile()
    workload = tpusim.export(compiled, path=None)
    assert (workload.name, workload.num_partitions, workload.config) == ("product", 8, "v5e-4x2")
    assert workload.mesh == (tpusim.MeshAxis("x", 4), tpusim.MeshAxis("y", 2))
    places = [tuple(d.coords[:2]) for d in devices]
    assert [(c.x, c.y) for c in workload.coordinates] == places
    assert scheduled(workload)
    # The same program for the same places is the same module.
    ours = tpusim.export(
        product,
        *arguments(ABSTRACT),
        path=None,
        config="v5e-4x2",
        coordinates=places,
        compiled=True,
    )
    assert opcodes(ours) == opcodes(workload)
    alone = jax.ShapeDtypeStruct(
        (128, 128), jnp.float32, sharding=jax.sharding.SingleDeviceSharding(devices[0])
    )
    one = tpusim.export(jax.jit(jnp.sin).lower(alone).compile(), path=None, config="v5e-1x1")
    assert (one.num_partitions, one.config, len(one.coordinates)) == (1, "v5e-1x1", 1)


@needs_libtpu
def test_a_script_is_captured_compiled(tmp_path: pathlib.Path):
    path = tmp_path / "step.pb"
    with tpusim.capture(path, config="v5e-4x2", compiled=True) as captured:
        mesh = jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
        batch = jax.device_put(jnp.ones((64, 64)), NamedSharding(mesh, P("data")))
        jax.jit(lambda x: (x @ x.T).sum())(batch)
    assert captured.workload is not None
    assert scheduled(captured.workload)
    assert captured.workload.num_partitions == 8
    assert tpusim.Workload.load(path) == captured.workload
