"""Tests of passes as HLO text with what is expected of it in comments.

A file is a module that `tpusim opt` reads. Its first comment says what it asks; RUN lines are the
arguments of `tpusim opt`, in quotes if they have blanks (globs are tpusim's), or of
`tpusim compile` if that is their first word; all else is compared with what comes out, in the
manner of LLVM's FileCheck:

    // A chain of elementwise operations is one kernel.
    // RUN: --config v5e-2x2 --passes fusion,fusion
    // CHANGED: yes, no
    // CHECK: ENTRY
    // CHECK: [[FUSION:%[a-z_]+]] = {{.*}} fusion(
    // CHECK-NEXT: negate([[FUSION]])
    // CHECK-NOT: tanh(

`CHECK` is found behind what the one before it found, `CHECK-NEXT` in the next line, `CHECK-SAME` in
the same one, `CHECK-DAG` those that stand together in any order, `CHECK-COUNT-n` so often one
after the other; `CHECK-NOT` is not found between its neighbours. Text is meant as it is, blanks
apart, except for `{{regular expressions}}` and `[[NAME:expression]]`, which `[[NAME]]` repeats.
`CHANGED` says of every pass of `--passes` whether it changes anything, `WARNING` and `ERROR` what
is on stderr; nothing else may be there.

A second RUN line has checks of its own if it has a name: `RUN(V6E):`, `V6E-NEXT:`,
`CHANGED(V6E):`.

`pass_text.py --write FILE...` brings files up to date with what the compiler does now: an
expectation that is met stays as it is, one that is not gets the words of the line that is most like
it and keeps its wildcards, and one that nothing is like goes. A run of which nothing is expected
yet gets all of its output. What changed is printed; nothing is written that does not hold.
$TPUSIM_BINARY or build/tpusim runs.
"""

from __future__ import annotations

import dataclasses
import difflib
import itertools
import json
import pathlib
import re
import shlex
import subprocess
import sys

DIRECTIVE = re.compile(r"//\s*([A-Z][A-Z0-9_]*)(?:\((\w+)\))?(-[A-Z]+(?:-\d+)?)?:(.*)")
KINDS = re.compile(r"|-(NEXT|SAME|DAG|NOT|COUNT-[1-9]\d*)")
ABOUT_RUNS = ("RUN", "CHANGED", "WARNING", "ERROR")
BLANKS = re.compile(r"[ \t]+")
PART = re.compile(
    r"\{\{(?P<expression>.+?)\}\}(?!\})|"
    # An expression in a variable may have brackets of its own.
    r"\[\[(?P<name>[A-Z]\w*)(?::(?P<named>(?:\\.|\[(?:\\.|[^\]])+\]|[^\[\]])+))?\]\]"
)
NEAR = 6  # Lines of output that a failure shows on either side.


class TextError(Exception):
    """A file that is none, or an expectation that is not met: all that there is to say."""


@dataclasses.dataclass(frozen=True)
class Check:
    """One expectation."""

    line: int  # Of the file.
    kind: str  # "", "NEXT", "SAME", "DAG", "NOT" or "COUNT-n".
    pattern: str

    def regex(self, variables: dict[str, str]) -> re.Pattern[str]:
        """The pattern with what is known of its variables.

        Raises:
            TextError: a variable that nothing has set, an expression that is none.
        """
        parts, end = [], 0
        groups: set[str] = set()
        for found in PART.finditer(self.pattern):
            parts.append(re.escape(self.pattern[end : found.start()]))
            end = found.end()
            expression, name, named = found.group("expression", "name", "named")
            if expression is not None:
                parts.append(f"(?:{expression})")
            elif named is not None:
                groups.add(name)
                parts.append(f"(?P<{name}>{named})")
            elif name in groups:
                parts.append(f"(?P={name})")
            elif name in variables:
                parts.append(re.escape(variables[name]))
            else:
                raise TextError(f"line {self.line}: nothing has set [[{name}]]")
        parts.append(re.escape(self.pattern[end:]))
        try:
            return re.compile("".join(parts), re.MULTILINE)
        except re.error as error:
            raise TextError(f"line {self.line}: {self.pattern}: {error}") from error


@dataclasses.dataclass
class Run:
    """One RUN line and what belongs to it."""

    line: int
    arguments: list[str]
    checks: list[Check]
    changed: list[bool] | None = None
    warnings: list[Check] = dataclasses.field(default_factory=list)
    errors: list[Check] = dataclasses.field(default_factory=list)

    def is_expected(self) -> bool:
        """Whether anything is."""
        return bool(self.checks or self.errors or self.warnings or self.changed is not None)

    def command(self, file: pathlib.Path) -> list[str]:
        """Words for the command line: `opt` unless the first argument is `compile`."""
        if self.arguments[:1] == ["compile"]:
            return ["compile", str(file), *self.arguments[1:]]
        return ["opt", str(file), *self.arguments]

    def names(self, one: str) -> bool:
        """Whether it asks for this pass; without `--passes` for every one that runs."""
        if "--passes" not in self.arguments:
            return True
        passes = self.arguments[self.arguments.index("--passes") + 1]
        return one in re.findall(r"[a-z][a-z-]*", passes)


def words(line: int, text: str) -> list[str]:
    """Splits a line like a shell, without its globs.

    Raises:
        TextError: a quote that does not end.
    """
    try:
        return shlex.split(text)
    except ValueError as error:
        raise TextError(f"line {line}: {error}") from error


def read(text: str, *, empty: bool = False) -> list[Run]:
    """The runs of a file; of those that are `empty` nothing is expected yet.

    Raises:
        TextError: no sentence about what it asks, a directive that there is not, a run that
            expects nothing, expectations without a run.
    """
    lines = text.splitlines() or [""]
    if not re.match(r"// [\w[].*\w", lines[0]) or DIRECTIVE.match(lines[0]):
        raise TextError("line 1: the first comment says in a sentence what the file asks")
    runs: list[tuple[str, Run]] = []
    about: list[tuple[str, str, Check]] = []
    for number, line in enumerate(lines, 1):
        found = DIRECTIVE.match(line.strip())
        if not found:
            continue
        word, name, kind, rest = found[1], found[2], found[3] or "", BLANKS.sub(" ", found[4])
        rest = rest.strip()
        if word == "RUN" and not kind:
            runs.append((name or "CHECK", Run(number, words(number, rest), [])))
        elif word in ABOUT_RUNS and not kind and rest:
            about.append((word, name or "CHECK", Check(number, "", rest)))
        elif name is None and KINDS.fullmatch(kind) and rest:
            about.append(("", word, Check(number, kind[1:], rest)))
        else:
            raise TextError(f"line {number}: there is no directive {line.strip()}")
    for word, name, check in about:
        of_name = [run for run_name, run in runs if run_name == name]
        if not of_name:
            raise TextError(f"line {check.line}: no RUN line is called {name}")
        for run in of_name:
            if word == "CHANGED":
                run.changed = [said == "yes" for said in check.pattern.split(", ")]
                if not re.fullmatch(r"(yes|no)(, (yes|no))*", check.pattern):
                    raise TextError(f"line {check.line}: say yes or no, with commas between")
            else:
                part = {"": run.checks, "WARNING": run.warnings, "ERROR": run.errors}[word]
                part.append(check)
    for _, run in runs:
        if not empty and not run.is_expected():
            raise TextError(f"line {run.line}: nothing is expected of this run")
    if not runs:
        raise TextError("there is no RUN line")
    return [run for _, run in runs]


class Output:
    """The printed text, and the position up to which it has been checked."""

    def __init__(self, text: str) -> None:
        """From the beginning."""
        self.text = "\n".join(BLANKS.sub(" ", line).strip() for line in text.splitlines()) + "\n"
        self.variables: dict[str, str] = {}
        self.at = 0  # Behind the last match.

    def line_at(self, position: int) -> int:
        """Counted from 1."""
        return self.text.count("\n", 0, position) + 1

    def line_end(self, position: int) -> int:
        """Returns the position of the newline."""
        return self.text.index("\n", position) if position < len(self.text) else len(self.text)

    def fail(self, check: Check, what: str, near: int | None = None) -> TextError:
        """Returns an error with the output around a position, by default where the search began."""
        lines = self.text.splitlines()
        here = self.line_at(self.at if near is None else near)
        kind = f"-{check.kind}" if check.kind else ""
        said = [f"line {check.line}: {what}", f"  CHECK{kind}: {check.pattern}"]
        if self.variables:
            said.append("  with " + ", ".join(f"{k}={v}" for k, v in self.variables.items()))
        rest = lines[here - 1 :]
        alike = difflib.get_close_matches(check.pattern, rest, n=1, cutoff=0.3)
        if near is None and alike:
            said.append(f"nearest is line {here + rest.index(alike[0])} of the output: {alike[0]}")
        said.append(f"output near line {here}:")
        for number in range(max(1, here - NEAR), min(len(lines), here + 2 * NEAR) + 1):
            said.append(f"  {'>' if number == here else ' '}{number:4}  {lines[number - 1]}")
        return TextError("\n".join(said))

    def search(self, check: Check, begin: int, end: int) -> re.Match[str] | None:
        """Patterns match within a line, unless their expressions say otherwise."""
        return check.regex(self.variables).search(self.text, begin, end)

    def find(self, check: Check) -> re.Match[str]:
        """The next match of anything but `NOT` and `DAG`."""
        begin, end, where = self.at, len(self.text), ""
        if check.kind in ("NEXT", "SAME"):
            end = self.line_end(self.at)
            where = " in the same line"
        if check.kind == "NEXT":
            begin = min(end + 1, len(self.text))
            end = self.line_end(begin)
            where = " in the next line"
        found = self.search(check, begin, end)
        if not found:
            raise self.fail(check, f"not found{where}")
        self.accept(found)
        return found

    def find_all(self, checks: list[Check]) -> tuple[int, int]:
        """From where to where matches of `DAG` checks are, none on another."""
        taken: list[tuple[int, int]] = []
        for check in checks:
            for found in check.regex(self.variables).finditer(self.text, self.at):
                if all(found.end() <= begin or found.start() >= end for begin, end in taken):
                    break
            else:
                raise self.fail(check, "not found")
            self.accept(found)
            taken.append(found.span())
        return min(begin for begin, _ in taken), max(end for _, end in taken)

    def accept(self, found: re.Match[str]) -> None:
        """Remembers the captures of a match."""
        self.variables |= found.groupdict()

    def advance(self, forbidden: list[Check], begin: int, end: int) -> None:
        """Nothing of `forbidden` is before the match from `begin` to `end`."""
        for check in forbidden:
            found = self.search(check, self.at, begin)
            if found:
                raise self.fail(check, "this is there", found.start())
        self.at = end


def compare(checks: list[Check], text: str) -> None:
    """Raises: TextError: the first expectation that is not met."""
    output = Output(text)
    forbidden: list[Check] = []
    for kind, group in itertools.groupby(checks, lambda check: check.kind):
        if kind == "NOT":
            forbidden = list(group)
        elif kind == "DAG":
            output.advance(forbidden, *output.find_all(list(group)))
            forbidden = []
        else:
            times = int(kind.removeprefix("COUNT-")) if kind.startswith("COUNT") else 1
            for check in group:
                for _ in range(times):
                    output.advance(forbidden, *output.find(check).span())
                    forbidden = []
    output.advance(forbidden, len(output.text), len(output.text))


def check_run(binary: str, file: pathlib.Path, run: Run) -> None:
    """Runs it.

    Raises:
        TextError: with the command that replays it.
    """
    command = [binary, *run.command(file)]
    try:
        check_command(command, run)
    except TextError as error:
        raise TextError(f"{file.name}: {error}\nreplay: {shlex.join(command)}") from None


@dataclasses.dataclass(frozen=True)
class Printed:
    """The result of a run."""

    code: int
    said: list[str]  # On stderr.
    passes: list[tuple[str, bool]]  # Those that it asks for, and whether they changed anything.
    text: str


def execute(command: list[str], run: Run) -> Printed:
    """Runs the command once."""
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False)
    said = [line for line in done.stderr.splitlines() if line]
    result = json.loads(done.stdout) if done.returncode == 0 else {"passes": [], "text": ""}
    passes = [(ran["pass"], ran["changed"]) for ran in result["passes"] if run.names(ran["pass"])]
    return Printed(done.returncode, said, passes, result["text"])


def check_command(command: list[str], run: Run) -> None:
    """Checks like `check_run`, with the command taken apart."""
    done = execute(command, run)
    stderr = "\n".join(done.said)
    if done.code != (1 if run.errors else 0):
        raise TextError(f"line {run.line}: exit code {done.code}: {stderr}")
    expected = run.errors + run.warnings
    for check in expected:
        if not any(check.regex({}).search(line) for line in done.said):
            raise TextError(f"line {check.line}: not on stderr: {check.pattern}\n{stderr}")
    for line in done.said:
        if not any(check.regex({}).search(line) for check in expected):
            raise TextError(f"line {run.line}: on stderr: {line}")
    if run.errors:
        return
    if run.changed is not None and run.changed != [changed for _, changed in done.passes]:
        said = [f"{name}: {yes_or_no(changed)}" for name, changed in done.passes]
        raise TextError(f"line {run.line}: changed: {', '.join(said)}\n{done.text}")
    compare(run.checks, done.text)


def yes_or_no(changed: bool) -> str:
    """Returns the word that CHANGED expects."""
    return "yes" if changed else "no"


if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).parents[3]))
    from tests.workloads.passes import pass_text_writer

    sys.exit(pass_text_writer.main())
