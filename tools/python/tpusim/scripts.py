"""Python files of the user: loaded as modules, or run as Python itself runs a script or `-m`.

Either way the file sees what a script sees: `sys.argv` has its own path and arguments, not those of
the program that loads it; the first folder on `sys.path` is its own, so that it finds its
neighbours; `__file__` is absolute. A module of a script whose flags are those of absl has them
parsed, which a script does by `absl.app.run`.
"""

import builtins
import contextlib
import importlib.machinery
import importlib.util
import pathlib
import sys
import traceback
import types
from collections.abc import Iterator, Sequence

from tpusim import source_files
from tpusim.errors import Error

_OURS = str(pathlib.Path(__file__).resolve().parent)
# Modules through which absl's flags are read: `FLAGS`, and what `DEFINE_...` returns.
_ABSL_MODULES = ("absl.flags", "absl.app")
_ABSL_TYPES = ("FlagValues", "FlagHolder")


@contextlib.contextmanager
def command_line(script: str, arguments: Sequence[str] = ()) -> Iterator[None]:
    """In the block `sys.argv` is that of the script."""
    before = sys.argv
    sys.argv = [script, *arguments]
    try:
        yield
    finally:
        sys.argv = before


def load(script: str) -> types.ModuleType:
    """The file as a module, named after it, but not `__main__`; in a block of `command_line`.

    Raises what the file raises; tpusim.Error if it is none, ends the process, or refuses its flags.
    """
    path = pathlib.Path(script).absolute()
    if not path.is_file():
        raise Error(f"{script}: {'a folder' if path.is_dir() else 'no such file'}")
    name = _name_of(path)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise Error(f"{script}: not a Python file: its name does not end in .py")
    _find_neighbours(path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except SystemExit as end:
        raise Error(f"{script}: it ends by {exit_of(end)} when it is loaded") from end
    if _has_flags(module):
        _parse_flags(script)
    return module


def module_of(name: str) -> importlib.machinery.ModuleSpec:
    """Returns the module that `python -m NAME` runs, that of a package being `NAME.__main__`."""
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
    except (ImportError, ValueError) as error:
        raise Error(f"-m {name}: {error}") from error
    if spec is None or not spec.has_location or spec.origin is None:
        raise Error(f"-m {name}: no such module, nor a package with a __main__.py")
    return spec


def run(script: str, spec: importlib.machinery.ModuleSpec | None = None) -> None:
    """Runs a file as `__main__`, in a block of `command_line`; raises what it raises.

    With `spec` it is run as Python runs that module by `-m`.
    """
    path = pathlib.Path(script).absolute()
    source_files.is_run(script)
    if spec is None:
        _find_neighbours(path)
    code = compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
    module = types.ModuleType("__main__")
    vars(module).update(__file__=str(path), __builtins__=builtins)
    if spec is not None:
        vars(module).update(__spec__=spec, __package__=spec.parent, __loader__=spec.loader)
    before = sys.modules["__main__"]
    sys.modules["__main__"] = module
    try:
        exec(code, vars(module))
    finally:
        sys.modules["__main__"] = before


def exit_of(end: SystemExit) -> str:
    """`sys.exit(2)`, as messages say it."""
    return f"sys.exit({'' if end.code is None else repr(end.code)})"


def show(error: BaseException) -> None:
    """Prints an error of the user's code as Python does, without the frames that led to it."""
    trace = whole = error.__traceback__
    while trace is not None and _is_plumbing(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    traceback.print_exception(error.with_traceback(trace or whole))


def _is_plumbing(file: str) -> bool:
    return file.startswith((_OURS, "<frozen importlib"))


def _name_of(path: pathlib.Path) -> str:
    """Returns the file's name, unless a module has it: `json.py` must not replace Python's."""
    name = path.stem
    while name in sys.modules and getattr(sys.modules[name], "__file__", None) != str(path):
        name += "_"
    return name


def _find_neighbours(path: pathlib.Path) -> None:
    folder = str(path.resolve().parent)
    if sys.path[:1] != [folder]:
        sys.path.insert(0, folder)


def _has_flags(module: types.ModuleType) -> bool:
    for value in vars(module).values():
        if isinstance(value, types.ModuleType):
            if value.__name__ in _ABSL_MODULES:
                return True
        elif type(value).__module__.startswith("absl.") and type(value).__name__ in _ABSL_TYPES:
            return True
    return False


def _parse_flags(script: str) -> None:
    flags = importlib.import_module("absl.flags")
    if flags.FLAGS.is_parsed():
        return
    try:
        flags.FLAGS(sys.argv)
    except flags.Error as error:
        raise Error(f"{script}: {error}") from error
