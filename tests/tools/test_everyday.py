"""Streams instead of files, misspelt names, completions, the manual page, columns."""

import json
import os
import pty
import subprocess

from tests.tools.command_line import SLICE, example


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
    assert json.loads(piped.stdout) == json.loads(file.stdout)


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


def test_completions(run):
    script = run("completion", "bash").stdout
    ask = (
        f"{script}\nCOMP_WORDS=(tpusim compare --js) COMP_CWORD=2; _tpusim; echo ${{COMPREPLY[@]}}"
    )
    done = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True)
    assert done.stdout == "--json\n"
    ask = (
        f"{script}\nCOMP_WORDS=(tpusim run -c v5e-4x) COMP_CWORD=3; _tpusim; echo ${{COMPREPLY[@]}}"
    )
    done = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True)
    assert "v5e-4x2" in done.stdout.split()
    assert "bashcompinit" in run("completion", "zsh").stdout
    assert "complete -c tpusim" in run("completion", "fish").stdout


def test_manual_page(run):
    page = run("man").stdout
    assert page.startswith(".TH TPUSIM 1")
    for command in ("run", "compare", "advise", "collective"):
        assert f".SS tpusim {command}\n" in page
    assert "\\fB\\-\\-trace\\-chips\\fR" in page


def test_nothing_is_cut_in_a_pipe(binary, run):
    arguments = ["--config", SLICE, str(example("language_model_train_fully_sharded"))]
    assert "..." not in run(*arguments).stdout.split("\n\n")[1]
    # A terminal of 100 columns has an edge.
    ours, theirs = pty.openpty()
    subprocess.run(["stty", "cols", "100"], stdin=theirs, check=True)
    shown = subprocess.Popen([binary, *arguments], stdout=theirs, stderr=subprocess.DEVNULL)
    os.close(theirs)
    text = b""
    try:
        while piece := os.read(ours, 65536):
            text += piece
    except OSError:  # The terminal is gone with the program.
        pass
    assert shown.wait() == 0
    assert max(len(line) for line in text.decode().splitlines()) <= 100
