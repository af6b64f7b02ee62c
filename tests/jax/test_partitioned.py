"""Every example, partitioned by tpusim and run by XLA, computes what the JAX function computes."""

import pathlib

import compiled_examples
import pytest
from known_gaps import GAPS

from workloads.examples import EXAMPLES


def test_gaps_are_of_examples():
    assert set(EXAMPLES) >= set(GAPS)


@pytest.mark.parametrize("name", compiled_examples.ON_EIGHT_DEVICES)
def test_partitioned_equals_jax(name: str, binary: str, tmp_path: pathlib.Path):
    compiled_examples.check(name, "partitioned", binary, tmp_path)
