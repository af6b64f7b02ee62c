"""Steps and peaks of all examples against those that are committed (`tpusim check`).

A change of the model moves them on purpose, or not at all. On purpose:

    build/tpusim compare workloads/examples/*.pb.gz --json |
      build/tpusim check - --write-baseline tests/tools/data/step_times.json
"""

import json
import pathlib
import subprocess

from tests.tools import schemas
from tests.tools.command_line import example, examples

BASELINE = pathlib.Path(__file__).parent / "data" / "step_times.json"


def test_examples_take_what_they_took(binary: str):
    programs = [example(name) for name in examples()]
    compared = subprocess.run(
        [binary, "compare", *programs, "--json", "--quiet"], capture_output=True, check=True
    )
    limits = ("--baseline", BASELINE, "--tolerance", "0.5%", "--two-sided")
    done = subprocess.run(
        [binary, "check", "-", *limits], input=compared.stdout, capture_output=True, check=False
    )
    assert done.returncode == 0, f"{done.stdout.decode()}\non purpose? {__doc__}"
    assert f"{2 * len(programs)} of {2 * len(programs)} limits" in done.stdout.decode()


def test_every_step_of_the_file_is_one_of_an_example(binary: str):
    schemas.check(binary, BASELINE.read_text())
    steps = json.loads(BASELINE.read_text())["steps"]
    assert {step["workload"] for step in steps} == set(examples())
