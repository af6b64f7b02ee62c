"""JSON as typed Python: frozen dataclasses that say which keys there are and of which type.

    @dataclasses.dataclass(frozen=True)
    class Link:
        chip: int
        direction: str

    link = read(Link, {"chip": 0, "direction": "x+"})

A field is the key of its own name, or of `metadata=key("name")` where that name is taken. It is of
a plain type, of another such class, or a tuple of either; `dict[str, T]` is an object as it is.
`T | None` is a `T`, and None where the key is missing.
Keys that no field knows are passed over, so that what a newer version writes can be read; a key
that may be missing needs a default.
"""

import dataclasses
import functools
import json
import types
import typing
from typing import Any, TypeVar

T = TypeVar("T")

# Names in JSON of Python's types.
_JSON_NAMES = {
    dict: "an object",
    list: "a list",
    str: "a string",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    type(None): "null",
}


def key(name: str) -> dict[str, str]:
    """Metadata of a field that is called something else in the JSON."""
    return {"key": name}


# Metadata of a field that is not in the JSON.
NO_KEY = key("")


@functools.cache
def keys_of(cls: type) -> dict[str, tuple[str, Any]]:
    """Name and type of the field for each key."""
    hints = typing.get_type_hints(cls)
    return {
        field.metadata.get("key", field.name): (field.name, hints[field.name])
        for field in dataclasses.fields(cls)
        if field.init and field.metadata.get("key", field.name)
    }


@functools.cache
def _required(cls: type) -> tuple[str, ...]:
    """The keys that have to be there."""
    missing = dataclasses.MISSING
    optional = {
        field.name
        for field in dataclasses.fields(cls)
        if field.default is not missing or field.default_factory is not missing
    }
    return tuple(k for k, (name, _) in keys_of(cls).items() if name not in optional)


def parse(text: str, schema: str) -> dict[str, Any]:
    """The JSON object of this schema in the text; ValueError that says what it is instead."""
    value = _json(text)
    if not isinstance(value, dict):
        raise ValueError(f"{_name(value)}, not a JSON object")
    if "schema" not in value:
        raise ValueError(f"an object without a schema, not of schema {schema}")
    found = value["schema"]
    if found != schema:
        family = schema.partition("/")[0] + "/"
        other = isinstance(found, str) and found.startswith(family)
        why = ": written by another version of tpusim" if other else ""
        raise ValueError(f"its schema is not {schema} but {found!r:.80}{why}")
    return value


def _json(text: str) -> Any:
    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not a number of JSON")

    try:
        return json.loads(text, parse_constant=refuse)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated"):
            raise ValueError(f"the JSON is cut off at {place}") from None
        raise ValueError(f"not JSON at {place}: {error.msg}") from None
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None


def read(cls: type[T], value: Any, place: str = "") -> T:
    """The JSON object as a `cls`; ValueError if it is none, which says where it is not.

    `place` is that of the object in the whole: "ops[3]".
    """
    if not isinstance(value, dict):
        raise ValueError(_wrong(place, "an object", value))
    before = f"{place}." if place else ""
    given = {
        name: _value(of, value[k], before + k)
        for k, (name, of) in keys_of(cls).items()
        if k in value
    }
    for k in _required(cls):
        if k not in value:
            raise ValueError(f"{before}{k} is missing")
    return cls(**given)


def _value(of: Any, value: Any, place: str) -> Any:
    if typing.get_origin(of) is types.UnionType:
        (of,) = (each for each in typing.get_args(of) if each is not types.NoneType)
    if typing.get_origin(of) is tuple:
        if not isinstance(value, list):
            raise ValueError(_wrong(place, "a list", value))
        (element, _) = typing.get_args(of)
        return tuple(_value(element, v, f"{place}[{i}]") for i, v in enumerate(value))
    if dataclasses.is_dataclass(of):
        return read(typing.cast(type, of), value, place)
    # Whole numbers may stand for real ones; nothing else is converted.
    if of is float and type(value) is int:
        return _real(value, place)
    plain = typing.get_origin(of) or of
    if type(value) is not plain:
        raise ValueError(_wrong(place, _JSON_NAMES[plain], value))
    return value


def _real(value: int, place: str) -> float:
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{place}: a number of {len(str(value))} digits") from None


def _name(value: Any) -> str:
    return _JSON_NAMES.get(type(value), type(value).__name__)


def _wrong(place: str, expected: str, value: Any) -> str:
    """One line on a value of another type."""
    shown = f" ({value!r:.60})" if isinstance(value, str | int | float) else ""
    return f"{place + ': ' if place else ''}{_name(value)}{shown} instead of {expected}"
