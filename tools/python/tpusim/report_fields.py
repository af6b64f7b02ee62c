"""Classes of the report of `tpusim run --report`, with the names of its fields.

This file is the one place in Python that knows them. Units are in the names: `_ns` are nanoseconds.
Figures are of one device, the one that finishes last, except links and what counts the whole slice.
"""

import dataclasses
import math
from typing import Any

from tpusim import records


@dataclasses.dataclass(frozen=True)
class Bounds:
    """Times that no machine of these nominal rates can beat."""

    compute: float
    hbm: float
    ici: float
    host: float  # 0 without transfers from and to the host
    dcn: float  # 0 within one slice


@dataclasses.dataclass(frozen=True)
class ErrorBar:
    """Errors of simulations of this kind of program against measurements on this chip."""

    chip: str
    kind: str  # "training", "inference", "matmul", "collective"; "": of none that was measured
    rows: int  # measurements to which nothing was fitted
    text: str  # of what the others say
    mean_error: float = math.nan  # of absolute errors, as a share of the step
    worst_error: float = math.nan  # below 0: the simulated step was too short
    worst_row: str = ""  # of validation/measurements.json


@dataclasses.dataclass(frozen=True)
class CriticalPath:
    """Critical path, by resource, in nanoseconds; the parts add up to the step."""

    mxu: float
    vpu: float
    hbm: float
    ici: float
    dcn: float
    host: float
    latency: float  # launches, hops, starts of DMA


@dataclasses.dataclass(frozen=True)
class OpRecord:
    """An operation, with all its executions."""

    name: str
    category: str
    scope: str
    count: int
    total_ns: float  # with what is inside, for loops
    flops: int
    hbm_bytes: int
    engine: str  # "tensor_core", "collective", "sparse_core", "dma", "host"
    source: str  # file:line
    compiler_estimate_ns: float = 0.0  # as the TPU compiler thought; 0: it did not say


@dataclasses.dataclass(frozen=True)
class ScopeRecord:
    """Everything below a prefix of op_name paths."""

    scope: str
    total_ns: float
    exposed_communication_ns: float
    flops: int


@dataclasses.dataclass(frozen=True)
class CoveredBy:
    """An operation that hides a part of a collective."""

    name: str
    hidden_ns: float
    share: float


@dataclasses.dataclass(frozen=True)
class ExposedBy:
    """Why a part of a collective is exposed."""

    reason: str
    exposed_ns: float
    text: str


@dataclasses.dataclass(frozen=True)
class CollectiveRecord:
    """A collective: times of all executions, but `expected_ns` and `bound_ns` of one."""

    name: str
    kind: str
    bytes: int  # the whole array of the group, per device
    group_size: int
    axes: str
    algorithm: str
    count: int
    total_ns: float
    hidden_ns: float
    exposed_ns: float
    expected_ns: float
    bound_ns: float  # 0: none holds, this device came late
    covered_by: tuple[CoveredBy, ...] = ()
    exposed_by: tuple[ExposedBy, ...] = ()
    scope: str = ""  # path of names, outermost first
    source: str = ""  # file:line


@dataclasses.dataclass(frozen=True)
class StatedConstraint:
    """A constraint as `tpusim run --constrain` takes it: `VALUE[,VALUE...]=P('x', None)`."""

    constrain: str
    of_result: bool  # of the operation that wants the value otherwise, not of the value


@dataclasses.dataclass(frozen=True)
class DecisionRecord:
    """A decision, assumption or warning of a stage of the compiler, and why."""

    reason: str  # an id: "fusion.inlined"
    action: str  # "changed", "kept", "limited", "assumed", "warned"
    pass_: str = dataclasses.field(metadata=records.key("pass"))  # or stage; may be ""
    subject: str  # an operation, a value or an option
    text: str
    # Numbers and names; units are in the names.
    values: dict[str, Any] = dataclasses.field(hash=False)


@dataclasses.dataclass(frozen=True)
class ReshardSite:
    """A place where a value is moved between two shardings without the program asking for it.

    The same place of equal layers is one. Names are those before partitioning, as `tpusim compile
    --emit sharded` shows them; times are sums over the collectives of all places.
    """

    kind: str  # what moves most of it: "all-gather", "all-to-all", "collective-permute"
    value: str
    user: str  # the operation that wants it otherwise
    scope: str
    source: str  # of the user
    shape: str
    # Shardings: [{x}, {}]
    from_: str = dataclasses.field(metadata=records.key("from"))
    to: str
    why: str  # which axes, and the arguments or constraints that they come from
    value_bytes: int
    # Bytes of the user's result, if it has the dimension but not the axes that split it; else 0.
    result_that_lost_it_bytes: int
    bytes: int  # that a device receives each time, times links
    order: int  # among all of the program
    places: int
    count: int
    total_ns: float
    exposed_ns: float
    constraints: tuple[StatedConstraint, ...]  # what may avoid it, the best guess first


@dataclasses.dataclass(frozen=True)
class MemoryOwner:
    """Bytes of one kind of arrays in HBM at the peak: parameters, saved activations, ..."""

    owner: str
    bytes: int


@dataclasses.dataclass(frozen=True)
class ArrayRecord:
    """An array that is live at the peak."""

    name: str
    owner: str
    scope: str
    source: str
    shape: str  # with its layout
    bytes: int
    unpadded_bytes: int
    padding_bytes: int


@dataclasses.dataclass(frozen=True)
class MemoryAtPeak:
    """Contents of HBM when a device needs most of it."""

    time_ns: float
    operation: str
    fragmentation_bytes: int
    owners: tuple[MemoryOwner, ...]
    arrays: tuple[ArrayRecord, ...]


@dataclasses.dataclass(frozen=True)
class VmemAtPeak:
    """Contents of VMEM when a device has most of it in use."""

    bytes: int  # arrays and windows, without holes between arrays
    capacity_bytes: int  # of all cores of the device
    operation: str  # that is executed then
    windows_bytes: int  # of that operation, if it is a kernel
    arrays: tuple[ArrayRecord, ...]  # owner: how it came there


@dataclasses.dataclass(frozen=True)
class LinkRecord:
    """Bytes that left a chip in one direction."""

    chip: int
    direction: str
    bytes: int
    utilization: float  # of the nominal rate over the step


@dataclasses.dataclass(frozen=True)
class FoldingStep:
    """Why devices could not be taken for the same, and the classes that this made."""

    reason: str
    device_classes: int


@dataclasses.dataclass(frozen=True)
class Folding:
    """Folding: how many of equal devices were simulated."""

    device_classes: int
    simulations: int
    ignored_skew_ns: float
    steps: tuple[FoldingStep, ...]
    approximate: bool = False
    error_bound_ns: float = 0.0  # of the step


@dataclasses.dataclass(frozen=True)
class RollupRow:
    """A part of the step: operations that are counted together."""

    name: str
    members: int  # how many
    count: int  # their executions
    time_ns: float
    share: float  # of the step
    compute_ns: float
    exposed_ns: float
    category: str = ""  # by op; by path: the resource
    source: str = ""  # by op
    total_ns: float = 0  # by scope: with the scopes inside
    in_flight_ns: float = 0  # by collective
    hidden_ns: float = 0  # by collective
    scope: str = ""  # by op, by path: what tells rows of one name and source apart


@dataclasses.dataclass(frozen=True)
class Rollup:
    """The time of the step by several keys; the rows of each add up to the step."""

    op: tuple[RollupRow, ...]
    scope: tuple[RollupRow, ...]
    source: tuple[RollupRow, ...]
    category: tuple[RollupRow, ...]
    collective: tuple[RollupRow, ...]
    path: tuple[RollupRow, ...]  # the critical path, over all devices
    xprof: tuple[RollupRow, ...] = ()  # XProf's categories


@dataclasses.dataclass(frozen=True)
class ReportFields:
    """One simulated step: what was found out, as typed fields."""

    schema: str  # "tpusim.report/1"
    workload: str  # the name of the program
    config: str  # the slice, "v5e-4x2"
    compiler: str  # whose policy held, "libtpu-0.0.52"
    step_time_ns: float  # when the last device finishes
    bound_ns: Bounds  # what the step cannot be shorter than
    bound_by: str  # what has most of the critical path: "compute", "hbm", "ici", ...
    critical_path_ns: CriticalPath  # what the time of the step goes by with
    mfu: float  # model FLOPs against the published bf16 peak
    hfu: float  # all FLOPs against it
    flops: int  # all arithmetic of one device
    peak_flops_per_second: float  # the published bf16 peak of a device
    hbm_bytes_per_second: float  # of a device, nominal
    exposed_communication_ns: float  # collectives in flight and no compute slot busy
    hidden_communication_ns: float  # collectives in flight under compute
    peak_hbm_bytes: int  # what the program needs, with the holes between arrays
    usable_hbm_bytes: int  # capacity less the runtime's reserve
    memory_at_peak: MemoryAtPeak  # whose the memory is then
    devices: int  # of the whole slice
    chips: int
    chip_classes: int  # chips simulated separately
    folding: Folding  # how devices that do the same were found
    events: int  # instructions executed, transfers started and ended
    op_records: tuple[OpRecord, ...] = dataclasses.field(metadata=records.key("ops"))
    scope_records: tuple[ScopeRecord, ...] = dataclasses.field(metadata=records.key("scopes"))
    collective_records: tuple[CollectiveRecord, ...] = dataclasses.field(
        metadata=records.key("collectives")
    )
    rollup: Rollup
    link_records: tuple[LinkRecord, ...] = dataclasses.field(metadata=records.key("links"))
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]
    peak_cmem_bytes: int = 0  # 0 on chips without CMEM
    usable_cmem_bytes: int = 0
    reshard_sites: tuple[ReshardSite, ...] = ()  # most exposed first
    # Assumptions and warnings of the compiler with their ids; decisions that were asked for.
    decision_records: tuple[DecisionRecord, ...] = dataclasses.field(
        default=(), metadata=records.key("records")
    )
    error_bar: ErrorBar = ErrorBar("", "", 0, "")  # of the step time
    vmem_at_peak: VmemAtPeak = VmemAtPeak(0, 0, "", 0, ())  # what VMEM holds when it is fullest
    # The version that made the report; reports of one step are equal whatever the command was.
    tpusim_version: str = dataclasses.field(default="", compare=False)
    command_line: tuple[str, ...] = dataclasses.field(default=(), compare=False)
