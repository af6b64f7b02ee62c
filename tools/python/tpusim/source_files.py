"""Tells source files of the user from those of packages.

A package is in a folder that Python has for them (that of the environment, or the user's), or has a
distribution elsewhere that lists its files (`pip install --target`, another environment on
PYTHONPATH). JAX is one wherever it is. What is installed to be edited in its own folder, otherwise,
is the user's own: it may change from one run to the next.
"""

import functools
import importlib.metadata
import importlib.util
import os
import pathlib
import site
import sysconfig

from tpusim import wire

# Field numbers of HloModuleProto and of its StackFrameIndexProto.
_STACK_FRAME_INDEX, _FILE_NAMES = 17, 1


def roots() -> list[str]:
    """Folders that source files are shown relative to, the longest first; each ends in a slash."""
    folders = {str(pathlib.Path.cwd()), *_package_folders()}
    # A virtual environment may lie inside the working directory.
    return sorted((f.rstrip("/") + "/" for f in folders), key=lambda f: (-len(f), f))


def relative(file: str) -> str:
    """A source file's name as workloads show it."""
    for root in roots():
        if file.startswith(root):
            return file[len(root) :]
    return file


def library_files(module: bytes) -> tuple[str, ...]:
    """Returns the source files of a serialized HloModuleProto that belong to packages.

    Names are as the module has them: relative to the working directory or to where packages are.
    """
    index = wire.parse(wire.last_bytes(wire.parse(module), _STACK_FRAME_INDEX))
    names = [name.decode(errors="replace") for name in wire.all_bytes(index, _FILE_NAMES)]
    return tuple(sorted({name for name in names if _is_installed(name)}))


def _is_installed(name: str) -> bool:
    if name.startswith("<frozen "):  # Python's own `runpy`, which runs `-m`.
        return True
    if os.path.isabs(name):
        return is_installed(name)
    # A package that stands in the working directory is the user's own.
    files = (os.path.join(folder, name) for folder in _package_folders())
    return not os.path.exists(name) and any(os.path.exists(f) and is_installed(f) for f in files)


# Installed packages that the user runs as scripts, or by `-m`: folders, or single files.
_run: set[str] = set()


def is_run(script: str) -> None:
    """Makes the package of a script that is run the user's own, if it is an installed one.

    Its operations are attributed to lines of that package, not of those that it uses.
    """
    real = os.path.realpath(script)
    for folder in map(os.path.realpath, _package_folders()):
        if real.startswith(folder + os.sep):
            first, inside, _ = real[len(folder) + 1 :].partition(os.sep)
            _run.add(os.path.join(folder, first) + inside)


def is_installed(file: str) -> bool:
    """Whether a file belongs to Python, to an installed package, to JAX or to tpusim."""
    real = os.path.realpath(file)
    if real.startswith(tuple(_run)):
        return False
    return real.startswith(_installed()) or _is_listed(real)


@functools.cache
def jax_folders() -> tuple[str, ...]:
    """Returns the folders of JAX's own packages."""
    specs = [importlib.util.find_spec(package) for package in ("jax", "jaxlib")]
    return tuple(os.path.dirname(s.origin) + os.sep for s in specs if s and s.origin)


@functools.cache
def _installed() -> tuple[str, ...]:
    """Folders in which everything is installed; each ends in a slash."""
    ours = os.path.dirname(__file__)
    folders = [sysconfig.get_path("stdlib"), *_environments(), *jax_folders(), ours]
    return tuple(os.path.realpath(folder) + os.sep for folder in folders)


def _environments() -> list[str]:
    """Returns the folders in which Python looks for installed packages."""
    folders = [sysconfig.get_path(p) for p in ("purelib", "platlib")]
    return [*folders, *site.getsitepackages(), site.getusersitepackages()]


@functools.cache
def _elsewhere() -> dict[str, frozenset[str]]:
    """First parts of the files that distributions outside of environments list, by folder."""
    found: dict[str, set[str]] = {}
    for distribution in importlib.metadata.distributions():
        folder = os.path.realpath(str(distribution.locate_file("")))
        if (folder + os.sep).startswith(_installed()):
            continue
        # Others than wheels have no RECORD: a project in whose folder Python was started.
        record = distribution.read_text("RECORD") or ""
        first = {line.split("/")[0].split(",")[0] for line in record.splitlines()}
        found.setdefault(folder, set()).update(first - {"..", ""})
    return {folder: frozenset(parts) for folder, parts in found.items() if parts}


def _is_listed(real: str) -> bool:
    for folder, parts in _elsewhere().items():
        if real.startswith(folder + os.sep) and real[len(folder) + 1 :].split(os.sep)[0] in parts:
            return True
    return False


@functools.cache
def _package_folders() -> tuple[str, ...]:
    of_jax = [os.path.dirname(folder.rstrip(os.sep)) for folder in jax_folders()]
    return tuple(sorted({*_environments(), *_elsewhere(), *of_jax}))
