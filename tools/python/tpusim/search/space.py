"""The candidates of a space: every combination of values, on every slice.

    space = {
        "mesh": [(8, 1), (4, 2), (2, 4)],
        "rules": {"fsdp": FSDP_RULES, "tp": TP_RULES},    # labels for what has no short name
        "batch": [64, 128],
    }

A label and its value tell a candidate from others, also in the store that a later search reads: a
value must have a text of its own that is the same in every process. Numbers, strings, functions
and dataclasses have, and containers of these.
"""

import functools
import hashlib
import itertools
import pathlib
import re
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tpusim.errors import Error
from tpusim.search.candidate import Candidate
from tpusim.search.failures import text_of
from tpusim.search.layout import COLUMNS
from tpusim.search.payload import FromFile

Space = Mapping[str, Iterable[Any] | Mapping[str, Any]]

_MOST_LABEL = 40
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
# Names of a candidate's attributes and of the table's columns, which a space cannot use.
_TAKEN = COLUMNS | {
    *("identities", "name", "rank", "reason", "tokens"),
    *(attribute for attribute in vars(Mapping) if not attribute.startswith("__")),
}


def candidates(
    space: Space, configs: Sequence[str], where: Callable[[Candidate], bool] | None
) -> list[Candidate]:
    """In the order of the lists: slices first, then names, the last one changing fastest."""
    if not configs:
        raise Error("search: configs: name at least one slice")
    _check_names(space)
    choices = [[(name, *choice) for choice in _choices(name, space[name])] for name in space]
    found = []
    for config in dict.fromkeys(configs):
        for chosen in itertools.product(*choices):
            candidate = Candidate(
                config,
                {name: value for name, value, _, _ in chosen},
                {name: label for name, _, label, _ in chosen},
                {name: identity for name, _, _, identity in chosen},
            )
            if where is None or _is_wanted(candidate, where):
                found.append(candidate)
    if not found:
        raise Error("search: the space is empty")
    return found


def _is_wanted(candidate: Candidate, where: Callable[[Candidate], bool]) -> bool:
    try:
        return bool(where(candidate))
    except Exception as error:
        raise Error(f"search: where of {candidate.name}: {text_of(error)}") from error


def _check_names(space: Space) -> None:
    """Each becomes an attribute of candidates, and a column of tables."""
    known: dict[str, str] = {}
    for name in space:
        if not isinstance(name, str) or not name.isidentifier():
            why = "give it letters, digits and '_', the first no digit"
        elif name.startswith("_"):
            why = "it begins with '_'"
        # SQL does not tell small letters from capitals.
        elif name.lower() in _TAKEN:
            why = "candidates and tables have something else of this name; choose another"
        elif name.lower() in known:
            why = f"tables do not tell it from {known[name.lower()]!r}; choose another"
        else:
            known[name.lower()] = name
            continue
        raise Error(f"search: {name!r}: not a name that a space can have: {why}")


def _choices(name: str, values: Iterable[Any]) -> list[tuple[Any, str, str]]:
    """Value, label and identity."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise Error(f"search: {name}: a list of values, not {values!r}")
    if isinstance(values, Mapping):
        labelled = [(value, str(label)) for label, value in values.items()]
        return [(value, label, f"{label}: {identity(value) or ''}") for value, label in labelled]
    listed = list(values)
    identities = [identity(value) for value in listed]
    for value, text in zip(listed, identities, strict=True):
        if text is None:
            raise Error(
                f"search: {name}: {value!r} looks different in every process; give it a label: "
                "{'label': value, ...} instead of a list"
            )
    if len(set(identities)) < len(identities):
        raise Error(f"search: {name}: a value is listed twice")
    labels = [label_of(value) for value in listed]
    if len(set(labels)) < len(labels):
        labels = [f"{label}#{number}" for number, label in enumerate(labels)]
    return [(v, a, str(i)) for v, a, i in zip(listed, labels, identities, strict=True)]


def label_of(value: Any) -> str:
    """A few words for a table: a mesh shape is 4x2, a function its name."""
    if isinstance(value, str):
        text = value
    elif isinstance(value, tuple) and value and all(type(v) is int for v in value):
        text = "x".join(map(str, value))
    else:
        text = getattr(value, "__qualname__", None) or repr(value)
    # Axis orders differ at the end as often as in the beginning.
    return text if len(text) <= _MOST_LABEL else f"{text[: _MOST_LABEL - 4]}...{text[-1]}"


def identity(value: Any) -> str | None:
    """A text that equal values share in every process; None if there is none."""
    if isinstance(value, functools.partial):
        parts = [identity(p) for p in (value.func, value.args, value.keywords)]
        return None if None in parts else f"partial({', '.join(map(str, parts))})"
    if isinstance(value, FromFile):
        value = value.function()
    # Some objects of C++ are callable and have a name that is None.
    if callable(value) and isinstance(getattr(value, "__qualname__", None), str):
        code = getattr(value, "__code__", None)
        if getattr(value, "__closure__", None) or "<lambda>" in value.__qualname__:
            return None
        body = f"{code.co_code!r}{code.co_consts!r}{code.co_names!r}" if code else ""
        if _ADDRESS.search(body):
            body = code.co_code.hex() if code else ""
        digest = hashlib.sha256(body.encode()).hexdigest()[:16]
        return f"{_home(value, code)}.{value.__qualname__}:{digest}"
    if isinstance(value, Mapping):
        return _joined(value.items(), "{}")
    if isinstance(value, list | tuple):
        return _joined(value, "()")
    if isinstance(value, set | frozenset):
        parts = [identity(v) for v in value]
        return None if None in parts else "{" + ", ".join(sorted(map(str, parts))) + "}"
    if hasattr(value, "tolist"):
        return identity(value.tolist())  # The text of a large array leaves out most of it.
    text = repr(value)
    return None if _ADDRESS.search(text) else text


def _home(value: Any, code: types.CodeType | None) -> str:
    """Returns the file of a function; it is the same whether run, loaded or imported."""
    if code is None:
        return str(value.__module__)
    path = pathlib.Path(code.co_filename)
    return path.stem if path.is_file() else ""


def _joined(values: Iterable[Any], brackets: str) -> str | None:
    parts = [identity(value) for value in values]
    return None if None in parts else brackets[0] + ", ".join(map(str, parts)) + brackets[1]
