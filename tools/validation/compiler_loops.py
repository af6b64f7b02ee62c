"""Trip counts of loops in compiled modules.

The compiler's loops carry a tuple, one element of which counts: the condition compares it with a
constant, the body adds a constant to it. Copies, converts and constants that are carried themselves
may lie between.
"""

import dataclasses
import math
import re

from compiler_hlo import Computation, Instruction, Module

_STEPS = 64  # How far a scalar is followed to the constant that it is made of.


def trip_count(module: Module, computation: Computation, loop: Instruction) -> int | None:
    """Returns the trip count of a loop between two constants; None for any other."""
    known = loop.config.get("known_trip_count", {}).get("n")
    if known is not None:
        return int(known)
    condition = module.computations[loop.attribute("condition").lstrip("%")]
    body = module.computations[loop.attribute("body").lstrip("%")]
    start = next(iter(computation.operands(loop)), None)
    if condition.root.opcode == "fusion":
        condition = _inlined(module, condition)
    compare = condition.root
    if start is None or compare.opcode != "compare" or len(compare.operands) != 2:
        return None
    sides = [_carried(condition, condition.by_name.get(name)) for name in compare.operands]
    direction = compare.attribute("direction")
    if isinstance(sides[1], int) and _changes(body, sides[1]) and sides[0] != sides[1]:
        sides.reverse()
        direction = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE"}.get(direction, direction)
    counter, limit = sides
    if not isinstance(counter, int):
        return None
    end = (
        _constant(computation, _element(computation, start, limit))
        if isinstance(limit, int)
        else _constant(condition, limit)
    )
    first = _constant(computation, _element(computation, start, counter))
    step = _step(body, counter)
    if first is None or end is None or not step:
        return None
    distance = (end - first) if step > 0 else (first - end)
    inclusive = direction in ("LE", "GE")
    return max(0, math.ceil((distance + inclusive) / abs(step)))


def _inlined(module: Module, condition: Computation) -> Computation:
    """A condition whose root is a fusion, with the fusion's body in its place."""
    fusion = condition.root
    body = module.computations[fusion.called[0]]
    parameters = {
        j.name: fusion.operands[int(j.literal)]
        for j in body.instructions
        if j.opcode == "parameter"
    }
    inner = [
        dataclasses.replace(j, operands=tuple(parameters.get(o, o) for o in j.operands))
        for j in body.instructions
        if j.opcode != "parameter"
    ]
    outer = [dataclasses.replace(j, is_root=False) for j in condition.instructions]
    return Computation(condition.name, outer + inner)


def _carried(computation: Computation, i: Instruction | None) -> int | Instruction | None:
    """Returns the element of the carried tuple that a value of the condition is, else the value."""
    seen = i
    for _ in range(_STEPS):
        if seen is None or seen.opcode not in ("copy", "bitcast", "convert"):
            break
        seen = next(iter(computation.operands(seen)), None)
    if seen is not None and seen.opcode == "get-tuple-element":
        return int(seen.attribute("index"))
    return seen


def _element(computation: Computation, start: Instruction, index: int) -> Instruction | None:
    for _ in range(_STEPS):
        if start.opcode == "tuple" and index < len(start.operands):
            return computation.by_name.get(start.operands[index])
        if start.opcode not in ("copy", "opt-barrier") or not start.operands:
            return None
        start = computation.by_name[start.operands[0]]
    return None


def _constant(computation: Computation, i: Instruction | None) -> int | None:
    """The integer that a scalar is made of."""
    for _ in range(_STEPS):
        if i is None:
            return None
        if i.opcode == "constant":
            return int(i.literal) if re.fullmatch(r"-?\d+", i.literal) else None
        if i.opcode not in ("copy", "bitcast", "convert"):
            return None
        i = next(iter(computation.operands(i)), None)
    return None


def _next(body: Computation, index: int) -> Instruction | None:
    root = body.root
    return body.by_name.get(root.operands[index]) if index < len(root.operands) else None


def _changes(body: Computation, index: int) -> bool:
    value = _next(body, index)
    return value is not None and _carried(body, value) != index


def _step(body: Computation, index: int) -> int | None:
    """Returns the constant that the body adds to an element of the carried tuple."""
    total, value = 0, _next(body, index)
    for _ in range(_STEPS):
        if value is None:
            return None
        if value.opcode in ("copy", "bitcast"):
            value = next(iter(body.operands(value)), None)
        elif value.opcode == "get-tuple-element":
            return total if int(value.attribute("index")) == index else None
        elif value.opcode in ("add", "subtract") and len(value.operands) == 2:
            sides = [body.by_name.get(name) for name in value.operands]
            amounts = [_constant(body, side) for side in sides]
            if amounts[1] is not None:
                total += amounts[1] if value.opcode == "add" else -amounts[1]
                value = sides[0]
            elif amounts[0] is not None and value.opcode == "add":
                total += amounts[0]
                value = sides[1]
            else:
                return None
        else:
            return None
    return None
