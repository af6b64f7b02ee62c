"""`tpusim flags`: settings of the TPU compiler, compiled, simulated, ranked.

A fake stands for the compiler where what it makes of options does not matter; tests of the real one
are skipped without the libtpu wheel.
"""

import concurrent.futures
import dataclasses
import gzip
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
import tpusim
from tpusim import compiling, topology
from tpusim.flags import command
from tpusim.flags.contents import Contents, contents_of
from tpusim.flags.table import SETTINGS, Needs, Setting, settings_for
from tpusim.workload import Compilation, CompilerOption, MemoryAnalysis

from tests.tools import schemas

ROOT = pathlib.Path(__file__).resolve().parents[2]
CORPUS = ROOT / "tests" / "data" / "compiled"
CONFIG = "v5e-1x1"
X = jax.ShapeDtypeStruct((1024, 1024), jnp.bfloat16)
needs_libtpu = pytest.mark.skipif(
    importlib.util.find_spec("libtpu") is None, reason="no libtpu in this Python"
)


def products(count: int) -> Callable[[jax.Array], jax.Array]:
    """A step of so many products, one after the other."""

    def step(x: jax.Array) -> jax.Array:
        for _ in range(count):
            x = x @ x
        return x

    return step


def build() -> tuple[Any, ...]:
    """Returns the program that the fake compiles."""
    return products(4), (X,)


class Inline:
    """An engine that works where it is asked, so that the fake is there."""

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Done when it returns."""
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        try:
            future.set_result(function(*arguments))
        except Exception as error:
            future.set_exception(error)
        return future


# The matmuls of the fake's modules: each of the first two settings helps, both help more.
_FEWER = {"xla_a": 1, "xla_b": 1}


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """A fake compiler; the options of all that it was asked to compile."""
    asked: list[dict[str, Any]] = []
    modules = {n: tpusim.export(products(n), X, path=None).hlo_module for n in range(1, 7)}

    def compile_lowered(
        lowered: Any, config: str, mesh: Any, partitions: int, places: Any, options: Any
    ) -> tuple[bytes, tuple[()], Compilation]:
        asked.append(dict(options))
        if "xla_none" in options:
            raise tpusim.Error("the TPU compiler refuses the program: no such option: xla_none")
        count = 4 - sum(_FEWER.get(name, 0) for name in options) + 2 * ("xla_slow" in options)
        made = tuple(CompilerOption(name, str(value)) for name, value in options.items())
        memory = MemoryAnalysis(peak_bytes=1000 * count)
        return modules[count], (), Compilation("0.0.0", "v5e:1x1", made, memory=memory)

    monkeypatch.setattr(compiling, "compile_lowered", compile_lowered)
    monkeypatch.setattr(topology, "require_libtpu", lambda: "0.0.0")
    return asked


SETTINGS_OF_THE_FAKE = [
    {"xla_slow": True},
    {"xla_a": 1},
    {"xla_nothing": False},
    {"xla_none": 1},
    {"xla_b": 2},
]


@pytest.fixture
def found(compiled: list[dict[str, Any]], binary: str) -> Any:
    """Searches the settings of the fake."""
    return tpusim.flags(
        build, config=CONFIG, settings=SETTINGS_OF_THE_FAKE, engine=Inline(), progress=False
    )


def test_settings_are_ranked(found, compiled: list[dict[str, Any]]):
    labels = [entry.label for entry in found]
    assert labels == [
        "xla_a=1 + xla_b=2",
        *("xla_a=1", "xla_b=2", "xla_nothing=false", "xla_slow=true", "xla_none=1"),
    ]
    assert found.best.label == labels[0]
    assert found.best.options == {"xla_a": 1, "xla_b": 2}
    steps = [found.default.step_time_ns, *(entry.step_time_ns for entry in found)]
    both, alone, other, same, slow, none = (entry.change for entry in found)
    # Half of the products, three of four, as many, six.
    assert -0.55 < both < -0.4 < alone == other < -0.2 < same == 0 < 0.4 < slow < 0.6
    assert none is None is steps[-1]
    assert [entry.same for entry in found] == [False] * 3 + [True] + [False] * 2
    assert found.default.contents is not None
    assert found.default.contents.kernels == 4
    assert found[0].changes == ("kernels 2 (was 4)",)
    assert found[0].compiler_peak_bytes == 2000
    assert found[-1].status == "error"
    assert found[-1].why == "the TPU compiler refuses the program: no such option: xla_none"
    # The default, each alone, two together.
    assert [options for options in compiled if len(options) != 1] == [{}, {"xla_a": 1, "xla_b": 2}]


def test_what_is_shown(found, binary: str):
    lines = found.text().splitlines()
    assert lines[0].split() == ["setting", "step", "peak", "HBM", "module"]
    assert lines[1].split()[0] == "default"
    assert "4 kernels" in lines[1]
    assert lines[2].split()[:4] == ["1", "xla_a=1", "+", "xla_b=2"]
    assert lines[2].endswith("kernels 2 (was 4)")
    assert lines[-3].split()[:3] == ["-", "xla_none=1", "error"]
    assert lines[-1] == "the same module: xla_nothing=false"
    assert len(found.text(top=1).splitlines()) == len(lines) - 2
    assert "3 more are not shown" in found.text(top=1)
    text = found.to_json(["tpusim", "flags"])
    schemas.check(binary, text)
    record = json.loads(text)
    assert record["default"]["kernels"] == 4
    assert [row["setting"] for row in record["settings"]] == [entry.label for entry in found]
    frame = found.to_frame()
    assert list(frame.setting[:2]) == ["default", "xla_a=1 + xla_b=2"]


def test_options_of_every_compilation(compiled: list[dict[str, Any]], binary: str):
    found = tpusim.flags(
        build,
        config=CONFIG,
        settings=[{"xla_a": 1}, {"xla_b": 2}],
        compiler_options={"xla_b": 2},
        together=False,
        engine=Inline(),
        progress=False,
    )
    # What holds anyway is not tried.
    assert [entry.label for entry in found] == ["xla_a=1"]
    assert compiled == [{"xla_b": 2}, {"xla_b": 2, "xla_a": 1}]


def test_the_table_is_tried_by_default(compiled: list[dict[str, Any]], binary: str):
    found = tpusim.flags(build, config=CONFIG, engine=Inline(), progress=False)
    expected = {s.label for s in SETTINGS if s.needs is Needs.NOTHING}
    assert {entry.label for entry in found} == expected
    assert all(entry.same for entry in found)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"build": 3}, r"^build: 3: expected a function without arguments$"),
        ({"config": ""}, r"^config: '': expected the slice"),
        ({"settings": [{}]}, r"^settings: \{\}: expected \{option: value\}"),
        ({"settings": [{"--xla": 1}]}, "expected a name without dashes"),
        ({"options": {"nothing": 1}}, "nothing: not an argument of tpusim.simulate"),
    ],
)
def test_wrong_arguments(compiled: list[dict[str, Any]], given: dict[str, Any], said: str):
    arguments = {"build": build, "config": CONFIG, "engine": Inline(), **given}
    with pytest.raises(tpusim.Error, match=said):
        tpusim.flags(arguments.pop("build"), **arguments)


def test_a_step_that_fails_is_a_row(compiled: list[dict[str, Any]], binary: str):
    def fails() -> tuple[Any, ...]:
        raise ValueError("no such model")

    found = tpusim.flags(fails, config=CONFIG, settings=[{"xla_a": 1}], engine=Inline())
    assert "no such model" in found.default.why
    with pytest.raises(tpusim.Error, match=r"^flags: nothing was simulated: ValueError: no such"):
        assert found.best


def test_settings_of_the_table():
    labels = [setting.label for setting in SETTINGS]
    assert len(set(labels)) == len(labels) > 60
    assert all(setting.what for setting in SETTINGS)
    alone = settings_for("v6e", 1)
    assert len(alone) < len(settings_for("v5e", 8)) < len(settings_for("v6e", 8)) == len(SETTINGS)
    assert Setting({"xla_a": True, "xla_b": 2}, "").label == "xla_a=true xla_b=2"


@pytest.mark.parametrize(
    ("module", "collectives"),
    [
        ("v5e-4x2/all_gather", {"all-gather sync": 1}),
        # SparseCores run it: a call that is started and waited for.
        ("v7x-2x2x1/all_gather", {"all-gather async": 1}),
        ("v5e-4x2/ring_shift", {"collective-permute async": 1}),
        # A reduce-scatter inside of a kernel.
        ("v5e-4x2/sharded_scatter_columns_large", {"all-reduce fused": 1}),
        ("v5e-1x1/matmul", {}),
    ],
)
def test_collectives_by_way(module: str, collectives: dict[str, int]):
    contents = contents_of(gzip.decompress((CORPUS / f"{module}.pb.gz").read_bytes()))
    assert contents.collectives == collectives


def test_kernels_of_loops_count_as_often_as_they_run():
    path = CORPUS / "v5e-4x2" / "mlp_scan_8_layers.pb.gz"
    contents = contents_of(gzip.decompress(path.read_bytes()))
    # Eight passes, with one all-reduce each.
    assert contents.collectives == {"all-reduce sync": 8}
    assert contents.kernels >= 16


def test_changes_are_told():
    base = Contents(10, {"all-gather sync": 4}, 2, 0.251)
    other = Contents(12, {"all-gather async": 3, "all-gather sync": 1}, 2, 0.5)
    assert other.changes(base) == [
        "kernels 12 (was 10)",
        "all-gather async 3 (was 0)",
        "all-gather sync 1 (was 4)",
        "in VMEM 50% (was 25%)",
    ]
    assert base.changes(dataclasses.replace(base, vmem_share=0.252)) == []


def test_the_table_in_a_shell(capsys: pytest.CaptureFixture[str]):
    assert command.main(["--list"]) == 0
    printed = capsys.readouterr().out
    assert all(setting.label in printed for setting in SETTINGS)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--config", CONFIG], "name a function that returns what to compile: FILE.py:FUNCTION"),
        (["none.py:build", "--config", CONFIG], "none.py: no such file"),
        (["step.py:other", "--config", CONFIG], "module 'step' has no attribute 'other'"),
        (["step.py:build"], "config: '': expected the slice to compile for"),
        (["step.py:build", "--config", CONFIG, "--only", "z*"], "--only z*: no such setting"),
    ],
)
def test_errors_in_a_shell(words: list[str], said: str, binary: str, tmp_path: pathlib.Path):
    (tmp_path / "step.py").write_text("def build():\n    return abs, (1,)\n")
    code = "from tpusim.console import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "flags", *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT / "tools" / "python"), *sys.path]),
        },
    )
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert done.stderr.startswith(f"tpusim: error: {said}")
    assert done.stderr.count("\n") == 1


def test_the_binary_says_where_the_command_is(binary: str):
    done = subprocess.run(
        [binary, "flags", "step.py:build"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "python -m tpusim.flags FILE.py:FUNCTION" in done.stderr


@needs_libtpu
def test_compiled_modules_are_kept(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch):
    def exported() -> list[tpusim.Workload]:
        given = {"path": None, "config": CONFIG, "compiled": True}
        settings: list[dict[str, int]] = [{}, {"xla_msa_max_cross_program_prefetches": 0}]
        return [tpusim.export(products(2), X, **given, compiler_options=s) for s in settings]

    compiling.keep(tmp_path)
    try:
        found = []
        # From one line: a program has the lines that lead to it.
        for _ in range(2):
            found.append(exported())
            assert len(list(tmp_path.iterdir())) == 2
            monkeypatch.setattr(compiling.compiling, "compiled", None)
    finally:
        compiling.keep(None)
    assert found[0] == found[1]
    assert found[0][0].hlo_module != found[0][1].hlo_module


@needs_libtpu
def test_with_the_compiler_itself(binary: str, tmp_path: pathlib.Path):
    found = tpusim.flags(
        _small,
        config="v5e-4x2",
        settings=[{"xla_enable_async_all_gather": True}, {"xla_none": True}],
        cache=tmp_path,
        engine=Inline(),
        progress=False,
    )
    assert found.default.devices == 8
    assert found.default.contents is not None
    assert sum(found.default.contents.collectives.values()) >= 1
    (refused,) = [entry for entry in found if entry.label == "xla_none=true"]
    assert "No such compile option: 'xla_none'" in refused.why
    assert len(list(tmp_path.iterdir())) == 2


def _small() -> tuple[Any, ...]:
    mesh = jax.sharding.AbstractMesh((8,), ("x",), (jax.sharding.AxisType.Auto,))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    rows = jax.ShapeDtypeStruct((1024, 1024), jnp.bfloat16, sharding=sharding)
    return jnp.matmul, (rows, rows)


@needs_libtpu
@pytest.mark.long
@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.label)
def test_the_compiler_takes_every_setting(setting: Setting):
    tiny = jax.ShapeDtypeStruct((8, 128), jnp.float32)
    tpusim.export(
        jnp.sin,
        tiny,
        path=None,
        config="v6e-1x1",
        compiled=True,
        compiler_options=setting.options,
    )
