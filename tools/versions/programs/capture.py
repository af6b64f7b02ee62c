"""Lists the calls of script.py, and captures its step; neither executes anything."""

import pathlib
import subprocess
import sys

import tpusim

SCRIPT = pathlib.Path(__file__).with_name("script.py")


def exported(*options: str) -> list[str]:
    """Returns the output of `python -m tpusim.export`."""
    command = [sys.executable, "-m", "tpusim.export", str(SCRIPT), "--config", "v5e-4x2", *options]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.split("\n")


listed = exported("--list")
assert any("initialise (" in line and line.endswith("uint32[2]") for line in listed) or any(
    "initialise (" in line and line.endswith("key<fry>[]") for line in listed
), listed
step = next(line for line in listed if line.startswith("train_step ("))
assert "bfloat16[2048,8192]@P(None, 'model')" in step, step
assert "9 0.0" in listed
exported("--function", "train_step", "-o", "captured.pb")
report = tpusim.simulate("captured.pb")
assert tpusim.Workload.load("captured.pb").num_partitions == 8
assert report.collective_records
print(report.step_time_ns)
