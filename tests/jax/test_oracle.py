"""The oracle itself: it accepts what XLA's own partitioner makes and notices wrong results."""

import pathlib

import jax
import ml_dtypes
import numpy as np
import oracle
import pytest

from workloads.examples import EXAMPLES


def partitioned_by_xla(function, arguments, folder: pathlib.Path) -> bytes:
    """The module as it is right after XLA's partitioner, from a compiler dump."""
    options = {
        "xla_dump_to": str(folder),
        "xla_dump_hlo_pass_re": "spmd.*|shardy.*",
        "xla_dump_hlo_as_proto": True,
    }
    function.lower(*arguments).compile(compiler_options=options)
    (dump,) = folder.glob("*after_spmd-partitioning*.hlo.pb")
    return oracle.hlo_module(dump.read_bytes())


# Between them: an all-reduce and an all-gather found by the partitioner (mesh-axes groups), a loop
# with a collective-permute, a manual reduce-scatter.
@pytest.mark.parametrize(
    "name", ["matmul_square", "allgather_matmul_bf16", "collective_matmul_bf16", "psum_scatter"]
)
def test_xlas_own_partition_passes(name: str, tmp_path: pathlib.Path):
    example = EXAMPLES[name]
    function, arguments = example(example.concrete_mesh(jax.devices()))
    module = partitioned_by_xla(function, arguments, tmp_path)
    inputs, expected = oracle.reference(function, arguments)
    oracle.check(oracle.run(module, inputs), expected)


def test_exchanged_devices_are_noticed(tmp_path: pathlib.Path):
    example = EXAMPLES["ring_shift"]
    function, arguments = example(example.concrete_mesh(jax.devices()))
    module = partitioned_by_xla(function, arguments, tmp_path)
    inputs, expected = oracle.reference(function, arguments)
    inputs[0][2], inputs[0][3] = inputs[0][3], inputs[0][2]
    # The shard of device 2 goes one row of the mesh on, to device 4.
    with pytest.raises(AssertionError, match="result 0 on device 4: off by"):
        oracle.check(oracle.run(module, inputs), expected)


def test_one_wrong_bit_of_an_integer_is_noticed():
    good = np.array([1, 2, 3], np.int32)
    bad = np.array([1, 2, 2], np.int32)
    with pytest.raises(AssertionError, match="integers differ"):
        oracle.check([[bad]], [[good]])


def test_floats_have_the_tolerance_of_their_type():
    want = np.array([100.0, 1.0], ml_dtypes.bfloat16)
    # 2e-2 of 100 is 2: 99 passes, 97 does not.
    oracle.check([[np.array([99.0, 1.0], ml_dtypes.bfloat16)]], [[want]])
    with pytest.raises(AssertionError, match=r"off by 3\.0"):
        oracle.check([[np.array([97.0, 1.0], ml_dtypes.bfloat16)]], [[want]])


def test_wrong_shapes_and_types_are_noticed():
    want = np.zeros((2, 4), np.float32)
    with pytest.raises(AssertionError, match="expected"):
        oracle.check([[np.zeros((4, 2), np.float32)]], [[want]])
    with pytest.raises(AssertionError, match="expected float32"):
        oracle.check([[np.zeros((2, 4), ml_dtypes.bfloat16)]], [[want]])
