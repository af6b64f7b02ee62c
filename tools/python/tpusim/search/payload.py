"""Functions and values on their way to another process.

What can be imported there goes by its name. What a notebook or the main file of a script defines
cannot: it goes as a whole, by cloudpickle, if that is installed.
"""

import functools
import pathlib
import pickle
import types
from collections.abc import Callable
from typing import Any

from tpusim import scripts
from tpusim.errors import Error
from tpusim.search.failures import text_of


def dumps(value: Any, what: str) -> bytes:
    """The value as bytes; tpusim.Error if it cannot travel."""
    try:
        import cloudpickle
    except ImportError:
        cloudpickle = None
    try:
        plain = None if cloudpickle else pickle.dumps(value)
        if plain is not None and b"__main__" in plain:
            raise pickle.PicklingError("defined in the main file or in a notebook")
        return plain if plain is not None else cloudpickle.dumps(value)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        hint = "" if cloudpickle else "; pip install cloudpickle"
        raise Error(f"search: {what} cannot be sent to another process: {error}{hint}") from error


@functools.lru_cache(maxsize=8)
def loads_shared(data: bytes) -> Any:
    """Unpickles what many tasks share, once per process."""
    return pickle.loads(data)


class FromFile:
    """A function of a Python file, loaded where it is called."""

    def __init__(self, path: str, name: str):
        self.path = str(pathlib.Path(path).resolve())
        self.name = name

    def __repr__(self) -> str:
        return f"{self.path}:{self.name}"

    def __call__(self, *args: Any) -> Any:
        """Calls it; it sees the command line of a script without arguments."""
        with scripts.command_line(self.path):
            return self.function()(*args)

    def function(self) -> Callable[..., Any]:
        """The function itself."""
        return getattr(load_file(self.path), self.name)


@functools.cache
def load_file(path: str) -> types.ModuleType:
    """The file as a module, with its folder on the path; once per process."""
    try:
        with scripts.command_line(path):
            return scripts.load(path)
    except Error:
        raise
    except Exception as error:
        raise Error(f"{path}: {text_of(error)}") from error
