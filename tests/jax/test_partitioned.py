"""Every example, partitioned by tpusim and run by XLA, computes what the JAX function computes."""

import pathlib
import subprocess

import jax
import oracle
import pytest

from workloads.examples import EXAMPLES

EXPORTS = pathlib.Path(__file__).resolve().parents[2] / "workloads" / "examples"
ON_EIGHT_DEVICES = [name for name, example in EXAMPLES.items() if example.num_devices == 8]


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
    inputs, expected = oracle.reference(function, arguments)
    actual = oracle.run(oracle.hlo_module(output.read_bytes()), inputs)
    oracle.check(actual, expected)
