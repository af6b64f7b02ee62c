"""What the tests of the command line share."""

import pathlib
import subprocess
from collections.abc import Callable

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "workloads" / "examples"
SLICE = "v5e-4x2"

Run = Callable[..., subprocess.CompletedProcess[str]]


def example(name: str) -> pathlib.Path:
    """A committed export."""
    return EXAMPLES / f"{name}.pb"


def outputs(folder: pathlib.Path) -> list[object]:
    """Options that ask for every file a run can write."""
    return ["--report", folder / "r.json", "--trace", folder / "t.pftrace"]


def line_of(text: str, file: str) -> int:
    """The first line of `file` that contains `text`."""
    lines = pathlib.Path(file).read_text().splitlines()
    return next(i for i, line in enumerate(lines, 1) if text in line)


def without_command(output: dict) -> dict:
    """Of a JSON output what does not depend on how the command was spelt."""
    return {key: value for key, value in output.items() if key != "command_line"}
