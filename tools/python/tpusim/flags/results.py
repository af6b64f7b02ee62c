"""`FlagResults`: what settings of the TPU compiler do to a step, for people and programs."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tpusim import optional, quantities
from tpusim.errors import Error
from tpusim.flags.contents import Contents, contents_of
from tpusim.flags.table import Setting, Value
from tpusim.search.results import SearchResults
from tpusim.search.row import Status
from tpusim.version import __version__

if TYPE_CHECKING:
    import pandas

SCHEMA = "tpusim.flags/1"
_SHOWN = 20
_WIDTH = 160
# Changes of the module that a line has room for.
_MOST_CHANGES = 4


@dataclasses.dataclass(frozen=True)
class Entry:
    """One setting; figures are None of what could not be compiled or simulated."""

    label: str
    options: Mapping[str, Value]
    what: str  # it is for
    status: str  # "simulated", "does not fit", "error", "crashed"
    why: str = ""  # there are no figures
    step_time_ns: float | None = None
    peak_hbm_bytes: int | None = None  # as simulated
    compiler_peak_bytes: int | None = None  # as the TPU compiler says
    devices: int | None = None  # that the program is partitioned for
    contents: Contents | None = None
    module: bytes = dataclasses.field(default=b"", repr=False)
    # Beside the default.
    change: float | None = None  # of the step, -0.1 is a tenth shorter
    changes: tuple[str, ...] = ()  # of the module
    same: bool = False  # the very same module


def entries_of(
    results: SearchResults, settings: Mapping[str, Setting], base: Mapping[str, Value]
) -> list[Entry]:
    """Makes entries from the results of a search over settings."""
    found = []
    for entry in results:
        label, row = entry.candidate.labels["setting"], entry.row
        setting = settings[label]
        made: dict[str, Any] = {}
        if row.program:
            workload = results.workload(entry)
            memory = workload.compilation.memory if workload.compilation else None
            made = {
                "compiler_peak_bytes": memory.peak_bytes if memory else None,
                "devices": workload.num_partitions,
                "contents": contents_of(workload.hlo_module),
                "module": workload.hlo_module,
            }
        simulated = row.status is Status.SIMULATED
        found.append(
            Entry(
                label,
                {**base, **setting.options},
                setting.what,
                str(row.status),
                "" if simulated else row.why,
                row.step_time_ns if simulated else None,
                row.peak_hbm_bytes if simulated else None,
                **made,
            )
        )
    return found


def _beside(default: Entry, entry: Entry) -> Entry:
    change = None
    if entry.step_time_ns is not None and default.step_time_ns:
        change = entry.step_time_ns / default.step_time_ns - 1
    changes: list[str] = []
    if entry.contents is not None and default.contents is not None:
        changes = entry.contents.changes(default.contents)
    same = entry.module != b"" and entry.module == default.module
    return dataclasses.replace(entry, change=change, changes=tuple(changes), same=same)


class FlagResults(Sequence[Entry]):
    """Settings, the shortest step first (of equal ones the least memory), then what failed."""

    def __init__(self, config: str, default: Entry, tried: Sequence[Entry]):
        self.config = config
        self.default = default
        beside = [_beside(default, entry) for entry in tried]
        self.entries = sorted(beside, key=_order)

    def __getitem__(self, index: Any) -> Any:
        return self.entries[index]

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def best(self) -> Entry:
        """The shortest step, be it that of the default; tpusim.Error if nothing was simulated."""
        simulated = [e for e in (self.default, *self.entries) if e.step_time_ns is not None]
        if not simulated:
            told = dict.fromkeys(e.why for e in (self.default, *self.entries))
            raise Error(f"flags: nothing was simulated: {'; '.join(told)}")
        return min(simulated, key=lambda entry: entry.step_time_ns or 0.0)

    def to_frame(self) -> "pandas.DataFrame":
        """A row per setting, the default first (needs pandas)."""
        library = optional.require("pandas", "a DataFrame")
        return library.DataFrame([_record(e) for e in (self.default, *self.entries)])

    def to_json(self, command_line: Sequence[str] = ()) -> str:
        """The results as JSON; `command_line` is the command that made them, if any."""
        value = {
            "schema": SCHEMA,
            "tpusim_version": __version__,
            "command_line": list(command_line),
            "config": self.config,
            "default": _record(self.default),
            "settings": [_record(entry) for entry in self.entries],
        }
        return json.dumps(value, indent=2) + "\n"

    def text(self, top: int = _SHOWN, width: int | None = None) -> str:
        """The first `top` that change the module, then what failed and what changes nothing."""
        same = [e for e in self.entries if e.same]
        failed = [e for e in self.entries if e.step_time_ns is None]
        changed = [e for e in self.entries if e.step_time_ns is not None and not e.same]
        shown = changed[:top]
        head = ("", "setting", "step", "", "peak HBM", "module")
        rows = [head, _cells("", self.default)]
        rows += [_cells(str(number), entry) for number, entry in enumerate(shown, 1)]
        rows += [_cells("-", entry) for entry in failed]
        lines = quantities.columns(rows)
        if len(changed) > len(shown):
            lines.append(f"{len(changed) - len(shown)} more are not shown")
        if same:
            lines += ["", f"the same module: {', '.join(entry.label for entry in same)}"]
        return "\n".join(line if width is None else line[:width] for line in lines)

    def __repr__(self) -> str:
        return self.text(width=_WIDTH)


def _order(entry: Entry) -> tuple[Any, ...]:
    step = entry.step_time_ns
    # The more it changes for the same figures, the later.
    return (step is None, step or 0.0, entry.peak_hbm_bytes or 0, len(entry.options), entry.label)


def _cells(rank: str, entry: Entry) -> tuple[str, ...]:
    if entry.step_time_ns is None:
        return rank, entry.label, entry.status, "", "", entry.why
    change = "" if entry.change is None else f"{entry.change:+.1%}".replace("-0.0%", "+0.0%")
    peak = quantities.size(entry.peak_hbm_bytes or 0)
    contents = _described(entry)
    return rank, entry.label, quantities.time(entry.step_time_ns), change, peak, contents


def _described(entry: Entry) -> str:
    """Describes how an entry differs from the default; of the default, its contents."""
    if entry.changes:
        more = len(entry.changes) - _MOST_CHANGES
        rest = [f"and {more} more"] if more > 0 else []
        return ", ".join([*entry.changes[:_MOST_CHANGES], *rest])
    if entry.change is not None or entry.contents is None:
        return "other shapes or order" if entry.contents is not None else ""
    of = entry.contents
    counted = [f"{number} {kind}" for kind, number in of.collectives.items()]
    copies = [f"{of.copies} async copies"] if of.copies else []
    return ", ".join([f"{of.kernels} kernels", *counted, *copies, f"{of.vmem_share:.0%} in VMEM"])


def _record(entry: Entry) -> dict[str, Any]:
    contents = entry.contents
    return {
        "setting": entry.label,
        "options": dict(entry.options),
        "what": entry.what,
        "status": entry.status,
        "why": entry.why,
        "step_time_ns": entry.step_time_ns,
        "change": entry.change,
        "peak_hbm_bytes": entry.peak_hbm_bytes,
        "compiler_peak_bytes": entry.compiler_peak_bytes,
        "same_module": entry.same,
        "kernels": contents.kernels if contents else None,
        "collectives": contents.collectives if contents else {},
        "async_copies": contents.copies if contents else None,
        "vmem_share": contents.vmem_share if contents else None,
    }
