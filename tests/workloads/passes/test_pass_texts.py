"""Every HLO text beside this file and in texts/ of other rooms (pass_text.py), and the checker."""

import pathlib

import pytest

from tests.workloads.passes import pass_text
from tests.workloads.passes.pass_text import Check, TextError, compare

HERE = pathlib.Path(__file__).parent
FILES = sorted(path.relative_to(HERE).as_posix() for path in HERE.glob("*/*.hlo"))
# Texts of other stages, by the room.
OTHERS = sorted(
    path.relative_to(HERE.parent).as_posix() for path in HERE.parent.glob("*/texts/*.hlo")
)


@pytest.mark.parametrize("name", FILES + OTHERS)
def test_passes(binary: str, name: str) -> None:
    file = (HERE if name in FILES else HERE.parent) / name
    failure = ""
    try:
        for run in pass_text.read(file.read_text()):
            pass_text.check_run(binary, file, run)
    except TextError as error:
        failure = str(error)
    if failure:
        pytest.fail(failure, pytrace=False)


def test_folders_are_those_of_the_passes() -> None:
    rooms = HERE.parents[2] / "workloads" / "passes"
    folders = {name.partition("/")[0] for name in FILES}
    assert folders <= {path.name for path in rooms.iterdir() if path.is_dir()}
    assert len(FILES) >= 60


OUTPUT = """\
%a = f32[8] parameter(0)
%b = f32[8]  tanh(%a)
%c = f32[8] negate(%b)
%d = f32[8] tanh(%c)
"""


def checks(*lines: str) -> list[Check]:
    text = "// What is asked.\n// RUN: --passes x\n" + "".join(f"// {line}\n" for line in lines)
    return pass_text.read(text)[0].checks


@pytest.mark.parametrize(
    "lines",
    [
        ["CHECK: tanh(", "CHECK-NEXT: negate", "CHECK: tanh"],
        ["CHECK: [[B:%[a-z]]] = f32[8] tanh(%a)", "CHECK-NEXT: negate([[B]])"],
        ["CHECK: {{negate|abs}}(", "CHECK-SAME: %b)", "CHECK-NOT: negate"],
        ["CHECK-COUNT-2: tanh(", "CHECK-NOT: tanh("],
        ["CHECK-DAG: negate(", "CHECK-DAG: parameter(", "CHECK: %d"],
        ["CHECK-NOT: abs", "CHECK: negate", "CHECK-NOT: negate"],
        ["CHECK: [[X:%.]] = f32[[[N:[0-9]+]]] tanh", "CHECK: f32[[[N]]] tanh(%c)"],
    ],
)
def test_met(lines: list[str]) -> None:
    compare(checks(*lines), OUTPUT)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["CHECK: negate", "CHECK: parameter"], "line 4: not found\n"),
        (["CHECK: parameter", "CHECK-NEXT: negate"], "line 4: not found in the next line"),
        (["CHECK: parameter", "CHECK-SAME: tanh"], "line 4: not found in the same line"),
        (["CHECK-COUNT-3: tanh("], "line 3: not found"),
        (["CHECK: parameter", "CHECK-NOT: tanh", "CHECK: negate"], "line 4: this is there"),
        (["CHECK: tanh", "CHECK-NOT: tanh"], "line 4: this is there"),
        (["CHECK-NOT: parameter", "CHECK-DAG: tanh", "CHECK-DAG: negate"], "this is there"),
        (["CHECK-DAG: negate(", "CHECK-DAG: negate("], "line 4: not found"),
        (["CHECK: [[B:%[a-z]]] = f32[8] tanh", "CHECK: tanh([[B]])"], "with B=%b"),
        (["CHECK: tan[h]("], "nearest is line"),
        (["CHECK: tanh([[B]])"], "nothing has set [[B]]"),
        (["CHECK: {{(}}"], "unterminated"),
    ],
)
def test_not_met(lines: list[str], said: str) -> None:
    with pytest.raises(TextError) as error:
        compare(checks(*lines), OUTPUT)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "says in a sentence what the file asks"),
        ("HloModule m", "says in a sentence what the file asks"),
        ("// RUN: --passes x\n// CHECK: a", "says in a sentence"),
        ("// A case.\n// CHECK: a", "no RUN line is called CHECK"),
        ("// A case.", "there is no RUN line"),
        ("// A case.\n// RUN: --passes x", "nothing is expected"),
        ("// A case.\n// RUN: x\n// CHECK-NXT: a", "there is no directive // CHECK-NXT: a"),
        ("// A case.\n// RUN: x\n// CHECK:", "there is no directive"),
        ("// A case.\n// RUN: x\n// CHEKC: a", "no RUN line is called CHEKC"),
        ("// A case.\n// RUN: x\n// CHANGED: maybe", "say yes or no"),
        ("// A case.\n// RUN: --cost 'a\n// CHECK: a", "line 2: No closing quotation"),
    ],
)
def test_files_that_are_none(text: str, said: str) -> None:
    with pytest.raises(TextError) as error:
        pass_text.read(text)
    assert said in str(error.value)


def test_runs_have_names() -> None:
    text = "// A case.\n// RUN: --passes a\n// RUN(B): -c 'x  y'\n// CHECK: 1\n// B-NEXT: 2\n"
    one, two = pass_text.read(text + "// CHANGED(B): yes, no\n// WARNING: w\n")
    assert (one.arguments, two.arguments) == (["--passes", "a"], ["-c", "x y"])
    assert ([c.pattern for c in one.checks], [c.kind for c in two.checks]) == (["1"], ["NEXT"])
    assert (one.changed, two.changed) == (None, [True, False])
    assert [c.pattern for c in one.warnings] == ["w"]
    # What runs without being asked for is not among the passes that CHANGED is about.
    assert (one.names("a"), one.names("state-a"), two.names("state-a")) == (True, False, True)


def test_failures_say_how_to_replay(binary: str, tmp_path: pathlib.Path) -> None:
    file = tmp_path / "a.hlo"
    file.write_text(
        "// A product of arrays.\n"
        "// RUN: --config v5e-1x1 --passes simplify --cost *=1us\n"
        "// CHECK: no such thing\n"
        "HloModule m\nENTRY e {\n  ROOT p = f32[8] parameter(0)\n}\n"
    )
    (run,) = pass_text.read(file.read_text())
    with pytest.raises(TextError) as error:
        pass_text.check_run(binary, file, run)
    assert "on stderr: tpusim: warning: --cost *=...: " in str(error.value)
    run.warnings = [Check(1, "", "--cost *=...: no pass asked")]
    with pytest.raises(TextError) as error:
        pass_text.check_run(binary, file, run)
    assert "a.hlo: line 3: not found\n  CHECK: no such thing\n" in str(error.value)
    assert "parameter(0)" in str(error.value)
    assert f"replay: {binary} opt {file} " in str(error.value)
    assert "--cost '*=1us'" in str(error.value)
