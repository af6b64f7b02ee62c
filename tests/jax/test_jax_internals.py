"""Private names of JAX stand in `jax_internals` alone; a missing one is named."""

import ast
import pathlib
import re
import subprocess
import sys
import types
import warnings
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import pytest
import tpusim
from tpusim.assumptions import ExportWarning
from tpusim.jax_internals import array_types, callbacks, devices, dispatch, lowering, versions
from tpusim.jax_internals.tested import PYTHONS, TESTED, newest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "tools" / "python" / "tpusim"
PRIVATE = re.compile(r"^\s*(from|import) (jax\._src|jaxlib)|jax\._src\.\w+\.\w|\._lowering\b", re.M)


def test_private_names_stand_in_one_room():
    rooms = {path.parent.name for path in PACKAGE.rglob("*.py") if PRIVATE.search(path.read_text())}
    assert rooms == {"jax_internals"}


def test_every_file_of_the_room_is_listed():
    room = PACKAGE / "jax_internals"
    listed = re.findall(r"^    (\w+\.py) ", (room / "__init__.py").read_text(), re.M)
    assert sorted(listed) == sorted(p.name for p in room.glob("*.py") if p.name != "__init__.py")


def private_names() -> Iterator[tuple[str, str]]:
    """Yields what the files of the room ask JAX for: modules and names in them."""
    for path in sorted((PACKAGE / "jax_internals").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            parts = node.args if isinstance(node, ast.Call) else getattr(node, "elts", ())
            match [part.value for part in parts[:2] if isinstance(part, ast.Constant)]:
                case [str(module), str(name)] if module.startswith(("jax._src.", "jaxlib.")):
                    if not name.startswith("jax"):
                        yield module, name


def test_nothing_that_is_private_has_moved():
    names = set(private_names())
    assert len(names) >= 35
    moved = [f"{m}.{n}" for m, n in sorted(names) if versions.optional(m, n) is None]
    assert moved == []
    assert list(callbacks.debugging().values()) == list(callbacks._DEBUG.values())
    assert devices.tpu_info() is not None


def test_the_table_is_that_of_the_package():
    """This version is among them; pyproject, README and the page name the same ones."""
    project = (ROOT / "pyproject.toml").read_text()
    oldest, *_ = TESTED
    assert jax.__version__ in TESTED
    assert f'export = ["jax>={oldest.rpartition(".")[0]}"]' in project
    page = (ROOT / "docs" / "jax-versions.md").read_text()
    for python in PYTHONS:
        is_tested = f'"Programming Language :: Python :: {python}"' in project
        assert is_tested != (f"Python {python} was not on the machine." in page)
        assert newest(python) in TESTED
    for version, goes_with in TESTED.items():
        assert f"| {version} | {goes_with.python} | {goes_with.flax} |" in page


@pytest.fixture
def as_version(monkeypatch: pytest.MonkeyPatch):
    """JAX that says it is of another version."""

    def become(version: str) -> None:
        monkeypatch.setattr(jax, "__version__", version)
        monkeypatch.setattr(versions, "_warned", False)

    return become


def test_another_version_is_told_once(as_version):
    as_version("0.11.0")
    said = r"^tpusim has not been tested with JAX 0\.11\.0 \(tested: 0\.7\.2, .* and 0\.12\.0\.1\)$"
    with pytest.warns(ExportWarning, match=said):
        tpusim.export(jnp.sin, jnp.ones(3), path=None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tpusim.export(jnp.sin, jnp.ones(3), path=None)
        as_version("0.10.1")
        tpusim.export(jnp.sin, jnp.ones(3), path=None)


@pytest.mark.parametrize("version", ["0.6.2", "0.4.38", "0.5.3.dev20250101"])
def test_one_that_is_too_old_is_refused(version: str, as_version):
    as_version(version)
    with pytest.raises(tpusim.Error, match=rf"^JAX {re.escape(version)} is too old: tpusim is"):
        tpusim.export(jnp.sin, jnp.ones(3), path=None)


@pytest.mark.parametrize("name", ["pjit._infer_params", "pjit._pjit_call_impl_python"])
def test_a_capture_says_which_name_moved(name: str, monkeypatch, tmp_path):
    monkeypatch.delattr(f"jax._src.{name}")
    said = f"^JAX [0-9.]* lacks jax._src.{name}, which tpusim needs to see what a script "
    with pytest.raises(tpusim.Error, match=said), tpusim.capture(tmp_path / "w.pb"):
        jax.jit(lambda x: x)(jnp.ones(3))


def test_what_capture_cannot_do_without_is_named(as_version, monkeypatch, tmp_path):
    as_version("0.11.0")
    monkeypatch.delattr("jax._src.numpy.indexing.rewriting_take")
    said = (
        r"^JAX 0\.11\.0 lacks jax\._src\.numpy\.indexing\.rewriting_take, which tpusim needs to "
        r"let placeholders pass for arrays \(tpusim\.capture\); tested are 0\.7\.2, .* and 0\.12"
    )
    with (
        pytest.warns(ExportWarning),
        pytest.raises(tpusim.Error, match=said),
        tpusim.capture(tmp_path / "w.pb", function="step"),
    ):
        _ = jax.jit(lambda x: x)(jnp.ones(3))[0]


def test_export_goes_on_without(monkeypatch: pytest.MonkeyPatch):
    """Places, callbacks and facts of a lowering have ways around."""

    def exported() -> int:
        return len(tpusim.export(jnp.sin, jnp.ones(3), path=None).hlo_module)

    expected = exported()
    monkeypatch.delattr("jax._src.source_info_util.user_frame")
    monkeypatch.delattr("jax._src.debugging.debug_print_p")
    monkeypatch.delattr("jaxlib._jax.Device")
    assert exported() == expected


def test_shardings_without_the_record_of_a_lowering():
    mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    x = jax.ShapeDtypeStruct((8, 8), jnp.float32, sharding=sharding)
    lowered = jax.jit(lambda x: x * 2).lower(x)
    propagated = lowering.result_shardings(lowered)
    assert propagated == lowering.result_shardings(jax.jit(lambda x: x * 2).trace(x))
    plain = types.SimpleNamespace(out_info=lowered.out_info, compile=lowered.compile)
    assert lowering.result_shardings(plain) == propagated == ([sharding], True)
    assert lowering.in_shardings(plain, (x,)) == [sharding]
    assert lowering.num_devices(plain, [sharding]) == 8


def test_types_of_arrays():
    assert array_types.aval((2, 3), jnp.bfloat16) == jax.typeof(jnp.ones((2, 3), jnp.bfloat16))
    keys = jax.random.split(jax.random.key(1), 3)
    again = array_types.key_array(keys.dtype, array_types.key_words(keys))
    assert (again == keys).all()
    assert array_types.words_shape(keys.dtype) == (2,)
    assert dispatch.is_outermost([jnp.ones(1)])
    inside = []
    jax.eval_shape(lambda x: inside.append(dispatch.is_outermost([x])), jnp.ones(1))
    assert inside == [False]


def test_the_table_needs_no_jax():
    code = "import sys, tpusim.jax_internals.tested; assert 'jax' not in sys.modules"
    path = {"PYTHONPATH": str(PACKAGE.parent)}
    subprocess.run([sys.executable, "-c", code], check=True, env=path)
