"""Columns of a store for rows and programs, their types, and a checksum of each.

The table `candidates` has `key`, `config`, `labels` (a JSON object of the names of the space),
`checksum` and the fields of `Row`, in this order, and behind them a column for each name of any
space, for queries by hand. The table `programs` has digest, words, workload and checksum.

A checksum is over all that is read back, so a row of which a bit has changed is not used.
"""

import dataclasses
import json
import math
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from tpusim.search.candidate import Candidate
from tpusim.search.row import Row, Status

VERSION = 3
_SEED = f"tpusim.search.store/{VERSION}"

FIELDS = tuple(field.name for field in dataclasses.fields(Row))
_OPTIONAL = {field.name for field in dataclasses.fields(Row) if field.default is None}
_JSON = {"parts": dict, "owners": dict, "warnings": list}
_TEXT = {"status", "why", "program", "value_of", "found"}
_INTEGERS = {
    *("argument_bytes", "chips", "usable_hbm_bytes", "flops", "peak_hbm_bytes", "devices"),
}

LEADING = ("key", "config", "labels", "checksum")
OF_PROGRAM = ("digest", "words", "workload", "checksum")
COLUMNS = frozenset((*LEADING, *FIELDS))

Values = Sequence[Any]


class UnusableError(ValueError):
    """The stored values are no row, or no program."""


@dataclasses.dataclass(frozen=True)
class StoredRow:
    """A row with what it is found and shown by."""

    key: str
    config: str
    labels: Mapping[str, str]
    row: Row

    @classmethod
    def of(cls, key: str, candidate: Candidate, row: Row) -> "StoredRow":
        """The row of a candidate."""
        return cls(key, candidate.config, candidate.labels, row)

    def values(self) -> list[Any]:
        """The values of the columns in LEADING and FIELDS."""
        shown = json.dumps({name: _text(label) for name, label in self.labels.items()})
        values = [_stored(name, getattr(self.row, name)) for name in FIELDS]
        config = _text(self.config)
        return [self.key, config, shown, _checksum(self.key, config, shown, *values), *values]


@dataclasses.dataclass(frozen=True)
class StoredProgram:
    """A program, compressed, and the options that it runs with."""

    digest: str
    words: tuple[str, ...]
    workload: bytes

    def values(self) -> list[Any]:
        """The values of the columns in OF_PROGRAM."""
        words = json.dumps(list(self.words))
        return [self.digest, words, self.workload, _checksum(self.digest, words, self.workload)]


def columns() -> dict[str, list[tuple[str, str]]]:
    """Names and types of the columns that every store has, by table."""
    leading = zip(LEADING, ("text", "text", "text", "integer"), strict=True)
    of_program = zip(OF_PROGRAM, ("text", "text", "blob", "integer"), strict=True)
    fields = [(name, _type_of(name)) for name in FIELDS]
    return {"candidates": [*leading, *fields], "programs": list(of_program)}


def create() -> list[str]:
    """The statements that make an empty store."""
    statements = []
    for table, (first, *rest) in columns().items():
        listed = [f"{' '.join(first)} primary key", *(" ".join(column) for column in rest)]
        statements.append(f"create table {table} ({', '.join(listed)})")
    return [*statements, f"pragma user_version = {VERSION}"]


def row_of(values: Values) -> StoredRow:
    """The row with these values of LEADING and FIELDS; UnusableError if it is damaged."""
    key, config, labels, checksum, *rest = values
    fields = _as_stored(rest)
    # The values are checked first: "an unknown status" tells more than "a checksum".
    row = _row_with(fields)
    if checksum != _checksum(key, config, labels, *fields):
        raise UnusableError("it is not what was written")
    return StoredRow(key, config, json.loads(labels), row)


def program_of(values: Values) -> StoredProgram:
    """The program with these values of OF_PROGRAM; UnusableError if it is damaged."""
    digest, words, workload, checksum = values
    if checksum != _checksum(digest, words, workload):
        raise UnusableError("a program is not what was written")
    return StoredProgram(digest, tuple(json.loads(words)), workload)


def _type_of(name: str) -> str:
    """The type of a field's column."""
    if name in _TEXT or name in _JSON:
        return "text"
    return "integer" if name in _INTEGERS else "real"


def _text(value: str) -> str:
    """Returns text that SQLite takes: paths in messages may not be UTF-8."""
    return str(value).encode(errors="backslashreplace").decode()


def _stored(name: str, value: Any) -> Any:
    """The value of a field as SQLite gives it back."""
    if name in _JSON:
        return json.dumps(value)
    if value is None or (name in _INTEGERS):
        return value
    if name in _TEXT:
        return _text(value)
    # SQLite has no NaN.
    return None if math.isnan(value) else float(value)


def _as_stored(values: Values) -> list[Any]:
    """Values of FIELDS as SQLite gives them back: a file has whole real numbers as integers."""
    return [
        float(value) if _type_of(name) == "real" and type(value) is int else value
        for name, value in zip(FIELDS, values, strict=True)
    ]


def _row_with(values: Values) -> Row:
    """The row with these values of FIELDS; UnusableError if there is none."""
    found = dict(zip(FIELDS, values, strict=True))
    for name, value in found.items():
        if name in _JSON:
            found[name] = _json(name, value)
        elif value is None and name in _OPTIONAL:
            continue
        elif type(value) is not {"text": str, "integer": int, "real": float}[_type_of(name)]:
            raise UnusableError(f"its {name} is {value!r:.40}")
    if found["status"] not in list(Status):
        raise UnusableError(f"its status {found['status']!r:.40} is unknown")
    found["status"] = Status(found["status"])
    found["warnings"] = tuple(found["warnings"])
    return Row(**found)


def _json(name: str, value: Any) -> Any:
    try:
        parsed = json.loads(value)
    except (TypeError, ValueError, RecursionError):
        raise UnusableError(f"its {name} is no JSON: {value!r:.40}") from None
    items = parsed.values() if isinstance(parsed, dict) else parsed
    of = str if _JSON[name] is list else int | float
    if type(parsed) is not _JSON[name] or not all(isinstance(item, of) for item in items):
        raise UnusableError(f"its {name} is {value!r:.40}")
    return parsed


def _checksum(*values: Any) -> int:
    parts = [value if isinstance(value, bytes) else repr(value).encode() for value in values]
    # repr of text is printable: a zero separates.
    return zlib.crc32(b"\0".join([_SEED.encode(), *parts]))
