"""`Row`: what a search knows of one candidate."""

import dataclasses
import enum


class Status(enum.StrEnum):
    """The state of a candidate."""

    EXPORTED = "exported"  # its program is known, no more
    SIMULATED = "simulated"
    PRUNED = "pruned"  # not simulated: a lower bound is behind the best
    DOES_NOT_FIT = "does not fit"  # into memory
    ERROR = "error"  # of `build`, of JAX, or of the simulator
    CRASHED = "crashed"  # it took its worker along; tried again if the search is


@dataclasses.dataclass(frozen=True)
class Row:
    """Fields without a value are None; `_ns` are nanoseconds, figures are of one device."""

    status: Status
    why: str = ""  # of all but simulated ones
    program: str = ""  # digest of what was exported and of the options it runs with
    # Before the simulation: lower bounds of the step by matmuls and collectives, and by reads of
    # arguments from HBM (`tpusim compile --emit bounds`).
    schedule_bound_ns: float | None = None
    hbm_bound_ns: float | None = None
    argument_bytes: int | None = None
    chips: int | None = None
    usable_hbm_bytes: int | None = None
    # Figures of the report.
    step_time_ns: float | None = None
    mfu: float | None = None
    hfu: float | None = None
    flops: int | None = None
    exposed_communication_ns: float | None = None
    hidden_communication_ns: float | None = None
    peak_hbm_bytes: int | None = None
    devices: int | None = None
    ignored_skew_ns: float | None = None  # by fold="approximate"
    # The value of an objective that is a function.
    value: float | None = None
    value_of: str = ""
    # {part of the step: ns}, {owner of memory at the peak: bytes}
    parts: dict[str, float] = dataclasses.field(default_factory=dict)
    owners: dict[str, int] = dataclasses.field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    # Processor time that it took; of shardings that were found, their simulation alone.
    export_cpu_s: float = 0.0
    simulation_cpu_s: float = 0.0
    # Shardings that were found: what `tpusim shard --json` printed, with the best alone.
    found: str = ""
