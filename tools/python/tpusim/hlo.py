"""Reads HloModuleProto, as much of it as checks of compiled programs need.

    module = Module(data)                  # an HloModuleProto, an HloProto or a tpusim.Workload
    for instruction in module.entry.instructions:
        print(instruction.opcode, instruction.shape.bytes)

Nothing is interpreted that is not asked for; `Instruction.fields` has the rest.
"""

import dataclasses
import math

from tpusim import wire

# PrimitiveType -> bits.
_BITS = {
    **{1: 8, 2: 8, 3: 16, 4: 32, 5: 64, 6: 8, 7: 16, 8: 32, 9: 64, 10: 16, 11: 32, 12: 64},
    **{15: 64, 16: 16, 18: 128, 19: 8, 20: 8, 21: 4, 22: 4, 23: 8, 24: 8, 25: 8, 26: 2, 27: 2},
    **{28: 8, 29: 8, 33: 8},
}
_TUPLE, _TOKEN = 13, 17
_LITERAL = 8  # a field of HloInstructionProto


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
    def has_indices(self) -> bool:
        """Whether elements are signed integers of 32 or 64 bits."""
        return self.element_type in (4, 5)

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


def arguments(data: bytes) -> list[Instruction]:
    """Returns the parameters of a module's entry, without reading the rest."""
    fields = wire.parse(module_bytes(data))
    entry = wire.number_of(fields, 6)
    computations = map(wire.parse, wire.all_bytes(fields, 3))
    inside = next(c for c in computations if wire.number_of(c, 5) == entry)
    instructions = map(Instruction, wire.all_bytes(inside, 2))
    return [i for i in instructions if i.opcode == "parameter"]


class Module:
    """Computations by id, and the entry."""

    def __init__(self, data: bytes):
        fields = wire.parse(module_bytes(data))
        self.name = wire.text(fields, 1)
        self.computations = {c.id: c for c in map(Computation, wire.all_bytes(fields, 3))}
        self.entry = self.computations[wire.number_of(fields, 6)]

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
