"""A text that defines a function: its own source, and that of the user's code it leads to.

Two functions of one definition build the same programs, whichever file or cell they are in and
however they got here. The text of a function is not enough: a helper, a class or a constant that
it names may have changed. So names are followed, through functions, classes and modules that are
the user's own; what is installed goes by its name (the version of JAX is told apart elsewhere).
"""

import functools
import hashlib
import inspect
import pathlib
import types
from collections.abc import Iterable, Iterator
from typing import Any

from tpusim.search.payload import FromFile
from tpusim.search.space import identity
from tpusim.source_files import is_installed


def definition_of(function: Any) -> str:
    """A digest that equal definitions share in every process."""
    told: list[str] = []
    pending: list[Any] = [_unwrapped(function)]
    seen: dict[int, Any] = {}  # kept, lest an address is used again
    while pending:
        value = pending.pop()
        if id(value) in seen:
            continue
        seen[id(value)] = value
        told.append(_text_of(value))
        for name, referred in _referred(value):
            told.append(f"{name} = {_stated(value, referred)}")
            pending += _to_follow(referred)
    return hashlib.sha256("\n".join(told).encode()).hexdigest()


def _unwrapped(value: Any) -> Any:
    """Returns the function inside of one that was jitted, decorated or read from a file."""
    while True:
        if isinstance(value, FromFile):
            value = value.function()
        elif isinstance(getattr(value, "__wrapped__", None), types.FunctionType):
            value = value.__wrapped__
        elif inspect.ismethod(value):
            value = value.__func__
        else:
            return value


def _text_of(value: Any) -> str:
    """Returns the source of a function or class; its compiled code where that is not known."""
    if not isinstance(value, types.FunctionType | type):
        return ""
    try:
        return inspect.cleandoc("\n" + inspect.getsource(value))
    except (TypeError, OSError):
        return "".join(f"{code.co_code.hex()} {code.co_names}" for code in _codes(value))


def _functions(value: Any) -> Iterator[types.FunctionType]:
    """Itself, or the methods of a class."""
    if isinstance(value, types.FunctionType):
        yield value
    elif isinstance(value, type):
        for member in vars(value).values():
            for found in (member, *(getattr(member, n, None) for n in ("fget", "__func__"))):
                if isinstance(found := _unwrapped(found), types.FunctionType):
                    yield found


def _codes(value: Any) -> Iterator[types.CodeType]:
    """Yields the code of a function and of the functions inside of it."""
    pending = [function.__code__ for function in _functions(value)]
    while pending:
        code = pending.pop()
        yield code
        pending += (c for c in code.co_consts if isinstance(c, types.CodeType))


def _referred(value: Any) -> Iterator[tuple[str, Any]]:
    """Names that lead out of a function or class, and to what."""
    if isinstance(value, functools.partial):
        yield from (("func", value.func), ("args", value.args), ("keywords", value.keywords))
        return
    if isinstance(value, type):
        yield from ((base.__name__, base) for base in value.__bases__)
    elif not isinstance(value, types.FunctionType):
        yield type(value).__name__, value  # A callable object.
    used = sorted({name for code in _codes(value) for name in code.co_names})
    for function in _functions(value):
        for name in used:
            if name not in function.__globals__:
                continue
            found = function.__globals__[name]
            yield name, found
            if isinstance(found, types.ModuleType) and _own(found):
                yield from ((n, getattr(found, n)) for n in used if n in vars(found))
        # A cell may be empty as yet.
        cells = (c for c in function.__closure__ or () if c != types.CellType())
        yield from (("cell", cell.cell_contents) for cell in cells)
        yield from (("default", default) for default in function.__defaults__ or ())
        yield from sorted((function.__kwdefaults__ or {}).items())


def _stated(by: Any, value: Any) -> str:
    """Returns the text of a value that a name leads to; followed functions have their own."""
    value = _unwrapped(value)
    if isinstance(value, types.ModuleType):
        return "" if _own(value) else value.__name__
    if isinstance(value, types.FunctionType | type):
        return "" if _own(value) else f"{value.__module__}.{value.__qualname__}"
    if isinstance(value, functools.partial):
        return ""
    # What looks different in every process is as the file says.
    return identity(value) or _file_of(by)


def _to_follow(value: Any) -> Iterable[Any]:
    value = _unwrapped(value)
    if isinstance(value, types.FunctionType | type):
        return [value] if _own(value) else []
    if isinstance(value, functools.partial):
        return [value]
    if isinstance(value, list | tuple | set | frozenset):
        return [v for item in value for v in _to_follow(item)]
    if isinstance(value, dict):
        return [v for item in value.values() for v in _to_follow(item)]
    return [type(value)] if _own(type(value)) else []


def _own(value: Any) -> bool:
    """Whether the user wrote it: in a notebook, or in a file that is not installed."""
    module = value if isinstance(value, types.ModuleType) else inspect.getmodule(value)
    if module is None or module.__name__ == "__main__":
        return True
    file = getattr(module, "__file__", None)
    return bool(file) and not is_installed(file)


def _file_of(value: Any) -> str:
    try:
        file = inspect.getsourcefile(value)
        return hashlib.sha256(pathlib.Path(file).read_bytes()).hexdigest() if file else ""
    except (TypeError, OSError):
        return ""
