"""Commands and snippets of README, guide and tutorials work and print what they show."""

import collections
import pathlib

import pytest

from tests.docs.running import HAS_COMPILER, OF_THE_COMPILER, ROOT, Result, run_document
from tests.docs.snippets import FormError, commands, matches, snippets

DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "tutorials").glob("*.md")),
]
# Blocks that are installations, whole builds, the proprietary compiler.
MOST_NOT_RUN = 7


def marks_of(path: pathlib.Path) -> list[pytest.MarkDecorator]:
    """Compiling ahead of time takes minutes, and needs a wheel."""
    if path.name not in OF_THE_COMPILER:
        return []
    reason = "no libtpu in this Python: pip install 'libtpu==0.0.42.*' (CONTRIBUTING.md)"
    return [pytest.mark.long, pytest.mark.skipif(not HAS_COMPILER, reason=reason)]


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=marks_of(path)) for path in DOCUMENTS],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_document(path: pathlib.Path, binary: str, tmp_path: pathlib.Path) -> None:
    if "flax" in path.name:
        pytest.importorskip("flax")
    result = Result()
    run_document(path, tmp_path, binary, result)
    for snippet in result.not_run:
        print(f"{path.name}:{snippet.line}: not run: {snippet.not_run}")
    stale = [
        f"{path.relative_to(ROOT)}:{output.line}: {output.command}\nprints\n"
        + "\n".join(output.real)
        for output in result.outputs
        if output.stale
    ]
    assert not stale, "\n\n".join([*stale, "python -m tests.docs.update writes them anew"])


def test_progress_of_a_search_is_no_output(tmp_path: pathlib.Path, binary: str) -> None:
    page = tmp_path / "page.md"
    said = "tpusim: exporting 1 of 2, batch 8"
    page.write_text(
        f"    $ echo '{said}' >&2; echo shown\n    shown\n\n"
        f"```python\nprint('{said}')\nprint('shown')\n```\n\n```output\nshown\n```\n"
    )
    result = Result()
    (tmp_path / "reader").mkdir()
    run_document(page, tmp_path / "reader", binary, result)
    assert [output.stale for output in result.outputs] == [False, False]


def test_almost_all_is_run(capsys: pytest.CaptureFixture[str]) -> None:
    reasons: collections.Counter[str] = collections.Counter()
    for path in DOCUMENTS:
        for snippet in snippets(path):
            if snippet.not_run:
                reasons[f"{path.name}:{snippet.line}: {snippet.not_run}"] += 1
    with capsys.disabled():
        print("".join(f"\nnot run: {reason}" for reason in reasons))
    assert reasons.total() <= MOST_NOT_RUN


PAGE = """
Text, and a list:

* an item

    that goes on

Then a block:

    $ one \\
        --long
    1
      2
    $ two

<!-- not run: installs -->
```bash
three
```

<!-- file: a.json -->
```json
{}
```

<!-- setup:
x = 1
-->
```python
print(x)
```

```output
1
```

```text
nothing
```
"""


def test_blocks_are_found(tmp_path: pathlib.Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    found = snippets(page)
    assert [(each.kind, each.not_run, each.file, each.hidden) for each in found] == [
        ("shell", "", "", False),
        ("shell", "installs", "", False),
        ("file", "", "a.json", False),
        ("python", "", "", True),
        ("python", "", "", False),
        ("output", "", "", False),
    ]
    assert all(PAGE.splitlines()[each.line - 1].strip() == each.lines[0] for each in found)
    first, second = commands(found[0])
    assert (first.text, first.shown) == ("one \\\n    --long", ["1", "  2"])
    assert (second.text, second.shown) == ("two", [])


def test_block_that_nobody_would_run_is_an_error(tmp_path: pathlib.Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```\nrm\n```\n")
    with pytest.raises(FormError, match=r"page\.md:1: a block in no language"):
        snippets(page)


@pytest.mark.parametrize(
    ("shown", "same"),
    [
        (["a  1 us", "b  2 us"], True),
        (["a  1 us  ", "b  2 us", ""], True),
        (["a  1 us", "b  3 us"], False),
        (["a  1 us"], False),
        (["a  1 us", "..."], True),
        (["...", "b  2 us"], True),
        (["a ... us", "b  2 us"], True),
        (["a ... ms", "b  2 us"], False),
    ],
)
def test_dots_stand_for_anything(shown: list[str], same: bool) -> None:
    assert matches(shown, ["a  1 us", "b  2 us"]) == same
