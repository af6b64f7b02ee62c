"""An interrupt ends the simulation, too, and leaves no temporary file."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from tests.tools.command_line import example

ROOT = pathlib.Path(__file__).resolve().parents[2]
# In place of the simulator: says who it is, and goes on until it is ended.
ENDLESS = """#!/bin/sh
trap '' {ignored}
echo $$ > {pid}.new && mv {pid}.new {pid}
while :; do sleep 0.05; done
"""


@pytest.mark.parametrize("ignored", ["USR1", "TERM"])
def test_an_interrupt_leaves_nothing(tmp_path: pathlib.Path, ignored: str):
    """Also of a program in memory, and of a simulator that does not end when it is asked to."""
    binary, pid, scratch = tmp_path / "tpusim", tmp_path / "pid", tmp_path / "scratch"
    scratch.mkdir()
    binary.write_text(ENDLESS.format(ignored=ignored, pid=pid))
    binary.chmod(0o755)
    code = (
        "import tpusim, tpusim.runner; tpusim.runner._GRACE_SECONDS = 0.5; "
        f"tpusim.simulate(tpusim.Workload.load({str(example('psum'))!r}))"
    )
    environment = {"TPUSIM_BINARY": str(binary), "TMPDIR": str(scratch)}
    process = subprocess.Popen(
        ["env", "--default-signal=INT", sys.executable, "-c", code],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment, "PYTHONPATH": str(ROOT / "tools" / "python")},
    )
    deadline = time.monotonic() + 60
    while not pid.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert list(scratch.iterdir())
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT, errors
    assert errors.splitlines()[-1] == "KeyboardInterrupt"
    assert list(scratch.iterdir()) == []
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


def test_an_interrupt_waits_until_the_simulator_is_known(tmp_path: pathlib.Path):
    """One that comes while it is started ends it, too."""
    binary, pid = tmp_path / "tpusim", tmp_path / "pid"
    binary.write_text(ENDLESS.format(ignored="USR1", pid=pid))
    binary.chmod(0o755)
    code = f"""
import os, pathlib, signal, subprocess, time, tpusim, tpusim.runner

class Slow(subprocess.Popen):
    def __init__(self, *words, **keywords):
        super().__init__(*words, **keywords)
        while not os.path.exists({str(pid)!r}):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

subprocess.Popen = Slow
tpusim.simulate({str(example("psum"))!r})
"""
    done = subprocess.run(
        ["env", "--default-signal=INT", sys.executable, "-c", code],
        env={
            **os.environ,
            "TPUSIM_BINARY": str(binary),
            "PYTHONPATH": str(ROOT / "tools" / "python"),
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == -signal.SIGINT, done.stderr
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


# A space whose definition is interrupted where an exception is lost: in a callback of the garbage
# collector, of which JAX has one.
LOST = """
import gc, os, signal

class Sizes:
    def __repr__(self):
        gc.callbacks.append(interrupt)
        gc.collect()
        gc.callbacks.remove(interrupt)
        return "sizes"

def interrupt(phase, info):
    if phase == "start":
        os.kill(os.getpid(), signal.SIGINT)

SIZES = Sizes()
space = {"a": [1]}
configs = ["v5e-1x1"]

def build(candidate):
    raise ValueError(SIZES)
"""


def test_an_interrupt_that_is_lost_ends_a_search(tmp_path: pathlib.Path):
    """A lost interrupt acts like any other: what is finished is printed."""
    (tmp_path / "space.py").write_text(LOST)
    done = subprocess.run(
        ["env", "--default-signal=INT", sys.executable, "-m", "tpusim", "search", "space.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "tools" / "python")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Exception ignored in: <function interrupt" in done.stderr  # It was lost.
    assert done.returncode == 128 + signal.SIGINT, done.stderr
    assert "not simulated yet" in done.stdout
