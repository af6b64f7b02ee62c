"""Helpers that the tests of the command line share."""

import gzip
import pathlib
import subprocess
from collections.abc import Callable

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "workloads" / "examples"
SLICE = "v5e-4x2"

Run = Callable[..., subprocess.CompletedProcess[str]]


def example(name: str) -> pathlib.Path:
    """The committed export of an example."""
    return EXAMPLES / f"{name}.pb.gz"


def example_bytes(name: str) -> bytes:
    """The bytes of an example's export, before they were compressed."""
    return gzip.decompress(example(name).read_bytes())


def examples() -> list[str]:
    """Names of all examples, sorted."""
    return sorted(map(program_name, EXAMPLES.glob("*.pb.gz")))


def program_name(path: pathlib.PurePath) -> str:
    """The name of a file less `.pb.gz`."""
    return path.name.removesuffix(".pb.gz")


def outputs(folder: pathlib.Path) -> list[object]:
    """Options that ask for every file a run can write."""
    return ["--report", folder / "r.json", "--trace", folder / "t.pftrace"]


def line_of(text: str, file: str) -> int:
    """The first line of `file` that contains `text`."""
    lines = pathlib.Path(file).read_text().splitlines()
    return next(i for i, line in enumerate(lines, 1) if text in line)


def without_command(output: dict) -> dict:
    """Returns a JSON output without what depends on how the command was spelt."""
    return {key: value for key, value in output.items() if key != "command_line"}
