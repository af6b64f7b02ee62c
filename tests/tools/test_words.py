"""The words of the tree: how comments begin, idioms, names of types, the glossary.

`python tests/tools/test_words.py [FOLDER...]` prints all findings in these folders.
"""

from __future__ import annotations

import ast
import collections
import pathlib
import re
import sys
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).parents[2]
FOLDERS = ("benchmarks", "configs", "models", "sim", "tests", "tools", "validation", "workloads")
PRODUCT = ("benchmarks", "configs", "models", "sim", "tools", "workloads")

# A comment on a declaration is a sentence, or names a thing: it does not begin with a preposition,
# a pronoun or a clause without a noun.
OPENER = re.compile(
    r"(Of|By|As|With|For|Those|That|The same|Likewise|Is|All|Else|What|How|Where|Who|Which)"
    r"(?![\w-])"
)

# Idioms that readers stumbled over, and what to write instead.
IDIOMS = {
    r"[Ss]omebody": "name who: the script, a pass, a test",
    r"\b(is|are|was|were) let go\b|\blets? .{0,30} go\b": "is released, releases",
    r"\bpass(es|ed)? the time\b": "time by resource",
    r"\b(is|are) none of\b": "is not, are not",
    r"\bthreads? of control\b": "stream",
    r"\b(gives?|gave|given|hands?|handed) (it |them )?on\b": "forwards, passes to",
    r"\bin other words\b": "equal candidates that are stated differently",
    r"\b(is|are|was|were) looked (at|for)\b": "is examined, is searched",
    r"\bwhat moves time\b": "name it: FastForward",
    r"\bloses? the sharding\b": "is resharded",
    r"\b[Cc]lick at\b": "click",
    r"\bsimulated apart\b": "N of M devices simulated",
    r"\bexcluded by rates\b": "ruled out: matmul or HBM time alone exceeds the best step",
    r"\bis there (more than once|twice)\b": "occurs twice, two have the same name",
    r"\bhave an axis twice\b": "one mesh axis on two dimensions of an array",
    r"\bis not among the versions\b": "has not been tested with",
    r"\bno more than .{0,40}may be in flight\b": "limit of N in flight",
    r"\bplaces, each the first way\b": "apply all N constraints below",
    r"\ba way of (its|their) own\b": "a path of its own",
    r"\bwhat it was up to there\b": "the value before",
}
IDIOM = re.compile("|".join(IDIOMS))

# Rooms whose comments are still to be mended: how many findings each has. A count may only fall.
OPENERS_LEFT: dict[str, int] = {}
IDIOMS_LEFT: dict[str, int] = {}
# Names of types that are in more than two rooms: in how many.
NAMES_LEFT: dict[str, int] = {}
MOST_ROOMS = 2

# Rooms: folders with headers. The subcommands have their entry points in command_line/command.h.
ROOMS = ("configs", "models", "sim", "tools/tpusim", "workloads")
ROOMS_LEFT = {"tools/tpusim/subcommands"}
ANSWER = re.compile(r"\broom answers\b.*?`(\w+)` is (?:the|its) entry point")

TOKEN = re.compile(
    r"""R"(?P<mark>\w*)\([\s\S]*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|(?<!\w)'(?:\\.|[^'\\\n])+'"""
    r"""|//[^\n]*|^[ \t]*\#(?:\\\n|[^\n])*|[{};\n]""",
    re.MULTILINE,
)
# What opens a scope that has declarations in it.
SCOPE = re.compile(r"\b(namespace|class|struct|enum|union)\b(?!.*[=)])|extern \"C\"", re.DOTALL)
TYPE = re.compile(
    r"^[ \t]*(?:template\s*<[^;{]*?>\s*)?(?:class|struct|enum(?: class)?)\s+(\w+)\s*(?:final\s*)?"
    r"(?::[^;{]*)?\{",
    re.MULTILINE,
)


def cpp_comments(text: str) -> Iterator[tuple[int, str]]:
    """Yields line and first line of each comment on a declaration: its block, or behind it."""
    scopes: list[bool] = []
    line, begin, last = 1, 0, (0, 0)
    for token in TOKEN.finditer(text):
        if token[0].startswith("//"):
            column = token.start() - text.rfind("\n", 0, token.start())
            if all(scopes) and last != (line - 1, column):
                yield line, token[0].lstrip("/ ")
            last = (line, column)
        elif token[0] == "{":
            head = re.sub(r"//[^\n]*", "", text[begin : token.start()])
            scopes.append(SCOPE.search(head) is not None)
            begin = token.end()
        elif token[0] == "}":
            scopes = scopes[:-1]
            begin = token.end()
        elif token[0] == ";":
            begin = token.end()
        line += token[0].count("\n")


def python_comments(text: str) -> Iterator[tuple[int, str]]:
    """Yields line and first line of docstrings, and of comments in modules and classes."""
    inside: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inside |= set(range(node.lineno + 1, (node.end_lineno or 0) + 1))
        elif not isinstance(node, ast.ClassDef | ast.Module):
            continue
        if ast.get_docstring(node) is not None:
            docstring = node.body[0]
            yield docstring.lineno, (ast.get_docstring(node) or "").partition("\n")[0]
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        comment = re.match(r"\s*# (.*)", line)
        if comment and number not in inside and not re.match(r"\s*#", lines[number - 2]):
            yield number, comment[1]


def sources(*folders: str) -> Iterator[tuple[pathlib.PurePosixPath, str]]:
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".h", ".cc", ".py") and path != pathlib.Path(__file__):
                yield pathlib.PurePosixPath(path.relative_to(ROOT).as_posix()), path.read_text()


def pages() -> Iterator[tuple[pathlib.PurePosixPath, str]]:
    for path in [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]:
        yield pathlib.PurePosixPath(path.relative_to(ROOT).as_posix()), path.read_text()


def openers() -> Iterator[str]:
    """Yields `path:line: comment` of comments that begin with OPENER."""
    for path, text in sources(*FOLDERS):
        comments = python_comments if path.suffix == ".py" else cpp_comments
        for line, comment in comments(text):
            if OPENER.match(comment):
                yield f"{path}:{line}: {comment}"


def idioms() -> Iterator[str]:
    """Yields `path:line: idiom` of all sources and pages."""
    for path, text in [*sources(*FOLDERS), *pages()]:
        for number, line in enumerate(text.split("\n"), 1):
            if found := IDIOM.search(line):
                instead = next(better for now, better in IDIOMS.items() if re.search(now, found[0]))
                yield f'{path}:{number}: "{found[0]}": {instead}'


def names() -> dict[str, set[str]]:
    """Returns the rooms (folders) of all types of the product, by name."""
    rooms = collections.defaultdict(set)
    for path, text in sources(*PRODUCT):
        if path.suffix != ".py":
            for name in TYPE.findall(text):
                rooms[name].add(path.parent.as_posix())
    return rooms


def main_headers() -> dict[str, list[str]]:
    """Returns for each room its headers that say what it answers, with the entry point named."""
    rooms = collections.defaultdict(list)
    for path, text in sources(*ROOMS):
        if path.suffix == ".h":
            rooms[path.parent.as_posix()] += []
            comment = re.match(r"(//[^\n]*\n)+", text)
            head, rest = (comment[0], text[comment.end() :]) if comment else ("", text)
            if found := ANSWER.search(re.sub(r"\s+", " ", head.replace("//", ""))):
                known = re.search(rf"^[^/\n]*\b{found[1]}\b", rest, re.M)
                where = path.name if known else f"no {found[1]} in {path}"
                rooms[path.parent.as_posix()].append(where)
    return rooms


def beyond(found: Iterator[str], left: dict[str, int]) -> list[str]:
    """Returns the findings of folders that have more than are left to them."""
    by_room = collections.defaultdict(list)
    for finding in found:
        rooms = [room for room in left if finding.startswith((f"{room}/", f"{room}:"))]
        by_room[max(rooms, key=len, default="")].append(finding)
    return [
        finding
        for room, findings in by_room.items()
        if len(findings) > left.get(room, 0)
        for finding in findings
    ]


def test_comments_are_found() -> None:
    text = """// Of a file.
#include <string>
namespace n {

// By name.
// As ever.
struct S {
  int x = 0;  // With a value.
  // For each: 'x', "// no", '"'.
  int y;
};
std::string F() {
  // Is inside of a function.
  return "// Else";
}
// What it is.
enum class E { kA };
}  // namespace n
"""
    found = [(line, words) for line, words in cpp_comments(text) if OPENER.match(words)]
    assert found == [
        (1, "Of a file."),
        (5, "By name."),
        (8, "With a value."),
        (9, "For each: 'x', \"// no\", '\"'."),
        (16, "What it is."),
    ]
    text = '''"""Of a module."""
# By name.
# As ever.
X = 1


def f():
    """As said."""
    # With a value.
    return 1
'''
    assert list(python_comments(text)) == [(1, "Of a module."), (8, "As said."), (2, "By name.")]
    assert not OPENER.match("All-gathers of vectors become all-reduces.")
    assert IDIOM.search("it hands them on")
    assert not IDIOM.search("it forwards them")


def test_comments_on_declarations_begin_with_a_noun_or_a_verb() -> None:
    wrong = beyond(openers(), OPENERS_LEFT)
    assert not wrong, "say what it is or does, in the present tense:\n" + "\n".join(wrong)


def test_there_are_no_idioms() -> None:
    wrong = beyond(idioms(), IDIOMS_LEFT)
    assert not wrong, "write instead:\n" + "\n".join(wrong)


def test_no_name_of_a_type_is_in_more_than_two_rooms() -> None:
    wrong = {
        name: sorted(rooms)
        for name, rooms in names().items()
        if len(rooms) > NAMES_LEFT.get(name, MOST_ROOMS)
    }
    assert not wrong, "a name says what the thing is: " + "\n".join(map(str, wrong.items()))


def test_one_header_of_a_room_says_what_it_answers_and_where_to_begin() -> None:
    wrong = {
        room: headers
        for room, headers in main_headers().items()
        if (len(headers) != 1 or " " in headers[0]) and room not in ROOMS_LEFT
    }
    form = "one header has 'The room answers ...; `X` is its entry point.'"
    assert not wrong, "\n".join([form, *map(str, wrong.items())])


def test_glossary_is_alphabetical_and_in_use() -> None:
    glossary = ROOT / "docs/glossary.md"
    text = glossary.read_text()
    terms = re.findall(r"^\* \*\*(.+?)\*\*", text, re.MULTILINE)
    assert len(terms) >= 80
    assert terms == sorted(set(terms), key=str.lower)
    sections = re.split(r"^## (\w)$", text, flags=re.MULTILINE)[1:]
    for letter, section in zip(sections[::2], sections[1::2], strict=True):
        assert {first.upper() for first in re.findall(r"^\* \*\*(.)", section, re.M)} == {letter}
    for texts in (pages(), sources(*FOLDERS)):
        used = " ".join(text for path, text in texts if path.name != "glossary.md")
        used = re.sub(r"\s+", " ", used).lower()
        terms = [term for term in terms if not re.search(rf"\b{re.escape(term.lower())}", used)]
    assert not terms, "neither a page nor a source uses these"


if __name__ == "__main__":
    for finding in [*openers(), *idioms()]:
        if not sys.argv[1:] or finding.startswith(tuple(sys.argv[1:])):
            print(finding)
    for type_name, in_rooms in names().items():
        if len(in_rooms) > MOST_ROOMS:
            print(f"{type_name}: {', '.join(sorted(in_rooms))}")
