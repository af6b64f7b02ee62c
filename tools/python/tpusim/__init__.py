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

Variants of a training command, such as MaxText's:

    tpusim.sweep("python3 train.py --batch 8", {"--batch": [8, 16]}, config="v5e-4x2")

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

Nothing is imported before it is needed: the command `tpusim` starts at once, and XLA_FLAGS can
still be set after `import tpusim`.
"""

TYPE_CHECKING = False  # As that of `typing`, which takes longer to import than all of this.
if TYPE_CHECKING:
    from typing import Any

    from tpusim import calibrate, flags, search
    from tpusim.advice import Advice, MemoryAdvice, advise
    from tpusim.binary import find_binary
    from tpusim.capturing import capture
    from tpusim.comparison import compare
    from tpusim.errors import CaptureError, Error
    from tpusim.export import export
    from tpusim.report import Report
    from tpusim.runner import run
    from tpusim.search.candidate import Candidate
    from tpusim.search.results import SearchInterruptedError, SearchResults
    from tpusim.seeing import seen_as
    from tpusim.sharding import FoundShardings, shard
    from tpusim.simulation import simulate
    from tpusim.sweeping import Sweep, Variant, sweep
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
    "Sweep",
    "Timeline",
    "TripCount",
    "Variant",
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
    "sweep",
]

# Names of the package by the module that defines them.
_NAMES = {
    "advice": "Advice MemoryAdvice advise",
    "binary": "find_binary",
    "capturing": "capture",
    "comparison": "compare",
    "errors": "CaptureError Error",
    "report": "Report",
    "runner": "run",
    "search.candidate": "Candidate",
    "search.results": "SearchInterruptedError SearchResults",
    "seeing": "seen_as",
    "sharding": "FoundShardings shard",
    "simulation": "simulate",
    "sweeping": "Sweep Variant sweep",
    "timeline": "Timeline",
    "version": "__version__",
    "workload": "Compilation CompilerOption DeviceCoordinates KernelCost MemoryAnalysis MeshAxis "
    "TripCount Workload",
}


def __getattr__(name: str) -> "Any":
    """A public name, or a module of the package, of which some can be called (`search`)."""
    import importlib
    import importlib.util

    for module, names in _NAMES.items():
        if name in names.split():
            found = getattr(importlib.import_module(f"tpusim.{module}"), name)
            globals()[name] = found
            return found
    if not name.startswith("_") and importlib.util.find_spec(f"tpusim.{name}") is not None:
        return importlib.import_module(f"tpusim.{name}")
    raise AttributeError(f"module 'tpusim' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
