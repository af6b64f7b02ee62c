"""The results of searches in an SQLite file: a row per candidate, committed as it is known.

    pandas.read_sql("select * from candidates", sqlite3.connect("search.sqlite"))

A column for each name of the space has the label of the value, and `labels` has all of them as
JSON; the others are the fields of `Row`. Names that differ only in small and capital letters share
a column, since SQL does not tell them apart. Programs are kept in a table of their own, by digest,
so that a search that is continued need not export them again. One store may hold many searches; a
row is found by a key that says what was asked: the values, the slice, the options, what `build` is
made of, and the versions of tpusim and JAX. How the search was begun, in a shell, a script or a
notebook, makes no difference.

Searches may share a store while they run. Every change is a transaction that begins with the lock
to write, so that none is rolled back halfway; a search that waits for the lock longer than a minute
ends with an error. There is no write-ahead log: the store is one file, which may be copied, or lie
on a disk of the network. A row or program whose checksum is wrong is done again; a file that SQLite
calls damaged is an error with the command that saves what can be read.
"""

import contextlib
import os
import shlex
import sqlite3
import warnings
from collections.abc import Iterator, Sequence

from tpusim import files
from tpusim.errors import Error
from tpusim.search import layout
from tpusim.search.candidate import Candidate
from tpusim.search.layout import StoredProgram, StoredRow, UnusableError
from tpusim.search.row import Row

MEMORY = ":memory:"
# The longest wait for another search's transaction, in seconds.
PATIENCE_SECONDS = 60.0
# SQLite has 2000 columns at most; names beyond are in `labels` alone.
_MOST_COLUMNS = 1000

# Codes of SQLite for a file that is damaged, or no database.
_OF_DAMAGE = (
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_FORMAT,
    sqlite3.SQLITE_ERROR,
)


class StoreWarning(UserWarning):
    """Rows or programs of a store are damaged, and are done again."""


class Store:
    """An open store; the path ":memory:" is a store that no file keeps."""

    def __init__(self, path: str | os.PathLike[str]):
        """Opens the file, or begins it; tpusim.Error if it is damaged or no store."""
        self._path = files.check_target(path, "store") if path != MEMORY else MEMORY
        self._unusable: list[str] = []
        with self._told():
            self._database = _opened(self._path)

    def close(self) -> None:
        """Closes the file; every change is in it already."""
        self._database.close()

    def rows(self, keys: Sequence[str]) -> dict[str, Row]:
        """Returns the rows of those keys that are there and whose checksums are right."""
        found = {}
        names = ", ".join((*layout.LEADING, *layout.FIELDS))
        with self._told():
            for key in keys:
                values = self._database.execute(
                    f"select {names} from candidates where key = ?", (key,)
                ).fetchone()
                if values is None:
                    continue
                try:
                    found[key] = layout.row_of(values).row
                except UnusableError as error:
                    self._unusable.append(str(error))
        return found

    def put(self, key: str, candidate: Candidate, row: Row) -> None:
        """Adds or replaces one row."""
        with self._told(), _transaction(self._database):
            _put(self._database, StoredRow.of(key, candidate, row))

    def put_program(self, digest: str, program: bytes, words: Sequence[str]) -> None:
        """Keeps a program and the options it runs with."""
        values = StoredProgram(digest, tuple(words), program).values()
        with self._told(), _transaction(self._database):
            self._database.execute("insert or replace into programs values (?, ?, ?, ?)", values)

    def program(self, digest: str) -> tuple[bytes, tuple[str, ...]] | None:
        """Returns the program and its options; None if it is not there, or damaged."""
        with self._told():
            values = self._database.execute(
                f"select {', '.join(layout.OF_PROGRAM)} from programs where digest = ?", (digest,)
            ).fetchone()
        if values is None:
            return None
        try:
            found = layout.program_of(values)
        except UnusableError as error:
            self._unusable.append(str(error))
            return None
        return found.workload, found.words

    def tell(self) -> None:
        """Warns, in one line, of rows and programs found damaged since the last call."""
        if self._unusable:
            count, first = len(self._unusable), self._unusable[0]
            what = "1 row or program is" if count == 1 else f"{count} rows or programs are"
            line = f"{self._path}: {what} damaged, and done again: {first}"
            warnings.warn(line, StoreWarning, stacklevel=2)
            self._unusable.clear()

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """Turns errors of SQLite in the block into a tpusim.Error that says what to do."""
        try:
            yield
        except sqlite3.Error as error:
            raise Error(f"{self._path}: {_what_to_do(self._path, error)}") from error
        except UnicodeDecodeError as error:
            # SQLite repeats text of a damaged schema in its message.
            raise Error(f"{self._path}: {_damaged(self._path, 'its schema is no text')}") from error


def _what_to_do(path: str, error: sqlite3.Error) -> str:
    said = " ".join(str(error).split())
    # The primary code; an error of the module itself has none.
    match getattr(error, "sqlite_errorcode", 0) & 0xFF:
        case sqlite3.SQLITE_BUSY:
            return (
                f"locked by another process for {PATIENCE_SECONDS:.0f} s; search again "
                "when that has ended"
            )
        case sqlite3.SQLITE_FULL:
            return "the disk is full; search again when there is room"
        case code if code in _OF_DAMAGE:
            return _damaged(path, said)
    return f"{said}; what is finished is in it"


def _damaged(path: str, said: str) -> str:
    recovered = f"sqlite3 {shlex.quote(path)} .recover | sqlite3 NEW.sqlite"
    return (
        f"damaged ({said}); what can be read is saved by: {recovered}; name that, or another file"
    )


def _opened(path: str) -> sqlite3.Connection:
    database = sqlite3.connect(path, timeout=PATIENCE_SECONDS, isolation_level=None)
    # A checksum finds text that is damaged.
    database.text_factory = lambda data: data.decode(errors="backslashreplace")
    try:
        with _transaction(database):
            _prepare(database, path)
    except BaseException:
        database.close()
        raise
    return database


def _prepare(database: sqlite3.Connection, path: str) -> None:
    """Makes the tables of an empty file, or checks those that there are."""
    version = database.execute("pragma user_version").fetchone()[0]
    names = {name for (name,) in database.execute("select name from sqlite_master")}
    if not names and version == 0:
        for statement in layout.create():
            database.execute(statement)
        return
    (said,) = database.execute("pragma integrity_check(1)").fetchone()
    if said != "ok":
        raise Error(f"{path}: {_damaged(path, ' '.join(said.split()))}")
    if names and not {"candidates", "programs"} <= names:
        raise Error(f"{path}: a database, but not of a search; name another file")
    if version != layout.VERSION or not _has_its_columns(database):
        raise Error(f"{path}: written by another version of tpusim; name another file")


def _has_its_columns(database: sqlite3.Connection) -> bool:
    for table, expected in layout.columns().items():
        found = database.execute(f"pragma table_info({table})")
        # SQLite shows types in capitals, or as they were written.
        if [(name, of.lower()) for _, name, of, *_ in found][: len(expected)] != expected:
            return False
    return True


def _put(database: sqlite3.Connection, stored: StoredRow) -> None:
    # By names in small letters; another search may have added some.
    columns = {n.lower(): n for _, n, *_ in database.execute("pragma table_info(candidates)")}
    for name in stored.labels:
        if name.lower() not in columns and len(columns) < _MOST_COLUMNS:
            database.execute(f"alter table candidates add column [{name}] text")
            columns[name.lower()] = name
    fixed = zip((*layout.LEADING, *layout.FIELDS), stored.values(), strict=True)
    shown = {columns[n.lower()]: v for n, v in stored.labels.items() if n.lower() in columns}
    values = {**shown, **dict(fixed)}
    # In brackets what is no column is an error, in quotes a text.
    names = ", ".join(f"[{name}]" for name in values)
    marks = ", ".join("?" * len(values))
    database.execute(
        f"insert or replace into candidates ({names}) values ({marks})", list(values.values())
    )


@contextlib.contextmanager
def _transaction(database: sqlite3.Connection) -> Iterator[None]:
    """Commits the block as a whole, or nothing of it."""
    database.execute("begin immediate")
    try:
        yield
        database.execute("commit")
    except BaseException:
        if database.in_transaction:
            database.execute("rollback")
        raise
