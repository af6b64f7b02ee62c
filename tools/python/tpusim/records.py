"""JSON as typed Python: frozen dataclasses that say which keys there are and of which type.

    @dataclasses.dataclass(frozen=True)
    class Link:
        chip: int
        direction: str

    link = read(Link, {"chip": 0, "direction": "x+"})

A field is the key of its own name, or of `metadata=key("name")` where that name is taken. It is of
a plain type, of another such class, or a tuple of either. Keys that no field knows are passed over,
so that what a newer version writes can be read; a key that may be missing needs a default.
"""

import dataclasses
import functools
import typing
from typing import Any, TypeVar

T = TypeVar("T")


def key(name: str) -> dict[str, str]:
    """Metadata of a field that is called something else in the JSON."""
    return {"key": name}


# Metadata of a field that is not in the JSON.
NO_KEY = key("")


@functools.cache
def keys_of(cls: type) -> dict[str, tuple[str, Any]]:
    """Name and type of the field for each key."""
    types = typing.get_type_hints(cls)
    return {
        field.metadata.get("key", field.name): (field.name, types[field.name])
        for field in dataclasses.fields(cls)
        if field.init and field.metadata.get("key", field.name)
    }


def read(cls: type[T], value: Any) -> T:
    """The JSON object as a `cls`; TypeError, ValueError or KeyError if it is none."""
    if not isinstance(value, dict):
        raise TypeError(f"{cls.__name__}: not an object")
    given = {name: _value(of, value[k]) for k, (name, of) in keys_of(cls).items() if k in value}
    return cls(**given)


def _value(of: Any, value: Any) -> Any:
    if typing.get_origin(of) is tuple:
        (element, _) = typing.get_args(of)
        return tuple(_value(element, v) for v in value)
    if dataclasses.is_dataclass(of):
        return read(of, value)
    # Whole numbers may stand for real ones; nothing else is converted.
    if of is float and type(value) is int:
        return float(value)
    if type(value) is not of:
        raise TypeError(f"{value!r} is not of type {of.__name__}")
    return value
