"""`tpusim search space.py`: the search that a Python file describes, in a shell.

The file defines by name what `tpusim.search` takes:

    build      the function, required
    space      {name: values}, required
    configs    slices; --config overrides
    objective, maximize, tokens, where, options        as far as they are wanted
    shardings  "auto", if they are to be found; find has the options of that

It is loaded by every worker, so the program may be in the same file. Results go to stdout, progress
to stderr. Exit code 1: nothing was simulated; 130: interrupted, with what is finished printed.
"""

import argparse
import contextlib
import os
import signal
import sys
import types
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from tpusim import commands, files
from tpusim.arguments import count, wrong
from tpusim.errors import ArgumentTypeError, Error
from tpusim.search import page
from tpusim.search.driver import search
from tpusim.search.objective import NAMES
from tpusim.search.payload import FromFile, load_file
from tpusim.search.results import SearchInterruptedError, SearchResults
from tpusim.search.store import StoreWarning

_NAMES = ("configs", "objective", "maximize", "tokens", "where", "options")
_SHOWN = 20


def _parser() -> argparse.ArgumentParser:
    parser = commands.parser_of("search", __doc__, _SHOWN)
    parser.add_argument("file", metavar="SPACE.py")
    parser.add_argument(
        "--config", action="append", default=[], metavar="SLICE", help="may be repeated"
    )
    parser.add_argument("--objective", default="", help=f"{', '.join(NAMES)}, or a function there")
    parser.add_argument(
        "--shardings",
        choices=("stated", "auto"),
        help="those of build (default), or those that tpusim shard finds",
    )
    parser.add_argument("--store", metavar="FILE.sqlite", help="keep results, continue from there")
    parser.add_argument("--all", action="store_true", help="simulate also what cannot be the best")
    parser.add_argument(
        "--exact",
        type=count,
        default=1,
        metavar="N",
        help="so many of the best are the same with pruning as without; default: %(default)s",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write the JSON of all candidates")
    parser.add_argument(
        "--html", metavar="FILE.html", help="write a page to be opened in a browser"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress")
    return parser


def _given(flags: argparse.Namespace) -> dict[str, Any]:
    """Keyword arguments of the search: those of the file, with those of the command line."""
    if not os.path.isfile(flags.file):
        what = "a folder, not a file" if os.path.isdir(flags.file) else "no such file"
        raise Error(f"{flags.file}: {what}")
    module = load_file(FromFile(flags.file, "build").path)
    for name in ("build", "space"):
        if not hasattr(module, name):
            raise Error(f"{flags.file}: defines no {name}")
    if not callable(module.build):
        raise ArgumentTypeError(wrong("build", module.build, "a function of a candidate"))
    given = {name: getattr(module, name) for name in _NAMES if hasattr(module, name)}
    if flags.config:
        given["configs"] = flags.config
    if "configs" not in given:
        raise Error(f"{flags.file}: names no configs: give --config")
    if flags.objective:
        given["objective"] = getattr(module, flags.objective, flags.objective)
        given.pop("maximize", None)
    given.update(_shardings(flags, module))
    if callable(given.get("objective")):
        name = _name_in(module, given["objective"])
        given["maximize"] = getattr(module, "maximize", None)
        given["objective"] = _named(FromFile(flags.file, name), name)
    return {**given, "space": module.space}


def _shardings(flags: argparse.Namespace, module: types.ModuleType) -> dict[str, Any]:
    """Whether they are found, and how; the file may mean something else by these names."""
    named = getattr(module, "shardings", None)
    wanted = flags.shardings or (named if isinstance(named, str) else "stated")
    found = {"shardings": wanted}
    if wanted == "auto" and hasattr(module, "find"):
        found["find"] = module.find
    return found


def _check_outputs(flags: argparse.Namespace) -> None:
    """A search may take hours: what cannot be written is said before it."""
    outputs = (("--output", flags.output), ("--html", flags.html), ("--store", flags.store))
    for flag, path in outputs:
        if path is not None:
            files.check_target(path, flag)


def _command_line(flags: argparse.Namespace) -> list[str]:
    """Returns the words that decide the results, as the binary writes them into its own outputs."""
    words = [f"--config={config}" for config in flags.config]
    words += [f"--objective={flags.objective}"] if flags.objective else []
    words += [f"--shardings={flags.shardings}"] if flags.shardings else []
    words += ["--all"] if flags.all else []
    words += [f"--exact={flags.exact}"] if flags.exact != 1 else []
    return ["tpusim", "search", *words, flags.file]


def _name_in(module: types.ModuleType, function: Any) -> str:
    """Returns the name by which workers find the function in the file."""
    for name, value in vars(module).items():
        if value is function:
            return name
    raise Error(f"{module.__file__}: objective: {function!r} has no name there; give it one")


def _show_warning(message: Warning | str, category: type[Warning], *place: Any) -> None:
    """A line for what a store has lost; other warnings as Python shows them."""
    if issubclass(category, StoreWarning):
        commands.say(f"warning: {message}")
    else:
        _python_shows(message, category, *place)


_python_shows = warnings.showwarning


def _named(function: FromFile, name: str) -> FromFile:
    function.__name__ = name
    return function


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    flags = _parser().parse_args(argv)
    with warnings.catch_warnings(), _leaving_on(signal.SIGTERM):
        warnings.showwarning = _show_warning
        return commands.code_of(lambda: _run(flags))


def _run(flags: argparse.Namespace) -> int:
    code = 0
    try:
        _check_outputs(flags)
        given = _given(flags)
        results: SearchResults = search(
            FromFile(flags.file, "build"),
            given.pop("space"),
            **given,
            store=flags.store,
            workers=flags.workers,
            prune=not flags.all,
            exact=flags.exact,
            progress=not flags.quiet,
        )
    except SearchInterruptedError as interrupt:
        results, code = interrupt.results, 128 + signal.SIGINT
    if flags.output is not None:
        files.write_atomically(flags.output, results.to_json(_command_line(flags)).encode())
    if flags.html is not None:
        page.save(results, flags.html)
    if flags.json:
        commands.show(results.to_json(_command_line(flags)))
    else:
        commands.show(results.text(flags.top, commands.width()))
    if code == 0 and "simulated" not in results.counts():
        raise Error("no candidate could be simulated")
    return code


@contextlib.contextmanager
def _leaving_on(number: signal.Signals) -> Iterator[None]:
    """Ends the process with its workers and simulations on this signal of batch systems."""

    def leave(number: int, frame: types.FrameType | None) -> NoReturn:
        sys.exit(128 + number)

    before = signal.signal(number, leave)
    try:
        yield
    finally:
        signal.signal(number, before)
