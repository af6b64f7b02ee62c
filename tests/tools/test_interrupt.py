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
