"""Input that was made to hurt: one line of error with what is wrong, exit code 1, in no time.

The files in data/hostile came from damaging real programs, or were written by hand: each once
crashed, was accepted, or wrote escape sequences to the terminal.
"""

import gzip
import json
import os
import pathlib
import select
import signal
import subprocess
import time

import pytest

from tests.tools.command_line import SLICE, example

HOSTILE = pathlib.Path(__file__).parent / "data" / "hostile"


@pytest.mark.parametrize(
    ("file", "says"),
    [
        ("pair_beyond_mesh.pb.gz", "names partition 65536, but the program has 8 (0 to 7)"),
        ("pair_beyond_mesh_in_loop.pb", "the pair {65536,6} names partition 65536"),
        ("pair_negative.pb", "names partition -2147483648"),
        ("placement_without_operand.pb", "0 operands for a call of 'annotate_device_placement'"),
        ("groups_omit_devices.pb.gz", "device 2 of 8 is in no group; every device must be in"),
    ],
)
def test_programs(rejects, file, says):
    assert says in rejects("--config", SLICE, HOSTILE / file)


@pytest.mark.parametrize(
    "arguments",
    [
        ("configs", HOSTILE / "overflow_chip.json"),
        ("--config", HOSTILE / "overflow_config.json", example("psum")),
    ],
)
def test_a_number_that_no_double_holds(rejects, arguments):
    message = rejects(*arguments)
    assert "overflow_chip.json" in message
    assert "1e400" in message


CHIPS = {
    "number.json": "1e5",
    "list.json": "[]",
    "empty.json": "",
    "null.json": "null",
    "cut.json": '{"base": "v5e", "name": "x"',
    "negative.json": '{"base": "v5e", "name": "x", "chip": {"hbm": {"bytes": -1}}}',
    "text.json": '{"base": "v5e", "name": "x", "chip": {"hbm": {"bytes": "much"}}}',
    "tiny.json": '{"base": "v5e", "name": "x", "chip": {"hbm": {"bytes_per_second": 1e-310}}}',
    "huge.json": '{"base": "v5e", "name": "x", "chip": {"hbm": {"bytes": 1e300}}}',
    "fraction.json": '{"base": "v5e", "name": "x", "ici": {"links": 3.5}}',
    "itself.json": '{"base": "itself.json", "name": "x"}',
    "name.json": '{"base": "v5e", "name": 7}',
    "slices.json": '{"base": "v5e", "name": "x", "topology": {"slices": ["1000000x1000000"]}}',
    "bytes.json": '{"base": "v5e", "name": "\xff"}',
}


@pytest.mark.parametrize("name", CHIPS)
def test_chip_files(rejects, tmp_path, name):
    path = tmp_path / name
    path.write_bytes(CHIPS[name].encode("latin-1"))
    assert name in rejects("configs", path)


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("ici.link_bytes_per_second=nan", "out of range"),
        ("ici.link_bytes_per_second=inf", "out of range"),
        ("ici.link_bytes_per_second=-1", "out of range"),
        ("ici.link_bytes_per_second=1e-310", "out of range"),
        ("ici.link_bytes_per_second=1e400", "is not a number"),
        ("chip.hbm.bytes=1e300", "out of range"),
        ("chip.mxu.count=0.5", "chip.mxu.count"),
        ("\x1b[2J=1", "no parameter \\x1b[2J"),
        ("=1", "NAME=VALUE"),
    ],
)
def test_settings(rejects, setting, says):
    assert says in rejects("--config", SLICE, "--set", setting, example("psum"))


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--slow", "chip=0:1e-300"], "the share of the clock must be from 0.001 to 1"),
        (["--slow", "chip=0:0"], "must be from 0.001 to 1"),
        (["--slow", "chip=0:nan"], "must be from 0.001 to 1"),
        (["--slow", "chip=0:0.01", "--slow", "chip=0:0.01"], "chip 0 is named twice"),
        (["--link", "0:x+=1e-300"], "must be from 0.001 to 1, or 0 for a dead link"),
        (["--link", "0:x+=-1"], "must be from 0.001 to 1, or 0 for a dead link"),
        (["--link", "0:x+=0.01", "--link", "0:x+=0.01"], "0:x+ is named twice"),
    ],
)
def test_shares_near_zero(rejects, flags, says):
    assert says in rejects("--config", SLICE, example("psum"), *flags)


def test_the_smallest_shares_run(report_of):
    normal = report_of("psum", "--config", SLICE)
    flags = ("--slow", "chip=0:0.001", "--link", "0:x+=0.001")
    assert report_of("psum", "--config", SLICE, *flags)["step_time_ns"] > normal["step_time_ns"]


def test_a_loop_that_would_run_for_hours(binary, run, tmp_path):
    """4e12 passes: months of time, or hours of simulation if every pass is executed."""
    loop = pathlib.Path(__file__).parents[1] / "workloads/hlo/data/data_loop.pb"
    arguments = ("--config", "v5e-1x1", loop, "--trip-count", "*=4000000000000")
    start = time.monotonic()
    done = run(*arguments)
    assert done.returncode == 1, done.stderr
    assert "the step takes more than 30 days" in done.stderr
    assert "--trip-count" in done.stderr
    done = run(*arguments, "--detail", "tile", "--max-events", "20000")
    assert time.monotonic() - start < 120
    assert done.returncode == 1, done.stderr
    warning, error = done.stderr.splitlines()
    assert warning.startswith("tpusim: warning: one device alone executes about")
    assert "stopped after 20000 instructions, the limit of --max-events" in error
    assert "4000000000000 passes of while" in error
    assert "--trip-count" in error
    assert run(*arguments, "--max-events", "0").returncode == 2
    # The parser alone would take the largest number that it has for these.
    for option in ("--max-events", "--exact-under"):
        done = run(*arguments, option, "99999999999999999999")
        assert done.returncode == 2
        assert f'{option}: "99999999999999999999" is no whole number from' in done.stderr


def test_gzip_bombs(rejects, tmp_path):
    path = tmp_path / "bomb.pb.gz"
    with gzip.open(path, "wb", compresslevel=9) as file:
        for _ in range(300):
            file.write(bytes(1 << 20))
    message = rejects("--config", SLICE, path)
    assert "inflates to more than 268435456 bytes" in message
    assert "gunzip" in message
    # A gigabyte of empty computations in half a megabyte.
    path.write_bytes(gzip.compress(b"\x1a\x00" * (100 << 20)))
    assert "nearly empty messages" in rejects("--config", SLICE, path)


def control_characters(text: str) -> list[str]:
    return [c for c in text if (ord(c) < 0x20 and c != "\n") or 0x7F <= ord(c) < 0xA0]


def test_names_are_shown_escaped(run, tmp_path):
    for command in (
        ["--config", SLICE, HOSTILE / "escape_in_name.pb", "--report", "r.json", "--trace", "t"],
        ["compile", "--config", SLICE, HOSTILE / "escape_in_name.pb", "--emit", "sharded"],
        ["compile", "--config", SLICE, HOSTILE / "escape_in_name.pb", "--emit", "schedule"],
        ["compile", "--config", SLICE, HOSTILE / "escape_in_name.pb", "--emit", "streams"],
        ["compare", "-c", SLICE, "-c", "v5e-4x4", HOSTILE / "escape_in_name.pb"],
        ["configs", HOSTILE / "escape_chip.json"],
        ["configs", "-v", HOSTILE / "escape_chip.json"],
    ):
        done = run(*command)
        assert done.returncode == 0, done.stderr
        assert control_characters(done.stdout + done.stderr) == []
    assert (
        "dot_general.1\\x1b]0;pwned\\x07"
        in run("--config", SLICE, HOSTILE / "escape_in_name.pb").stdout
    )
    assert "\\x1b[31mred\\x07" in run("configs", HOSTILE / "escape_chip.json").stdout
    # The report keeps the name as it is; JSON escapes it.
    report = (tmp_path / "r.json").read_text()
    assert control_characters(report) == []
    assert any("\x1b" in op["name"] for op in json.loads(report)["ops"])


@pytest.mark.parametrize("name", [b"w\xff.pb", b"w\x1b[2J.pb", b"w\xc2\x9b.pb", b"w\n.pb", b"-"])
def test_odd_file_names(binary, tmp_path, name):
    folder = os.fsencode(tmp_path)
    path = folder + b"/" + name
    with open(path, "wb") as file:
        file.write(example("psum").read_bytes())
    report = folder + b"/r\xfe.json"
    done = subprocess.run(
        [binary, "--config", SLICE, b"--report", report, "--verbose", path],
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    json.loads(pathlib.Path(os.fsdecode(report)).read_text())
    assert control_characters((done.stdout + done.stderr).decode()) == []
    missing = subprocess.run(
        [binary, "--config", SLICE, path + b"x"], capture_output=True, check=False
    )
    assert missing.returncode == 1
    assert missing.stderr.count(b"\n") == 1
    assert control_characters(missing.stderr.decode()) == []


def test_two_outputs_of_one_file(rejects, run, tmp_path):
    both = "--trace and --report would both write"
    psum = ("--config", SLICE, example("psum"))
    assert both in rejects(*psum, "--trace", "./a", "--report", "a")
    assert both in rejects(*psum, "--trace", "a", "--report", tmp_path / "a")
    (tmp_path / "to_come").symlink_to("a")  # of a file that does not exist yet
    assert both in rejects(*psum, "--trace", "to_come", "--report", "a")
    (tmp_path / "folder").mkdir()
    (tmp_path / "other").symlink_to("folder")
    assert both in rejects(*psum, "--trace", "other/a", "--report", "folder/a")
    (tmp_path / "hard").write_text("one file")
    os.link(tmp_path / "hard", tmp_path / "link")
    assert both in rejects(*psum, "--trace", "hard", "--report", "link")
    done = run(*psum, "--quiet", "--report", "to_come", "--trace", "folder/a")
    assert done.returncode == 0
    assert (tmp_path / "to_come").is_symlink()
    assert json.loads((tmp_path / "a").read_text())["schema"] == "tpusim.report/1"


def test_inputs_under_other_names_are_not_overwritten(rejects, tmp_path):
    workload = tmp_path / "w.pb"
    workload.write_bytes(example("psum").read_bytes())
    os.link(workload, tmp_path / "same.pb")
    config = tmp_path / "c.json"
    config.write_text('{"chip": "v5e", "slice": "4x2"}')
    assert "workload itself" in rejects("-c", SLICE, workload, "--report", tmp_path / "same.pb")
    assert "configuration itself" in rejects("-c", config, workload, "--report", "./c.json")


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--set", "ici.hop_latency_ns=500"),
        ("--trip-count", "*=2"),
        ("--branch", "*=longest"),
        ("--kernel-cost", "x=1,1"),
        ("--ragged", "x=uniform"),
        ("--algorithm", "best"),
        ("--slow", "chip=3:0.8"),
        ("--link", "0:x+=0.5"),
        ("--dump-after", "fusion"),
    ],
)
def test_options_take_one_value_each(run, option, value):
    """An option in front of the workload does not take the workload for a value."""
    workload = example("matmul_square")
    commands = ["compile"] if option == "--dump-after" else ["run", "compile", "compare"]
    for command in commands:
        if command == "compile" and option in ("--slow", "--link"):
            continue
        other = {"--slow": "chip=2:0.8", "--link": "0:y+=0.5"}.get(option, value)
        slices = ["-c", SLICE] + (["-c", "v5e-2x4"] if command == "compare" else [])
        done = run(command, *slices, option, value, option, other, workload, "-q")
        assert done.returncode == 0, (command, done.stderr)


def test_options_of_validate_take_one_value_each(run):
    # The file is taken for the file, and does not exist.
    done = run("validate", "--chip", "v5e", "--slow", "chip=0:0.9", "no_such_file.json")
    assert done.returncode == 1
    assert "no_such_file.json" in done.stderr


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_leaves_no_temporary_files(binary, tmp_path, number, code):
    """Written into a pipe that nobody reads, the second file never ends; the first is still new."""
    os.mkfifo(tmp_path / "never")
    keep = os.open(tmp_path / "never", os.O_RDWR)  # so that opening it does not block
    try:
        # A shell starts jobs in the background with interrupts ignored, these tests perhaps too.
        command = ["env", "--default-signal=INT", binary, "--config", SLICE]
        command += [str(example("collective_matmul_int32"))]
        command += ["--trace-chips", "all", "--trace", "never", "--report", "r.json"]
        process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE)
        begun, _, _ = select.select([keep], [], [], 120)
        assert begun, "nothing of the trace is written"
        assert process.poll() is None, "the trace is larger than a pipe holds"
        process.send_signal(number)
        assert process.wait(timeout=120) == code
        assert process.stderr is not None
        process.stderr.close()
        assert sorted(p.name for p in tmp_path.iterdir()) == ["never"]
    finally:
        os.close(keep)
