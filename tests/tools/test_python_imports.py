"""The modules of the Python package and of the validation tools import each other one way only."""

from __future__ import annotations

import ast
import graphlib
import pathlib

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
