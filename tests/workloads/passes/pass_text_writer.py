"""Brings the expectations of a pass text up to date: `pass_text.py --write FILE...`.

Expectations are walked through in order, beside the output. One that is met stays. One that is not
takes over words: of all lines behind the last match, the one is chosen that it matches when the
fewest of its characters are replaced; its expressions and variables stay. Where less than half of
it would be left, it goes. So goes a `NOT` that is broken: the file no longer holds what it says,
which the author has to judge, and every change is printed.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import os
import pathlib
import re
import sys
from collections.abc import Iterator

from tests.workloads.passes.pass_text import (
    BLANKS,
    DIRECTIVE,
    PART,
    Check,
    Output,
    Printed,
    Run,
    TextError,
    check_run,
    execute,
    read,
    yes_or_no,
)

ROOT = pathlib.Path(__file__).parents[3]
WORDS = re.compile(r"\w+|\s+|.")
# A pattern in place of words that are no longer true.
WORD = r"([^\s()]+?)"


def escaped(literal: str) -> str:
    """The text such that a pattern means it as it is."""
    return re.sub(r"\{(?=\{)", "{{[{]}}", literal)


def tokens_of(pattern: str) -> list[str]:
    """Words, single characters, and expressions and variables as a whole."""
    tokens, end = [], 0
    for part in PART.finditer(pattern):
        tokens += [*WORDS.findall(pattern[end : part.start()]), part[0]]
        end = part.end()
    return tokens + WORDS.findall(pattern[end:])


def is_fixed(token: str) -> bool:
    """Whether it must stay: an expression, or what sets a variable."""
    part = PART.fullmatch(token)
    return part is not None and (part["expression"] is not None or part["named"] is not None)


def variants(pattern: str) -> Iterator[tuple[str, str]]:
    """Yields the texts before and behind a run of words, those first that leave most of it."""
    tokens = tokens_of(pattern)
    runs = [
        (begin, end)
        for begin, end in itertools.combinations(range(len(tokens) + 1), 2)
        if not any(map(is_fixed, tokens[begin:end])) and "".join(tokens[begin:end]).strip()
    ]
    sizes = {(b, e): len("".join(tokens[b:e])) for b, e in runs}
    for begin, end in sorted(runs, key=sizes.__getitem__):
        if 2 * sizes[begin, end] <= len(pattern):
            yield "".join(tokens[:begin]), "".join(tokens[end:])


def renewed(check: Check, output: Output, begin: int, end: int) -> Check | None:
    """The expectation with words of the output between two positions; None: nothing is like it."""
    for front, back in variants(check.pattern):
        try:
            around = [dataclasses.replace(check, pattern=text) for text in (front, back)]
            sides = [side.regex(output.variables).pattern for side in around]
            found = re.compile(sides[0] + WORD + sides[1], re.MULTILINE).search(
                output.text, begin, end
            )
        except (TextError, re.error):  # A variable that is not set any more, set twice.
            continue
        if not found:
            continue
        # The word is what is in no group of the expressions.
        words = next(
            found[number]
            for number in range(1, (found.re.groups or 0) + 1)
            if number not in found.re.groupindex.values() and found[number] is not None
        )
        made = dataclasses.replace(check, pattern=front + escaped(words) + back)
        for name, value in output.variables.items():
            rest = value.removesuffix(words)
            if rest != value and front.endswith(rest):
                pattern = f"{front.removesuffix(rest)}[[{name}]]{back}"
                made = dataclasses.replace(check, pattern=pattern)
        if output.search(made, begin, end):
            return made
    return None


def update(checks: list[Check], text: str) -> dict[Check, Check | None]:
    """Returns replacements of the expectations that are not met; None: they go."""
    output = Output(text)
    changes: dict[Check, Check | None] = {}
    forbidden: list[Check] = []

    def accept(begin: int, end: int) -> None:
        for check in forbidden:
            if output.search(check, output.at, begin):
                changes[check] = None
        forbidden.clear()
        output.at = end

    def one(check: Check) -> None:
        begin, end = output.at, len(output.text)
        if check.kind in ("NEXT", "SAME"):
            end = output.line_end(begin)
        if check.kind == "NEXT":
            begin = min(end + 1, len(output.text))
            end = output.line_end(begin)
        made: Check | None = check
        found = matched(output, check, begin, end)
        if not found:
            made = changes[check] = renewed(check, output, begin, end)
            if made is None and check.kind == "NEXT" and output.text[begin:end]:
                made = dataclasses.replace(check, pattern=escaped(output.text[begin:end]))
                changes[check] = made
            found = made and output.search(made, begin, end)
        if found:
            output.accept(found)
            accept(*found.span())

    def several(check: Check) -> None:
        wanted, times = int(check.kind.removeprefix("COUNT-")), 0
        while times < wanted and (found := matched(output, check, output.at, len(output.text))):
            output.accept(found)
            accept(*found.span())
            times += 1
        if times < wanted:
            less = dataclasses.replace(check, kind=f"COUNT-{times}")
            changes[check] = less if times > 0 else None

    def unordered(group: list[Check]) -> None:
        taken: list[tuple[int, int]] = []
        for check in group:
            found = free(output, check, taken)
            if not found:
                made = changes[check] = renewed(check, output, output.at, len(output.text))
                found = made and free(output, made, taken)
                if not found:
                    changes[check] = None
                    continue
            output.accept(found)
            taken.append(found.span())
        if taken:
            accept(min(begin for begin, _ in taken), max(end for _, end in taken))

    for kind, group in itertools.groupby(checks, lambda check: check.kind):
        if kind == "NOT":
            forbidden.extend(group)
        elif kind == "DAG":
            unordered(list(group))
        else:
            for check in group:
                (several if kind.startswith("COUNT") else one)(check)
    accept(len(output.text), len(output.text))
    return changes


def matched(output: Output, check: Check, begin: int, end: int) -> re.Match[str] | None:
    """Searches like `Output.search`, also where the expectation that sets a variable has gone."""
    try:
        return output.search(check, begin, end)
    except TextError:
        return None


def free(output: Output, check: Check, taken: list[tuple[int, int]]) -> re.Match[str] | None:
    """A match beside those that are taken."""
    try:
        pattern = check.regex(output.variables)
    except TextError:
        return None
    for found in pattern.finditer(output.text, output.at):
        if all(found.end() <= begin or found.start() >= end for begin, end in taken):
            return found
    return None


def whole(text: str) -> list[tuple[str, str]]:
    """Returns every computation of an output as kinds and patterns."""
    made, kind = [], ""
    for line in text.splitlines()[1:]:
        line = BLANKS.sub(" ", line).strip()
        if line:
            made.append((kind, escaped(line)))
        kind = "NEXT" if line else ""
    return made


class File:
    """A text that is being changed, line by line."""

    def __init__(self, text: str) -> None:
        """Begins with the text unchanged."""
        self.old = text.splitlines()
        self.lines: list[list[str]] = [[line] for line in self.old]

    def change(self, line: int, kind: str | None, rest: str | None) -> None:
        """The directive has another kind (None: the same) and text; no text: it goes."""
        found = DIRECTIVE.match(self.old[line - 1].strip())
        assert found is not None
        name = f"{found[1]}({found[2]})" if found[2] else found[1]
        suffix = (found[3] or "") if kind is None else f"-{kind}" if kind else ""
        self.lines[line - 1][0:1] = [] if rest is None else [f"// {name}{suffix}: {rest}"]

    def add(self, line: int, directive: str, rest: str) -> None:
        """A line behind this one, and those that were added there."""
        self.lines[line - 1].append(f"// {directive}: {rest}")

    def text(self) -> str:
        """The text with its changes."""
        return "".join(f"{line}\n" for lines in self.lines for line in lines)

    def said(self) -> list[str]:
        """The changes, in words."""
        said = []
        for number, (old, new) in enumerate(zip(self.old, self.lines, strict=True), 1):
            if new[:1] != [old]:
                first = new[0] if new else "removed"
                said.append(f"line {number}: {old.strip()}\n     now: {first}")
            said += [f"line {number}: added {line}" for line in new[1:]]
        return said


def name_of(file: File, run: Run) -> str:
    """The name of `RUN(NAME)`, else `CHECK`."""
    found = DIRECTIVE.match(file.old[run.line - 1].strip())
    return (found and found[2]) or "CHECK"


def renew(file: File, run: Run, done: Printed) -> None:
    """Makes the file say what a run came to."""
    name = name_of(file, run)
    about = "" if name == "CHECK" else f"({name})"
    stale = [
        check
        for check in run.warnings + run.errors
        if not any(check.regex({}).search(line) for line in done.said)
    ]
    for check in stale:
        file.change(check.line, None, None)
    kept = [check for check in run.warnings + run.errors if check not in stale]
    for line in done.said:
        if not any(check.regex({}).search(line) for check in kept):
            kind = "ERROR" if line.startswith("tpusim: error: ") else "WARNING"
            file.add(run.line, kind + about, escaped(line.split(": ", 2)[-1]))
    if done.code != 0:
        return
    changed = [changed for _, changed in done.passes]
    if run.changed is not None and run.changed != changed:
        (line,) = (
            number
            for number, text in enumerate(file.old, 1)
            if text.strip().startswith(f"// CHANGED{about}:")
        )
        file.change(line, None, ", ".join(map(yes_or_no, changed)))
    if not run.is_expected():
        file.add(run.line, "CHANGED" + about, ", ".join(map(yes_or_no, changed)))
        for kind, pattern in whole(done.text):
            file.add(run.line, f"{name}-{kind}" if kind else name, pattern)
    for old, new in update(run.checks, done.text).items():
        file.change(old.line, new and new.kind, new and new.pattern)


def write(binary: str, path: pathlib.Path) -> list[str]:
    """Brings one file up to date, and says what has changed.

    Raises:
        TextError: a file that is none, a run that ends otherwise than well or with an error of the
            user's, what would be written does not hold. The file is as it was.
    """
    text = path.read_text()
    file = File(text)
    for run in read(text, empty=True):
        done = execute([binary, *run.command(path)], run)
        if done.code not in (0, 1):
            raise TextError(f"line {run.line}: exit code {done.code}: {' '.join(done.said)}")
        renew(file, run, done)
    said = file.said()
    if not said:
        return []
    new = file.text()
    # Beside it, since lines and names of the file are in what a failure says.
    trial = path.with_name(f".{path.name}.new")
    trial.write_text(new)
    try:
        for run in read(new):
            check_run(binary, trial, run)
        trial.replace(path)
    finally:
        trial.unlink(missing_ok=True)
    return said


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="pass_text.py", description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", required=True, help="change the files")
    parser.add_argument("files", nargs="+", type=pathlib.Path, metavar="FILE")
    arguments = parser.parse_args()
    binary = os.environ.get("TPUSIM_BINARY", str(ROOT / "build" / "tpusim"))
    failed = False
    for path in arguments.files:
        try:
            said = write(binary, path)
        except (TextError, OSError) as error:
            print(f"{path}: {error}\nnot written", file=sys.stderr)
            failed = True
            continue
        print(f"{path}: {f'{len(said)} changes' if said else 'as it was'}")
        for change in said:
            print(f"  {change}")
    return 1 if failed else 0
