"""The wheel: built of what the Dockerfile copies, and used where nothing else is."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import zipfile

import pytest

from tests.docs.snippets import snippets
from tests.tools.command_line import SLICE, example
from tests.tools.dockerfile import ROOT, copied
from tools.versions.matrix import PYTHONS, interpreter


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Built here, which takes minutes; or $TPUSIM_WHEEL."""
    if given := os.environ.get("TPUSIM_WHEEL"):
        return pathlib.Path(given).absolute()
    tree = tmp_path_factory.mktemp("tree")
    for name in copied():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_file():
            shutil.copy(ROOT / name, tree / name)
        else:
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, tree / name, dirs_exist_ok=True, ignore=ignored)
    done = subprocess.run(
        [tree / "tools" / "wheel", tree / "dist"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    # Every step is told, and how far the longest is.
    assert re.findall(r"^tools/wheel: (\d)/4 ", done.stderr, re.MULTILINE) == ["1", "2", "3", "4"]
    assert re.search(r"^tools/wheel: built (\d+) of \1$", done.stderr, re.MULTILINE), done.stderr
    return pathlib.Path(done.stdout.strip())


def clean_environment(folder: pathlib.Path) -> dict[str, str]:
    """Returns the environment of someone who has a Python, and nothing of this tree."""
    tools = folder / ".bin"
    tools.mkdir()
    (tools / "python3").symlink_to(sys._base_executable)
    left_out = ("TPUSIM", "PYTHON", "XLA", "JAX", "VIRTUAL_ENV")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    return {**kept, "PATH": f"{tools}:/usr/bin:/bin", "COLUMNS": "100"}


@pytest.mark.parametrize("words", [["--fast"], ["one", "two"]])
def test_wrong_usage_builds_nothing(words: list[str], tmp_path: pathlib.Path):
    done = subprocess.run(
        [ROOT / "tools" / "wheel", *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert done.stderr == "usage: tools/wheel [FOLDER]\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_one_wheel_for_all_versions_of_python(wheel: pathlib.Path):
    assert re.fullmatch(r"tpusim-[\d.]+-py3-none-manylinux_\d+_\d+_\w+\.whl", wheel.name)
    names = zipfile.ZipFile(wheel).namelist()
    assert "tpusim/bin/tpusim" in names
    assert any(name.startswith("tpusim.libs/libsystemc") for name in names)
    assert any(name.startswith("tpusim.libs/libprotobuf") for name in names)


@pytest.mark.long
@pytest.mark.parametrize("version", PYTHONS)
def test_the_wheel_runs_by_itself(wheel: pathlib.Path, version: str, tmp_path: pathlib.Path):
    """Without JAX or any other package."""
    python = interpreter(version)
    if python is None:
        pytest.skip(f"no Python {version} on this machine")
    subprocess.run([python, "-m", "venv", tmp_path / "venv"], check=True)
    scripts = tmp_path / "venv" / "bin"
    subprocess.run(
        [scripts / "pip", "install", "--quiet", "--no-index", "--no-deps", wheel], check=True
    )
    environment = {"PATH": "/nowhere"}
    program = str(example("allgather_matmul_int32"))
    shown = subprocess.run(
        [scripts / "tpusim", "--config", SLICE, program],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    assert shown.stdout.startswith("workload")
    script = f"import tpusim; print(tpusim.simulate({program!r}, config={SLICE!r}).step_time_ns)"
    simulated = subprocess.run(
        [scripts / "python", "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
        cwd=tmp_path,
    )
    assert float(simulated.stdout) > 0


@pytest.mark.long
def test_from_nothing_to_the_first_step(wheel: pathlib.Path, tmp_path: pathlib.Path):
    """The commands of the README's section, in one shell, in less than two minutes."""
    readme = ROOT / "README.md"
    lines = readme.read_text().splitlines()
    first = lines.index("## Your own model")
    last = next(at for at in range(first + 1, len(lines)) if lines[at].startswith("## "))
    blocks = [block for block in snippets(readme) if first < block.line <= last]
    (tmp_path / "build" / "dist").mkdir(parents=True)
    (tmp_path / "build" / "dist" / wheel.name).symlink_to(wheel)
    for block in blocks:
        if block.kind == "file":
            (tmp_path / block.file).write_text(block.text + "\n")
    script = "\n".join(block.text for block in blocks if block.kind == "shell")
    assert all(word in script for word in ("-m venv", "pip install", "-m tpusim.export"))

    start = time.monotonic()
    done = subprocess.run(
        ["bash", "-eu", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=clean_environment(tmp_path),
    )
    seconds = time.monotonic() - start
    assert done.returncode == 0, done.stdout + done.stderr
    print(f"{seconds:.0f} s")
    assert seconds < 120
    assert "workload       train_step on v5e-4x2: 8 chips" in done.stdout
    assert "bound by       ici" in done.stdout
    assert (tmp_path / "model.html").stat().st_size > 100_000
