"""Reads the text of a scheduled HLO module, as the TPU compiler prints it.

    module = parse(text)
    for instruction in module.entry.instructions:
        print(instruction.opcode, [array.dims for array in instruction.arrays])

A module is computations of instructions, one per line: a name, a shape with layout and memory
space, an opcode, operands by name, attributes. Attributes are kept as text and read when asked for:
most instructions are inside of fusions, of which only the opcodes matter.
"""

import dataclasses
import functools
import json
import math
import re
from collections.abc import Iterator
from typing import Any

BYTES = {
    **{"pred": 1, "s8": 1, "u8": 1, "s16": 2, "u16": 2, "s32": 4, "u32": 4, "s64": 8, "u64": 8},
    **{"bf16": 2, "f16": 2, "f32": 4, "f64": 8, "c64": 8, "c128": 16, "token": 0, "opaque": 0},
    **{"s4": 0.5, "u4": 0.5, "s2": 0.25, "u2": 0.25, "s1": 0.125, "u1": 0.125, "f4e2m1fn": 0.5},
}
# The compiler prints the largest 64-bit integer where it could not estimate.
_NO_ESTIMATE = 2**63 - 1
_EIGHT_BITS = "f8"  # All types that start so have 8 bits.

_ARRAY = re.compile(r"([a-z][a-z0-9]*)\[([^\]]*)\](?:\{([^}]*)\})?")
_COMMENT = re.compile(r"/\*.*?\*/")
_NAME = re.compile(r"\s*(ROOT )?%?([^\s=]+) = ")
_OPCODE = re.compile(r"\s*([a-z][a-z0-9-]*)\(")
_CALLED = re.compile(r"(?:calls|to_apply|true_computation|false_computation)=%?([^\s,}]+)")
_SEVERAL = re.compile(r"(?:branch|called)_computations=\{([^}]*)\}")
_OPERAND = re.compile(r"%([^\s,()]+)")
_SPACE = re.compile(r"S\((\d+)\)")


@dataclasses.dataclass(frozen=True)
class Array:
    """Element type, dimensions, and the layout as printed: order, tiles and memory space."""

    dtype: str
    dims: tuple[int, ...]
    layout: str = ""

    @property
    def elements(self) -> int:
        """The number of elements, without padding."""
        return math.prod(self.dims)

    @property
    def element_bytes(self) -> float:
        """Bytes of one element."""
        return 1 if self.dtype.startswith(_EIGHT_BITS) else BYTES[self.dtype]

    @property
    def bytes(self) -> int:
        """Without padding."""
        return math.ceil(self.elements * self.element_bytes)

    @property
    def space(self) -> int:
        """Memory space: 0 is HBM, 1 is VMEM."""
        found = _SPACE.search(self.layout)
        return int(found[1]) if found else 0

    def __str__(self) -> str:
        dims = ",".join(map(str, self.dims))
        return f"{self.dtype}[{dims}]" + (f"{{{self.layout}}}" if self.layout else "")


def arrays_of(shape: str) -> tuple[Array, ...]:
    """The arrays of a shape, or of a tuple however nested, in order."""
    return tuple(
        Array(dtype, tuple(int(d.lstrip("<=")) for d in dims.split(",") if d), layout or "")
        for dtype, dims, layout in _ARRAY.findall(_COMMENT.sub("", shape))
    )


@dataclasses.dataclass
class Instruction:
    """One line: what it is, and the text of its shape and attributes."""

    name: str
    opcode: str
    shape: str
    operands: tuple[str, ...]
    literal: str
    attributes: str
    is_root: bool

    @functools.cached_property
    def arrays(self) -> tuple[Array, ...]:
        """The arrays that the instruction returns."""
        return arrays_of(self.shape)

    @functools.cached_property
    def config(self) -> dict[str, Any]:
        """Its backend_config, where the compiler notes what it estimates and chooses."""
        place = self.attributes.find("backend_config={")
        if place < 0:
            return {}
        text = self.attributes[place + len("backend_config=") :]
        found: dict[str, Any] = json.JSONDecoder().raw_decode(text)[0]
        return found

    @property
    def estimated_cycles(self) -> int | None:
        """Cycles as the compiler estimates them; None where it does not."""
        cycles = self.config.get("window_config", {}).get("estimated_cycles")
        return None if cycles is None or int(cycles) == _NO_ESTIMATE else int(cycles)

    @property
    def called(self) -> tuple[str, ...]:
        """Computations of a fusion, call, start of an asynchronous one, or conditional."""
        found = tuple(_CALLED.findall(self.attributes))
        for branches in _SEVERAL.findall(self.attributes):
            found += tuple(_OPERAND.findall(branches + " "))
        return found

    def attribute(self, name: str) -> str:
        """An attribute's text if it is a word, a bracketed list or in braces; else empty."""
        found = re.search(rf"(?:^|[ ,]){name}=", self.attributes)
        if not found:
            return ""
        text, depth = self.attributes[found.end() :], 0
        for place, letter in enumerate(text):
            if letter in "{[(":
                depth += 1
            elif letter in "}])":
                depth -= 1
            elif letter == "," and depth == 0:
                if text.startswith(", device_ids=", place):  # Of a mesh whose devices are turned.
                    continue
                return text[:place]
        return text

    @property
    def op_name(self) -> str:
        """The name that JAX gave the operation."""
        found = re.search(r'op_name="([^"]*)"', self.attributes)
        return found[1] if found else ""


@dataclasses.dataclass
class Computation:
    """Instructions in the order of the schedule."""

    name: str
    instructions: list[Instruction]

    @functools.cached_property
    def by_name(self) -> dict[str, Instruction]:
        """Its instructions by name."""
        return {i.name: i for i in self.instructions}

    @property
    def root(self) -> Instruction:
        """The instruction marked as root; the last one where none is marked."""
        return next((i for i in self.instructions if i.is_root), self.instructions[-1])

    def operands(self, instruction: Instruction) -> Iterator[Instruction]:
        """The operands of one of its instructions."""
        for name in instruction.operands:
            if name in self.by_name:
                yield self.by_name[name]

    def parameter(self, index: int) -> Instruction | None:
        """The parameter of that number."""
        for i in self.instructions:
            if i.opcode == "parameter" and i.literal == str(index):
                return i
        return None


@dataclasses.dataclass
class Module:
    """Computations by name, and which is the entry."""

    computations: dict[str, Computation]
    entry: Computation


def _closing(text: str, start: int) -> int:
    """Place of the parenthesis that closes the one at `start`; strings are skipped."""
    depth, place, quoted = 0, start, False
    while place < len(text):
        letter = text[place]
        if letter == "\\" and quoted:
            place += 1
        elif letter == '"':
            quoted = not quoted
        elif not quoted:
            depth += (letter == "(") - (letter == ")")
            if depth == 0:
                return place
        place += 1
    raise ValueError(f"unbalanced: {text[start : start + 80]}")


def parse_instruction(line: str) -> Instruction | None:
    """One line of a computation; None if it is no instruction."""
    head = _NAME.match(line)
    if not head:
        return None
    place = head.end()
    end = _closing(line, place) + 1 if line[place] == "(" else line.index(" ", place)
    opcode = _OPCODE.match(line, end)
    if not opcode:
        return None
    start = opcode.end() - 1
    close = _closing(line, start)
    inside = line[start + 1 : close]
    leaf = opcode[1] in ("constant", "parameter")
    return Instruction(
        name=head[2],
        opcode=opcode[1],
        shape=line[place:end],
        operands=() if leaf else tuple(_OPERAND.findall(_COMMENT.sub("", inside))),
        literal=inside if leaf else "",
        attributes=line[close + 1 :].lstrip(", "),
        is_root=bool(head[1]),
    )


def parse(text: str) -> Module:
    """The module of `compiled.as_text()`."""
    computations: dict[str, Computation] = {}
    entry: Computation | None = None
    current: Computation | None = None
    for line in text.splitlines():
        if not line.startswith(" "):
            current = None
            found = re.match(r"(ENTRY )?%?([^\s(]+) \(.*\{$", line)
            if found:
                current = computations[found[2]] = Computation(found[2], [])
                entry = current if found[1] else entry
        elif current is not None:
            instruction = parse_instruction(line)
            if instruction:
                current.instructions.append(instruction)
    if entry is None:
        raise ValueError("no entry computation: is this the text of an HLO module?")
    return Module(computations, entry)
