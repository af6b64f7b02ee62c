"""`tools/snap`: what a change moves is found and named, what it leaves alone is not."""

import json
import pathlib
import subprocess
from collections.abc import Callable

import pytest

from tools.change import comparing, measuring, snap
from tools.change.programs import ROOT, all_programs, selected

PROGRAMS = ("examples/psum", "examples/elementwise")

Snap = Callable[..., int]


@pytest.fixture
def run_snap(binary: str, tmp_path: pathlib.Path) -> Snap:
    """Runs the tool on two small programs, with a folder of snapshots of its own."""

    def run(command: str, *words: str, binary: str = binary) -> int:
        options = [f"--folder={tmp_path}", f"--binary={binary}"]
        only = [word for name in PROGRAMS for word in ("--only", name)]
        return snap.main([command, *words, *options, *(only if command == "save" else ())])

    return run


def differences(printed: str) -> dict[str, dict]:
    return {row["program"]: row for row in json.loads(printed)["differences"]}


def test_the_same_binary_does_the_same(run_snap: Snap, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_snap("save", "before") == 0
    assert "2 programs in " in capsys.readouterr().out
    assert run_snap("diff", "before") == 0
    assert capsys.readouterr().out == "0 of 2 programs differ from before (the same binary)\n"


def test_a_machine_that_is_faster_is_found(
    run_snap: Snap, capsys: pytest.CaptureFixture[str]
) -> None:
    run_snap("save", "before")
    capsys.readouterr()
    faster = "--options=--set chip.hbm.bytes_per_second=2x"
    assert run_snap("diff", "before", "--json", faster) == 1
    found = differences(capsys.readouterr().out)
    assert found.keys() == set(PROGRAMS)
    row = found["examples/elementwise"]
    step = row["figures"]["step_ns"]
    assert 0 < step["after"] < step["before"]
    assert "peak_bytes" not in row["figures"]
    assert {"step_time_ns", "ops"} <= set(row["report"])
    # The program is the one for the chip as it is: nothing before its streams can differ.
    assert row["first_stage"] in ("", "streams")

    assert run_snap("diff", "before", faster) == 1
    header, *rows, empty, summary = capsys.readouterr().out.splitlines()
    assert header.split()[:2] == ["program", "step"]
    assert {row.split()[0] for row in rows} == set(PROGRAMS)
    assert empty == ""
    assert summary.startswith("2 of 2 programs differ from before; ")
    changes = {
        name: row["figures"]["step_ns"]["after"] / row["figures"]["step_ns"]["before"] - 1
        for name, row in found.items()
    }
    largest = min(changes, key=changes.__getitem__)
    said = f"most in step time: {changes[largest]:+.2%}, {largest} (the same binary, options --set"
    assert said in summary


def test_the_pass_that_differs_first_is_named(
    run_snap: Snap, capsys: pytest.CaptureFixture[str]
) -> None:
    run_snap("save", "before")
    run_snap("save", "after", "--options=--passes -fusion")
    capsys.readouterr()
    assert run_snap("diff", "before", "after", "--json") == 1
    row = differences(capsys.readouterr().out)["examples/elementwise"]
    assert row["first_stage"] == "fusion"
    assert "streams" in row["stages"]
    assert not {"sharded", "partitioned", "simplify"} & set(row["stages"])
    # One of the programs alone.
    assert run_snap("diff", "before", "after", "--json", "--only", "*/elementwise") == 1
    assert differences(capsys.readouterr().out).keys() == {"examples/elementwise"}


def test_a_program_that_fails_is_a_row(run_snap: Snap, capsys: pytest.CaptureFixture[str]) -> None:
    run_snap("save", "before")
    capsys.readouterr()
    run_snap("save", "after", "--options=--set no.such=1")
    said = capsys.readouterr().out
    assert "2 of them fail" in said
    assert "examples/psum: " in said
    assert run_snap("diff", "before", "after", "--json") == 1
    for row in differences(capsys.readouterr().out).values():
        assert "exit code 1: tpusim: error: " in row["said"]
        assert "no.such" in row["said"]
        assert row["figures"] == {}
    # What failed before fails now.
    assert run_snap("diff", "after") == 0
    capsys.readouterr()
    assert run_snap("diff", "after", "before", "--json") == 1
    for row in differences(capsys.readouterr().out).values():
        assert row["said"] == "did not run before"


def test_what_is_wrong_is_one_line(
    run_snap: Snap, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(*words: str, **binary: str) -> str:
        assert run_snap(*words, **binary) == 2
        out, error = capsys.readouterr()
        assert out == ""
        assert error.startswith("tools/snap: error: ")
        assert error.count("\n") == 1
        return error

    assert "no snapshot before" in refused("diff", "before")
    assert "no name of a snapshot" in refused("save", "../before")
    assert "--jobs" in refused("save", "before", "--jobs", "0")
    assert "no-such-binary" in refused("save", "before", binary="no-such-binary")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "torn.json").write_text('{"format": ')
    assert "torn.json" in refused("diff", "torn")
    run_snap("save", "before")
    capsys.readouterr()
    assert "fits none" in refused("diff", "before", "--only", "examples/adam")


def test_the_script_is_the_tool(binary: str, tmp_path: pathlib.Path) -> None:
    command = [ROOT / "tools" / "snap", "diff", "before", "--folder", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"tools/snap: error: no snapshot before in {tmp_path}")


def test_the_sample_has_every_kind_and_slice() -> None:
    programs, sample = all_programs(), selected(every=False, only=())
    assert {each.folder for each in sample} == {each.folder for each in programs}
    assert {each.kind for each in sample} == {"examples", "pods", "validation", "compiled"}
    assert len(programs) / 8 < len(sample) < len(programs) / 2
    assert len({each.name for each in programs}) == len(programs)


def test_each_dump_has_its_digest() -> None:
    passes = (("layout", "a"), ("simplify", "b"), ("layout", "b"))
    text = "".join(f"// after {name}\nHloModule {module}\n" for name, module in passes)
    lines = f"{text}module a\nx\n".encode().splitlines(keepends=True)
    digests = measuring.digests(lines, "streams")
    assert list(digests) == ["layout", "simplify", "layout#2", "streams"]
    assert digests["layout#2"] == digests["simplify"] != digests["layout"]


def test_programs_that_come_and_go_are_said() -> None:
    row = measuring.Row({"step_ns": 1.0, "collectives": 0})
    more = measuring.Row({"step_ns": 1.00000001, "collectives": 2})
    rows = comparing.differences({"gone": row, "kept": row}, {"kept": more, "new": row})
    assert [(each.program, each.said()) for each in rows] == [
        ("kept", ""), ("gone", "gone"), ("new", "new")
    ]  # fmt: skip
    # What is hardly another figure is not shown as none.
    assert comparing.table(rows).splitlines()[1].split() == ["kept", "+1e-08", "0", "->", "2", "-"]
