"""Whether a report has all that a compiled module executes."""

import collections
import math
import re
from collections.abc import Iterator
from typing import Any

from tpusim import wire
from tpusim.hlo import Computation, Instruction, Module

# These take no time of their own: names, places, what is known when the program is made, and what
# only holds other instructions.
NO_TIME = {
    *("parameter", "constant", "tuple", "get-tuple-element", "bitcast"),
    *("partition-id", "replica-id", "while", "conditional", "call"),
}
# Calls by which the compiler names a buffer, or says that SparseCores are to be ready.
NAMING_CALLS = {
    *("AllocateBuffer", "ConcatBitcast", "PrepareAsyncCallStart", "PrepareAsyncCallDone")
}
# Field numbers of HloInstructionProto.
CALL_TARGET, PREFETCH_INDEX = 28, 80


def control_computations(module: Module) -> Iterator[Computation]:
    """The entry, and what loops, conditionals and calls run."""
    seen, left = set(), [module.entry.id]
    while left:
        number = left.pop()
        if number in seen:
            continue
        seen.add(number)
        yield module.computations[number]
        for i in module.computations[number].instructions:
            if i.opcode in ("while", "conditional", "call"):
                left += i.called


def takes_no_time(i: Instruction) -> bool:
    """Naming, numbers of the scalar core, or what the program before this one has done."""
    if i.opcode == "copy-start":
        return any(number == PREFETCH_INDEX for number, *_ in i.fields)
    if i.opcode == "custom-call":
        return wire.text(i.fields, CALL_TARGET) in NAMING_CALLS
    return i.opcode in NO_TIME or (not i.shape.tuple_shapes and math.prod(i.shape.dims) == 1)


def is_collective(i: Instruction) -> bool:
    """Be it the start of one."""
    return bool(re.match("all-|reduce-scatter|collective-|ragged-all", i.opcode))


def assert_all_is_executed(module: Module, report: dict[str, Any]) -> None:
    """Every instruction that takes time has its row in the report, or has become one."""
    assert report["step_time_ns"] > 0
    executed = {row["name"] for row in report["ops"]}
    names: set[str] = set()
    renamed: collections.Counter[str] = collections.Counter()
    all_names = {i.name for c in module.computations.values() for i in c.instructions}
    for computation in control_computations(module):
        for i in computation.instructions:
            # Starts and dones are one operation.
            base = re.sub(r"-(start|done)(?=\.|$)", "", i.name)
            names |= {i.name, base}
            if takes_no_time(i) or i.name in executed or base in executed:
                continue
            # The operation that a call of the compiler's own is stands where the call did.
            translated = f"{i.name}.1"
            if i.opcode == "custom-call" and translated in executed - all_names:
                continue
            # Kernels that hold a collective become it, under a name of its own.
            start = i if not i.opcode.endswith("-done") else computation.operands(i)[0]
            if takes_no_time(start):
                continue
            inside = [j for c in start.called for j in module.computations[c].instructions]
            assert inside, i.name
            if start.opcode == "async-start":
                assert i is not start or any(j.name not in names for j in inside), i.name
            else:
                assert any(is_collective(j) or j.called for j in inside), i.name
            renamed[start.opcode] += i is start
    # Each has become a row: no more have lost their name than there are rows of others.
    own = {
        name for name in executed - names if re.fullmatch(r"prefetch(-start|-done)?(\.\d+)?", name)
    }
    assert sum(renamed.values()) <= len(executed - names - own) + sum(
        1 for name in names if name.startswith("async-collective-done")
    ), renamed
    # What the program before this one has done, this one does for the next.
    prefetched = [
        i
        for i in module.entry.instructions
        if i.opcode == "copy-start" and any(number == PREFETCH_INDEX for number, *_ in i.fields)
    ]
    assert len(prefetched) == sum("-" not in name for name in own)
