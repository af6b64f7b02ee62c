"""Every example computes what the JAX function computes, after all passes.

XLA runs what tpusim makes of it: the executable form (`--emit executable`), fusions expanded,
asynchronous pairs joined. Where that is wrong, the partitioned module says whether it was so before
the passes; `--long` runs both.
"""

import pathlib

import compiled_examples
import pytest
from known_gaps import GAPS

from workloads.examples import EXAMPLES


def test_gaps_are_of_examples():
    assert set(EXAMPLES) >= set(GAPS)


@pytest.mark.parametrize("name", compiled_examples.ON_EIGHT_DEVICES)
def test_equals_jax(name: str, binary: str, tmp_path: pathlib.Path):
    try:
        compiled_examples.check(name, "executable", binary, tmp_path)
    except AssertionError:
        compiled_examples.check(name, "partitioned", binary, tmp_path)
        raise


@pytest.mark.long
@pytest.mark.parametrize("name", compiled_examples.ON_EIGHT_DEVICES)
def test_partitioned_equals_jax(name: str, binary: str, tmp_path: pathlib.Path):
    compiled_examples.check(name, "partitioned", binary, tmp_path)
