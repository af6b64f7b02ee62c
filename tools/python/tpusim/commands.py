"""Common parts of the commands that are written in Python: `search`, `flags`, `calibrate`.

Results go to stdout, progress and errors to stderr. Exit code 1: an error, which is one line; 130:
interrupted; 141: nobody reads the results any more.
"""

import argparse
import os
import shutil
import signal
import sys
from collections.abc import Callable

from tpusim.arguments import count
from tpusim.errors import Error


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)


def parser_of(name: str, description: str | None, shown: int) -> argparse.ArgumentParser:
    """Returns the parser of a command, with the options that all of them have.

    Args:
      name: "search".
      description: as `--help` prints it.
      shown: how many rows are printed by default.
    """
    parser = argparse.ArgumentParser(
        prog=f"tpusim {name}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--workers", type=count, metavar="N", help="default: the processors")
    parser.add_argument(
        "--top", type=_whole, default=shown, metavar="N", help="rows to print; default: %(default)s"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def say(line: str) -> None:
    """Prints a line about the command to stderr."""
    print(f"tpusim: {' '.join(line.split())}", file=sys.stderr)


def width() -> int | None:
    """Returns the columns of a terminal; None for a pipe or a file, whose lines are not cut."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def show(results: str) -> None:
    """Prints the results of the command."""
    try:
        print(results, flush=True)
    except BrokenPipeError:
        # Nobody reads it any more; nor may the interpreter try at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(128 + signal.SIGPIPE)
    except OSError as error:
        raise Error(f"cannot write to stdout: {error.strerror}") from error


def code_of(command: Callable[[], int]) -> int:
    """Runs a command; returns its exit code."""
    try:
        return command()
    except Error as error:
        say(f"error: {error}")
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
