"""The results of searches in an SQLite file: a row per candidate, committed as it is known.

    pandas.read_sql("select * from candidates", sqlite3.connect("search.sqlite"))

A column for each name of the space has the label of the value; the others are the fields of `Row`.
Programs are kept beside, by their digests, so that a search that is continued need not export them
again. One store may hold many searches; rows are found by a key that says what was asked: the
values, the slice, the options, what `build` is made of, and the versions of tpusim and JAX. How the
search was begun, in a shell, a script or a notebook, makes no difference.
"""

import dataclasses
import json
import os
import sqlite3
from collections.abc import Sequence
from typing import Any

from tpusim.errors import Error
from tpusim.search.candidate import Candidate
from tpusim.search.row import Row, Status

_JSON = ("parts", "owners", "warnings")
_FIELDS = [field.name for field in dataclasses.fields(Row)]
_TEXT = {"status", "why", "program", "value_of", *_JSON}
_INTEGERS = {
    *("argument_bytes", "chips", "usable_hbm_bytes", "flops", "peak_hbm_bytes", "devices"),
}
_VERSION = 1


class Store:
    """Opens or begins the file; ":memory:" is none."""

    def __init__(self, path: str | os.PathLike[str]):
        self._path = os.fspath(path)
        try:
            self._database = sqlite3.connect(self._path, timeout=30)
            version = self._database.execute("pragma user_version").fetchone()[0]
            if version not in (0, _VERSION):
                raise Error(f"{self._path}: written by another version of tpusim")
            self._make(version)
        except sqlite3.Error as error:
            raise Error(f"{self._path}: {error}") from error
        self._columns = {
            name for _, name, *_ in self._database.execute("pragma table_info(candidates)")
        }

    def _make(self, version: int) -> None:
        if version == _VERSION:
            return
        tables = self._database.execute("select count(*) from sqlite_master").fetchone()[0]
        if tables:
            raise Error(f"{self._path}: a database, but not of a search")
        columns = ", ".join(f'"{name}" {_type(name)}' for name in _FIELDS)
        with self._database:
            self._database.execute(
                f"create table candidates (key text primary key, config text, {columns})"
            )
            self._database.execute(
                "create table programs (digest text primary key, words text, workload blob)"
            )
            self._database.execute(f"pragma user_version = {_VERSION}")

    def close(self) -> None:
        """Nothing is lost without."""
        self._database.close()

    def rows(self, keys: Sequence[str]) -> dict[str, Row]:
        """Those of the keys that there are."""
        names = ", ".join(f'"{name}"' for name in _FIELDS)
        found = {}
        for key in keys:
            values = self._database.execute(
                f"select {names} from candidates where key = ?", (key,)
            ).fetchone()
            if values is not None:
                found[key] = _row(dict(zip(_FIELDS, values, strict=True)))
        return found

    def put(self, key: str, candidate: Candidate, row: Row) -> None:
        """Adds or replaces one row."""
        values: dict[str, Any] = {"key": key, "config": candidate.config, **candidate.labels}
        for name in _FIELDS:
            value = getattr(row, name)
            values[name] = json.dumps(value) if name in _JSON else value
        with self._database:
            for name in sorted(values.keys() - self._columns):
                self._database.execute(f'alter table candidates add column "{name}" text')
                self._columns.add(name)
            columns = ", ".join(f'"{name}"' for name in values)
            marks = ", ".join("?" * len(values))
            self._database.execute(
                f"insert or replace into candidates ({columns}) values ({marks})",
                [str(v) if isinstance(v, Status) else v for v in values.values()],
            )

    def put_program(self, digest: str, program: bytes, words: Sequence[str]) -> None:
        """Keeps a program and the options it runs with."""
        with self._database:
            self._database.execute(
                "insert or ignore into programs values (?, ?, ?)",
                (digest, json.dumps(list(words)), program),
            )

    def program(self, digest: str) -> tuple[bytes, tuple[str, ...]] | None:
        """The program and its options."""
        found = self._database.execute(
            "select workload, words from programs where digest = ?", (digest,)
        ).fetchone()
        return None if found is None else (found[0], tuple(json.loads(found[1])))


def _type(name: str) -> str:
    return "text" if name in _TEXT else "integer" if name in _INTEGERS else "real"


def _row(values: dict[str, Any]) -> Row:
    for name in _JSON:
        values[name] = json.loads(values[name])
    values["warnings"] = tuple(values["warnings"])
    values["status"] = Status(values["status"])
    return Row(**values)
