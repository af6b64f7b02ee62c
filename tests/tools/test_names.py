"""Files and types that docs and comments name are there."""

from __future__ import annotations

import fnmatch
import pathlib
import re
from collections.abc import Container, Iterator

ROOT = pathlib.Path(__file__).parents[2]
FOLDERS = ("benchmarks", "cmake", "configs", "docs", "models", "sim", "tests", "tools")
FOLDERS += ("validation", "workloads")

# A file of ours, and with another ending one that may be a user's.
SOURCE = re.compile(r"(?<![\w./<>*{}-])(?:[\w.-]+/)*\w+\.(?:h|cc|proto)\b")
FILE = re.compile(r"(?<![\w./<>{}-])(?:[\w.-]+/)+\w[\w.*-]*\w")
BACKTICKS = re.compile(r"`([^`\n]+)`")
FENCED = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)
# A type or function of C++: `isa::Disassemble`, `ModuleAliases`.
QUALIFIED = re.compile(r"\b(?:[A-Za-z_]\w*::)+([A-Za-z_]\w*)")
CAMEL = re.compile(r"[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]+)+")
COMMENT = re.compile(r"//(.*)")
# A word that the reader replaces: `configs/chips/NAME.json`.
PLACEHOLDER = re.compile(r"[A-Z]{3,}")
# Names of others: sources of XLA and JAX, and the like.
FOREIGN_FILES = {"eigh_expander.cc"}
FOREIGN_FOLDERS = ("tsl/", "xla/", "jax/", "flax/")
FOREIGN_SPACES = ("std::", "absl::", "xla::", "jax::", "google::", "fmt::", "CLI::", "sc_core::")


def files() -> list[pathlib.Path]:
    """Returns the project's files, relative to it, without builds and what users add."""
    found = list(ROOT.glob("*"))
    for folder in FOLDERS:
        found += (ROOT / folder).rglob("*")
    return [path.relative_to(ROOT) for path in found if "__pycache__" not in path.parts]


PATHS = files()
# A file or folder may be named by the end of its path, a source without its ending.
ENDS = {"/".join(path.parts[n:]) for path in PATHS for n in range(len(path.parts))}
ENDS |= {re.sub(r"\.(h|cc|py)$", "", end) for end in ENDS}
# Names of folders that paths of the tree begin with.
BEGINS = {part for path in PATHS for part in path.parts[:-1] if re.fullmatch(r"[a-z_]+", part)}
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
SOURCES = [path for path in PATHS if path.suffix in (".h", ".cc", ".proto", ".py")]


def code_words() -> set[str]:
    """Identifiers of all sources, those in comments left out."""
    words: set[str] = set()
    for path in SOURCES:
        text = (ROOT / path).read_text(errors="replace")
        words |= set(re.findall(r"\w+", text if path.suffix == ".py" else COMMENT.sub("", text)))
    return words


def missing_paths(text: str, begins: Container[str] = BEGINS) -> Iterator[str]:
    """Yields paths in a text that the tree does not have: sources, and those that BEGINS begins."""
    names = SOURCE.findall(text)
    names += [name for name in FILE.findall(text) if name.partition("/")[0] in begins]
    for name in dict.fromkeys(names):
        if name in FOREIGN_FILES or name.startswith(FOREIGN_FOLDERS) or name in ENDS:
            continue
        if not fnmatch.filter(ENDS, PLACEHOLDER.sub("*", name)):
            yield name


def missing_types(text: str, words: set[str]) -> Iterator[str]:
    """Names with their namespace or class that no code has."""
    for found in QUALIFIED.finditer(text):
        if not found[0].startswith(FOREIGN_SPACES) and found[1] not in words:
            yield found[0]


def test_pages_name_what_is_there() -> None:
    words, wrong = code_words(), []
    for page in PAGES:
        text = FENCED.sub(lambda found: "\n" * found[0].count("\n"), page.read_text())
        for number, line in enumerate(text.splitlines(), 1):
            for quoted in BACKTICKS.findall(line):
                names = [*missing_paths(quoted), *missing_types(quoted, words)]
                if CAMEL.fullmatch(quoted) and quoted not in words:
                    names.append(quoted)
                wrong += [f"{page.relative_to(ROOT)}:{number}: {name}" for name in names]
    assert wrong == []


def test_comments_name_what_is_there() -> None:
    words, wrong = code_words(), []
    for path in SOURCES:
        if path.suffix == ".py":
            continue
        for number, line in enumerate((ROOT / path).read_text().splitlines(), 1):
            if comment := COMMENT.search(line):
                # Formulas have slashes, too.
                names = [*missing_paths(comment[1], FOLDERS), *missing_types(comment[1], words)]
                wrong += [f"{path}:{number}: {name}" for name in names]
    assert wrong == []


def test_names_that_are_gone_are_found() -> None:
    gone = "`workloads/gone.h`, kernels/gone_room, `sim/results`, user/train.py, sim/NAME-gone.md"
    expected = ["workloads/gone.h", "kernels/gone_room", "sim/NAME-gone.md"]
    assert list(missing_paths(gone + ", configs/chips/NAME.json")) == expected
    assert list(missing_paths("shard/rate of tests/gone", FOLDERS)) == ["tests/gone"]
    assert list(missing_types("isa::Gone, isa::Kernel and std::Gone", {"Kernel"})) == ["isa::Gone"]
