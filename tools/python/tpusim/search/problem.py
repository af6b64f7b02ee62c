"""What all candidates of a search share: how they are built, run and judged."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from tpusim.report import Report
from tpusim.search.candidate import Candidate

# `(step, arguments)` or `(step, arguments, options)`.
Build = Callable[[Candidate], tuple[Any, ...]]

# Arguments of `tpusim.simulate` that belong to the export, to the compiler, and to the machine.
OF_EXPORT = frozenset({"keyword_arguments", "name", "coordinates", "kernel_costs", "trip_counts"})
OF_COMPILER = frozenset(
    {"trip_counts", "settings", "branches", "ragged", "xla_flags", "device_order", "algorithm"}
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
