"""What a result is found by in a store: everything that it depends on."""

import hashlib
import importlib.metadata
import inspect
import pathlib

from tpusim.errors import Error
from tpusim.runner import find_binary
from tpusim.search.candidate import Candidate
from tpusim.search.payload import FromFile
from tpusim.search.problem import Build, Problem
from tpusim.search.space import identity


def shared_by(problem: Problem) -> str:
    """What all candidates of a search depend on."""
    options = identity(problem.options)
    if options is None:
        raise Error("search: options: a value looks different in every process")
    return f"{versions()}\n{_source_of(problem.build)}\n{options}"


def key_of(candidate: Candidate, shared: str) -> str:
    """Of one candidate."""
    text = repr((candidate.config, sorted(candidate.identities.items()), shared))
    return hashlib.sha256(text.encode()).hexdigest()


def versions() -> str:
    """What results depend on besides the candidate."""
    binary = hashlib.sha256(pathlib.Path(find_binary()).read_bytes()).hexdigest()
    try:
        jax = importlib.metadata.version("jax")
    except importlib.metadata.PackageNotFoundError:
        jax = ""
    return f"{binary} {jax}"


def _source_of(build: Build) -> str:
    """The file that a function is in, and what it has taken along from where it was defined."""
    function = build.function() if isinstance(build, FromFile) else build
    while hasattr(function, "func"):
        function = function.func  # functools.partial
    try:
        file = inspect.getsourcefile(function)
        text = pathlib.Path(file).read_bytes() if file else b""
    except (TypeError, OSError):
        try:
            text = inspect.getsource(function).encode()  # In a cell of a notebook.
        except (TypeError, OSError):
            text = b""
    name = getattr(function, "__qualname__", type(function).__qualname__)
    cells = getattr(function, "__closure__", None) or ()
    taken = [identity(cell.cell_contents) for cell in cells]
    return f"{name} {hashlib.sha256(text).hexdigest()} {identity(build) or ''} {taken}"
