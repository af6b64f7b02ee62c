"""Examples as tpusim compiles them, beside what JAX computes."""

import functools
import pathlib
import subprocess

import jax
import oracle
import pytest
from known_gaps import GAPS

from workloads.examples import EXAMPLES

EXPORTS = pathlib.Path(__file__).resolve().parents[2] / "workloads" / "examples"
ON_EIGHT_DEVICES = [
    pytest.param(name, marks=pytest.mark.xfail(reason=GAPS[name], strict=True))
    if name in GAPS
    else name
    for name, example in EXAMPLES.items()
    if example.num_devices == 8
]


# Keeps the last example only: the largest take hundreds of megabytes.
@functools.lru_cache(maxsize=1)
def reference(name: str) -> tuple[oracle.PerDevice, oracle.PerDevice]:
    """Returns the inputs and outputs of each device."""
    example = EXAMPLES[name]
    function, arguments = example(example.concrete_mesh(jax.devices()))
    return oracle.reference(function, arguments, ranges=example.ranges)


def check(name: str, stage: str, binary: str, directory: pathlib.Path) -> None:
    """Asserts that the example, compiled up to a stage, computes what the JAX function does."""
    example = EXAMPLES[name]
    output = directory / f"{stage}.pb"
    command = [binary, "compile", "--config", example.config, str(EXPORTS / f"{name}.pb.gz")]
    if stage == "executable":
        command += ["--passes", oracle.EXACT_PASSES]
    done = subprocess.run(
        [*command, "--emit", stage, "-o", str(output)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    inputs, expected = reference(name)
    actual = oracle.run(oracle.hlo_module(output.read_bytes()), inputs)
    tolerance = oracle.TOLERANCE
    if example.precision:
        tolerance = dict.fromkeys(tolerance, tolerance[example.precision])
    oracle.check(actual, expected, tolerance)
