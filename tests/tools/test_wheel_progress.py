"""Progress of `tools/wheel`, with a pip and an auditwheel that are played."""

import pathlib
import shutil
import subprocess

import pytest

from tests.tools.terminal import on_terminal

ROOT = pathlib.Path(__file__).resolve().parents[2]
WHEEL = "tpusim-1.0-py3-none-manylinux_2_36_x86_64.whl"
# Lines of Ninja as pip prints them.
BUILD = "\n".join(
    ["echo '  Running command Building wheel'"]
    + [f"echo '  [{step}/20] Building CXX object a/file_{step}.cc.o'" for step in range(1, 21)]
)
# The last argument but one is the folder.
MAKE = 'touch "${@: -2:1}/tpusim-1.0-py3-none-linux_x86_64.whl"'
REPAIR = f'mkdir "${{@: -2:1}}" && echo whole > "${{@: -2:1}}/{WHEEL}"'


def tree_with(folder: pathlib.Path, pip: str, auditwheel: str = REPAIR) -> pathlib.Path:
    """A tree in which `tools/wheel` calls these."""
    scripts = folder / "build" / "wheel-venv" / "bin"
    scripts.mkdir(parents=True)
    (folder / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "wheel", folder / "tools" / "wheel")
    bodies = {
        folder / "tools" / "install": "[[ $* == wheel ]]",
        scripts / "pip": pip,
        scripts / "auditwheel": auditwheel,
    }
    for path, body in bodies.items():
        path.write_text(f"#!/bin/bash\n{body}\n")
        path.chmod(0o755)
    return folder


def build(tree: pathlib.Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [tree / "tools" / "wheel", tree / "out"], capture_output=True, text=True, check=False
    )


def test_without_a_terminal_every_tenth_is_told(tmp_path: pathlib.Path):
    done = build(tree_with(tmp_path, f"{BUILD}\n{MAKE}"))
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{tmp_path}/out/{WHEEL}\n"
    assert (tmp_path / "out" / WHEEL).read_text() == "whole\n"
    lines = done.stderr.splitlines()
    assert [line[12:15] for line in lines if "/4 " in line] == [" 1/", " 2/", " 3/", " 4/"]
    told = [line for line in lines if line.startswith("tools/wheel: built ")]
    assert told == [f"tools/wheel: built {step} of 20" for step in range(2, 21, 2)]


def test_on_a_terminal_every_step_is_a_line_written_over(tmp_path: pathlib.Path):
    tree = tree_with(tmp_path, f"{BUILD}\n{MAKE}")
    text = on_terminal(tree / "tools" / "wheel", tree / "out", columns=20, errors=True)
    shown = [piece for piece in text.split("\r\033[K") if piece.startswith("[")]
    # 19 characters: a line that fills the terminal would break.
    assert shown[0] == "[1/20] a/file_1.cc."
    assert shown[-1] == "[20/20] a/file_20.c"
    assert len(shown) == 20
    assert "tools/wheel: built" not in text


@pytest.mark.parametrize("failing", ["pip", "auditwheel"])
def test_a_build_that_fails_shows_why_and_leaves_nothing(failing: str, tmp_path: pathlib.Path):
    fails = "echo 'error: no such header'; exit 3"
    played = {"pip": f"{BUILD}\n{MAKE}", "auditwheel": REPAIR}
    done = build(tree_with(tmp_path, **{**played, failing: fails}))
    assert done.returncode == 1
    assert done.stdout == ""
    assert "error: no such header" in done.stderr
    assert done.stderr.endswith("all that it said is in build/wheel.log\n")
    assert not [*tmp_path.rglob("*.whl")]
