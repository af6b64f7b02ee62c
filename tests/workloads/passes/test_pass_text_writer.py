"""`pass_text.py --write` mends files that do not hold."""

import pathlib
import re
import subprocess
import sys

import pytest

from tests.workloads.passes import pass_text, pass_text_writer
from tests.workloads.passes.pass_text import TextError

HERE = pathlib.Path(__file__).parent
OUTPUT = """\
HloModule m
%e (a: f32[8]) -> f32[8] {
  %a = f32[8] parameter(0)
  %b = f32[8]{0} tanh(%a), groups={{0,1}}
  ROOT %c = f32[8] negate(%b)
}
"""


@pytest.mark.parametrize(
    ("lines", "made"),
    [
        # An expectation that is met stays, and takes its place in the order.
        (["CHECK: {{t.*h}}(", "CHECK-NEXT: negate"], {}),
        # A word is another one; expressions and variables stay.
        (["CHECK: {{.*}} abs(%a)"], {0: "CHECK: {{.*}} tanh(%a)"}),
        (
            ["CHECK: [[B:%[a-z]]] = f32[16]{0} tanh", "CHECK: negate(%q)"],
            {0: "CHECK: [[B:%[a-z]]] = f32[8]{0} tanh", 1: "CHECK: negate([[B]])"},
        ),
        (["CHECK: tanh(", "CHECK-NEXT: ROOT %c = f32[9] negate"],
         {1: "CHECK-NEXT: ROOT %c = f32[8] negate"}),
        # The next line is there, whatever it says.
        (["CHECK: parameter(0)", "CHECK-NEXT: all-to-all(xyz)"],
         {1: "CHECK-NEXT: %b = f32[8]{0} tanh(%a), groups={{[{]}}{0,1}}"}),
        (["CHECK: all-to-all(xyz)"], {0: None}),
        (["CHECK: parameter", "CHECK-SAME: (7)"], {1: "CHECK-SAME: (0)"}),
        (["CHECK-COUNT-3: f32[8]{0} "], {0: "CHECK-COUNT-1: f32[8]{0}"}),
        (["CHECK-DAG: negate(", "CHECK-DAG: f64[8] parameter("],
         {1: "CHECK-DAG: f32[8] parameter("}),
        # A NOT that is broken goes, between its neighbours alone.
        (["CHECK: parameter", "CHECK-NOT: tanh(", "CHECK: ROOT", "CHECK-NOT: tanh("], {1: None}),
        # The expectation that sets a variable has gone.
        (["CHECK: [[X:%q]] = whatever()", "CHECK: negate([[X]])"],
         {0: None, 1: "CHECK: negate(%b)"}),
    ],
)  # fmt: skip
def test_expectations(lines: list[str], made: dict[int, str | None]) -> None:
    head = "// What is asked.\n// RUN: --passes x\n"
    text = head + "".join(f"// {line}\n" for line in lines)
    (run,) = pass_text.read(text)
    file = pass_text_writer.File(text)
    for old, new in pass_text_writer.update(run.checks, OUTPUT).items():
        file.change(old.line, new and new.kind, new and new.pattern)
    expected = [made.get(n, line) for n, line in enumerate(lines)]
    assert file.text() == head + "".join(f"// {line}\n" for line in expected if line)
    if any(expected):
        (again,) = pass_text.read(file.text())
        pass_text.compare(again.checks, OUTPUT)


MODULE = """\
HloModule m
ENTRY e {
  p = f32[8] parameter(0)
  a = f32[8] tanh(p)
  ROOT r = f32[8] negate(a)
}
"""


def test_a_file_is_written_from_what_comes_out(binary: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.hlo"
    path.write_text(
        "// Two operations are one kernel.\n// RUN: --config v5e-1x1 --passes fusion,fusion\n"
        "// A comment stays.\n" + MODULE
    )
    said = pass_text_writer.write(binary, path)
    text = path.read_text()
    assert "// CHANGED: yes, no\n" in text
    assert "// A comment stays.\n" in text
    assert text.endswith(MODULE)
    assert any("added // CHECK-NEXT: " in line and "fusion(" in line for line in said)
    assert pass_text_writer.write(binary, path) == []
    (run,) = pass_text.read(text)
    pass_text.check_run(binary, path, run)

    broken = text.replace("yes, no", "no").replace("tanh(", "sine(", 1)
    broken = broken.replace("fusion,fusion", "fusion --cost nothing=1us", 1)
    path.write_text(broken)
    command = [sys.executable, HERE / "pass_text.py", "--write", path]
    environment = {"TPUSIM_BINARY": binary}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert "now: // CHANGED: yes\n" in done.stdout
    assert "added // WARNING: --cost nothing=...: no pass asked" in done.stdout
    assert re.search(r"\n +now: // CHECK-NEXT: .* tanh\(", done.stdout)
    (run,) = pass_text.read(path.read_text())
    pass_text.check_run(binary, path, run)


def test_what_is_no_file_stays(binary: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.hlo"
    path.write_text("// What is asked.\n// RUN: --passes nothing\n" + MODULE)
    with pytest.raises(TextError, match="exit code 2"):
        pass_text_writer.write(binary, path)
    assert path.read_text().startswith("// What is asked.\n// RUN: --passes nothing\nHlo")
    assert [file.name for file in tmp_path.iterdir()] == ["a.hlo"]
