"""Streams instead of files, misspelt names, completions, the manual page, columns."""

import json
import os
import subprocess

from tests.tools.command_line import SLICE, example, without_command


def test_streams(binary, run):
    file = run("--config", SLICE, example("psum"), "--json")
    assert file.returncode == 0, file.stderr
    assert file.stdout == run("--config", SLICE, example("psum"), "--report", "-").stdout
    piped = subprocess.run(
        [binary, "--config", SLICE, "-", "--report", "-"],
        input=example("psum").read_bytes(),
        capture_output=True,
        check=True,
    )
    assert without_command(json.loads(piped.stdout)) == without_command(json.loads(file.stdout))


def test_a_reader_that_leaves_ends_it_quietly(binary):
    """Whether or not the caller ignores the signal, as Python does."""
    for ignored in (False, True):
        reads, writes = os.pipe()
        os.close(reads)
        done = subprocess.run(
            [binary, "configs", "v5e"],
            stdout=writes,
            stderr=subprocess.PIPE,
            check=False,
            restore_signals=not ignored,
        )
        os.close(writes)
        assert done.stderr == b""
        assert done.returncode == 141


def test_two_outputs_do_not_share_stdout(rejects):
    message = rejects("--config", SLICE, example("psum"), "--report", "-", "--trace", "-")
    assert "--report" in message
    assert "stdout" in message


def test_every_subcommand_has_json(run, tmp_path):
    psum = example("psum")
    module = tmp_path / "module.hlo"
    module.write_text(run("compile", psum, "--emit", "partitioned").stdout)
    measurements = tmp_path / "measurements.json"
    measurements.write_text(json.dumps({"schema": "tpusim.measurements/1", "measurements": []}))
    for arguments in (
        ("run", psum),
        ("compile", psum),
        ("compare", psum, example("all_gather")),
        ("fit", psum, "--chip", "v5e"),
        ("configs",),
        ("configs", "v5e"),
        ("collective", "all-reduce", "1MiB", SLICE),
        ("advise", psum),
        ("opt", module, "--config", SLICE),
        ("validate", measurements),
    ):
        done = run(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["schema"].startswith("tpusim."), arguments


def test_misspelt_names(rejects):
    assert "the nearest is compare" in rejects("comapre", "a.pb", "b.pb", code=2)
    assert "the nearest is --report" in rejects("run", "a.pb", "--repotr", "x", code=2)
    assert "the nearest is --config" in rejects("a.pb", "--confg", SLICE, code=2)


def test_options_without_effect(run):
    done = run("--config", SLICE, example("matmul_square"), "--algorithm", "all-to-all=direct")
    assert "--algorithm all-to-all=direct has no effect" in done.stderr
    done = run("--config", SLICE, example("host_to_device"), "--link", "0:x+=0.5")
    assert "--link 0:x+=0.5 has no effect: nothing is sent over it" in done.stderr


def test_what_does_not_fit_is_a_column(run):
    small = ("--set", "chip.hbm.bytes=270MiB")
    big, other = example("local_matmul_int32"), example("psum")
    done = run("compare", "--config", SLICE, big, other, *small)
    assert done.returncode == 0, done.stderr
    assert "does not fit" in done.stdout
    assert "A, local_matmul_int32 on v5e-4x2: " in done.stdout
    compared = json.loads(run("compare", "--json", "--config", SLICE, big, other, *small).stdout)
    assert ["problem" in c for c in compared["compared"]] == [True, False]


def test_manual_page(run):
    page = run("man").stdout
    assert page.startswith(".TH TPUSIM 1")
    for command in ("run", "compare", "advise", "collective"):
        assert f".SS tpusim {command}\n" in page
    assert "\\fB\\-\\-trace\\-chips\\fR" in page
