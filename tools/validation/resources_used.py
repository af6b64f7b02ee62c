"""What running a command takes of this machine."""

import subprocess
import sys
from typing import NamedTuple

# In a small parent: the peak of a child is never below that of what it was forked from.
_MEASURE = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss)
"""


class Used(NamedTuple):
    """Processor seconds, and the largest memory that was resident."""

    cpu_s: float
    resident_bytes: float


def measured(*command: object) -> Used:
    """Runs a command that prints nothing; CalledProcessError if it fails."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _MEASURE, *map(str, command)],
        stdout=subprocess.PIPE,
        check=True,
    )
    seconds, kibibytes = map(float, done.stdout.split())
    return Used(seconds, kibibytes * 1024)
