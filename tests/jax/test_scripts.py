"""Scripts that are exported see what scripts see: command line, folders, `__main__`, ends."""

import json
import os
import pathlib
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator

import jax
import pytest
import tpusim
from tpusim import scripts

ROOT = pathlib.Path(__file__).resolve().parents[2]
STEP = """
import jax, jax.numpy as jnp
jax.config.update("jax_platforms", "cpu")

@jax.jit
def step(x):
    return x * 2

def pair(rows):
    return step, (jax.ShapeDtypeStruct((rows,), jnp.float32),)
"""
ABSL = f"""
from absl import app, flags
{STEP}
ROWS = flags.DEFINE_integer("rows", 8, "of the array")

def described():
    return pair(ROWS.value)

def main(words):
    print(words)
    step(jnp.ones(ROWS.value))

if __name__ == "__main__":
    app.run(main)
"""
ARGPARSE = f"""
import argparse
{STEP}

def rows():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=8)
    return parser.parse_args().rows

def described():
    return pair(rows())

if __name__ == "__main__":
    step(jnp.ones(rows()))
"""


def in_a_shell(folder: pathlib.Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the exporter in that folder: absl has its flags once per process."""
    path = str(ROOT / "tools" / "python")
    return subprocess.run(
        [sys.executable, "-m", "tpusim.export", "-o", "w.pb", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def own_process(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Undoes at the end of a test what a script, or loading it, does to the process."""
    jax.devices()  # Settled before a script asks for others.
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    monkeypatch.setattr("warnings.showwarning", warnings.showwarning)
    environment, modules = {**os.environ}, {**sys.modules}
    yield
    os.environ.clear()
    os.environ.update(environment)
    for name in sys.modules.keys() - modules:
        if str(getattr(sys.modules[name], "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]
    assert all(sys.modules[name] is module for name, module in modules.items())


@pytest.fixture
def export(own_process: None, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """The command, in this process: code, and what is on standard error."""

    def export(*arguments: str) -> tuple[int, str]:
        from tpusim.export import main

        argv = sys.argv
        try:
            code = main(["-o", "w.pb", *arguments])
        except SystemExit as end:  # of argparse
            code = end.code
        assert sys.argv is argv
        return code, capsys.readouterr().err

    return export


def rows_of(path: pathlib.Path) -> str:
    """The shape of the one argument."""
    report = tpusim.simulate(path, config="v5e-1x1")
    (argument,) = (a for a in report.memory_at_peak.arrays if a.owner == "arguments")
    return argument.shape.partition("{")[0]


@pytest.mark.parametrize("script", ["train.py:described", "train.py"])
def test_flags_of_absl_are_those_of_the_script(tmp_path: pathlib.Path, script: str):
    pytest.importorskip("absl")
    (tmp_path / "train.py").write_text(ABSL)
    done = in_a_shell(tmp_path, script, "--config", "v5e-1x1", "--", "--rows", "24", "word")
    assert done.returncode == 0, done.stderr
    assert rows_of(tmp_path / "w.pb") == "f32[24]"
    done = in_a_shell(tmp_path, script, "--", "--row=24")
    assert done.returncode == 1
    assert "Unknown command line flag 'row'" in done.stderr
    if ":" in script:
        assert done.stderr.startswith("tpusim.export: train.py: ")
        assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("script", ["train.py:described", "train.py"])
def test_arguments_are_those_of_the_script(tmp_path: pathlib.Path, export, script: str):
    (tmp_path / "train.py").write_text(ARGPARSE)
    assert export(script, "--config", "v5e-1x1", "--", "--rows", "24") == (0, "")
    assert rows_of(tmp_path / "w.pb") == "f32[24]"
    code, said = export(script, "--", "--columns", "24")
    assert code == 2
    assert "train.py: error: unrecognized arguments: --columns" in said
    assert "sys.exit(2)" in said.splitlines()[-1]


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("import sys; sys.exit()", 1, "tpusim.capture: sys.exit() came before a call of a jitted"),
        ("raise SystemExit(3)", 3, "tpusim.capture: sys.exit(3) came before a call of a jitted"),
        ("import sys; sys.exit('no data')", 1, "tpusim.capture: sys.exit('no data') came before"),
    ],
)
def test_a_script_that_leaves_early_is_an_error(tmp_path: pathlib.Path, export, text, code, said):
    (tmp_path / "train.py").write_text(text)
    left, line = export("train.py")
    assert (left, line.count("\n")) == (code, 1)
    assert line.startswith(said)


def test_a_script_that_fails_shows_its_own_traceback(tmp_path: pathlib.Path, export):
    (tmp_path / "train.py").write_text("def load():\n    open('no data')\n\nload()\n")
    for script in ("train.py", "train.py:load"):
        code, said = export(script)
        assert code == 1
        first, second, *_, last = said.splitlines()
        assert first == "Traceback (most recent call last):"
        assert second == f'  File "{tmp_path}/train.py", line 4, in <module>'
        assert last == "FileNotFoundError: [Errno 2] No such file or directory: 'no data'"
        assert "tools/python" not in said


LEAVES = """
import os, sys
{step}
os.chdir("/")
try:
    step(step(jnp.ones(8)))
finally:
    {leave}
"""


@pytest.mark.parametrize("leave", ["sys.exit(0)", "raise RuntimeError('training has failed')"])
def test_what_a_script_does_on_its_way_out_counts_for_nothing(tmp_path, export, leave: str):
    """Nor does it matter to which folder it has gone."""
    (tmp_path / "train.py").write_text(LEAVES.format(step=STEP, leave=leave))
    assert export("train.py") == (0, "")
    assert tpusim.Workload.load(tmp_path / "w.pb").name == "step"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["a:b.py:"], "names no function after the colon"),
        (["."], ".: a folder, not a script"),
        (["a:b.py", "-o", ""], "--output: an empty path"),
        (["a:b.py", "-o", "."], "export: .: cannot be written: it is a folder"),
        (["a:b.py", "--devices", "0"], "'0' is not a number from 1 to 65536"),
        (["a:b.py", "--kernel-cost", "k=inf,1"], "'k=inf,1' is not NAME=FLOPS,BYTES"),
        (["a:b.py", "--kernel-cost", "k=1.5,1"], "'k=1.5,1' is not NAME=FLOPS,BYTES"),
        (["a:b.py", "--trip-count", "w=-1"], "'w=-1' is not LOOP=N"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tmp_path, export, arguments, said):
    (tmp_path / "a:b.py").write_text(f"{STEP}\nstep(jnp.ones(8))\n")
    code, errors = export(*arguments)
    assert code in (1, 2)
    assert said in errors.splitlines()[-1]
    assert [path.name for path in tmp_path.iterdir()] == ["a:b.py"]


LOOKS = """
import json, os, sys
from dataclasses import dataclass
import neighbour

@dataclass
class Seen:
    argv: list
    folder: str
    file: str
    name: str

def seen():
    return Seen(sys.argv, sys.path[0], __file__, __name__)

if __name__ == "__main__":
    import __main__, pickle
    assert __main__.seen is seen
    assert pickle.loads(pickle.dumps(seen())) == seen()
    with open(os.path.join(os.path.dirname(__file__), "seen.json"), "w") as file:
        json.dump(vars(seen()), file)
"""


@pytest.mark.parametrize("name", ["train", "json", "tpusim"])
def test_what_a_script_sees(tmp_path, own_process, name: str):
    """Also one of the name of a module that is there already."""
    (tmp_path / "neighbour.py").write_text("")
    (tmp_path / f"{name}.py").write_text(LOOKS.replace("import json, os", "import os"))
    with scripts.command_line(f"{name}.py", ["--rows", "8"]):
        found = scripts.load(f"{name}.py").seen()
        assert found.argv == [f"{name}.py", "--rows", "8"]
    assert (found.folder, found.file) == (str(tmp_path), str(tmp_path / f"{name}.py"))
    assert sys.modules[found.name].seen() != found  # the command line of before
    assert (found.name == name) == (name == "train")


def test_a_script_is_main(tmp_path, own_process):
    (tmp_path / "neighbour.py").write_text("")
    (tmp_path / "train.py").write_text(LOOKS)
    with scripts.command_line("train.py", ["x"]):
        scripts.run("train.py")
    seen = json.loads((tmp_path / "seen.json").read_text())
    assert seen == {
        "argv": ["train.py", "x"],
        "folder": str(tmp_path),
        "file": str(tmp_path / "train.py"),
        "name": "__main__",
    }


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.txt", "", "not a Python file"),
        ("a.py", "import sys; sys.exit(2)", r"a\.py: it ends by sys\.exit\(2\) when it is loaded"),
        ("b.py", None, r"b\.py: no such file"),
    ],
)
def test_what_cannot_be_loaded(tmp_path, own_process, name, text, said):
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(tpusim.Error, match=said):
        scripts.load(str(tmp_path / name))
