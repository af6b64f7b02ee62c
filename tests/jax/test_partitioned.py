"""Every example, partitioned by tpusim and run by XLA, computes what the JAX function computes."""

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


def test_gaps_are_of_examples():
    assert set(EXAMPLES) >= set(GAPS)


@pytest.mark.parametrize("name", ON_EIGHT_DEVICES)
def test_partitioned_equals_jax(name: str, binary: str, tmp_path: pathlib.Path):
    example = EXAMPLES[name]
    output = tmp_path / "partitioned.pb"
    command = [binary, "compile", "--config", example.config, str(EXPORTS / f"{name}.pb")]
    done = subprocess.run(
        [*command, "--emit", "partitioned", "-o", str(output)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    function, arguments = example(example.concrete_mesh(jax.devices()))
    inputs, expected = oracle.reference(function, arguments, ranges=example.ranges)
    actual = oracle.run(oracle.hlo_module(output.read_bytes()), inputs)
    tolerance = oracle.TOLERANCE
    if example.precision:
        tolerance = dict.fromkeys(tolerance, tolerance[example.precision])
    oracle.check(actual, expected, tolerance)
