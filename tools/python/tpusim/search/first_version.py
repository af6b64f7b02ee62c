"""Stores of the first version, which had no checksums, and names of spaces in columns alone."""

import gzip
import json
import sqlite3
import zlib
from collections.abc import Iterator, Sequence

from tpusim.search import layout
from tpusim.search.keys import digest_of
from tpusim.search.layout import StoredProgram, StoredRow, UnusableError

VERSION = 1
# Before the fields; behind them there is a column for each name of any space.
_LEADING = ("key", "config")
_FIXED = len(_LEADING) + len(layout.FIELDS)


def row_of(columns: Sequence[str], values: layout.Values) -> StoredRow:
    """The row with these values; UnusableError if it is none.

    `columns` may be empty, where the schema is lost, and with it what the labels are of.
    """
    if len(values) < _FIXED:
        raise UnusableError("it has too few values")
    key, config, *fields = values[:_FIXED]
    if not isinstance(key, str) or not isinstance(config, str):
        raise UnusableError("its key is not text")
    shown = zip(columns[_FIXED:], values[_FIXED:], strict=False)
    labels = {name: label for name, label in shown if isinstance(label, str)}
    return StoredRow(key, config, labels, layout.row_with(layout.as_stored(fields)))


def program_of(values: layout.Values) -> StoredProgram:
    """The program with these values; UnusableError if it is none. Its digest is its checksum."""
    if len(values) != 3:
        raise UnusableError("it has not three values")
    digest, text, workload = values
    try:
        words = tuple(json.loads(text))
        sound = digest == digest_of(gzip.decompress(workload), words)
    except (TypeError, ValueError, AttributeError, EOFError, OSError, zlib.error):
        sound = False
    if not sound:
        raise UnusableError("a program is not what was written")
    return StoredProgram(digest, words, workload)


def columns_in(schema: str) -> list[str]:
    """Those of the table that the statement creates."""
    with sqlite3.connect(":memory:") as database:
        try:
            database.execute(schema)
        except sqlite3.Error:
            return []
        return [name for _, name, *_ in database.execute("pragma table_info(candidates)")]


def contents(database: sqlite3.Connection) -> Iterator[StoredRow | StoredProgram | UnusableError]:
    """All that a store of this version has."""
    columns = [name for _, name, *_ in database.execute("pragma table_info(candidates)")]
    if tuple(columns[:_FIXED]) != (*_LEADING, *layout.FIELDS):
        raise sqlite3.DatabaseError("its columns are not those of a store")
    for values in database.execute("select * from candidates order by rowid"):
        try:
            yield row_of(columns, values)
        except UnusableError as error:
            yield error
    for values in database.execute("select * from programs order by rowid"):
        try:
            yield program_of(values)
        except UnusableError as error:
            yield error
