"""Random sharded programs, partitioned by tpusim and run by XLA, compute what JAX computes."""

import pathlib
from collections.abc import Sequence

import pytest
import random_programs

# A longer run: python tests/jax/random_programs.py --seeds 0:1000
SEEDS = range(40)
LONG_SEEDS = range(40, 400)
# Operations that need what is beyond the end of a dimension to be masked: half of these programs
# fail if Builder::Mask does nothing.
MASKED = ("reduce", "reduce_with", "dot", "cumulative", "argmax", "top_k")
MASKED_SEEDS = range(30)


def verify(seed: int, binary: str, directory: pathlib.Path, only: Sequence[str] = ()) -> None:
    try:
        random_programs.verify(seed, binary, directory, only)
    except random_programs.Unusable as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("seed", SEEDS)
def test_random_program(seed: int, binary: str, tmp_path: pathlib.Path):
    verify(seed, binary, tmp_path)


@pytest.mark.parametrize("seed", MASKED_SEEDS)
def test_random_program_of_masked_operations(seed: int, binary: str, tmp_path: pathlib.Path):
    verify(seed, binary, tmp_path, MASKED)


@pytest.mark.long
@pytest.mark.parametrize("seed", LONG_SEEDS)
def test_more_random_programs(seed: int, binary: str, tmp_path: pathlib.Path):
    verify(seed, binary, tmp_path)


def test_programs_depend_on_their_seed_only():
    assert str(random_programs.make(5)) == str(random_programs.make(5))
    assert str(random_programs.make(5)) != str(random_programs.make(6))
