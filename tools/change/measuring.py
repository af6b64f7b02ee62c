"""Measures a program for `tools/snap`: figures, and digests of its report and its compilation.

A program runs as a user runs it. A snapshot has the figures of its report that say how much a
change moves, a digest of every field of the report, and digests of the text of every stage of the
compiler and of the module after every pass that changed it. A pass that changed nothing has no
digest: its text would be that of the pass before.
"""

import dataclasses
import hashlib
import json
import re
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from typing import Any

from tools.change.programs import COMPILED, ROOT, Program

# Fields of a report about the command and the release, not the program.
_OF_THE_COMMAND = ("schema", "tpusim_version", "command_line")
# A row of --pass-timings has name, runs, changed, instructions.
_PASS = re.compile(r"^tpusim: (\S+) +\d+ +(\d+) +[+-]\d+ ", re.MULTILINE)
_DUMP, _STREAMS = b"// after ", b"module "
_DIGITS = 16
_SECONDS = 900  # until a program is given up


@dataclasses.dataclass
class Row:
    """A program in a snapshot."""

    figures: dict[str, float] = dataclasses.field(default_factory=dict)
    report: dict[str, str] = dataclasses.field(default_factory=dict)  # digest by field
    stages: dict[str, str] = dataclasses.field(default_factory=dict)  # digest by stage, in order
    error: str = ""  # the line that it ends with, if it fails


class _FailedError(Exception):
    """The line that a command ended with."""


def measure(simulator: Sequence[str], program: Program) -> Row:
    """Runs and compiles a program; what fails is in the row.

    `simulator` is the binary and options that both commands take.
    """
    row = Row()
    try:
        if program.kind != COMPILED:
            row.stages |= _stages(simulator, program, "sharded")
        row.stages |= _stages(simulator, program, "partitioned")
        printed, said = _call(simulator, "run", program, ["--json", "--pass-timings"])
        report = json.loads(printed)
        row.figures = _figures(report)
        row.report = {
            key: _digest(json.dumps(value, sort_keys=True).encode())
            for key, value in report.items()
            if key not in _OF_THE_COMMAND
        }
        changed = [name for name, times in _PASS.findall(said) if times != "0" and name != "all"]
        row.stages |= _stages(simulator, program, "streams", changed)
    except _FailedError as error:
        row.error = str(error)
    return row


def _figures(report: dict[str, Any]) -> dict[str, float]:
    collectives = report["collectives"]
    return {
        "step_ns": report["step_time_ns"],
        "peak_bytes": report["peak_hbm_bytes"],
        "collectives": sum(each["count"] for each in collectives),
        "collective_ns": round(sum(each["total_ns"] for each in collectives), 3),
        "events": report["events"],
    }


def _stages(
    simulator: Sequence[str], program: Program, stage: str, passes: Sequence[str] = ()
) -> dict[str, str]:
    """Digests of the module after each of the passes, and of the stage."""
    dumps = [word for name in passes for word in ("--dump-after", name)]
    # The text of a large module after every pass has hundreds of megabytes.
    with tempfile.TemporaryFile() as text:
        _call(simulator, "compile", program, ["--quiet", "--emit", stage, *dumps], text)
        text.seek(0)
        return digests(text, stage)


def digests(lines: Iterable[bytes], stage: str) -> dict[str, str]:
    """Returns digests by the heading of a dump; lines without one belong to `stage`."""
    found: dict[str, str] = {}
    name, digest, begun = stage, hashlib.sha256(), False

    def end() -> None:
        if begun:
            # A pass may run several times.
            times = sum(each.partition("#")[0] == name for each in found)
            found[f"{name}#{times + 1}" if times else name] = digest.hexdigest()[:_DIGITS]

    for line in lines:
        heading = line.startswith(_DUMP)
        if heading or (name != stage and line.startswith(_STREAMS)):
            end()
            name = line.removeprefix(_DUMP).decode().strip() if heading else stage
            digest, begun = hashlib.sha256(), False
        if not heading:
            digest.update(line)
            begun = True
    end()
    return found


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:_DIGITS]


def _call(
    simulator: Sequence[str],
    command: str,
    program: Program,
    options: Sequence[str],
    output: Any = subprocess.PIPE,
) -> tuple[bytes, str]:
    """Returns stdout and stderr of the command; raises _FailedError if it fails."""
    binary, *stated = simulator
    words = [binary, command, program.path, *program.options, *stated, *options]
    try:
        done = subprocess.run(
            words, cwd=ROOT, stdout=output, stderr=subprocess.PIPE, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise _FailedError(f"{command}: not done after {_SECONDS} s") from error
    said = done.stderr.decode(errors="replace")
    if done.returncode != 0:
        last = (said.strip().splitlines() or ["nothing said"])[-1]
        raise _FailedError(f"{command}: exit code {done.returncode}: {last}")
    return done.stdout or b"", said
