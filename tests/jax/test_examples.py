"""Every example computes what the JAX function computes: partitioned, and after all passes.

XLA runs what tpusim makes of it. After all passes means the executable form
(`--emit executable`): fusions expanded, asynchronous pairs joined.
"""

import pathlib

import compiled_examples
import pytest
from known_gaps import GAPS

from workloads.examples import EXAMPLES


def test_gaps_are_of_examples():
    assert set(EXAMPLES) >= set(GAPS)


# One example after the other, so that JAX computes each once.
@pytest.mark.parametrize("stage", ["partitioned", "executable"])
@pytest.mark.parametrize("name", compiled_examples.ON_EIGHT_DEVICES)
def test_equals_jax(name: str, stage: str, binary: str, tmp_path: pathlib.Path):
    compiled_examples.check(name, stage, binary, tmp_path)
