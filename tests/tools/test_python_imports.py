"""The modules of the Python package and of the validation tools import each other one way only."""

from __future__ import annotations

import ast
import graphlib
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]


def modules_of(folder: pathlib.Path, package: str) -> dict[str, pathlib.Path]:
    """Files by the name that imports give them."""
    modules = {}
    for path in folder.rglob("*.py"):
        parts = list(path.relative_to(folder).with_suffix("").parts)
        if parts[-1] == "__init__":
            parts.pop()
        modules[".".join([package, *parts] if package else parts)] = path
    return modules


def imports_of(path: pathlib.Path, modules: dict[str, pathlib.Path]) -> set[str]:
    """Modules that a file imports, at its head, inside of functions and for types alike."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            whole = [f"{node.module}.{alias.name}" for alias in node.names]
            found |= {name if name in modules else node.module for name in whole}
    return found & modules.keys()


@pytest.mark.parametrize(
    ("folder", "package"), [("tools/python/tpusim", "tpusim"), ("tools/validation", "")]
)
def test_imports_have_no_circle(folder: str, package: str) -> None:
    modules = modules_of(ROOT / folder, package)
    graph = {name: imports_of(path, modules) - {name} for name, path in modules.items()}
    assert sum(map(len, graph.values())) > 20
    graphlib.TopologicalSorter(graph).prepare()  # CycleError names the circle.


# Ways to start each command.
COMMANDS = {
    "console script": "import sys; from tpusim.console import main",
    # Like `python -m tpusim`, but for the module that finds modules.
    "module": "import sys; import tpusim.__main__",
}


def imported(code: str) -> set[str]:
    """Returns the modules that a Python imports when it runs the code."""
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; print(*sys.modules)"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "tools/python")},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


@pytest.mark.parametrize("command", COMMANDS)
def test_the_command_starts_at_once(command: str) -> None:
    """It becomes the binary: modules of its own, and nothing of Python's library beyond these."""
    found = imported(COMMANDS[command]) - imported("import sys")
    own = {"tpusim", "tpusim.console", "tpusim.binary", "tpusim.errors", "tpusim.__main__"}
    assert found <= own


def test_the_package_gives_names_on_demand() -> None:
    """Names and modules of the package are attributes that are imported on demand."""
    code = (
        "import sys, tpusim; "
        "missing = [n for n in dir(tpusim) if getattr(tpusim, n, None) is None]; "
        "assert not missing, missing; "
        "assert callable(tpusim.search) and callable(tpusim.flags) and callable(tpusim.export); "
        "assert tpusim.capturing.capture is tpusim.capture; "
        "assert not hasattr(tpusim, 'nothing')"
    )
    assert "jax" not in imported("import sys, tpusim; tpusim.Report")
    imported(code)


def test_python_m_tpusim(binary: str) -> None:
    environment = {"PYTHONPATH": str(ROOT / "tools/python"), "TPUSIM_BINARY": binary}
    words = ["--version"], ["no-such-word"]
    for word in words:
        direct = subprocess.run([binary, *word], capture_output=True, text=True, check=False)
        module = subprocess.run(
            [sys.executable, "-m", "tpusim", *word],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (module.returncode, module.stdout) == (direct.returncode, direct.stdout)
        assert module.stderr == direct.stderr
