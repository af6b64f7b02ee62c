"""tpusim from Python: export sharded JAX programs, run the simulator, read its results.

    import tpusim

    tpusim.export(train_step, params, batch, path="step.pb", config="v5e-4x2")

    with tpusim.capture("step.pb", config="v5e-4x2"):
        main()                      # stops at the first call of a jitted function

    report = tpusim.run("step.pb")  # the JSON report as a dict

From a shell: `python -m tpusim.export script.py:function --config v5e-4x2 -o step.pb`.

Nothing here imports JAX before it is needed, so XLA_FLAGS can still be set after `import tpusim`.
"""

import importlib
from typing import TYPE_CHECKING, Any

from tpusim.runner import TpusimError, find_binary, run
from tpusim.workload import (
    DeviceCoordinates,
    KernelBlock,
    KernelCost,
    KernelLoop,
    KernelProduct,
    MeshAxis,
    TripCount,
    Workload,
)

if TYPE_CHECKING:
    from tpusim.capturing import CaptureError, capture
    from tpusim.chip_view import seen_as
    from tpusim.exporter import export

__all__ = [
    "CaptureError",
    "DeviceCoordinates",
    "KernelBlock",
    "KernelCost",
    "KernelLoop",
    "KernelProduct",
    "MeshAxis",
    "TpusimError",
    "TripCount",
    "Workload",
    "capture",
    "export",
    "find_binary",
    "run",
    "seen_as",
]


def __getattr__(name: str) -> Any:
    if name == "export":
        # The module itself, which is callable: `tpusim.export(...)` is the same thing before and
        # after an `import tpusim.export`.
        return importlib.import_module("tpusim.export")
    if name == "seen_as":
        return importlib.import_module("tpusim.chip_view").seen_as
    if name in ("capture", "CaptureError"):
        return getattr(importlib.import_module("tpusim.capturing"), name)
    raise AttributeError(f"module 'tpusim' has no attribute {name!r}")
