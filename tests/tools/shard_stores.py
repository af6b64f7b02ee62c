"""Stores of `tpusim shard` that are damaged, changed or of others, and what becomes of a search.

Whatever is in the file, a search either says what it would say without it, or is refused in a line
that tells what to do. By itself this runs many mutations, and says what came of them:

    PYTHONPATH=tools/python python -m tests.tools.shard_stores 20000 [SEED]
"""

import collections
import dataclasses
import json
import pathlib
import random
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence

from tests.conftest import BINARY
from tests.tools.command_line import example

# The command that a damaged file is answered with, and the other refusals.
REFUSALS = ("tpusim: error: --store ",)
WORKLOAD = example("contract")
SEARCH = ("--config", "v5e-4x2", "--jobs", "1", "--json")
# Other searches of the same program, whose verdicts differ.
OTHERS = (
    ("--set", "chip.hbm.bytes_per_second=4x"),
    ("--set", "chip.clock_hz=2x", "--recompile"),
    ("--algorithm", "best"),
    ("--slow", "chip=1:0.5"),
    ("--fix", "x=P()"),
)
COLUMNS = (
    *("search", "statements", "candidate", "kind", "bound_ps"),
    *("step_ps", "peak_bytes", "program", "why", "checksum"),
)
_PRIME, _BASIS, _ALL = (1 << 88) + 0x13B, 0x6C62272E07BB014262B821756295C58D, (1 << 128) - 1


def checksum(values: Sequence[str | int]) -> int:
    """Returns the checksum of columns like the store: the low half of an FNV-1a of 128 bits."""
    data = bytearray()
    for value in values:
        text = value.encode() if isinstance(value, str) else b""
        number = len(text) if isinstance(value, str) else value
        data += (number % (1 << 64)).to_bytes(8, "little") + text
    digest = _BASIS
    for byte in data:
        digest = (digest ^ byte) * _PRIME & _ALL
    low = digest % (1 << 64)
    return low - (1 << 64) if low >> 63 else low


def rows_of(path: pathlib.Path) -> list[list]:
    """Returns the rows, as lists by column."""
    with sqlite3.connect(path) as database:
        found = database.execute(f"SELECT {', '.join(COLUMNS)} FROM verdicts").fetchall()
    database.close()
    return [list(row) for row in found]


def put(path: pathlib.Path, rows: Sequence[Sequence]) -> None:
    """Adds or replaces rows, each with the checksum that it should have."""
    with sqlite3.connect(path) as database:
        for row in rows:
            values = [*row[:-1], checksum(row[:-1])]
            database.execute(f"REPLACE INTO verdicts VALUES ({', '.join('?' * 10)})", values)
    database.close()


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The outcome of a search: its exit code, the answer, and the lines beside it."""

    code: int
    answer: dict
    lines: tuple[str, ...]


def search(folder: pathlib.Path, store: pathlib.Path | None, *options: str) -> Outcome:
    """Runs one; of the answer what does not tell how it was found."""
    words = [str(BINARY), "shard", str(WORKLOAD), *SEARCH, *options]
    if store is not None:
        words.append(f"--store={store}")
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=folder)
    answer = {}
    if done.returncode == 0:
        (answer,) = json.loads(done.stdout)["slices"]
        names = ("best", "as_it_is", "gap", "lower_bound_ns", "choices", "left_out", "python")
        found = [(row["step_time_ns"], row["peak_hbm_bytes"]) for row in answer["found"]]
        answer = {**{name: answer.get(name) for name in names}, "found": found[:1]}
    return Outcome(done.returncode, answer, tuple(done.stderr.splitlines()))


class Stores:
    """A store that a search has filled, and mutations of it."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        path = folder / "filled"
        self.expected = search(folder, None)
        assert self.expected.code == 0, self.expected
        assert search(folder, path) == self.expected
        self.rows = rows_of(path)
        assert len(self.rows) > 5
        self.others = []
        for number, options in enumerate(OTHERS):
            other = folder / f"other{number}"
            assert search(folder, other, *options).code == 0
            self.others += rows_of(other)
        put(path, self.others)
        self.filled = path.read_bytes()

    def mutated(self, seed: int) -> tuple[str, Outcome]:
        """The kind of mutation, and what comes of it."""
        chosen = random.Random(seed)
        kind = chosen.choice(list(_KINDS))
        path = self.folder / f"mutated{seed}"
        path.write_bytes(self.filled)
        _KINDS[kind](self, path, chosen)
        outcome = search(self.folder, path)
        for left in self.folder.glob(f"{path.name}*"):
            left.unlink()
        return kind, outcome

    def is_right(self, outcome: Outcome) -> bool:
        """Whether the answer is that of no store, or the line says that the store is none."""
        if outcome.code == 0:
            said = [line for line in outcome.lines if "done again" not in line]
            return not said and outcome.answer == self.expected.answer
        (line,) = outcome.lines or ("",)
        return outcome.code == 1 and line.startswith(REFUSALS)


def _bytes(stores: Stores, path: pathlib.Path, chosen: random.Random) -> None:
    data = bytearray(stores.filled)
    for _ in range(chosen.choice((1, 1, 2, 8, 64))):
        # The head of the file and of its schema are small, and matter most.
        at = chosen.randrange(chosen.choice((100, 1000, len(data))))
        data[at] = chosen.choice((0, 255, data[at] ^ 1 << chosen.randrange(8)))
    path.write_bytes(data)


def _blocks(stores: Stores, path: pathlib.Path, chosen: random.Random) -> None:
    data = bytearray(stores.filled)
    length = chosen.choice((16, 64, 512, 4096))
    to, of = (chosen.randrange(0, len(data) - length, 16) for _ in range(2))
    choices = (bytes(length), chosen.randbytes(length), bytes(data[of : of + length]))
    data[to : to + length] = chosen.choice(choices)
    path.write_bytes(data)


def _lengths(stores: Stores, path: pathlib.Path, chosen: random.Random) -> None:
    end = chosen.randrange(len(stores.filled))
    end = chosen.choice((end, end // 4096 * 4096))
    more = chosen.choice((b"", chosen.randbytes(chosen.randrange(1, 5000))))
    path.write_bytes(chosen.choice((stores.filled[:end] + more, stores.filled + more)))


_VALUES = (
    *("NULL", "0", "1", "2", "3", "4", "-1", "1.5", "'x'", "''", "x'00ff'", "zeroblob(9)"),
    *("9223372036854775807", "-9223372036854775808", "4611686018427387904", "1e300"),
    *("kind + 1", "step_ps / 10", "bound_ps * 2", "peak_bytes / 2", "-step_ps", "random()"),
    *("search", "statements", "candidate", "checksum + 1", "substr(search, 2)", "upper(program)"),
)


def _cells(stores: Stores, path: pathlib.Path, chosen: random.Random) -> None:
    changes = [
        f"{chosen.choice(COLUMNS)} = {chosen.choice(_VALUES)}" for _ in range(chosen.choice((1, 3)))
    ]
    where = chosen.choice(("1", f"rowid = {chosen.randint(1, 20)}", "kind = 0", "random() % 2"))
    _execute(path, f"UPDATE OR IGNORE verdicts SET {', '.join(changes)} WHERE {where}")


def _schemas(stores: Stores, path: pathlib.Path, chosen: random.Random) -> None:
    column = chosen.choice(COLUMNS)
    _execute(
        path,
        chosen.choice(
            (
                "DROP TABLE verdicts",
                "DELETE FROM verdicts",
                "ALTER TABLE verdicts RENAME TO others",
                f"ALTER TABLE verdicts RENAME COLUMN {column} TO other",
                f"ALTER TABLE verdicts DROP COLUMN {column}",
                "ALTER TABLE verdicts ADD COLUMN more TEXT NOT NULL DEFAULT 'x'",
                f"PRAGMA user_version = {chosen.choice((0, 1, 3, -1, 99))}",
                "PRAGMA encoding = 'UTF-16'; VACUUM",
                "PRAGMA page_size = 512; VACUUM",
                "PRAGMA journal_mode = WAL",
                "PRAGMA auto_vacuum = 2; VACUUM",
                f"CREATE UNIQUE INDEX only ON verdicts ({column})",
                f"CREATE INDEX some ON verdicts ({column}) WHERE kind = 0",
                "CREATE TRIGGER t AFTER INSERT ON verdicts BEGIN DELETE FROM verdicts; END",
                "CREATE TRIGGER t BEFORE INSERT ON verdicts BEGIN SELECT RAISE(FAIL, 'no'); END",
                "ALTER TABLE verdicts RENAME TO others; "
                "CREATE VIEW verdicts AS SELECT * FROM others",
                "ALTER TABLE verdicts RENAME TO others; "
                f"CREATE TABLE verdicts AS SELECT {', '.join(COLUMNS)} FROM others",
                "PRAGMA writable_schema = 1; "
                f"UPDATE sqlite_master SET sql = replace(sql, '{column}', 'other')",
                "PRAGMA writable_schema = 1; UPDATE sqlite_master SET rootpage = rootpage + 1",
                "PRAGMA writable_schema = 1; "
                "UPDATE sqlite_master SET sql = replace(sql, 'INTEGER', 'TEXT')",
            )
        ),
    )


def _execute(path: pathlib.Path, statements: str) -> None:
    database = sqlite3.connect(path, isolation_level=None)
    try:
        database.executescript(statements)
    except sqlite3.Error:
        pass  # What SQLite does not take is no mutation; the store is searched as it is.
    finally:
        database.close()


def _rows(stores: Stores, path: pathlib.Path, chosen: random.Random) -> None:
    """Inserts rows of other builds, options and searches, with the right checksums."""
    rows = [list(row) for row in chosen.choices([*stores.rows, *stores.others], k=8)]
    part = chosen.choice(("build ", "program ", "options ", " on "))
    for row in rows:
        head, mark, tail = row[0].partition(part)
        if row[0] == stores.rows[0][0] or chosen.random() < 0.5:
            row[0] = head + mark + chosen.choice("0123456789abcdef") * 4 + tail[4:]
        if row[0] == stores.rows[0][0]:
            continue
        row[3:7] = [0, 1, 1 + chosen.randrange(1000), 1]
        if chosen.random() < 0.3:
            row[1] = chosen.choice(stores.rows)[1]
    put(path, [row for row in rows if row[0] != stores.rows[0][0]])


def _contradictions(stores: Stores, path: pathlib.Path, chosen: random.Random) -> None:
    """Inserts rows of this search with the right checksum whose steps are below the lower bound."""
    row = list(chosen.choice(stores.rows))
    row[3:7] = chosen.choice(
        ([0, 0, 1, 1], [0, 9, 3, 1], [0, 0, 1, 1 << 62], [7, 0, 1, 1], [2, 0, 0, 0], [3, -1, 0, 0])
    )
    put(path, [row])


_KINDS: dict[str, Callable[[Stores, pathlib.Path, random.Random], None]] = {
    "bytes": _bytes,
    "blocks": _blocks,
    "lengths": _lengths,
    "cells": _cells,
    "schemas": _schemas,
    "rows of others": _rows,
    "contradictions": _contradictions,
}


def main(count: int, seed: int = 0) -> int:
    """Prints what came of so many mutations; how many were wrong."""
    counts: collections.Counter[str] = collections.Counter()
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        stores = Stores(pathlib.Path(folder))
        for number in range(seed, seed + count):
            kind, outcome = stores.mutated(number)
            what = "refused" if outcome.code else "done again" if outcome.lines else "the same"
            counts[f"{kind}: {what}"] += 1
            if not stores.is_right(outcome):
                wrong += 1
                print(f"mutation {number} ({kind}): {outcome}", flush=True)
            if (number - seed) % 1000 == 999:
                print(f"{number + 1 - seed} done, {wrong} wrong", flush=True)
    for name, times in sorted(counts.items()):
        print(f"{times:8} {name}")
    print(f"{wrong} of {count} wrong")
    return wrong


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])) > 0)
