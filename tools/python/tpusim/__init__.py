"""tpusim from Python: simulate sharded JAX programs on TPU slices, without a TPU.

    import tpusim

    report = tpusim.simulate(train_step, params, batch, config="v5e-4x2")
    report.step_time_ns, report.mfu           # every field of the report, typed
    report.ops                                # tables are pandas DataFrames
    report.plot_timeline()                    # drawn by matplotlib
    report.save("step.json", trace="step.pftrace")

    tpusim.compare({"4x2": report, "2x4": tpusim.simulate(..., config="v5e-2x4")})

Many at once, over meshes, shardings, batches, slices:

    tpusim.search(build, {"mesh": [(8, 1), (4, 2)], "batch": [64, 128]}, configs=["v5e-4x2"])

The mesh and the shardings with the shortest step, and how sure that is:

    tpusim.shard(train_step, params, batch, config="v5e-4x2").best.arguments

With options of the TPU compiler, where its wheel is installed:

    tpusim.flags(build, config="v6e-4x2")

With a profile that XProf took, parameters of the chip fitted to it:

    tpusim.calibrate("step.pb", profile="logdir", config="v5e-4x2")

Or step by step, through files:

    tpusim.export(train_step, params, batch, path="step.pb", config="v5e-4x2")

    with tpusim.capture("step.pb", config="v5e-4x2"):
        main()                      # stops at the first call of a jitted function

    report = tpusim.simulate("step.pb")

From a shell: `python -m tpusim.export script.py:function --config v5e-4x2 -o step.pb`.

Nothing here imports JAX, pandas, scipy or matplotlib before it is needed, so XLA_FLAGS can still
be set after `import tpusim`.
"""

import importlib
from typing import TYPE_CHECKING, Any

from tpusim import calibrate, flags, search
from tpusim.advice import Advice, MemoryAdvice, advise
from tpusim.capturing import capture
from tpusim.comparison import compare
from tpusim.errors import CaptureError, Error
from tpusim.report import Report
from tpusim.runner import find_binary, run
from tpusim.search.candidate import Candidate
from tpusim.search.results import SearchInterruptedError, SearchResults
from tpusim.seeing import seen_as
from tpusim.sharding import FoundShardings, shard
from tpusim.simulation import simulate
from tpusim.timeline import Timeline
from tpusim.version import __version__ as __version__
from tpusim.workload import (
    Compilation,
    CompilerOption,
    DeviceCoordinates,
    KernelCost,
    MemoryAnalysis,
    MeshAxis,
    TripCount,
    Workload,
)

if TYPE_CHECKING:
    from tpusim.export import export


__all__ = [
    "Advice",
    "Candidate",
    "CaptureError",
    "Compilation",
    "CompilerOption",
    "DeviceCoordinates",
    "Error",
    "FoundShardings",
    "KernelCost",
    "MemoryAdvice",
    "MemoryAnalysis",
    "MeshAxis",
    "Report",
    "SearchInterruptedError",
    "SearchResults",
    "Timeline",
    "TripCount",
    "Workload",
    "advise",
    "calibrate",
    "capture",
    "compare",
    "export",
    "find_binary",
    "flags",
    "run",
    "search",
    "seen_as",
    "shard",
    "simulate",
]


def __getattr__(name: str) -> Any:
    if name == "export":
        # The module itself, which is callable: `tpusim.export(...)` is the same thing before and
        # after an `import tpusim.export`. Not earlier, since `python -m tpusim.export` runs it.
        return importlib.import_module("tpusim.export")
    raise AttributeError(f"module 'tpusim' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
