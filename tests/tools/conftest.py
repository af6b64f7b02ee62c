"""Running the binary as a user does."""

import json
import pathlib
import subprocess
from collections.abc import Callable

import pytest

from tests.tools import schemas
from tests.tools.command_line import Run, example


@pytest.fixture
def run(binary: str, tmp_path: pathlib.Path) -> Run:
    """Runs tpusim in an empty folder; what it writes as JSON must be of its schema."""

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        command = [binary, *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
        schemas.check_run(binary, command, done, tmp_path)
        return done

    return run


@pytest.fixture
def report_of(run: Run, tmp_path: pathlib.Path) -> Callable[..., dict]:
    """The report of a run that must succeed."""

    def report_of(workload: str | pathlib.Path, *options: object) -> dict:
        path = workload if isinstance(workload, pathlib.Path) else example(workload)
        done = run("run", path, "--quiet", "--report", tmp_path / "r.json", *options)
        assert done.returncode == 0, done.stderr
        return json.loads((tmp_path / "r.json").read_text())

    return report_of


@pytest.fixture
def rejects(run: Run, tmp_path: pathlib.Path) -> Callable[..., str]:
    """Asserts one line of error, exit code 1 and no file left; returns the line."""

    def rejects(*arguments: object, code: int = 1) -> str:
        before = sorted(tmp_path.rglob("*"))
        done = run(*arguments)
        assert done.returncode == code, (done.returncode, done.stderr)
        assert done.stdout == ""
        assert done.stderr.startswith("tpusim: error: "), done.stderr
        assert done.stderr.count("\n") == 1, done.stderr
        assert done.stderr.endswith("\n")
        assert sorted(tmp_path.rglob("*")) == before
        return done.stderr

    return rejects
