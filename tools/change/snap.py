"""`tools/snap`: what every program takes and compiles to, and what a change of the code moves.

    tools/snap save before
    ... change something, build ...
    tools/snap diff before

A snapshot is whole or absent. It names the binary that it is of, by a digest, and which programs it
has; `diff` runs these with the present binary.
"""

import argparse
import concurrent.futures
import dataclasses
import hashlib
import json
import os
import pathlib
import re
import shlex
import sys
import time
from collections.abc import Sequence
from typing import Any

from tools.change import comparing
from tools.change.measuring import Row, measure
from tools.change.programs import ROOT, Program, fits, selected

sys.path.insert(0, str(ROOT / "tools" / "python"))

from tpusim import files
from tpusim.errors import Error

_FORMAT = "tpusim.snapshot/1"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
EQUAL, DIFFERENT, WRONG, INTERRUPTED = 0, 1, 2, 130


@dataclasses.dataclass
class Snapshot:
    """Figures and digests of programs with one binary."""

    build: str  # digest of the binary
    programs: dict[str, Row]
    all: bool  # whether these are all, not the sample
    only: list[str]  # globs that they were chosen by instead
    options: list[str]  # that every program ran with

    def within(self, other: "Snapshot") -> dict[str, Row]:
        """Rows to compare with that snapshot: where programs were chosen otherwise, the common."""
        if (self.all, self.only) == (other.all, other.only):
            return self.programs
        return {name: row for name, row in self.programs.items() if name in other.programs}


def take(
    binary: pathlib.Path, options: Sequence[str], programs: Sequence[Program], jobs: int
) -> tuple[str, dict[str, Row]]:
    """The digest of the binary, and what it says of programs.

    What takes longest is first, so that none is left alone at the end.
    """
    build = hashlib.sha256(files.read_bytes(binary)).hexdigest()[:16]
    longest_first = sorted(programs, key=lambda each: each.effort, reverse=True)
    rows: dict[str, Row] = {}
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:

        def row_of(program: Program) -> tuple[str, Row]:
            return program.name, measure([str(binary), *options], program)

        try:
            running = [pool.submit(row_of, program) for program in longest_first]
            for done in concurrent.futures.as_completed(running):
                name, row = done.result()
                rows[name] = row
                _show_progress(len(rows), len(programs))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return build, dict(sorted(rows.items()))


def load(folder: pathlib.Path, name: str) -> Snapshot:
    """A snapshot that was saved."""
    path = _path(folder, name)
    if not path.is_file():
        there = ", ".join(sorted(each.stem for each in folder.glob("*.json"))) or "none"
        raise Error(
            f"no snapshot {name} in {folder} (there: {there}); `tools/snap save {name}` with the "
            "binary to compare with writes it"
        )
    try:
        saved = json.loads(path.read_text())
        if saved.pop("format") != _FORMAT:
            raise ValueError("another format")
        saved["programs"] = {key: Row(**row) for key, row in saved["programs"].items()}
        return Snapshot(**saved)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Error(f"{path}: no snapshot of this version ({error}); save it anew") from error


def save(folder: pathlib.Path, name: str, snapshot: Snapshot) -> pathlib.Path:
    """Writes it, whole or not at all."""
    path = _path(folder, name)
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"format": _FORMAT, **dataclasses.asdict(snapshot)}, indent=1)
    files.write_atomically(path, f"{text}\n".encode())
    return path


def report(before: Snapshot, after: Snapshot, names: Sequence[str], as_json: bool) -> int:
    """Prints how they differ; the exit code."""
    old, new = before.within(after), after.within(before)
    rows = comparing.differences(old, new)
    if as_json:
        print(
            json.dumps(
                {
                    "before": {"name": names[0], "build": before.build},
                    "after": {"name": names[1], "build": after.build},
                    "programs": len({*old, *new}),
                    "differences": [row.as_json() for row in rows],
                },
                indent=2,
            )
        )
    else:
        if rows:
            print(comparing.table(rows) + "\n")
        how = ["the same binary"] if before.build == after.build else []
        if before.options != after.options:
            how.append(f"options {shlex.join(after.options) or 'none'}")
        said = f" ({', '.join(how)})" if how else ""
        print(comparing.summary(rows, len({*old, *new}), names[0]) + said)
    return DIFFERENT if rows else EQUAL


def _path(folder: pathlib.Path, name: str) -> pathlib.Path:
    if not _NAME.fullmatch(name):
        raise Error(f"{name}: no name of a snapshot: letters, digits, dots, dashes and underscores")
    return folder / f"{name}.json"


def _show_progress(done: int, of: int) -> None:
    if sys.stderr.isatty():
        end = "\n" if done == of else ""
        print(f"\rtools/snap: {done} of {of} programs", end=end, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tools/snap", description="Says what a change of the simulator moves."
    )
    default = os.environ.get("TPUSIM_BINARY", ROOT / "build" / "tpusim")
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--jobs", type=int, default=os.cpu_count(), help="programs at a time")
    common.add_argument("--binary", type=pathlib.Path, default=default, help=f"default: {default}")
    folder = pathlib.Path("build", "snap")
    common.add_argument("--folder", type=pathlib.Path, default=folder, help=f"default: {folder}")
    common.add_argument(
        "--options",
        type=shlex.split,
        metavar="='OPTIONS'",
        help="of tpusim run and compile, for every program: --options='--passes -fusion'; default "
        "of diff: those of the snapshot",
    )
    common.add_argument("--json", action="store_true", help="print JSON")
    only = {
        "action": "append",
        "default": [],
        "metavar": "GLOB",
        "help": "programs of these names, such as 'examples/adam*'; may be repeated",
    }
    commands = parser.add_subparsers(dest="command", required=True, metavar="save|diff")
    saving = commands.add_parser("save", parents=[common], help="write a snapshot")
    saving.add_argument("name")
    saving.add_argument("--all", action="store_true", help="all programs instead of a sample")
    saving.add_argument("--only", **only)
    diff = commands.add_parser("diff", parents=[common], help="compare with a snapshot")
    diff.add_argument("name", metavar="BEFORE")
    diff.add_argument("after", nargs="?", help="another snapshot; default: the present binary")
    diff.add_argument("--only", **only)
    return parser


def _save(arguments: argparse.Namespace, binary: pathlib.Path) -> int:
    started = time.monotonic()
    _path(arguments.folder, arguments.name)
    every, only, options = arguments.all, arguments.only, arguments.options or []
    programs = selected(every=every, only=only)
    if not programs:
        raise _none_fits(only)
    snapshot = Snapshot(*take(binary, options, programs, arguments.jobs), every, only, options)
    path = save(arguments.folder, arguments.name, snapshot)
    failed = [f"{name}: {row.error}" for name, row in snapshot.programs.items() if row.error]
    seconds = time.monotonic() - started
    said: dict[str, Any] = {"path": str(path), "programs": len(snapshot.programs), "failed": failed}
    if arguments.json:
        print(json.dumps(said, indent=2))
    else:
        print("".join(f"{line}\n" for line in failed), end="")
        text = f"{path}: {len(snapshot.programs)} programs in {seconds:.0f} s"
        print(text + (f", {len(failed)} of them fail" if failed else ""))
    return EQUAL


def _diff(arguments: argparse.Namespace, binary: pathlib.Path) -> int:
    only = arguments.only
    before = _narrowed(load(arguments.folder, arguments.name), only)
    if arguments.after is not None:
        after = _narrowed(load(arguments.folder, arguments.after), only)
    else:
        programs = selected(every=before.all, only=before.only)
        programs = [program for program in programs if not only or fits(program.name, only)]
        options = before.options if arguments.options is None else arguments.options
        build, rows = take(binary, options, programs, arguments.jobs)
        after = dataclasses.replace(before, build=build, programs=rows, options=options)
    if not before.within(after) and not after.within(before):
        raise _none_fits(only) if only else Error("the snapshots have no program in common")
    return report(before, after, [arguments.name, arguments.after or "now"], arguments.json)


def _narrowed(snapshot: Snapshot, only: list[str]) -> Snapshot:
    rows = {name: row for name, row in snapshot.programs.items() if not only or fits(name, only)}
    return dataclasses.replace(snapshot, programs=rows)


def _none_fits(only: Sequence[str]) -> Error:
    return Error(f"--only {' '.join(only)}: fits none of the programs, such as examples/psum")


def main(words: Sequence[str] | None = None) -> int:
    """Exit code 0: equal; 1: something differs; 2: the command line or a snapshot is wrong."""
    arguments = _parser().parse_args(words)
    if not arguments.jobs or arguments.jobs < 1:
        print("tools/snap: error: --jobs: at least 1", file=sys.stderr)
        return WRONG
    try:
        binary = pathlib.Path(arguments.binary).absolute()
        return (_save if arguments.command == "save" else _diff)(arguments, binary)
    except Error as error:
        print(f"tools/snap: error: {error}", file=sys.stderr)
        return WRONG
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
