"""Devices as programs see them while they are exported."""

import json
import pathlib

import jax
import jax.numpy as jnp
import pytest
import tpusim
from jax.experimental import mesh_utils
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from tpusim.assumptions import ExportWarning
from tpusim.chip_view import DEVICE_KINDS, chip_of

ROOT = pathlib.Path(__file__).resolve().parents[2]
X = jax.ShapeDtypeStruct((8, 128), jnp.float32)


def test_every_chip_has_a_kind_that_jax_knows():
    chips = {path.stem for path in (ROOT / "configs" / "chips").glob("*.json")} - {"schema"}
    assert set(DEVICE_KINDS) == chips
    for chip in chips - {"8t"}:  # Too new for JAX 0.10.
        with tpusim.seen_as(f"{chip}-1x1"):
            info = pltpu.get_tpu_info()
        assert str(info.chip_version) == chip.replace("v7x", "7x")
        assert info.num_cores == DEVICE_KINDS[chip][1]


@pytest.mark.parametrize(
    ("config", "chip"),
    [
        ("v5e-4x2", "v5e"),
        ("2x(v5p-4x4x4)", "v5p"),
        ("v5litepod-8", "v5e"),
        ("v4-4x4x8_twisted", "v4"),
        ("none.json", ""),
        ("", ""),
        ("v5e", "v5e"),
    ],
)
def test_chip_of_a_config(config: str, chip: str):
    assert chip_of(config) == chip


def test_chip_of_files(tmp_path: pathlib.Path):
    (tmp_path / "fast.json").write_text(json.dumps({"base": "v6e", "chip": {"hbm": {}}}))
    (tmp_path / "a.json").write_text(json.dumps({"chip": "fast.json", "slice": "4x2"}))
    (tmp_path / "circle.json").write_text(json.dumps({"chip": "circle.json"}))
    (tmp_path / "b.json").write_text(json.dumps([1]))
    assert chip_of(str(tmp_path / "a.json")) == "v6e"
    assert chip_of(str(tmp_path / "circle.json")) == ""
    assert chip_of(str(tmp_path / "b.json")) == ""


def test_a_program_that_asks_for_its_tpu_needs_a_config():
    with pytest.raises(tpusim.Error, match=r"^the program asks for its TPU: config= "):
        tpusim.export(lambda x: x * pltpu.get_tpu_info().num_lanes, X, path=None)


@pytest.mark.parametrize("config", ["v4-2x2x1", "v5e-1x1", "v6e-1x1", "v7x-1x1x1"])
def test_kernels_divide_integers_for_the_chip(config: str):
    """Their lowering asks JAX for the generation of the chip."""

    def divide(x, out):
        out[...] = x[...] // 3 + x[...] % 5 * jnp.sign(x[...])

    def divided(x):
        return pl.pallas_call(divide, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

    x = jax.ShapeDtypeStruct((256, 256), jnp.int32)
    assert tpusim.simulate(divided, x, config=config).step_time_ns > 0
    with tpusim.seen_as(config):
        jax.jit(divided).trace(x).lower(lowering_platforms=("tpu",))


@pytest.mark.parametrize(("config", "cores"), [("v5p-1x1x1", 2), ("v6e-1x1", 1), ("v7x-1x1x1", 1)])
def test_a_mesh_of_tensor_cores_has_those_of_a_device(config: str, cores: int):
    """Kernels of a `pltpu.TensorCoreMesh` ask the first device for them."""
    with tpusim.seen_as(config):
        assert jax.devices()[0].num_cores == cores
    with pytest.raises(AttributeError):
        _ = jax.devices()[0].num_cores


def test_a_step_sees_the_chip_of_the_config():
    seen = []

    @jax.jit
    def step(x):
        device = jax.devices()[0]
        info = pltpu.get_tpu_info()
        answers = (device.device_kind, device.platform, jax.default_backend(), info.generation)
        seen.append((*answers, device.client.platform))
        return x * 2

    real = (jax.devices()[0].device_kind, jax.devices()[0].platform, jax.default_backend())
    for config, kind, generation in (("v5e-1x1", "TPU v5 lite", 5), ("v6e-1x1", "TPU v6 lite", 6)):
        workload = tpusim.export(step, X, path=None, config=config)
        assert workload.assumptions == ()
        assert seen.pop() == (kind, "tpu", "tpu", generation, "tpu")
        assert seen == []
    after = (jax.devices()[0].device_kind, jax.devices()[0].platform, jax.default_backend())
    assert real == after == ("cpu", "cpu", "cpu")
    # What was traced for a TPU is not what runs here.
    with pytest.raises(ValueError, match="Unsupported TPU device kind"):
        step(jnp.ones((8, 128)))


def test_without_a_config_the_kind_is_noted():
    def step(x):
        return x * len(jax.devices()[0].device_kind)

    with pytest.warns(ExportWarning, match="test_chip_view.py:[0-9]+ asked for the kind"):
        workload = tpusim.export(step, X, path=None)
    (line,) = workload.assumptions
    assert "saw 'cpu'" in line


def test_a_captured_script_sees_the_chip_before_its_step(tmp_path: pathlib.Path):
    answers = []

    def on_tpu() -> bool:
        answers.append(jax.devices()[0].platform)
        return answers[-1] == "tpu"

    @jax.jit
    def step(x):
        return x * 2 if on_tpu() else x * 3

    with tpusim.capture(tmp_path / "w.pb", config="v5e-1x1") as captured:
        assert jax.devices()[0].device_kind == "TPU v5 lite"
        on_tpu()
        step(jnp.ones((8, 128)))
    assert set(answers) == {"tpu"}
    assert captured.workload.assumptions == ()
    assert jax.devices()[0].platform == "cpu"


def test_what_is_built_under_seen_as_is_for_tpus():
    with tpusim.seen_as("v5e-1x1"):
        assert jax.default_backend() == "tpu"
        assert jax.jit(lambda x: x + 1)(jnp.ones(2)).tolist() == [2, 2]
    assert jax.default_backend() == "cpu"


def test_hybrid_meshes_go_over_the_slices_of_the_config():
    with tpusim.seen_as("2x(v5e-2x2)"):
        grid = mesh_utils.create_hybrid_device_mesh((2, 2), (2, 1))
        assert [d.slice_index for d in jax.devices()[:8]] == [0, 0, 0, 0, 1, 1, 1, 1]
        assert jax.make_mesh((8,), ("x",)).size == 8
    assert [[d.id for d in row] for row in grid] == [[0, 1], [2, 3], [4, 5], [6, 7]]
    with tpusim.seen_as("v5e-4x2"):
        assert not hasattr(jax.devices()[0], "slice_index")
    assert not hasattr(jax.devices()[0], "slice_index")
