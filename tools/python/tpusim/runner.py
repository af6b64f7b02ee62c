"""Runs the tpusim binary and reads what it reports."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tpusim.errors import Error
from tpusim.report import Report
from tpusim.timeline import Timeline


def find_binary(*, on_path: bool = True) -> str:
    """The tpusim binary.

    $TPUSIM_BINARY; else the one inside the package, which wheels have; else, unless `on_path` is
    False, the command `tpusim`; else build/tpusim of this source tree.
    """
    if stated := os.environ.get("TPUSIM_BINARY"):
        return stated
    here = pathlib.Path(__file__).resolve()
    packaged = here.parent / "bin" / "tpusim"
    built = here.parents[3] / "build" / "tpusim" if len(here.parents) > 3 else packaged
    if packaged.is_file():
        return str(packaged)
    found = shutil.which("tpusim") if on_path else None
    if found:
        return found
    if built.is_file():
        return str(built)
    raise Error(
        "no tpusim binary: install the wheel, build it (tools/demo), put it on PATH, or set "
        "TPUSIM_BINARY"
    )


def execute(arguments: Sequence[str]) -> str:
    """Runs the binary, and returns what it prints; tpusim.Error if it fails."""
    binary = find_binary()
    try:
        done = subprocess.run(
            [binary, *arguments], capture_output=True, text=True, check=False, errors="replace"
        )
    except OSError as error:
        raise Error(f"{binary}: {error.strerror or error}") from error
    if done.returncode != 0:
        raise Error(done.stderr.strip() or f"{binary}: exit code {done.returncode}")
    return done.stdout


def _without_events(report: str) -> str:
    """How much of a repetition is executed depends on what is recorded; nothing else does."""
    return re.sub(r'^  "events": \d+,$', "", report, flags=re.MULTILINE)


class Simulation:
    """A program with everything that its simulation depends on: two runs give the same bytes."""

    def __init__(self, workload: bytes | str | os.PathLike[str], options: Sequence[str] = ()):
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
        """Likewise the page for a browser."""
        self._write("--html", path, report, ())

    def _write(
        self, flag: str, path: str | os.PathLike[str], report: Report, options: Sequence[str]
    ) -> None:
        # Beside the target, so that it gets there whole or not at all.
        target = pathlib.Path(path)
        with tempfile.TemporaryDirectory(prefix=".tpusim-", dir=target.parent) as folder:
            written = pathlib.Path(folder) / "written"
            text = self._run(flag, str(written), *options)
            if _without_events(text) != _without_events(report.text):
                raise Error(f"{self._workload}: is not the program any more that was simulated")
            written.replace(target)

    def timeline(self, chip: int, report: Report) -> Timeline:
        """What one chip did."""
        with tempfile.TemporaryDirectory(prefix="tpusim-") as folder:
            trace = pathlib.Path(folder) / "trace"
            self.write_trace(trace, report, ("--trace-chips", str(chip)))
            return Timeline.load(trace)

    def advise(self) -> str:
        """What `tpusim advise --json` prints about it."""
        with self._file() as workload:
            return execute(["advise", workload, "--json", "--quiet", *self._options])

    def _run(self, *options: str) -> str:
        with self._file() as workload, tempfile.TemporaryDirectory(prefix="tpusim-") as folder:
            report = pathlib.Path(folder) / "report.json"
            execute(["run", workload, "--report", str(report), "--quiet", *self._options, *options])
            return report.read_text()

    @contextlib.contextmanager
    def _file(self) -> Iterator[str]:
        """The workload as a file."""
        if not isinstance(self._workload, bytes):
            yield os.fspath(self._workload)
            return
        with tempfile.TemporaryDirectory(prefix="tpusim-") as folder:
            workload = pathlib.Path(folder) / "workload.pb"
            workload.write_bytes(self._workload)
            yield str(workload)


def run(
    path: str | os.PathLike[str],
    *,
    config: str = "",
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
    words = ["--config", config] if config else []
    for key, value in (settings or {}).items():
        words += ["--set", f"{key}={value}"]
    if trace is not None:
        words += ["--trace", os.fspath(trace)]
    with tempfile.TemporaryDirectory(prefix="tpusim-") as folder:
        report = pathlib.Path(folder) / "report.json"
        execute(["run", os.fspath(path), "--report", str(report), "--quiet", *words, *options])
        return json.loads(report.read_text())
