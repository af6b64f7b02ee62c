"""Keys of results in a store: digests of everything that a result depends on."""

import hashlib
import importlib.metadata
from collections.abc import Sequence

from tpusim import compiler_flags, files
from tpusim.errors import Error
from tpusim.runner import find_binary
from tpusim.search.candidate import Candidate
from tpusim.search.definition import definition_of
from tpusim.search.problem import Problem
from tpusim.search.space import identity


def shared_by(problem: Problem) -> str:
    """Returns a text of what all candidates of a search depend on."""
    options = identity(problem.options)
    if options is None:
        raise Error("search: options: a value looks different in every process")
    shared = f"{versions()}\n{definition_of(problem.build)}\n{options}"
    if problem.find is None:
        return shared
    # What is known of candidates elsewhere only saves time.
    words = [word for word in problem.find if not word.startswith("--store=")]
    return f"{shared}\nshardings found with {words}"


def key_of(candidate: Candidate, shared: str) -> str:
    """Returns the key of one candidate."""
    text = repr((candidate.config, sorted(candidate.identities.items()), shared))
    return hashlib.sha256(text.encode()).hexdigest()


def digest_of(program: bytes, words: Sequence[str]) -> str:
    """Returns the digest of a program and of the options that it runs with."""
    return hashlib.sha256(b"\0".join([program, *(word.encode() for word in words)])).hexdigest()


def versions() -> str:
    """Returns the versions that results depend on."""
    binary = hashlib.sha256(files.read_bytes(find_binary())).hexdigest()
    jax, libtpu = _version("jax"), _version("libtpu")
    return f"{binary} {jax} {libtpu} {compiler_flags.of_program({})}"


def _version(package: str) -> str:
    """Returns the version of an installed package, or ""."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""
