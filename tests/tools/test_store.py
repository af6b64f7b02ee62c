"""Stores of searches that are shared, damaged, of another version, or written by who is killed."""

import contextlib
import dataclasses
import gzip
import hashlib
import json
import os
import pathlib
import random
import signal
import sqlite3
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator

import pytest
import tpusim
from tpusim.search import store as store_module
from tpusim.search.candidate import Candidate
from tpusim.search.row import Row, Status
from tpusim.search.store import Store, StoreWarning

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROWS = 40
# Places of a file that are damaged one by one.
PLACES = 25


def key(number: int) -> str:
    return hashlib.sha256(str(number).encode()).hexdigest()


def candidate(number: int, name: str = "batch") -> Candidate:
    return Candidate("v5e-2x2", {name: number}, {name: str(number)}, {name: str(number)})


def row(number: int) -> Row:
    """Every fifth is longer than a page."""
    return Row(
        Status.SIMULATED,
        program=digest(number)[0],
        step_time_ns=1000.5 + number,
        flops=number << 40,
        chips=4,
        parts={"compute": float(number), "idle": 0.25},
        owners={"parameters": number},
        warnings=("careful " * (1000 if number % 5 == 0 else 1),),
    )


def digest(number: int) -> tuple[str, bytes, tuple[str, ...]]:
    """A program: its digest, itself, its options."""
    data, words = random.Random(number).randbytes(3000), ("--config=v5e-2x2",)
    name = hashlib.sha256(b"\0".join([data, *(w.encode() for w in words)])).hexdigest()
    return name, gzip.compress(data, 1, mtime=0), words


def fill(path: pathlib.Path, numbers: range = range(ROWS)) -> None:
    store = Store(path)
    for number in numbers:
        name, program, words = digest(number)
        store.put_program(name, program, words)
        store.put(key(number), candidate(number), row(number))
    store.close()


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("store") / "s.sqlite"
    fill(path)
    return path.read_bytes()


@contextlib.contextmanager
def said(expected: str = "") -> Iterator[list[str]]:
    """The lines of warnings in the block, which are of stores, and one line each."""
    lines: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield lines
    lines += [str(warning.message) for warning in caught]
    assert all(issubclass(warning.category, StoreWarning) for warning in caught)
    assert all("\n" not in line for line in lines)
    if expected:
        assert expected in " ".join(lines)


def kept(path: pathlib.Path) -> tuple[dict[int, Row], int, list[str]]:
    """Rows, how many programs, and what is said."""
    with said() as lines:
        store = Store(path)
        found = store.rows([key(number) for number in range(ROWS)])
        programs = [store.program(digest(number)[0]) for number in range(ROWS)]
        store.tell()
        store.close()
    numbers = {key(number): number for number in range(ROWS)}
    rows = {numbers[name]: found[name] for name in found}
    # Nothing is believed that was not written.
    assert all(it == row(number) for number, it in rows.items())
    for number, program in enumerate(programs):
        assert program is None or program == digest(number)[1:]
    return rows, sum(program is not None for program in programs), lines


def test_all_is_kept(tmp_path: pathlib.Path, filled: bytes):
    (tmp_path / "s").write_bytes(filled)
    rows, programs, lines = kept(tmp_path / "s")
    assert (len(rows), programs, lines) == (ROWS, ROWS, [])
    assert sorted(tmp_path.iterdir()) == [tmp_path / "s"]


RECOVER = "what can be read is saved by: sqlite3 {0} .recover | sqlite3 NEW.sqlite; name that, or"


@pytest.mark.parametrize("how", ["a byte", "64 bytes", "a page"])
def test_damage_anywhere(tmp_path: pathlib.Path, filled: bytes, how: str):
    """Rows that are damaged are done again; where SQLite refuses the file, an error says so."""
    chosen, path = random.Random(how), tmp_path / "s"
    length = {"a byte": 1, "64 bytes": 64, "a page": 4096}[how]
    outcomes = set()
    # The head of the file and of its schema, and some of all the rest.
    places = [*range(0, 112, 5 if how == "a byte" else 64)]
    places += [chosen.randrange(len(filled)) for _ in range(PLACES)]
    for at in places:
        if how == "a page":
            at -= at % length
        end = min(at + length, len(filled))
        damaged = bytes(byte ^ chosen.randrange(1, 256) for byte in filled[at:end])
        data = filled[:at] + damaged + filled[end:]
        path.write_bytes(data)
        refused = ""
        try:
            rows, programs, lines = kept(path)
        except tpusim.Error as error:
            refused = str(error)
        if refused:
            outcomes.add("refused")
            assert refused.startswith(f"{path}: ")
            assert RECOVER.format(path) in refused or "another version" in refused, at
            # Nothing is touched, so that all can be recovered.
            assert path.read_bytes() == data
        else:
            lost = 2 * ROWS - len(rows) - programs
            outcomes.add("done again" if lost else "kept")
            assert lost == 0 or "done again" in lines[0], at
        assert list(tmp_path.iterdir()) == [path]
    assert outcomes >= ({"refused"} if how == "a page" else {"refused", "done again"})


@pytest.mark.parametrize("share", [0.01, 0.3, 0.6, 0.9])
def test_a_store_that_is_cut_off(tmp_path: pathlib.Path, filled: bytes, share: float):
    path = tmp_path / "a store"
    path.write_bytes(filled[: int(share * len(filled))])
    with pytest.raises(tpusim.Error) as raised:
        Store(path)
    assert str(raised.value).startswith(f"{path}: damaged (")
    assert RECOVER.format(f"'{path}'") in str(raised.value)
    path.write_bytes(b"")
    assert kept(path) == ({}, 0, [])


def test_a_store_is_recovered_by_the_command_of_the_error(tmp_path: pathlib.Path, filled: bytes):
    path, anew = tmp_path / "s", tmp_path / "new"
    path.write_bytes(filled)
    command = ["bash", "-c", 'sqlite3 "$0" .recover | sqlite3 "$1"', path, anew]
    subprocess.run(command, check=True, capture_output=True)
    if len(kept(anew)[0]) < ROWS:
        pytest.skip("this sqlite3 is built without .recover, as that of Debian 12")
    path.write_bytes(filled[: 9 * len(filled) // 10 // 4096 * 4096])
    anew.unlink()
    subprocess.run(command, check=True, capture_output=True)
    rows, programs, _ = kept(anew)
    assert len(rows) > ROWS / 2
    assert programs > ROWS / 2


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("status = 'guessed'", "its status 'guessed' is unknown"),
        ("parts = substr(parts, 1, 8)", "its parts is no JSON: '{\"comput'"),
        ("warnings = '{}'", "its warnings is '{}'"),
        ('owners = \'{"a": "b"}\'', 'its owners is \'{"a": "b"}\''),
        ("step_time_ns = 'long'", "its step_time_ns is 'long'"),
        ("chips = null, why = null", "its why is None"),
        ("step_time_ns = 1", "it is not what was written"),
        ("labels = '[]'", "it is not what was written"),
        ("checksum = null", "it is not what was written"),
    ],
)
def test_rows_that_are_wrong_are_done_again(tmp_path: pathlib.Path, filled, change, reason):
    path = tmp_path / "s"
    path.write_bytes(filled)
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.execute(f"update candidates set {change} where rowid in (3, 4)")
    rows, programs, lines = kept(path)
    assert sorted(set(range(ROWS)) - rows.keys()) == [2, 3]
    assert programs == ROWS
    assert lines == [f"{path}: 2 rows or programs are damaged, and done again: {reason}"]
    # They are there until they are replaced.
    store = Store(path)
    store.put(key(2), candidate(2), row(2))
    store.put(key(3), candidate(3), row(3))
    store.close()
    assert len(kept(path)[0]) == ROWS


def test_a_program_that_is_wrong_is_exported_again(tmp_path: pathlib.Path, filled: bytes):
    path = tmp_path / "s"
    path.write_bytes(filled)
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.execute("update programs set words = '[]' where rowid = 1")
    rows, programs, (line,) = kept(path)
    assert (len(rows), programs) == (ROWS, ROWS - 1)
    assert line.endswith(
        "1 row or program is damaged, and done again: a program is not what was written"
    )
    fill(path)
    assert kept(path)[1:] == (ROWS, [])


def found_row(number: int) -> Row:
    """A row with shardings that were found; every fifth is longer than a page."""
    text = json.dumps({"best": ["ü" * (3000 if number % 5 == 0 else 1), number]})
    return dataclasses.replace(row(number), found=text)


def test_shardings_that_were_found_are_kept(tmp_path: pathlib.Path, filled: bytes):
    """Beside rows that have none, in a store that is open elsewhere."""
    path = tmp_path / "s"
    path.write_bytes(filled)
    reader, store = Store(path), Store(path)
    for number in range(10):
        store.put(key(number), candidate(number, "other"), found_row(number))
    expected = {key(n): found_row(n) if n < 10 else row(n) for n in range(ROWS)}
    for each in (store, reader):
        assert each.rows([key(n) for n in range(ROWS)]) == expected
        each.close()
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        (text,) = database.execute("select found from candidates where other = '3'").fetchone()
        assert json.loads(text) == {"best": ["ü", 3]}
        database.execute("update candidates set found = '{}' where other in ('3', '5')")
        database.execute("update candidates set found = '' where other = '7'")
    with said("3 rows or programs are damaged, and done again: it is not what was written"):
        store = Store(path)
        found = store.rows([key(number) for number in range(ROWS)])
        store.tell()
        store.close()
    assert found == {k: v for k, v in expected.items() if k not in (key(3), key(5), key(7))}


def test_names_that_differ_in_case_share_a_column(tmp_path: pathlib.Path):
    store = Store(tmp_path / "s")
    store.put(key(1), candidate(1, "batch"), row(1))
    store.put(key(2), candidate(2, "Batch"), row(2))
    store.close()
    with contextlib.closing(sqlite3.connect(tmp_path / "s")) as database:
        found = database.execute("select batch, labels from candidates").fetchall()
    assert found == [("1", '{"batch": "1"}'), ("2", '{"Batch": "2"}')]


def test_more_names_than_columns(tmp_path: pathlib.Path):
    many = {f"name{number}": str(number) for number in range(2500)}
    store = Store(tmp_path / "s")
    store.put(key(1), Candidate("v5e-2x2", many, many, many), row(1))
    assert store.rows([key(1)]) == {key(1): row(1)}
    store.close()
    with contextlib.closing(sqlite3.connect(tmp_path / "s")) as database:
        (found,) = database.execute("select labels from candidates").fetchone()
    assert json.loads(found) == many


def test_text_that_is_no_utf_8(tmp_path: pathlib.Path):
    store = Store(tmp_path / "s")
    store.put(key(1), candidate(1), Row(Status.ERROR, why="\udcff: no such file\0"))
    assert store.rows([key(1)])[key(1)].why == "\\udcff: no such file\0"
    store.put(key(2), candidate(2), dataclasses.replace(row(2), value=float("nan")))
    assert store.rows([key(2)]) == {key(2): row(2)}
    endless = dataclasses.replace(row(2), value=float("inf"))
    store.put(key(2), candidate(2), endless)
    assert store.rows([key(2)]) == {key(2): endless}


WRITER = """
import sys
from tests.tools.test_store import *
first, last, name = int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
sys.stdin.readline()
store = Store(sys.argv[1])
for number in range(first, last):
    store.put_program(*digest(number))
    store.put(key(number), candidate(number, f"{name}{number % 7}"), row(number))
    print(number, flush=True)
"""


def writer(path: pathlib.Path, first: int, last: int, name: str) -> subprocess.Popen[str]:
    """A process that fills the store when it is told to."""
    paths = f"{ROOT}:{ROOT / 'tools' / 'python'}"
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, path, str(first), str(last), name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
    )


def test_several_write_at_once(tmp_path: pathlib.Path):
    """Each begins the file, and has names of its own, some the same but for capitals."""
    path = tmp_path / "s"
    share = ROWS // 4
    processes = [
        writer(path, share * number, share * (number + 1), name)
        for number, name in enumerate(["a", "A", "b", "B"])
    ]
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        printed, errors = process.communicate(timeout=120)
        assert (process.returncode, errors) == (0, "")
        assert printed.count("\n") == share
    rows, programs, lines = kept(path)
    assert (len(rows), programs, lines) == (ROWS, ROWS, [])
    with contextlib.closing(sqlite3.connect(path)) as database:
        found = [name for _, name, *_ in database.execute("pragma table_info(candidates)")]
    assert sorted(name.lower() for name in found[-14:]) == sorted(
        f"{name}{number}" for name in "ab" for number in range(7)
    )
    assert sorted(tmp_path.iterdir()) == [path]


def test_who_is_killed_leaves_a_sound_store(tmp_path: pathlib.Path):
    """Rows that were reported as written are there; the next search continues."""
    path, chosen = tmp_path / "s", random.Random(3)
    told: set[int] = set()
    for number in range(5):
        process = writer(path, 8 * number, 8 * number + 8, "name")
        process.stdin.write("go\n")
        process.stdin.flush()
        for _ in range(chosen.randrange(1, 4)):
            told.add(int(process.stdout.readline()))
        time.sleep(chosen.random() / 100)
        process.send_signal(signal.SIGKILL)
        told.update(map(int, process.communicate()[0].split()))
    rows, programs, lines = kept(path)
    assert told <= rows.keys()
    assert lines == []
    fill(path)
    assert [len(rows), programs] != [0, 0]
    assert len(kept(path)[0]) == ROWS


def test_who_waits_too_long_is_told(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(store_module, "PATIENCE_SECONDS", 0.1)
    fill(tmp_path / "s", range(1))
    with contextlib.closing(sqlite3.connect(tmp_path / "s", isolation_level=None)) as other:
        store = Store(tmp_path / "s")
        other.execute("begin immediate")
        with pytest.raises(tpusim.Error, match=r"s: locked by another process for 0 s; search ag"):
            store.put(key(1), candidate(1), row(1))
        other.execute("rollback")
        store.put(key(1), candidate(1), row(1))
        other.execute("begin exclusive")
        with pytest.raises(tpusim.Error, match=r"s: locked by another process"):
            Store(tmp_path / "s")
        (tmp_path / "s").read_bytes()
        other.execute("rollback")
    assert len(kept(tmp_path / "s")[0]) == 2


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda path: path.write_text("a text, no database " * 10), "file is not a database"),
        (lambda path: path.mkdir(), "it is a folder"),
        (lambda path: sqlite3.connect(path).execute("create table t (a)"), "but not of a search"),
        (lambda path: sqlite3.connect(path).execute("pragma user_version = 9"), "another version"),
        (lambda path: path.symlink_to("no/such/folder"), "No such file or directory"),
    ],
)
def test_what_is_no_store_is_left_alone(tmp_path: pathlib.Path, make, why: str):
    path = tmp_path / "s"
    make(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(tpusim.Error, match=f"s: .*{why}"):
        Store(path)
    assert [p.name for p in tmp_path.iterdir()] == ["s"]
    assert (path.read_bytes() if path.is_file() else None) == before


@pytest.mark.parametrize("path", ["", "\0", 3])
def test_what_is_no_path_of_a_store(path):
    with pytest.raises((TypeError, ValueError), match="store: "):
        Store(path)
