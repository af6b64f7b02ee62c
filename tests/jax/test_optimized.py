"""A program after all passes, run by XLA, computes what JAX computes.

The module after all passes in its executable form (`--emit executable`): fusions expanded,
asynchronous pairs joined. Random programs here, examples in `test_examples.py`; a longer run:

    python tests/jax/random_programs.py --seeds 0:1000 --stage executable
"""

import pathlib

import pytest
import random_programs

SEEDS = range(20)
LONG_SEEDS = range(20, 1000)


def verify(seed: int, binary: str, directory: pathlib.Path) -> None:
    try:
        random_programs.verify(seed, binary, directory, stage="executable")
    except random_programs.Unusable as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("seed", SEEDS)
def test_random_program(seed: int, binary: str, tmp_path: pathlib.Path):
    verify(seed, binary, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("seed", LONG_SEEDS)
def test_more_random_programs(seed: int, binary: str, tmp_path: pathlib.Path):
    verify(seed, binary, tmp_path)
