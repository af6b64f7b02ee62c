"""Runs the snippets of a document as a reader would: in order, in one folder, in one session."""

import dataclasses
import importlib.util
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
from types import TracebackType
from typing import Self

from tests.docs.snippets import Command, Snippet, commands, matches, snippets
from tests.trace import trace_reader
from tests.validated import COMMAND as VALIDATE
from tests.validated import validated

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Folders of the source tree that commands of a reader name.
_OF_THE_TREE = ("benchmarks", "configs", "docs", "tools", "validation", "workloads")
# Documents that need the TPU compiler, which is no dependency.
OF_THE_COMPILER = frozenset({"pricing-compiler-flags.md"})
HAS_COMPILER = importlib.util.find_spec("libtpu") is not None
# The limit of one command: the longest compiles thirteen programs.
_MOST_SECONDS = 1800
_SESSION = pathlib.Path(__file__).with_name("python_session.py")
# Lines of progress on standard error, which a search writes every five seconds.
_PROGRESS = re.compile(r"^tpusim: [a-z]+ \d+ of \d+(, .*)?\n", re.MULTILINE)


class SnippetError(Exception):
    """A block that does not do what the document says."""


@dataclasses.dataclass(frozen=True)
class Output:
    """An output that is shown, and the real one."""

    line: int  # of the document, from 1: the first line of the output
    shown: list[str]
    real: list[str]
    indent: str
    command: str

    @property
    def stale(self) -> bool:
        """Whether they differ."""
        return not matches(self.shown, self.real)


@dataclasses.dataclass
class Result:
    """The result of running a document."""

    outputs: list[Output] = dataclasses.field(default_factory=list)
    not_run: list[Snippet] = dataclasses.field(default_factory=list)
    run: int = 0


class Reader:
    """A folder with a shell and a Python session."""

    def __init__(self, folder: pathlib.Path, binary: str, script: str):
        self._folder = folder
        tools = folder / ".bin"
        tools.mkdir()
        self._write(tools / "python", f'exec "{sys.executable}" "$@"')
        main = "from tpusim.console import main; main()"
        self._write(tools / "tpusim", f'exec "{sys.executable}" -c "{main}" "$@"')
        (folder / "build").mkdir()
        (folder / "build" / "tpusim").symlink_to(binary)
        for name in _OF_THE_TREE:
            (folder / name).symlink_to(ROOT / name)
        self._environment = {
            **os.environ,
            "COLUMNS": "100",
            "PATH": f"{tools}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT / "tools" / "python"),
            "TPUSIM_BINARY": binary,
            "MPLBACKEND": "agg",
        }
        # Eight CPU devices are for the tests, not for readers.
        self._environment.pop("XLA_FLAGS", None)
        self._script = script
        self._session: subprocess.Popen[str] | None = None
        self._printed: tuple[Snippet, list[str]] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._session is not None:
            self._session.communicate()

    def read(self, snippet: Snippet, result: Result) -> None:
        """Runs a block, or compares it; raises SnippetError if it fails."""
        if snippet.not_run:
            result.not_run.append(snippet)
            return
        result.run += snippet.kind != "output"
        match snippet.kind:
            case "shell":
                for command in commands(snippet):
                    self._shell(snippet, command, result)
            case "python":
                self._printed = snippet, self._python(snippet).splitlines()
            case "sql":
                self._printed = snippet, self._sql(snippet)
            case "json":
                json.loads(snippet.text)
            case "file":
                (self._folder / snippet.file).write_text(snippet.text + "\n")
            case "output":
                if self._printed is None:
                    raise SnippetError(f"line {snippet.line}: the output of nothing")
                source, real = self._printed
                output = Output(snippet.line, snippet.lines, real, snippet.indent, source.text)
                result.outputs.append(output)

    def _shell(self, snippet: Snippet, command: Command, result: Result) -> None:
        text = command.text
        if VALIDATE in text:
            kept = shlex.quote(str(validated(self._environment["TPUSIM_BINARY"]).printed))
            text = text.replace(VALIDATE, f"cat {kept}")
        done = subprocess.run(
            ["bash", "-eu", "-c", text],
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_MOST_SECONDS,
            check=False,
        )
        # A command may be shown to fail.
        said = any("error: " in line for line in command.shown or ())
        if done.returncode != 0 and not said:
            code = done.returncode
            raise SnippetError(
                f"line {snippet.line}: {command.text}\nexit code {code}:\n{done.stdout}"
            )
        if command.shown and any(line.strip() for line in command.shown):
            line = snippet.line + command.first
            real = _PROGRESS.sub("", done.stdout).splitlines()
            output = Output(line, command.shown, real, snippet.indent, command.text)
            result.outputs.append(output)

    def _python(self, snippet: Snippet) -> str:
        if self._session is None:
            self._session = subprocess.Popen(
                [sys.executable, str(_SESSION), self._script],
                cwd=self._folder,
                env=self._environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        assert self._session.stdin is not None
        assert self._session.stdout is not None
        self._session.stdin.write(json.dumps(snippet.text) + "\n")
        self._session.stdin.flush()
        answer = json.loads(self._session.stdout.readline())
        if answer["error"]:
            raise SnippetError(f"line {snippet.line}:\n{snippet.text}\n{answer['error']}")
        return _PROGRESS.sub("", answer["printed"])

    def _sql(self, snippet: Snippet) -> list[str]:
        traces = [*self._folder.glob("*.pftrace")]
        if not traces:
            raise SnippetError(f"line {snippet.line}: no trace was written")
        newest = max(traces, key=lambda path: path.stat().st_mtime_ns)
        (rows,) = trace_reader.query(newest, snippet.text)
        cells = [[_cell(value) for value in row] for row in rows]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in cells]

    def _write(self, path: pathlib.Path, command: str) -> None:
        path.write_text(f"#!/bin/sh\n{command}\n")
        path.chmod(0o755)


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def run_document(path: pathlib.Path, folder: pathlib.Path, binary: str, result: Result) -> None:
    """Runs all of a document in an empty folder; a block that fails is a SnippetError."""
    with Reader(folder, binary, f"{path.stem.replace('-', '_').lower()}.py") as reader:
        for snippet in snippets(path):
            reader.read(snippet, result)
