"""`tpusim search` in a shell."""

import json
import os
import pathlib
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from tests.jax.search_steps import CONFIG
from tests.tools import schemas

ROOT = pathlib.Path(__file__).resolve().parents[2]
SPACE = """
from tests.jax.search_steps import {build} as build

configs = ["{config}"]
space = {{"mesh": [(4, 2), (2, 4)], "rules": {{"y": (None, "y")}}, "folder": {{"f": {folder!r}}}}}


def exposed(report):
    return report.exposed_communication_ns
"""

WHERE = "build = print\nspace = {'a': [1]}\ndef where(candidate):\n    return 1 / 0"

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def space(tmp_path: pathlib.Path) -> Callable[[str], pathlib.Path]:
    """A file with that function as its `build`."""

    def space(build: str) -> pathlib.Path:
        marks = tmp_path / "marks"
        marks.mkdir(exist_ok=True)
        path = tmp_path / "space.py"
        path.write_text(SPACE.format(build=build, config=CONFIG, folder=str(marks)))
        return path

    return space


@pytest.fixture
def start(binary: str, tmp_path: pathlib.Path) -> Start:
    """Starts the command, by the console script's own function."""

    def start(*arguments: object) -> subprocess.Popen[str]:
        code = "from tpusim.console import main; main()"
        path = f"{ROOT}:{ROOT / 'tools' / 'python'}"
        # A shell starts jobs in the background with interrupts ignored, these tests perhaps too.
        command = ["env", "--default-signal=INT", sys.executable, "-c", code, "search"]
        return subprocess.Popen(
            [*command, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "TPUSIM_BINARY": binary, "PYTHONPATH": path},
        )

    return start


def test_search_in_a_shell(start: Start, space, tmp_path: pathlib.Path):
    path = space("matmul")
    process = start(path, "--store", "s.sqlite", "--top", "1", "-o", "r.json")
    printed, errors = process.communicate()
    assert process.returncode == 0, errors
    lines = printed.splitlines()
    assert lines[0].split() == ["slice", "mesh", "rules", "folder", "step_time", *TABLE]
    assert lines[1].split()[:3] == ["1", CONFIG, "2x4"]
    assert lines[-1].startswith("2 candidates: ")
    written = json.loads((tmp_path / "r.json").read_text())
    assert len(written["candidates"]) == 2

    # Again, by a function of the file; the exports are there.
    process = start(path, "--store", "s.sqlite", "--json", "--objective", "exposed", "--all")
    printed, errors = process.communicate()
    assert process.returncode == 0, errors
    assert json.loads(printed)["objective"] == "exposed"
    assert json.loads(printed)["counts"] == {"simulated": 2}
    schemas.check(os.environ["TPUSIM_BINARY"], printed)
    words = ["tpusim", "search", "--objective=exposed", "--all", str(path)]
    assert json.loads(printed)["command_line"] == words
    with sqlite3.connect(tmp_path / "s.sqlite") as database:
        assert database.execute("select count(*) from candidates").fetchone() == (2,)


TABLE = ["peak", "HBM", "why", "behind"]
FOUND = """
from tests.jax.search_steps import unsharded_mlp as build

configs = ["v5e-2x2"]
space = {"width": [512, 1024]}
find = {"gap": 0.01, "axes": ["rows"]}
"""


def test_shardings_are_found_in_a_shell(start: Start, tmp_path: pathlib.Path):
    (tmp_path / "space.py").write_text(FOUND)
    process = start("space.py", "--shardings", "auto", "--json", "-o", "r.json", "-q")
    printed, errors = process.communicate()
    assert process.returncode == 0, errors
    first, second = json.loads(printed)["candidates"]
    assert first["found"]["mesh"] == second["found"]["mesh"] == {"rows": 4}
    assert first["found"]["arguments"]["x"] == [["rows"], []]
    assert first["step_time_ns"] < second["step_time_ns"]
    words = ["tpusim", "search", "--shardings=auto", "space.py"]
    assert json.loads((tmp_path / "r.json").read_text())["command_line"] == words
    # The file may say so itself; what is no text is something else of the user's.
    (tmp_path / "auto.py").write_text(FOUND + "shardings = 'auto'\n")
    printed, errors = start("auto.py", "-q").communicate()
    assert "mesh found" in printed.splitlines()[0], errors
    (tmp_path / "own.py").write_text(FOUND + "shardings = {'x': ()}\n")
    printed, errors = start("own.py", "-q").communicate()
    assert "mesh found" not in printed
    assert errors == ""
    (tmp_path / "wrong.py").write_text(FOUND.replace("0.01", "2") + "shardings = 'auto'\n")
    printed, errors = start("wrong.py", "-q").communicate()
    assert errors == "tpusim: error: gap: 2: expected a share, from 0 to 1\n"


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        (None, [], "no such file"),
        ("import sys; sys.exit(3)", [], "ends by sys.exit(3) when it is loaded"),
        ("build = print\nspace = [1]", ["--config", CONFIG], "space: [1]: expected {name: values}"),
        ("build = 3\nspace = {'a': [1]}", ["--config", CONFIG], "build: 3: expected a function"),
        ("build = print\nspace = {'a': [1]}", ["--config", CONFIG, "--store", ""], "an empty path"),
        ("build = print\nspace = {'a': [1]}", ["--config", CONFIG, "-o", "."], "it is a folder"),
        (WHERE, ["--config", CONFIG], "where of v5e-4x2 a=1: ZeroDivisionError: division by zero"),
        ("space = {}", ["--config", CONFIG], "defines no build"),
        ("build = print\nspace = {'mesh': [1]}", [], "names no configs"),
        ("build = print\nspace = {'mesh': 1}\nconfigs = ['v5e-2x2']", [], "mesh: a list of values"),
        ("build = print\nspace = {'a': [1]}", ["--config", "v5e-2x2"], "build must return"),
        ("raise ValueError('broken file')", [], "ValueError: broken file"),
        ("build = print\nspace = {'a': [1]}", ["--objective", "speed"], "no configs"),
    ],
)
def test_what_is_wrong_is_said(start: Start, tmp_path: pathlib.Path, text, options, said):
    if text is not None:
        (tmp_path / "bad.py").write_text(text)
    process = start(tmp_path / "bad.py", *options)
    printed, errors = process.communicate()
    assert process.returncode == 1
    assert said in printed + errors
    assert "Traceback" not in errors


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_ends_it_and_keeps_what_is_finished(
    start: Start, space, tmp_path: pathlib.Path, number: signal.Signals, code: int
):
    process = start(space("forever_at_2x4"), "--store", "s.sqlite", "--workers", "2")
    store, deadline = tmp_path / "s.sqlite", time.monotonic() + 300
    while not _rows(store):
        assert time.monotonic() < deadline
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    process.send_signal(number)
    # Long before the other candidate is done.
    printed, errors = process.communicate(timeout=120)
    assert process.returncode == code, errors
    assert ("2 candidates: " in printed) == (number == signal.SIGINT)
    assert _rows(store) == [("4x2", "exported")]
    for mark in (tmp_path / "marks").iterdir():
        assert not _runs(int(mark.suffix[1:])), "a worker is left"


def _rows(store: pathlib.Path) -> list[tuple[str, str]]:
    if not store.is_file():
        return []
    try:
        with sqlite3.connect(store) as database:
            return database.execute("select mesh, status from candidates").fetchall()
    except sqlite3.Error:
        return []  # Not begun yet.


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
