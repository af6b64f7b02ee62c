"""Reads HloModuleProto, as much of it as checks of compiled programs need.

    module = Module(data)                  # an HloModuleProto, an HloProto or a tpusim.Workload
    for instruction in module.entry.instructions:
        print(instruction.opcode, instruction.shape.bytes, instruction.replica_groups())

Nothing is interpreted that is not asked for; `Instruction.fields` has the rest.
"""

import dataclasses
import itertools
import math
from collections.abc import Iterator

from tpusim import wire

# PrimitiveType -> bits.
_BITS = {
    **{1: 8, 2: 8, 3: 16, 4: 32, 5: 64, 6: 8, 7: 16, 8: 32, 9: 64, 10: 16, 11: 32, 12: 64},
    **{15: 64, 16: 16, 18: 128, 19: 8, 20: 8, 21: 4, 22: 4, 23: 8, 24: 8, 25: 8, 26: 2, 27: 2},
    **{28: 8, 29: 8, 33: 8},
}
_TUPLE, _TOKEN = 13, 17
# Field numbers of HloInstructionProto.
_METADATA, _LITERAL, _DOT, _RAGGED_DOT, _PAIRS = 7, 8, 30, 90, 52
_GROUPS, _GROUP_LISTS, _IOTA_GROUPS, _MESH_GROUPS = 49, 87, 92, 93


def module_bytes(data: bytes) -> bytes:
    """The HloModuleProto inside a tpusim.Workload or an HloProto, or `data` if it is one."""
    fields = wire.parse(data)
    # Of a module, field 15 is its device assignment: no text.
    if wire.last_bytes(fields, 15) == b"tpusim.workload/1":
        return wire.last_bytes(fields, 16)
    # A module has its name in field 1 and the entry's name in field 2; an HloProto has no field 2.
    return data if wire.all_bytes(fields, 2) else wire.last_bytes(fields, 1)


def integers(fields: list[wire.Field], number: int) -> list[int]:
    """A repeated integer field, packed or not."""
    values: list[int] = []
    for n, _, value in fields:
        if n == number:
            packed = value if isinstance(value, bytes) else wire.encode_varint(value)
            # A packed field is a row of varints: give each a key and it is a message.
            while packed:
                length = next(i for i, byte in enumerate(packed) if byte < 0x80) + 1
                values.append(wire.number_of(wire.parse(b"\x08" + packed[:length]), 1))
                packed = packed[length:]
    return values


@dataclasses.dataclass(frozen=True)
class Shape:
    """Element type (PrimitiveType) and dimensions, or the shapes of a tuple."""

    element_type: int
    dims: tuple[int, ...]
    tuple_shapes: tuple["Shape", ...] = ()
    memory_space: int = 0  # of its layout: 0 is HBM, 1 VMEM, 5 the host

    @classmethod
    def parse(cls, data: bytes) -> "Shape":
        """Parses a ShapeProto."""
        fields = wire.parse(data)
        parts = tuple(map(cls.parse, wire.all_bytes(fields, 4)))
        layout = wire.parse(wire.last_bytes(fields, 5))
        space = wire.number_of(layout, 8)
        return cls(wire.number_of(fields, 2), tuple(integers(fields, 3)), parts, space)

    @property
    def bytes(self) -> int:
        """Size without padding; of a tuple, of all its parts."""
        if self.element_type == _TUPLE:
            return sum(part.bytes for part in self.tuple_shapes)
        if self.element_type == _TOKEN:
            return 0
        return (math.prod(self.dims) * _BITS[self.element_type] + 7) // 8


class Instruction:
    """One instruction; operands and called computations are ids."""

    def __init__(self, data: bytes):
        self.fields = wire.parse(data)
        self.name = wire.text(self.fields, 1)
        self.opcode = wire.text(self.fields, 2)
        self.shape = Shape.parse(wire.last_bytes(self.fields, 3))
        self.id = wire.number_of(self.fields, 35)
        self.operands = integers(self.fields, 36)
        self.called = integers(self.fields, 38)

    @property
    def op_name(self) -> str:
        """The name that JAX gave the operation."""
        return wire.text(wire.parse(wire.last_bytes(self.fields, _METADATA)), 2)

    def replica_groups(self) -> list[list[int]]:
        """The groups, from whichever of the four fields has them; empty means all devices."""
        return replica_groups(self.fields) or []

    def source_target_pairs(self) -> list[tuple[int, int]]:
        """Source and target device of each pair of a collective-permute."""
        pairs = map(wire.parse, wire.all_bytes(self.fields, _PAIRS))
        return [(wire.number_of(p, 1), wire.number_of(p, 2)) for p in pairs]

    def contracting_dims(self) -> list[int]:
        """Contracting dimensions of the left operand of a dot or ragged-dot."""
        numbers = wire.last_bytes(self.fields, _DOT)
        if self.opcode == "ragged-dot":
            numbers = wire.last_bytes(wire.parse(wire.last_bytes(self.fields, _RAGGED_DOT)), 1)
        return integers(wire.parse(numbers), 1)

    def integer_literal(self) -> int | None:
        """The value of an integer scalar constant."""
        literal = wire.parse(wire.last_bytes(self.fields, _LITERAL))
        values = [v for field in (4, 5, 6, 7) for v in integers(literal, field)]
        return values[0] if len(values) == 1 else None


class Computation:
    """Instructions, operands before users."""

    def __init__(self, data: bytes):
        fields = wire.parse(data)
        self.name = wire.text(fields, 1)
        self.id = wire.number_of(fields, 5)
        self.instructions = [Instruction(i) for i in wire.all_bytes(fields, 2)]
        self.by_id = {i.id: i for i in self.instructions}
        self.root = self.by_id[wire.number_of(fields, 6)]

    def operands(self, instruction: Instruction) -> list[Instruction]:
        """The operands of one of its instructions."""
        return [self.by_id[i] for i in instruction.operands]


class Module:
    """Computations by id, and the entry."""

    def __init__(self, data: bytes):
        fields = wire.parse(module_bytes(data))
        self.name = wire.text(fields, 1)
        self.computations = {c.id: c for c in map(Computation, wire.all_bytes(fields, 3))}
        self.entry = self.computations[wire.number_of(fields, 6)]

    def executed(
        self, unknown_trips: int = 1, computation: Computation | None = None, times: int = 1
    ) -> Iterator[tuple[Computation, Instruction, int]]:
        """Every instruction with how often it runs; all branches of a conditional are taken.

        Loops that depend on data run `unknown_trips` times.
        """
        computation = computation or self.entry
        for instruction in computation.instructions:
            yield computation, instruction, times
            inside, conditions = times, times
            if instruction.opcode == "while":
                trips = self.trip_count(computation, instruction)
                inside = times * (unknown_trips if trips is None else trips)
                conditions = inside + times
            elif instruction.opcode not in ("call", "conditional", "fusion", "async-start"):
                continue  # Of a reduction and the like, the body is part of the instruction.
            for number, called in enumerate(instruction.called):
                is_condition = instruction.opcode == "while" and number == 1
                yield from self.executed(
                    unknown_trips,
                    self.computations[called],
                    conditions if is_condition else inside,
                )

    def trip_count(self, computation: Computation, loop: Instruction) -> int | None:
        """Returns the trip count of a loop that counts by one to a constant, else None."""
        condition = self.computations[loop.called[1]]
        compare = condition.root
        if compare.opcode != "compare":
            return None
        counter, limit = condition.operands(compare)
        if counter.opcode != "get-tuple-element" or limit.opcode != "constant":
            return None
        carried = computation.operands(loop)[0]
        if carried.opcode != "tuple":
            return None
        first = computation.operands(carried)[wire.number_of(counter.fields, 13)]
        while first.opcode == "copy":  # In modules that are compiled.
            (first,) = computation.operands(first)
        start, end = first.integer_literal(), limit.integer_literal()
        return None if start is None or end is None else max(0, end - start)


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
