"""The results of searches in an SQLite file: a row per candidate, committed as it is known.

    pandas.read_sql("select * from candidates", sqlite3.connect("search.sqlite"))

A column for each name of the space has the label of the value, and `labels` has all of them as
JSON; the others are the fields of `Row`. Names that differ only in small and capital letters share
a column, since SQL does not tell them apart. Programs are kept beside, by their digests, so that a
search that is continued need not export them again. One store may hold many searches; rows are
found by a key that says what was asked: the values, the slice, the options, what `build` is made
of, and the versions of tpusim and JAX. How the search was begun, in a shell, a script or a
notebook, makes no difference.

Searches may share a store while they run. Every change is a transaction that begins with the lock
to write, so that none has to be given up halfway; who waits for the lock longer than a minute is
told. There is no write-ahead log: the store is one file, that may be copied, or lie on a disk of
the network. What was damaged is restored (salvage.py) or, row by row, done again.
"""

import contextlib
import os
import sqlite3
import warnings
from collections.abc import Iterator, Sequence

from tpusim import files
from tpusim.errors import Error
from tpusim.search import first_version, layout, pages, salvage
from tpusim.search.candidate import Candidate
from tpusim.search.layout import StoredProgram, StoredRow, UnusableError
from tpusim.search.row import Row

MEMORY = ":memory:"
# Versions to come; any other number in their place is damage.
_LATER_VERSIONS = range(layout.VERSION + 1, 100)
# SQLite has 2000 columns at most; names beyond are in `labels` alone.
_MOST_COLUMNS = 1000

# Of a file that is damaged, or no store; others tell of locks, rights, disks.
_OF_DAMAGE = (
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_FORMAT,
    sqlite3.SQLITE_ERROR,
)


class StoreWarning(UserWarning):
    """Something in a store could not be used."""


class _DamagedError(Exception):
    """The file is no store, or no sound one; says what is wrong with it."""


class Store:
    """Opens or begins the file; ":memory:" is none."""

    def __init__(self, path: str | os.PathLike[str]):
        self._path = files.check_target(path, "store") if path != MEMORY else MEMORY
        self._unusable: list[str] = []
        with self._told():
            try:
                self._database = _opened(self._path, self._unusable)
            except _DamagedError as damage:
                line = salvage.restore(self._path, str(damage), _is_sound, _write)
                if line:
                    _warn(line)
                self._database = self._opened_again()
        self.tell()

    def _opened_again(self) -> sqlite3.Connection:
        try:
            return _opened(self._path, self._unusable)
        except _DamagedError as damage:
            raise Error(f"{self._path}: {damage}") from damage

    def close(self) -> None:
        """Nothing is lost without."""
        self._database.close()

    def rows(self, keys: Sequence[str]) -> dict[str, Row]:
        """Those of the keys that there are, and that are sound."""
        found = {}
        names = ", ".join((*layout.LEADING, *layout.FIELDS))
        with self._told():
            # Another search may add the column meanwhile: it has rows of its own in it.
            names += f", {layout.FOUND if layout.FOUND in _columns(self._database) else 'null'}"
            for key in keys:
                values = self._database.execute(
                    f"select {names} from candidates where key = ?", (key,)
                ).fetchone()
                if values is None:
                    continue
                try:
                    found[key] = layout.row_of(values[:-1], values[-1:]).row
                except UnusableError as error:
                    self._unusable.append(str(error))
        return found

    def put(self, key: str, candidate: Candidate, row: Row) -> None:
        """Adds or replaces one row."""
        with self._told(), _transaction(self._database):
            _put(self._database, StoredRow.of(key, candidate, row))

    def put_program(self, digest: str, program: bytes, words: Sequence[str]) -> None:
        """Keeps a program and the options it runs with."""
        with self._told(), _transaction(self._database):
            _put_program(self._database, StoredProgram(digest, tuple(words), program))

    def program(self, digest: str) -> tuple[bytes, tuple[str, ...]] | None:
        """The program and its options, if they are there and sound."""
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
        """Warns of what could not be used since the last time, in one line."""
        if self._unusable:
            count, first = len(self._unusable), self._unusable[0]
            what = "1 row or program is" if count == 1 else f"{count} rows or programs are"
            _warn(f"{self._path}: {what} damaged, and done again: {first}")
            self._unusable.clear()

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """Errors of SQLite are those of users."""
        try:
            yield
        except sqlite3.Error as error:
            raise Error(f"{self._path}: {_what_to_do(error)}") from error
        except UnicodeDecodeError as error:
            raise Error(f"{self._path}: damaged while it was in use; search again") from error


def _code(error: sqlite3.Error) -> int:
    """The primary one; an error of the module itself has none."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _what_to_do(error: sqlite3.Error) -> str:
    said = " ".join(str(error).split())
    match _code(error):
        case sqlite3.SQLITE_BUSY:
            return (
                f"locked by another process for {salvage.PATIENCE_SECONDS:.0f} s; search again "
                "when that has ended"
            )
        case sqlite3.SQLITE_FULL:
            return "the disk is full; search again when there is room"
        case code if code in _OF_DAMAGE:
            return f"damaged while it was in use ({said}); search again"
    return f"{said}; what is finished is in it"


def _warn(line: str) -> None:
    warnings.warn(line, StoreWarning, stacklevel=3)


def _opened(path: str, unusable: list[str]) -> sqlite3.Connection:
    """The store; _DamagedError if the file is none, or damaged."""
    database = sqlite3.connect(path, timeout=salvage.PATIENCE_SECONDS, isolation_level=None)
    # A checksum finds text that is damaged.
    database.text_factory = lambda data: data.decode(errors="backslashreplace")
    try:
        with _transaction(database):
            _prepare(database, path != MEMORY, unusable)
    except sqlite3.Error as error:
        database.close()
        if _code(error) in _OF_DAMAGE or _is_only_read(path, error):
            raise _DamagedError(f"damaged ({' '.join(str(error).split())})") from error
        raise
    except UnicodeDecodeError as error:
        # Of a message that repeats what is damaged.
        database.close()
        raise _DamagedError("damaged (its schema is no text)") from error
    except BaseException:
        database.close()
        raise
    return database


def _is_only_read(path: str, error: sqlite3.Error) -> bool:
    """Whether SQLite takes the file for one of a version that it may not write to."""
    if _code(error) != sqlite3.SQLITE_READONLY or path == MEMORY:
        return False
    return not pages.has_sound_header(files.read_bytes(path))


def _prepare(database: sqlite3.Connection, check: bool, unusable: list[str]) -> None:
    """Makes the tables, or checks those that there are."""
    version = database.execute("pragma user_version").fetchone()[0]
    names = {name for (name,) in database.execute("select name from sqlite_master")}
    if not names and version == 0:
        for statement in layout.create():
            database.execute(statement)
        return
    if version in _LATER_VERSIONS:
        raise _DamagedError("written by another version of tpusim")
    if not {"candidates", "programs"} <= names:
        raise _DamagedError("a database, but not of a search")
    if check:
        (said,) = database.execute("pragma integrity_check(1)").fetchone()
        if said != "ok":
            raise _DamagedError(f"damaged ({' '.join(said.split())})")
    if version == first_version.VERSION:
        _convert(database, unusable)
    elif version != layout.VERSION or not _has_its_columns(database):
        raise _DamagedError("damaged (its version and its columns do not agree)")


def _has_its_columns(database: sqlite3.Connection) -> bool:
    for table, expected in layout.columns().items():
        found = database.execute(f"pragma table_info({table})")
        # SQLite shows types in capitals, or as they were written.
        if [(name, of.lower()) for _, name, of, *_ in found][: len(expected)] != expected:
            return False
    return True


def _convert(database: sqlite3.Connection, unusable: list[str]) -> None:
    """From the first version to this one."""
    contents = list(first_version.contents(database))
    database.execute("drop table candidates")
    database.execute("drop table programs")
    for statement in layout.create():
        database.execute(statement)
    for it in contents:
        if isinstance(it, StoredRow):
            _put(database, it)
        elif isinstance(it, StoredProgram):
            _put_program(database, it)
        else:
            unusable.append(str(it))


def _put(database: sqlite3.Connection, stored: StoredRow) -> None:
    columns = _columns(database)

    def add(name: str) -> None:
        database.execute(f"alter table candidates add column [{name}] text")
        columns[name.lower()] = name

    if stored.row.found and layout.FOUND not in columns:
        add(layout.FOUND)
    for name in stored.labels:
        if name.lower() not in columns and len(columns) < _MOST_COLUMNS:
            add(name)
    fixed = zip((*layout.LEADING, *layout.FIELDS), stored.values(), strict=True)
    shown = {columns[n.lower()]: v for n, v in stored.labels.items() if n.lower() in columns}
    values = {**shown, **dict(fixed)}
    if layout.FOUND in columns:
        values[columns[layout.FOUND]] = stored.found()
    # In brackets what is no column is an error, in quotes a text.
    names = ", ".join(f"[{name}]" for name in values)
    marks = ", ".join("?" * len(values))
    database.execute(
        f"insert or replace into candidates ({names}) values ({marks})", list(values.values())
    )


def _put_program(database: sqlite3.Connection, stored: StoredProgram) -> None:
    database.execute("insert or replace into programs values (?, ?, ?, ?)", stored.values())


def _columns(database: sqlite3.Connection) -> dict[str, str]:
    """By their names in small letters; another search may have added some."""
    found = database.execute("pragma table_info(candidates)")
    return {name.lower(): name for _, name, *_ in found}


@contextlib.contextmanager
def _transaction(database: sqlite3.Connection) -> Iterator[None]:
    """All of the block, or nothing."""
    database.execute("begin immediate")
    try:
        yield
        database.execute("commit")
    except BaseException:
        if database.in_transaction:
            database.execute("rollback")
        raise


def _is_sound(path: str) -> bool:
    unusable: list[str] = []
    try:
        _opened(path, unusable).close()
    except (sqlite3.Error, _DamagedError):
        return False
    return True


def _write(path: str, found: salvage.Found) -> None:
    database = _opened(path, [])
    with contextlib.closing(database), _transaction(database):
        for row in found.rows.values():
            _put(database, row)
        for program in found.programs.values():
            _put_program(database, program)
