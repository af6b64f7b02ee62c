"""Measures the processor time and memory of a command."""

import pathlib
import subprocess
import sys
import tempfile
from typing import Any, NamedTuple

# In a small parent: the peak of a child is never below that of what it was forked from.
_MEASURE = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[2:]).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
with open(sys.argv[1], "w") as file:
    print(used.ru_utime + used.ru_stime, used.ru_maxrss, file=file)
sys.exit(code)
"""


class Used(NamedTuple):
    """Processor seconds, and the largest memory that was resident."""

    cpu_s: float
    resident_bytes: float


def measured(*command: object, **options: Any) -> Used:
    """Runs a command, with options of subprocess.run; CalledProcessError if it fails."""
    with tempfile.TemporaryDirectory() as folder:
        figures = pathlib.Path(folder) / "figures"
        subprocess.run(
            [sys.executable, "-I", "-S", "-c", _MEASURE, figures, *map(str, command)],
            check=True,
            **options,
        )
        seconds, kibibytes = map(float, figures.read_text().split())
    return Used(seconds, kibibytes * 1024)
