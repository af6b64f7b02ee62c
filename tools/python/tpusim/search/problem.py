"""The problem that all candidates of a search share: how they are built, run and judged."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from tpusim import arguments as checks
from tpusim.errors import Error
from tpusim.report import Report
from tpusim.search.candidate import Candidate
from tpusim.simulation import words_of

# `(step, arguments)` or `(step, arguments, options)`.
Build = Callable[[Candidate], tuple[Any, ...]]

# Arguments of `tpusim.simulate` that belong to the export, to the compiler, and to the machine.
OF_EXPORT = frozenset(
    {
        "keyword_arguments",
        "name",
        "coordinates",
        "kernel_costs",
        "trip_counts",
        "compiled",
        "compiler_options",
    }
)
OF_COMPILER = frozenset(
    {
        "trip_counts",
        "settings",
        "branches",
        "ragged",
        "routing",
        "constraints",
        "remat",
        "donate",
        "keep",
        "xla_flags",
        "device_order",
        "algorithm",
    }
)
OF_MACHINE = frozenset({"slow", "link", "fold", "options"})
OPTIONS = OF_EXPORT | OF_COMPILER | OF_MACHINE


@dataclasses.dataclass(frozen=True)
class Problem:
    """Sent to every worker once."""

    build: Build
    options: Mapping[str, Any]  # of `tpusim.simulate`, for all candidates
    devices: int  # CPU devices for code that builds its mesh of them
    value: Callable[[Report], float] | None = None  # an objective that is a function
    value_of: str = ""  # tells it from others; "": nothing does
    # Options of `tpusim shard`, which finds the shardings; None: those that the program states.
    find: tuple[str, ...] | None = None


def check_options(options: Mapping[str, Any]) -> None:
    """TypeError or ValueError, if `tpusim.simulate` would not take them."""
    if unknown := sorted(options.keys() - OPTIONS):
        raise Error(f"search: options: {', '.join(unknown)}: not an argument of tpusim.simulate")
    checks.mapping("keyword_arguments", options.get("keyword_arguments"), "{name: value}")
    checks.text("name", options.get("name", ""), empty=True)
    checks.coordinates(options.get("coordinates"))
    checks.kernel_costs(options.get("kernel_costs"))
    checks.flag("compiled", options.get("compiled", False))
    checks.compiler_options(options.get("compiler_options"))
    checks.options(options.get("options", ()))
    words_of(**{k: v for k, v in options.items() if k in (OF_COMPILER | OF_MACHINE) - {"options"}})
