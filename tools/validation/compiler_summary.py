"""Summarizes what a module of the TPU compiler executes, in a few kilobytes.

    summary = summarize(compiler_hlo.parse(text))

* Kernels: instructions outside of fusions that do work, times the trip counts of the loops around
  them. Alike ones are one row with a count. Scalars that the compiler does not price are none.
* Collectives: kind, bytes (of the whole array of the group, per device, as in tpusim's reports),
  groups, and how they run: `sync`; `async`, with a start and a done, or carried by fusions; or
  `windowed`, permutes that the compiler made of a product and a collective.
* What runs between start and done of an asynchronous one: kernels and their estimated cycles, and
  of which kinds (`product`, `other` kernels, synchronous `collective`s).
* Transfers: copies and slices with a start and a done, that is prefetches and evictions of VMEM.
"""

import collections
import dataclasses
import json
import math
import re
from collections.abc import Iterator
from typing import Any

from compiler_hlo import Array, Computation, Instruction, Module
from compiler_loops import trip_count

COLLECTIVES = (
    *("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "ragged-all-to-all"),
    *("collective-permute", "collective-broadcast"),
)
PRODUCTS = ("convolution", "dot", "ragged-dot")
# Opcodes that are no kernel: they name, group or reinterpret values.
_FREE = {
    *("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "domain"),
    *("partition-id", "replica-id", "opt-barrier", "add-dependency", "get-dimension-size"),
}
_FREE_TARGETS = {
    *("AllocateBuffer", "ConcatBitcast", "AssumeGatherIndicesInBound", "Sharding"),
    *("GatherScatterIndicesBitpacked", "MoveToHost", "MoveToDevice"),
    *("PrepareAsyncCallStart", "PrepareAsyncCallDone"),
}
# Calls on another core; libtpu 0.0.50 and later write the last form.
_CALL_STARTS = ("async-start", "call-start", "custom-call-start")
_TRANSFERS = ("copy-start", "slice-start", "dynamic-slice-start", "dynamic-update-slice-start")
# Inside of a fusion.
_PLUMBING = _FREE | {"fusion"}
_FLAG_SPACES = (2, 4)  # Synchronisation flags and the state of carried collectives.


@dataclasses.dataclass
class _Work:
    """Executed work."""

    kernels: int = 0
    cycles: int = 0
    kinds: frozenset[str] = frozenset()

    def __add__(self, other: "_Work") -> "_Work":
        kinds = self.kinds | other.kinds
        return _Work(self.kernels + other.kernels, self.cycles + other.cycles, kinds)

    def times(self, count: int) -> "_Work":
        """Returns the work of so many executions."""
        return _Work(
            self.kernels * count, self.cycles * count, self.kinds if count else frozenset()
        )


@dataclasses.dataclass
class _Pending:
    """A collective between its start and its done."""

    row: dict[str, Any]
    work: _Work = dataclasses.field(default_factory=_Work)


class _Walk:
    """Collects rows while it goes through what is executed."""

    def __init__(self, module: Module, unknown_trips: int):
        self.module = module
        self.unknown_trips = unknown_trips
        self.kernels: dict[str, dict[str, Any]] = {}
        self.collectives: dict[str, dict[str, Any]] = {}
        self.transfers: dict[str, dict[str, int]] = {}
        self.loops: list[dict[str, Any]] = []

    def run(self, computation: Computation, times: int, windowed: bool) -> _Work:
        """Returns the work of one execution of the computation."""
        total = _Work()
        pending: dict[str, _Pending] = {}

        def executed(work: _Work) -> None:
            nonlocal total
            total += work
            for one in pending.values():
                one.work += work

        for i in computation.instructions:
            if i.opcode in _FREE or self._is_free_call(i):
                continue
            if i.opcode == "while":
                executed(self._loop(computation, i, times, windowed))
            elif i.opcode == "conditional":
                executed(self._longest(i, times, windowed))
            elif i.opcode == "call":
                executed(self.run(self.module.computations[i.called[0]], times, windowed))
            elif i.opcode in _TRANSFERS:
                self._transfer(i, times)
            elif mode := self._collective(computation, i, times, windowed, pending):
                if mode == "waited for":
                    executed(_Work(kinds=frozenset({"collective"})))
            elif i.opcode in _CALL_STARTS and i.called:
                executed(self.run(self.module.computations[i.called[0]], times, windowed))
            elif not i.opcode.endswith(("-done", "-update")) and self._is_kernel(i):
                executed(_Work(1, i.estimated_cycles or 0, frozenset({self._kind(i)})))
                self._kernel(computation, i, times)
        for one in pending.values():
            self._close(one, times)
        return total

    def _kind(self, i: Instruction) -> str:
        inside = {i.opcode, *opcodes(self.module, i)}
        return "product" if inside & set(PRODUCTS) else "other"

    def _is_free_call(self, i: Instruction) -> bool:
        target = i.attribute("custom_call_target").strip('"') if i.opcode == "custom-call" else ""
        return target in _FREE_TARGETS

    def _is_kernel(self, i: Instruction) -> bool:
        if i.opcode == "custom-call" or i.estimated_cycles is not None:
            return True
        return any(array.elements > 1 for array in i.arrays)

    def _loop(self, computation: Computation, i: Instruction, times: int, windowed: bool) -> _Work:
        body = i.attribute("body").lstrip("%")
        trips = trip_count(self.module, computation, i)
        inside = windowed or "windowed_dot_general" in body
        row: dict[str, Any] = {"name": i.name, "trips": trips, "count": times}
        if inside:
            row["windowed"] = True
        self.loops.append(row)
        count = self.unknown_trips if trips is None else trips
        work = _Work()
        if count:
            work = self.run(self.module.computations[body], times * count, inside)
        # A condition may have kernels and collectives of its own.
        condition = self.module.computations[i.attribute("condition").lstrip("%")]
        more = self.run(condition, times * (count + 1), windowed)
        return work.times(count) + more.times(count + 1)

    def _longest(self, i: Instruction, times: int, windowed: bool) -> _Work:
        """The branch with most cycles counts."""
        best: tuple[_Work, _Walk] | None = None
        for name in i.called:
            walk = _Walk(self.module, self.unknown_trips)
            work = walk.run(self.module.computations[name], times, windowed)
            if best is None or work.cycles > best[0].cycles:
                best = work, walk
        if best is None:
            return _Work()
        work, walk = best
        for mine, other in ((self.kernels, walk.kernels), (self.collectives, walk.collectives)):
            for key, row in other.items():
                _add(mine, key, row)
        self.loops += walk.loops
        return work

    def _transfer(self, i: Instruction, times: int) -> None:
        moved = [a for a in i.arrays if a.space not in _FLAG_SPACES]
        target = moved[0] if i.opcode == "copy-start" else moved[-1]
        source = moved[-1] if i.opcode == "copy-start" else moved[0]
        key = f"{i.opcode.removesuffix('-start')} S({source.space}) to S({target.space})"
        row = self.transfers.setdefault(key, {"count": 0, "bytes": 0})
        row["count"] += times
        row["bytes"] += times * target.bytes

    def _collective(
        self,
        computation: Computation,
        i: Instruction,
        times: int,
        windowed: bool,
        pending: dict[str, _Pending],
    ) -> str:
        """Takes note of a start, an update, a done or what is waited for.

        Returns which of "started", "done" and "waited for" it is, "" for none of them.
        """
        if i.opcode.endswith("-update"):
            # A call that gets its operands after its start runs from here on.
            for name in i.operands:
                if name in pending:
                    pending[i.name] = _Pending(pending.pop(name).row)
            return ""
        if i.opcode.endswith("-done"):
            for name in i.operands:
                if name in pending:
                    self._close(pending.pop(name), times)
                    return "done"
            return "done" if i.opcode.removesuffix("-done") in COLLECTIVES else ""
        inner, owner = _collective_in(self.module, computation, i)
        if inner is None or owner is None:
            return ""
        kind = inner.opcode.removesuffix("-start")
        if "all-reduce-scatter" in owner.name:
            kind = "reduce-scatter"
        targets = {j.attribute("custom_call_target").strip('"') for j in owner.instructions}
        channel = f"{kind} of channel {inner.attribute('channel_id')}"
        if i.opcode == "fusion" and "AsyncCollectiveDone" in targets:
            if channel in pending:
                self._close(pending.pop(channel), times)
            return "done"
        if i.opcode == "fusion" and owner.name.startswith("async_collective_fusion"):
            return ""  # A kernel that carries one.
        row = _collective_row(owner, inner, kind)
        row["name"] = i.name
        thread = i.attribute("async_execution_thread").strip('"')
        if thread:
            row["thread"] = thread
        starts = i.opcode.endswith("-start") or "AsyncCollectiveStart" in targets
        made = kind == "collective-permute" and inner.op_name.endswith("dot_general")
        row["mode"] = "windowed" if windowed or made else "async" if starts else "sync"
        if starts:
            pending[channel if i.opcode == "fusion" else i.name] = _Pending(row)
            return "started"
        self._close(_Pending(row), times)
        return "waited for"

    def _close(self, one: _Pending, times: int) -> None:
        row = one.row
        if one.work.kernels:
            row["between_kernels"], row["between_cycles"] = one.work.kernels, one.work.cycles
        if one.work.kinds:
            row["between"] = sorted(one.work.kinds)
        key = json.dumps({k: v for k, v in row.items() if k != "name"}, sort_keys=True)
        _add(self.collectives, key, {**row, "count": times})

    def _kernel(self, computation: Computation, i: Instruction, times: int) -> None:
        window = i.config.get("window_config", {})
        kind = i.attribute("kind")
        ops = opcodes(self.module, i)
        row: dict[str, Any] = {
            "opcode": i.opcode,
            "cycles": i.estimated_cycles,
            "operands": [str(a) for o in computation.operands(i) for a in _data(o.arrays)],
            "results": [str(a) for a in _data(i.arrays)],
        }
        if kind:
            row["kind"] = kind
        if ops:
            row["ops"] = ops
        if i.opcode == "custom-call":
            row["target"] = i.attribute("custom_call_target").strip('"')
        grid = [int(n) for n in window.get("iteration_bounds", [])]
        if grid:
            row["grid"] = grid
        emitter = i.config.get("convolution_algorithm_config", {}).get("emitter")
        if emitter:
            row["emitter"] = emitter
        if any(name.startswith("async_collective_fusion") for name in i.called):
            row["carries"] = True
        key = json.dumps(row, sort_keys=True)
        _add(self.kernels, key, {"name": i.name, **row, "count": times})


def _data(arrays: tuple[Array, ...]) -> list[Array]:
    return [a for a in arrays if a.space not in _FLAG_SPACES]


def _add(rows: dict[str, dict[str, Any]], key: str, row: dict[str, Any]) -> None:
    if key in rows:
        rows[key]["count"] += row["count"]
    else:
        rows[key] = row


def _collective_in(
    module: Module, computation: Computation, i: Instruction
) -> tuple[Instruction | None, Computation | None]:
    """The collective that an instruction is or wraps, and the computation which that is in."""
    if i.opcode.removesuffix("-start") in COLLECTIVES:
        return i, computation
    if i.opcode == "fusion" or i.opcode in _CALL_STARTS:
        for name in i.called:
            owner = module.computations[name]
            for j in owner.instructions:
                found = _collective_in(module, owner, j)
                if found[0] is not None:
                    return found
    return None, None


def _collective_row(computation: Computation, inner: Instruction, kind: str) -> dict[str, Any]:
    operands = [a for o in computation.operands(inner) for a in _data(o.arrays)]
    results = _data(inner.arrays)
    if inner.opcode == "all-gather-start":
        results = results[len(operands) :]
    whole = results if inner.opcode.startswith("all-gather") else operands
    algorithm = inner.config.get("collective_algorithm_config", {}).get("emitter")
    groups = inner.attribute("replica_groups")
    row: dict[str, Any] = {
        "kind": kind,
        "bytes": sum(a.bytes for a in whole),
        "operands": [str(a) for a in operands],
    }
    if groups:
        row["groups"], row["group_size"] = groups, group_size(groups)
    pairs = inner.attribute("source_target_pairs")
    if pairs:
        row["pairs"] = pairs if len(pairs) <= 120 else pairs[:117] + "..."
    if algorithm:
        row["emitter"] = algorithm
    return row


def group_size(groups: str) -> int | None:
    """Members per group of `{{0,1},{2,3}}`, `[2,4]<=[8]` or `mesh['a'=2,'b'=4] {'b'}`."""
    lists = re.match(r"\{\{([\d,]*)\}", groups)
    if lists:
        return len(lists[1].split(","))
    iota = re.match(r"\[\d+,(\d+)\]<=", groups)
    if iota:
        return int(iota[1])
    mesh = re.match(r"mesh\[([^\]]*)\].*?\{([^}]*)\}", groups)
    if not mesh:
        return None
    sizes = {name: int(size) for name, size in re.findall(r"'([^']+)'=(\d+)", mesh[1])}
    named = re.findall(r"'([^']+)'(?::\(\d+\)(\d+))?", mesh[2])
    return math.prod(int(part) if part else sizes[name] for name, part in named)


def opcodes(module: Module, i: Instruction) -> dict[str, int]:
    """Opcodes inside of a fusion, and of fusions within, with how many there are of each."""
    counts: collections.Counter[str] = collections.Counter()

    def visit(computation: Computation) -> Iterator[str]:
        for j in computation.instructions:
            if j.opcode not in _PLUMBING:
                yield j.opcode
            if j.opcode == "fusion":
                for name in j.called:
                    yield from visit(module.computations[name])

    if i.opcode == "fusion":
        for name in i.called:
            counts.update(visit(module.computations[name]))
    return dict(sorted(counts.items()))


def summarize(module: Module, unknown_trips: int = 1) -> dict[str, Any]:
    """Kernels, collectives, transfers and loops of a module.

    Loops that depend on data run `unknown_trips` times.
    """
    walk = _Walk(module, unknown_trips)
    walk.run(module.entry, 1, False)
    return {
        "kernels": list(walk.kernels.values()),
        "collectives": list(walk.collectives.values()),
        "transfers": walk.transfers,
        "loops": walk.loops,
    }
