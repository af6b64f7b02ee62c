"""A store is found again by what was asked, not by who asked: a shell, a script, a notebook."""

import pathlib
import sqlite3
import subprocess
import sys
from typing import Any

import pytest
import tpusim
from tpusim.search.definition import definition_of
from tpusim.search.payload import FromFile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = '''
import dataclasses
import functools

from tests.jax.search_steps import matmul

FACTOR = 1


@dataclasses.dataclass(frozen=True)
class Sizes:
    """Of a batch."""

    rows: int

    def scaled(self):
        """In rows."""
        return self.rows * FACTOR


def sized(candidate, *, sizes=Sizes(1024)):
    """The product."""
    return {**candidate, "batch": sizes.scaled()}


def build(candidate):
    """Of `matmul`."""
    values = sized(candidate)
    assert values["batch"] >= 1024
    return matmul(candidate)
'''
SPACE = """
configs = ["v5e-4x2"]
space = {"mesh": [(4, 2), (2, 4)], "rules": {"y": (None, "y"), "none": (None, None)}}
"""


def exposed(report: tpusim.Report) -> float:
    return report.exposed_communication_ns


def in_python(build: Any, store: pathlib.Path, **given: Any) -> tpusim.SearchResults:
    space = {"mesh": [(4, 2), (2, 4)], "rules": {"y": (None, "y"), "none": (None, None)}}
    return tpusim.search(
        build, space, configs="v5e-4x2", store=store, progress=False, prune=False, **given
    )


def in_a_shell(binary: str, path: pathlib.Path, store: pathlib.Path) -> None:
    command = [sys.executable, "-m", "tpusim.search", path, "--store", store, "-q", "--all"]
    paths = f"{ROOT}:{ROOT / 'tools' / 'python'}"
    environment = {"PATH": "/usr/bin:/bin", "TPUSIM_BINARY": binary, "PYTHONPATH": paths}
    subprocess.run(command, check=True, timeout=300, env=environment, stdout=subprocess.DEVNULL)


def written(store: pathlib.Path) -> list[tuple[Any, ...]]:
    """Rows with the processor time that each took: of what was not done again it stays."""
    with sqlite3.connect(store) as database:
        columns = "key, status, step_time_ns, export_cpu_s, simulation_cpu_s"
        return database.execute(f"select {columns} from candidates order by key").fetchall()


class NothingToDo:
    """An engine for a search whose store has everything."""

    def submit(self, function: Any, *arguments: Any) -> Any:
        """Fails: the engine is not called."""
        pytest.fail(f"{function.__name__} again")


def loaded(path: pathlib.Path, text: str) -> Any:
    """The `build` of a file with this text."""
    path.write_text(text)
    return FromFile(str(path), "build").function()


def test_what_a_shell_filled_is_found_in_python(binary, tmp_path):
    (tmp_path / "in_a_shell.py").write_text(BUILD + SPACE)
    store = tmp_path / "s.sqlite"
    in_a_shell(binary, tmp_path / "in_a_shell.py", store)
    before = written(store)
    assert len(before) == 4
    # Another file, with something else around it.
    build = loaded(tmp_path / "as_module.py", f"# Anything.\n{BUILD}\nunused = 1\n")
    results = in_python(build, store, engine=NothingToDo(), workers=1)
    assert results.counts() == {"simulated": 4}
    assert written(store) == before


def test_what_python_filled_is_found_in_a_shell(binary, tmp_path):
    build = loaded(tmp_path / "the_module.py", BUILD)
    store = tmp_path / "s.sqlite"
    in_python(build, store, workers=2)
    before = written(store)
    (tmp_path / "the_space.py").write_text(SPACE + BUILD)
    in_a_shell(binary, tmp_path / "the_space.py", store)
    assert written(store) == before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("FACTOR = 1", "FACTOR = 2"),
        ("self.rows * FACTOR", "FACTOR * self.rows"),
        ("Sizes(1024)", "Sizes(1025)"),
        ("{**candidate,", "{**dict(candidate),"),
        ("    return matmul(candidate)", "    return (*matmul(candidate),)"),
        ("import matmul", "import marked as matmul"),
    ],
)
def test_whatever_build_leads_to_counts(tmp_path, old, new):
    assert BUILD.count(old) == 1
    before = definition_of(loaded(tmp_path / "before.py", BUILD))
    assert definition_of(loaded(tmp_path / "again.py", BUILD)) == before
    assert definition_of(loaded(tmp_path / "after.py", BUILD.replace(old, new))) != before


def test_cells_of_a_notebook_count(tmp_path):
    """Names of the main module have no file."""

    def defined(constant: int) -> str:
        names: dict[str, Any] = {"__name__": "__main__"}
        exec(f"SIZE = {constant}\ndef size():\n    return SIZE", names)
        exec("def build(candidate):\n    return size()", names)
        return definition_of(names["build"])

    assert defined(1) == defined(1) != defined(2)


def test_closures_and_partials_count():
    import functools

    def made(size: int) -> Any:
        def build(candidate: Any) -> int:
            return size

        return build

    assert definition_of(made(1)) == definition_of(made(1)) != definition_of(made(2))
    first, second = (functools.partial(made(1), candidate=n) for n in (1, 2))
    assert definition_of(first) != definition_of(second)


def test_an_objective_of_the_file_is_the_same_in_python(binary, tmp_path):
    """Its values are in the store, too."""
    store = tmp_path / "s.sqlite"
    path = tmp_path / "with_objective.py"
    text = "def exposed(report):\n    return report.exposed_communication_ns\n"
    path.write_text(f"{BUILD}{SPACE}\nobjective = None\n{text}objective = exposed\n")
    in_a_shell(binary, path, store)
    build = FromFile(str(path), "build").function()
    objective = FromFile(str(path), "exposed").function()
    given = {"objective": objective, "engine": NothingToDo(), "workers": 1}
    assert in_python(build, store, **given).counts() == {"simulated": 4}
