"""Counts of what a compiled module consists of, to tell what an option has changed."""

import dataclasses
from collections import Counter
from collections.abc import Iterator

from tpusim import hlo

_COLLECTIVES = (
    "all-gather",
    "all-reduce",
    "all-to-all",
    "collective-broadcast",
    "collective-permute",
    "ragged-all-to-all",
    "reduce-scatter",
)
# Opcodes that take no time of their own.
_FREE = frozenset(
    {
        *("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all"),
        *("partition-id", "replica-id", "while", "conditional", "call", "opt-barrier"),
        *("add-dependency", "domain", "get-dimension-size"),
    }
)
_CALLS = ("while", "conditional", "call")
_VMEM = 1
# Fusions that begin or end a collective, by their names; others may go on with it.
_STARTS, _ENDS = "async-collective-start", "async-collective-done"


@dataclasses.dataclass(frozen=True)
class Contents:
    """Counts are of executions, where loops say how often they run, of one device.

    Collectives are by kind and way: "all-gather async", "all-gather sync", or "all-gather fused",
    for one that is inside of a kernel.
    """

    kernels: int
    collectives: dict[str, int]
    copies: int  # asynchronous ones, between HBM, VMEM and the host
    vmem_share: float  # of the bytes that kernels read and write: those in VMEM

    def changes(self, base: "Contents") -> list[str]:
        """Lists differences from `base`, such as "all-gather async 4 (was 0)"."""
        told = []
        for name, mine, others in (
            ("kernels", self.kernels, base.kernels),
            *(
                (of, self.collectives.get(of, 0), base.collectives.get(of, 0))
                for of in sorted(self.collectives.keys() | base.collectives.keys())
            ),
            ("async copies", self.copies, base.copies),
        ):
            if mine != others:
                told.append(f"{name} {mine} (was {others})")
        shares = f"{self.vmem_share:.0%}", f"{base.vmem_share:.0%}"
        if shares[0] != shares[1]:
            told.append(f"in VMEM {shares[0]} (was {shares[1]})")
        return told


def contents_of(module_bytes: bytes) -> Contents:
    """Counts the contents of a module, or of the module in a workload."""
    module = hlo.Module(module_bytes)
    kernels = copies = 0
    collectives: Counter[str] = Counter()
    bytes_in: Counter[bool] = Counter()
    for computation, instruction, times in _executed(module, module.entry, 1):
        kind = _kind(instruction.opcode)
        if instruction.opcode.endswith("-done") or instruction.opcode == "async-update":
            continue
        if kind:
            way = "async" if instruction.opcode.endswith("-start") else "sync"
            collectives[f"{kind} {way}"] += times
        elif instruction.opcode in ("async-start", "copy-start"):
            inside = _inside(module, instruction)
            for of in inside:
                collectives[f"{of} async"] += times
            copies += 0 if inside else times
        elif instruction.opcode not in _FREE and not _is_scalar(instruction):
            inside = [] if instruction.name.startswith(_ENDS) else _inside(module, instruction)
            way = "async" if instruction.name.startswith(_STARTS) else "fused"
            for of in inside:
                collectives[f"{of} {way}"] += times
            if instruction.name.startswith((_STARTS, _ENDS)):
                continue
            kernels += times
            for value in (instruction, *computation.operands(instruction)):
                for shape in value.shape.tuple_shapes or (value.shape,):
                    bytes_in[shape.memory_space == _VMEM] += times * shape.bytes
    whole = sum(bytes_in.values())
    return Contents(
        kernels, dict(sorted(collectives.items())), copies, bytes_in[True] / whole if whole else 0.0
    )


def _is_scalar(instruction: hlo.Instruction) -> bool:
    """Whether the instruction makes a scalar, as those that count loops do: no kernel."""
    return not instruction.shape.dims and not instruction.shape.tuple_shapes


def _kind(opcode: str) -> str:
    """Returns the kind of a collective's opcode; "" for any other opcode."""
    plain = opcode.removesuffix("-start").removesuffix("-done")
    return plain if plain in _COLLECTIVES else ""


def _executed(
    module: hlo.Module, computation: hlo.Computation, times: int
) -> Iterator[tuple[hlo.Computation, hlo.Instruction, int]]:
    """Yields instructions outside of fusions with how often each is executed."""
    for instruction in computation.instructions:
        yield computation, instruction, times
        if instruction.opcode not in _CALLS:
            continue
        trips = 1
        if instruction.opcode == "while":
            trips = module.trip_count(computation, instruction) or 1
        for called in instruction.called:
            yield from _executed(module, module.computations[called], times * trips)


def _inside(module: hlo.Module, instruction: hlo.Instruction) -> list[str]:
    """Kinds of the collectives in what an instruction calls, each once."""
    found: dict[str, None] = {}
    pending = list(instruction.called)
    while pending:
        for within in module.computations[pending.pop()].instructions:
            if kind := _kind(within.opcode):
                found[kind] = None
            pending += within.called
    return list(found)
