"""Executions of instructions in an HloModuleProto, and attributes of collectives and products.

for computation, instruction, times in executed(hlo.Module(data)):
print(instruction.opcode, times, replica_groups(instruction.fields))
"""

import itertools
import math
from collections.abc import Iterator

from tpusim import wire
from tpusim.hlo import Computation, Instruction, Module, integers

# Field numbers of HloInstructionProto.
_DOT, _RAGGED_DOT, _PAIRS = 30, 90, 52
_GROUPS, _GROUP_LISTS, _IOTA_GROUPS, _MESH_GROUPS = 49, 87, 92, 93


def executed(
    module: Module,
    unknown_trips: int = 1,
    computation: Computation | None = None,
    times: int = 1,
) -> Iterator[tuple[Computation, Instruction, int]]:
    """Yields every instruction with how often it runs; all branches of a conditional are taken.

    Loops that depend on data run `unknown_trips` times.
    """
    computation = computation or module.entry
    for instruction in computation.instructions:
        yield computation, instruction, times
        inside, conditions = times, times
        if instruction.opcode == "while":
            trips = module.trip_count(computation, instruction)
            inside = times * (unknown_trips if trips is None else trips)
            conditions = inside + times
        elif instruction.opcode not in ("call", "conditional", "fusion", "async-start"):
            continue  # The body of a reduction and the like is part of the instruction.
        for number, called in enumerate(instruction.called):
            is_condition = instruction.opcode == "while" and number == 1
            within = module.computations[called]
            yield from executed(
                module, unknown_trips, within, conditions if is_condition else inside
            )


def source_target_pairs(permute: Instruction) -> list[tuple[int, int]]:
    """Returns source and target device of each pair of a collective-permute."""
    pairs = map(wire.parse, wire.all_bytes(permute.fields, _PAIRS))
    return [(wire.number_of(p, 1), wire.number_of(p, 2)) for p in pairs]


def contracting_dims(product: Instruction) -> list[int]:
    """Returns contracting dimensions of the left operand of a dot or ragged-dot."""
    numbers = wire.last_bytes(product.fields, _DOT)
    if product.opcode == "ragged-dot":
        numbers = wire.last_bytes(wire.parse(wire.last_bytes(product.fields, _RAGGED_DOT)), 1)
    return integers(wire.parse(numbers), 1)


def replica_groups(fields: list[wire.Field]) -> list[list[int]] | None:
    """Reads replica groups from whichever of four fields has them; None if none has."""
    for data in wire.all_bytes(fields, _MESH_GROUPS):
        return _mesh_axes_groups(wire.parse(data))
    for data in wire.all_bytes(fields, _IOTA_GROUPS):
        return _iota_groups(wire.parse(data))
    for data in wire.all_bytes(fields, _GROUP_LISTS):
        listed = wire.parse(data)
        for iota in wire.all_bytes(listed, 2):
            return _iota_groups(wire.parse(iota))
        return [integers(wire.parse(g), 1) for g in wire.all_bytes(listed, 1)]
    plain = wire.all_bytes(fields, _GROUPS)
    return [integers(wire.parse(g), 1) for g in plain] if plain else None


def _iota(dims: list[int], order: list[int]) -> list[int]:
    """0, 1, ... in an array of these dimensions, transposed, flattened."""
    strides = [math.prod(dims[i + 1 :]) for i in range(len(dims))]
    axes = order or list(range(len(dims)))
    places = itertools.product(*(range(dims[a]) for a in axes))
    return [sum(i * strides[a] for i, a in zip(p, axes, strict=True)) for p in places]


def _cut(ids: list[int], members: int) -> list[list[int]]:
    return [ids[i : i + members] for i in range(0, len(ids), members)]


def _iota_groups(fields: list[wire.Field]) -> list[list[int]]:
    """IotaReplicaGroupList: groups=1, members=2, reshape=3, transpose=4."""
    return _cut(_iota(integers(fields, 3), integers(fields, 4)), wire.number_of(fields, 2))


def _mesh_axes_groups(fields: list[wire.Field]) -> list[list[int]]:
    """MeshAxesReplicaGroupList: mesh=1, references=2 to an axis or, by (pre-size, size), a part."""
    mesh = wire.parse(wire.last_bytes(fields, 1))
    sizes = [wire.number_of(wire.parse(a), 2) for a in wire.all_bytes(mesh, 1)]
    ids = integers(mesh, 2) or list(range(math.prod(sizes)))
    for iota in map(wire.parse, wire.all_bytes(mesh, 3)):
        ids = _iota(integers(iota, 1), integers(iota, 2))
    spans = []  # (axis, pre-size, pre-size * size) of each reference
    for reference in map(wire.parse, wire.all_bytes(fields, 2)):
        axis = wire.number_of(reference, 1)
        part = [wire.parse(p) for p in wire.all_bytes(reference, 2)]
        before = wire.number_of(part[0], 1) if part else 1
        size = wire.number_of(part[0], 2) if part else sizes[axis]
        spans.append((axis, before, before * size))
    # Cut every axis where a reference begins or ends.
    pieces = []
    for axis, size in enumerate(sizes):
        cuts = sorted({1, size} | {c for a, *span in spans if a == axis for c in span})
        pieces += [(axis, lo, hi) for lo, hi in itertools.pairwise(cuts)]
    grouped = [
        i
        for axis, lo, hi in spans
        for i, (a, start, stop) in enumerate(pieces)
        if a == axis and lo <= start and stop <= hi
    ]
    others = [i for i in range(len(pieces)) if i not in grouped]
    shape = [hi // lo for _, lo, hi in pieces]
    members = math.prod(shape[i] for i in grouped)
    return _cut([ids[i] for i in _iota(shape, others + grouped)], members)
