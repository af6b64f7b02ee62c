"""Which of a program's source files are the user's own and which belong to packages."""

import functools
import importlib.util
import os
import pathlib
import sysconfig

from tpusim import wire

# Of HloModuleProto and of its StackFrameIndexProto.
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
    """Those of a serialized HloModuleProto's source files that are installed packages'.

    Names are as the module has them: relative to the working directory or to where packages are.
    """
    index = wire.parse(wire.last_bytes(wire.parse(module), _STACK_FRAME_INDEX))
    names = [name.decode(errors="replace") for name in wire.all_bytes(index, _FILE_NAMES)]
    return tuple(sorted({name for name in names if _is_installed(name)}))


def _is_installed(name: str) -> bool:
    if os.path.isabs(name):
        standard = sysconfig.get_path("stdlib")
        return name.startswith(standard.rstrip("/") + "/")
    # A package that stands in the working directory is the user's own.
    return not os.path.exists(name) and any(
        os.path.exists(os.path.join(folder, name)) for folder in _package_folders()
    )


@functools.cache
def _package_folders() -> tuple[str, ...]:
    folders = {sysconfig.get_path(p) for p in ("purelib", "platlib")}
    jax = importlib.util.find_spec("jax")
    if jax is not None and jax.origin is not None:
        folders.add(str(pathlib.Path(jax.origin).parents[1]))
    return tuple(sorted(folders))
