"""Runs the tpusim binary and reads what it reports."""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tpusim import arguments as checks
from tpusim import files, interrupts
from tpusim.binary import find_binary
from tpusim.errors import Error
from tpusim.report import Report
from tpusim.timeline import Timeline

# After which a process that has been asked to end is killed.
_GRACE_SECONDS = 5.0
# The name of a program in memory in command lines of reports.
_WORKLOAD = "workload.pb"
# Characters of an unexpected output that an error repeats.
_MOST_SAID = 200


def execute(arguments: Sequence[str]) -> str:
    """Runs the binary, and returns what it prints; tpusim.Error if it fails.

    However this ends, also by an interrupt, the binary has ended, and has removed what it began.
    """
    binary = find_binary()
    process: subprocess.Popen[str] | None = None
    try:
        with interrupts.deferred():
            process = subprocess.Popen(
                [binary, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
            )
        printed, errors = process.communicate()
    except BaseException as error:
        if process is not None:
            with process:
                _end(process)
        elif isinstance(error, OSError):
            raise Error(f"{binary}: {error.strerror or error}") from error
        raise
    if process.returncode != 0:
        raise Error(errors.strip() or f"{binary}: {_how(process.returncode)}")
    return printed


def _end(process: subprocess.Popen[str]) -> None:
    """Asks it to end, and insists after a while, or at another interrupt."""
    process.terminate()
    try:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_SECONDS)
    finally:
        process.kill()
        process.wait()


def _how(code: int) -> str:
    """Returns how a process ended, from its exit code."""
    if code >= 0:
        return f"exit code {code}"
    with contextlib.suppress(ValueError):
        return f"ended by {signal.Signals(-code).name}"
    return f"ended by signal {-code}"


@contextlib.contextmanager
def _scratch() -> Iterator[pathlib.Path]:
    """A folder for as long as the block lasts."""
    try:
        with tempfile.TemporaryDirectory(prefix="tpusim-") as folder:
            yield pathlib.Path(folder)
    except OSError as error:
        # Of a disk that is full, most often.
        where = tempfile.tempdir or "the folder for temporary files"
        raise Error(f"{where}: {error.strerror or error}; TMPDIR names another folder") from error


def _positional(path: str) -> str:
    """A path that begins like an option is none; "-" alone would be the standard input."""
    return f"./{path}" if path.startswith("-") else path


def _without_mesh(words: Sequence[str]) -> list[str]:
    """Options less that of a mesh, of which there may be one."""
    kept = [word for word in words if not word.startswith("--mesh=")]
    if "--mesh" in kept:
        at = kept.index("--mesh")
        del kept[at : at + 2]
    return kept


def _report_of(workload: str, words: Sequence[str]) -> str:
    """Returns the report of `tpusim run`, as JSON."""
    with _scratch() as folder:
        report = folder / "report.json"
        command = ["run", _positional(workload), "--report", str(report), "--quiet"]
        printed = execute([*command, *words])
        if not report.is_file():
            said = " ".join(printed.split())[:_MOST_SAID]
            raise Error(f"{find_binary()} {' '.join(words)}: no report, but {said!r}")
        return report.read_text()


def _without_events(report: str) -> str:
    """Removes the count of events: it depends on what is recorded, and nothing else does."""
    return re.sub(r'^  "events": \d+,$', "", report, flags=re.MULTILINE)


class Simulation:
    """A program with everything that its simulation depends on: two runs give the same bytes."""

    def __init__(self, workload: bytes | str | os.PathLike[str], options: Sequence[str] = ()):
        """Takes a serialized workload, or a file; `options` are words of the command line."""
        self._workload = workload
        self._options = tuple(options)

    def run(self) -> Report:
        """Simulates, and returns the report."""
        return Report.from_json(self._run(), self)

    def write_trace(
        self, path: str | os.PathLike[str], report: Report, options: Sequence[str] = ()
    ) -> None:
        """Writes the trace of what `report` reports; tpusim.Error if the program has changed."""
        self._write("--trace", path, report, options)

    def write_page(self, path: str | os.PathLike[str], report: Report) -> None:
        """Writes the page of what `report` reports for a browser."""
        self._write("--html", path, report, ())

    def _write(
        self, flag: str, path: str | os.PathLike[str], report: Report, options: Sequence[str]
    ) -> None:
        with files.whole(path) as written:
            text = self._run(f"{flag}={written}", *options)
            if _without_events(text) != _without_events(report.text):
                what = "the program" if isinstance(self._workload, bytes) else str(self._workload)
                raise Error(f"{what}: is not the program any more that was simulated")

    def timeline(self, chip: int, report: Report) -> Timeline:
        """Returns the timeline of one chip."""
        with _scratch() as folder:
            trace = folder / "trace"
            self.write_trace(trace, report, (f"--trace-chips={chip}",))
            return Timeline.load(trace)

    def advise(self) -> str:
        """Returns what `tpusim advise --json` prints about the program."""
        return self._asked("advise", "--json")

    def shard(self, words: Sequence[str]) -> str:
        """Returns what `tpusim shard --json` prints; `words` are options of that command alone."""
        return self._asked("shard", "--json", *words)

    def bounds(self) -> str:
        """Returns what `tpusim compile --emit bounds` prints: lower bounds of a step, as JSON."""
        return self._asked("compile", "--emit=bounds")

    def _asked(self, command: str, *words: str) -> str:
        with self._file() as workload:
            line = [command, _positional(workload), "--quiet", *self._options, *words]
            return self._named(execute(line), workload)

    def sharded(self, options: Sequence[str]) -> "Simulation":
        """The program with a mesh and shardings that were found; without options as it is."""
        kept = _without_mesh(self._options) if options else self._options
        return Simulation(self._workload, (*kept, *options))

    def _run(self, *options: str) -> str:
        with self._file() as workload:
            return self._named(_report_of(workload, [*self._options, *options]), workload)

    def _named(self, output: str, workload: str) -> str:
        """Without the name of a file that only a program in memory had, in its command line."""
        if not isinstance(self._workload, bytes):
            return output
        return output.replace(json.dumps(workload), json.dumps(_WORKLOAD), 1)

    @contextlib.contextmanager
    def _file(self) -> Iterator[str]:
        """The workload as a file."""
        if not isinstance(self._workload, bytes):
            yield os.fspath(self._workload)
            return
        with _scratch() as folder:
            workload = folder / _WORKLOAD
            workload.write_bytes(self._workload)
            try:
                yield str(workload)
            except Error as error:
                # A name that the user has not given, and that is gone.
                raise Error(str(error).replace(str(workload), "the workload")) from error


def run(
    path: str | os.PathLike[str],
    *,
    config: str | os.PathLike[str] = "",
    settings: Mapping[str, Any] | None = None,
    trace: str | os.PathLike[str] | None = None,
    options: Sequence[str] = (),
) -> dict[str, Any]:
    """Simulates a workload file and returns the JSON report as it is, a dict.

    `tpusim.simulate(path)` returns it with types, tables and plots.

    Args:
      path: what `tpusim.export` wrote, or any HLO file the binary reads.
      config: the slice, "v5e-4x2"; by default the one named while exporting.
      settings: parameters to override, {"chip.hbm.bytes_per_second": 1.6e12}.
      trace: also write a Perfetto trace here.
      options: more command line options, passed on as they are.
    """
    workload = files.path_of(path, "path")
    named = checks.config(config)
    words = [f"--config={named}"] if named else []
    words += [f"--set={setting}" for setting in checks.settings(settings)]
    if trace is not None:
        words.append(f"--trace={_positional(files.path_of(trace, 'trace'))}")
    text = _report_of(workload, [*words, *checks.options(options)])
    try:
        report = json.loads(text)
    except ValueError as error:
        raise Error(f"{find_binary()}: its report is no JSON: {error}") from error
    if not isinstance(report, dict):
        raise Error(f"{find_binary()}: its report is no JSON object")
    return report
