"""Bytes are told apart by kind: a workload, an HloProto, or a module."""

import pytest
from tpusim import Workload, hlo, wire

# Field 15 of a module: a replica on 200 devices, which is no text.
DEVICE_ASSIGNMENT = wire.serialize(
    [
        wire.integer(1, 1),
        wire.integer(2, 200),
        *(wire.blob(3, wire.serialize([wire.integer(1, device)])) for device in range(200)),
    ]
)
MODULE = wire.serialize(
    [wire.blob(1, "jit_f"), wire.blob(2, "main"), wire.blob(15, DEVICE_ASSIGNMENT)]
)


@pytest.mark.parametrize(
    "data",
    [
        MODULE,
        wire.serialize([wire.blob(1, MODULE)]),
        wire.serialize([wire.blob(15, "tpusim.workload/1"), wire.blob(16, MODULE)]),
    ],
    ids=["module", "HloProto", "workload"],
)
def test_the_module_is_found(data: bytes):
    assert hlo.module_bytes(data) == MODULE


def test_a_module_is_no_workload():
    with pytest.raises(ValueError, match=r"^not a tpusim.workload/1 file$"):
        Workload.from_bytes(MODULE)
