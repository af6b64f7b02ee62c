"""The installed package: its metadata and its public names."""

import inspect
import os
import pathlib
import pydoc
import re
import subprocess
import sys
import tomllib

import pytest
import tpusim
import yaml
from tpusim.jax_internals.tested import TESTED, newest

ROOT = pathlib.Path(__file__).resolve().parents[2]
METADATA = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_versions_agree(run):
    version = METADATA["project"]["version"]
    assert tpusim.__version__ == version
    declared = re.search(r"project\(tpusim VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())
    assert declared is not None
    assert declared[1] == version
    assert version in run("--version").stdout
    newest = re.search(r"^## \[(\S+)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None
    assert newest[1] == version


def test_the_citation_is_of_this_version_and_licence():
    """The keys that Citation File Format 1.2 asks for; cffconvert --validate checks the rest."""
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["cff-version"] == "1.2.0"
    assert citation["title"] == METADATA["project"]["name"]
    assert citation["version"] == METADATA["project"]["version"]
    assert citation["license"] == METADATA["project"]["license"]
    assert citation["message"]
    assert [author["name"] for author in citation["authors"]]


@pytest.mark.parametrize("name", ["README.md", "CHANGELOG.md"])
def test_files_that_are_linked_to_exist(name: str):
    """Links and anchors of docs/ are checked with the site, those of the root here."""
    text = (ROOT / name).read_text()
    links = set(re.findall(r"\]\(([^)#:\s]+)[^):]*\)", text))
    assert links
    assert [link for link in sorted(links) if not (ROOT / link).exists()] == []


def test_versions_of_jax_agree():
    tested = (ROOT / "tools" / "python" / "requirements-test.txt").read_text().splitlines()
    jax = newest("3.11")  # The oldest Python, which tools/test takes.
    assert {f"jax=={jax}", f"jaxlib=={jax}", f"flax=={TESTED[jax].flax}"} <= set(tested)


def test_the_command_is_a_function_of_the_package():
    module, _, name = METADATA["project"]["scripts"]["tpusim"].partition(":")
    assert callable(getattr(__import__(module, fromlist=[name]), name))


def test_the_command_becomes_the_binary(binary):
    done = subprocess.run(
        [sys.executable, "-c", "from tpusim.console import main; main()", "configs", "nothing"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "TPUSIM_BINARY": binary, "PYTHONPATH": ":".join(sys.path)},
    )
    assert done.returncode == 1
    assert done.stderr.startswith("tpusim: error: unknown chip"), done.stderr


def test_the_command_without_its_binary_is_one_line():
    done = subprocess.run(
        [sys.executable, "-c", "from tpusim.console import main; main()", "configs"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "TPUSIM_BINARY": "/no/such", "PYTHONPATH": ":".join(sys.path)},
    )
    assert done.returncode == 1
    assert done.stderr.startswith("tpusim: error: TPUSIM_BINARY=/no/such: no such file; set it")
    assert done.stderr.count("\n") == 1


def test_dir_has_public_names_only():
    assert dir(tpusim) == sorted([*tpusim.__all__, "__version__"])
    assert all(not name.startswith("_") for name in tpusim.__all__)


@pytest.mark.parametrize("name", tpusim.__all__)
def test_public_names_are_documented_and_typed(name: str):
    value = getattr(tpusim, name)
    assert inspect.getdoc(value)
    if inspect.isclass(value):
        return
    signature = inspect.signature(value)
    for parameter in signature.parameters.values():
        assert parameter.annotation is not inspect.Parameter.empty, f"{name}: {parameter}"
    assert signature.return_annotation is not inspect.Signature.empty, name


def test_help_needs_no_jax(tmp_path: pathlib.Path):
    (tmp_path / "jax.py").write_text("raise ImportError('not installed')")
    (tmp_path / "pandas.py").write_text("raise ImportError('not installed')")
    script = "import tpusim, pydoc; print(pydoc.render_doc(tpusim, renderer=pydoc.plaintext))"
    path = f"{tmp_path}:{ROOT / 'tools' / 'python'}"
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert "simulate(" in done.stdout
    assert "TYPE_CHECKING" not in done.stdout
    assert "importlib" not in done.stdout


def test_help_of_a_function_tells_its_arguments():
    text = pydoc.render_doc(tpusim.simulate, renderer=pydoc.plaintext)
    assert "trip_counts" in text
    assert "kernel_costs" in inspect.signature(tpusim.export).parameters
