"""The snippets of a Markdown file: what a reader would paste, and what the page says comes out.

Blocks are fenced, or indented by four spaces; what a block is follows from its language:

    indented, shell     commands; lines that begin with "$ " are commands, those below their output
    python              run in one session of the document
    sql                 asked of the newest trace in the folder, by Perfetto's trace processor
    json                must parse
    output              what the Python or SQL block before it prints
    text, hlo, markdown nothing to run: formulas, diagrams, forms of usage

A comment before a block says how it is used:

    <!-- not run: REASON -->    commands that a test cannot run
    <!-- file: NAME -->         a file of the reader: written, not run
    <!-- setup: ... -->         Python that is run here and not shown
"""

import dataclasses
import pathlib
import re

_INERT = {"text", "hlo", "markdown"}
_KINDS = {
    **{"shell": "shell", "bash": "shell", "sh": "shell", "console": "shell"},
    **{"python": "python", "sql": "sql", "json": "json", "output": "output"},
}
_COMMENT = re.compile(r"<!-- (not run|file|setup):\s*(.*?)\s*-->", re.DOTALL)
_LIST_ITEM = re.compile(r"\s*([*+-]|\d+\.) ")


@dataclasses.dataclass(frozen=True)
class Snippet:
    """A block of a document."""

    kind: str  # shell, python, sql, json, output or file
    text: str
    line: int  # of the document, of the block's first line, from 1
    indent: str = ""  # before each line in the document
    not_run: str = ""  # the reason
    file: str = ""  # where it is written to
    hidden: bool = False  # a setup comment

    @property
    def lines(self) -> list[str]:
        """Without line ends."""
        return self.text.split("\n")


class FormError(Exception):
    """The document has a block of which it cannot be told what to do with it."""


def snippets(path: pathlib.Path) -> list[Snippet]:
    """Returns the parts to run, write or compare, in order."""
    lines = path.read_text().splitlines()
    found: list[Snippet] = []
    remark: dict[str, str] = {}
    at = 0
    while at < len(lines):
        line = lines[at]
        if line.startswith("<!-- "):
            last = next(i for i in range(at, len(lines)) if "-->" in lines[i])
            said = _COMMENT.match("\n".join(lines[at : last + 1]))
            if said and said[1] == "setup":
                first = at if said[2] in line else at + 1
                found.append(Snippet("python", said[2], first + 1, hidden=True))
            elif said:
                remark = {said[1].replace(" ", "_"): said[2]}
            at = last + 1
            continue
        block: Snippet | None = None
        if line.startswith("```"):
            last = next(i for i in range(at + 1, len(lines)) if lines[i] == "```")
            block = _fenced(path, line[3:].strip(), lines[at + 1 : last], at + 2, remark)
            at = last
        elif line.startswith("    ") and _begins_block(lines, at):
            last = at
            while last + 1 < len(lines) and (not lines[last + 1] or lines[last + 1][:4] == "    "):
                last += 1
            text = "\n".join(each[4:] for each in lines[at : last + 1]).rstrip("\n")
            block = Snippet("shell", text, at + 1, indent="    ", **remark)
            at = last
        if block is not None:
            found.append(block)
        if line.strip():
            remark = {}
        at += 1
    return [each for each in found if each.kind]


def _fenced(
    path: pathlib.Path, language: str, lines: list[str], line: int, remark: dict[str, str]
) -> Snippet:
    text = "\n".join(lines)
    if "file" in remark:
        return Snippet("file", text, line, file=remark["file"])
    if language in _INERT:
        return Snippet("", text, line)
    if language not in _KINDS:
        raise FormError(f"{path}:{line - 1}: a block in {language or 'no language'}")
    return Snippet(_KINDS[language], text, line, **remark)


def _begins_block(lines: list[str], at: int) -> bool:
    """Whether the indented line is code, not the continuation of a paragraph or of a list."""
    if at > 0 and lines[at - 1].strip() and not lines[at - 1].startswith("<!-- "):
        return False
    for line in reversed(lines[:at]):
        if line and not line.startswith(" "):
            return not _LIST_ITEM.match(line)
    return True


@dataclasses.dataclass(frozen=True)
class Command:
    """A command of a shell block, and the output below it; None if the block shows none."""

    text: str
    shown: list[str] | None
    first: int  # index of the first line of the output in the block
    last: int  # behind its last


def commands(snippet: Snippet) -> list[Command]:
    """A block without "$ " is one script."""
    lines = snippet.lines
    if not any(line.startswith("$ ") for line in lines):
        return [Command(snippet.text, None, 0, 0)]
    found = []
    at = 0
    while at < len(lines):
        first = at
        while lines[at].endswith("\\"):
            at += 1
        text = "\n".join(lines[first : at + 1]).removeprefix("$ ")
        begin = at = at + 1
        while at < len(lines) and not lines[at].startswith("$ "):
            at += 1
        found.append(Command(text, lines[begin:at], begin, at))
    return found


def matches(shown: list[str], real: list[str]) -> bool:
    """Whether that is the output; "..." stands for lines, or for a part of one."""
    pattern = []
    for line in _stripped(shown):
        if line.strip() == "...":
            pattern.append(r"(?:.*\n)*?")
        else:
            pattern.append(".*".join(re.escape(part) for part in line.split("...")) + "\n")
    text = "".join(f"{line}\n" for line in _stripped(real))
    return re.fullmatch("".join(pattern), text) is not None


def _stripped(lines: list[str]) -> list[str]:
    """Without spaces at the ends of lines, and empty lines at the end."""
    return "\n".join(line.rstrip() for line in lines).rstrip("\n").split("\n")
