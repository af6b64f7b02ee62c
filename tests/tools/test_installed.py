"""The user's own code is told from what is installed, wherever that is."""

import os
import pathlib
import subprocess
import sys

import pytest

PACKAGE = pathlib.Path(__file__).resolve().parents[2] / "tools" / "python"
# Whether definitions of a search follow a module, and where a library is shown to lie.
ASK = """
import importlib, sys
from tpusim.search.definition import _own
from tpusim.source_files import is_installed, relative
module = importlib.import_module(sys.argv[1])
print(_own(module), is_installed(module.__file__), relative(module.__file__))
"""


def asked(module: str, folder: pathlib.Path, path: pathlib.Path, **environment: str) -> list[str]:
    """Asks a Python that is started in `folder`, with `path` among those of its modules."""
    done = subprocess.run(
        [sys.executable, "-c", ASK, module],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{PACKAGE}{os.pathsep}{path}", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def write(file: pathlib.Path, text: str = "") -> pathlib.Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


INSTALLED, OWN = ["False", "True"], ["True", "False"]


def test_by_pip_into_a_folder(tmp_path: pathlib.Path):
    """Modules that a distribution lists are installed; the user's file beside them is not."""
    there, here = tmp_path / "there", tmp_path / "here"
    here.mkdir()
    write(there / "library" / "__init__.py")
    write(there / "mine.py")
    write(there / "library-1.0.dist-info" / "METADATA", "Name: library\nVersion: 1.0\n")
    record = "library/__init__.py,,0\nlibrary-1.0.dist-info/METADATA,,\n../../bin/library,,\n"
    write(there / "library-1.0.dist-info" / "RECORD", record)
    assert asked("library", here, there) == [*INSTALLED, "library/__init__.py"]
    assert asked("mine", here, there)[:2] == OWN


def test_in_the_folder_of_the_user(tmp_path: pathlib.Path):
    base = {"PYTHONUSERBASE": str(tmp_path / "base")}
    folder = subprocess.run(
        [sys.executable, "-m", "site", "--user-site"],
        env={**os.environ, **base},
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    library = write(pathlib.Path(folder) / "library.py")
    assert asked("library", tmp_path, library.parent, **base) == [*INSTALLED, "library.py"]


@pytest.mark.parametrize("name", ["jax", "jaxlib"])
def test_jax_wherever_it_is(tmp_path: pathlib.Path, name: str):
    """Also a checkout of it, of which nothing is known but the name."""
    write(tmp_path / "checkout" / name / "__init__.py")
    for needed in {"jax", "jaxlib"} - {name}:
        write(tmp_path / "checkout" / needed / "__init__.py")
    assert asked(name, tmp_path, tmp_path / "checkout") == [*INSTALLED, f"{name}/__init__.py"]


def test_a_project_that_is_edited(tmp_path: pathlib.Path):
    """The metadata of an editable project list no modules: they may change from run to run."""
    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    elsewhere.mkdir()
    write(project / "model.py")
    write(project / "model.egg-info" / "PKG-INFO", "Name: model\nVersion: 1.0\n")
    write(project / "model.egg-info" / "SOURCES.txt", "model.py\n")
    assert asked("model", project, project)[:2] == OWN
    info = elsewhere / "model-1.0.dist-info"
    write(info / "METADATA", "Name: model\nVersion: 1.0\n")
    write(info / "RECORD", "__editable__.model-1.0.pth,,\nmodel-1.0.dist-info/METADATA,,\n")
    paths = pathlib.Path(f"{project}{os.pathsep}{elsewhere}")
    assert asked("model", tmp_path, paths)[:2] == OWN


def test_python_itself(tmp_path: pathlib.Path):
    assert asked("json", tmp_path, tmp_path)[:2] == INSTALLED
    assert asked("tpusim.files", tmp_path, tmp_path)[0] == "False"
