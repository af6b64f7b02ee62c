"""Which arguments a program is sure to read from HBM, whole.

Arguments lie in HBM when a step begins. One that goes into a product, at most converted, reshaped,
transposed or gathered from other devices before, is read from there, however the product is
scheduled. A stack of weights that a loop takes a slice of in every iteration is, too.
"""

from collections.abc import Iterable

from tpusim import hlo, wire

# What hands on all of its operand.
_HANDS_ON = frozenset({"all-gather", "bitcast", "convert", "copy", "reshape", "transpose"})
_TUPLE_INDEX, _PARAMETER_NUMBER = 13, 9


def arguments_of_products(module: hlo.Module, trips: dict[int, int]) -> set[int]:
    """Numbers of the arguments; `trips` has how often loops in the entry are sure to run, by id."""
    entry = module.entry
    read = _sources(entry, (o for i in _products(entry) for o in entry.operands(i)))
    for loop in entry.instructions:
        if loop.opcode == "while" and trips.get(loop.id, 0) > 0:
            read |= _of_loop(module, loop, trips[loop.id])
    return read


def _products(computation: hlo.Computation) -> list[hlo.Instruction]:
    return [i for i in computation.instructions if i.opcode == "dot"]


def _origin(computation: hlo.Computation, value: hlo.Instruction) -> hlo.Instruction:
    while value.opcode in _HANDS_ON and len(value.operands) == 1:
        value = computation.operands(value)[0]
    return value


def _sources(computation: hlo.Computation, values: Iterable[hlo.Instruction]) -> set[int]:
    """Arguments that the values are."""
    origins = (_origin(computation, value) for value in values)
    return {wire.number_of(o.fields, _PARAMETER_NUMBER) for o in origins if o.opcode == "parameter"}


def _of_loop(module: hlo.Module, loop: hlo.Instruction, trips: int) -> set[int]:
    """Of the arguments that the loop hands from one iteration to the next as they are."""
    entry, body = module.entry, module.computations[loop.called[0]]
    carried = entry.operands(loop)[0]
    if carried.opcode != "tuple" or body.root.opcode != "tuple":
        return set()
    elements = entry.operands(carried)
    found = set()
    for product in _products(body):
        for operand in body.operands(product):
            origin = _origin(body, operand)
            if origin.opcode == "dynamic-slice" and _walks_all(elements, body, origin, trips):
                origin = _origin(body, body.operands(origin)[0])
            index = _element(body, origin)
            if index is not None and _element(body, body.operands(body.root)[index]) == index:
                found.add(index)
    return _sources(entry, (elements[index] for index in sorted(found)))


def _element(body: hlo.Computation, value: hlo.Instruction) -> int | None:
    """The number of an element of the carry, as an iteration gets it."""
    if value.opcode != "get-tuple-element" or body.operands(value)[0].opcode != "parameter":
        return None
    return wire.number_of(value.fields, _TUPLE_INDEX)


def _walks_all(
    elements: list[hlo.Instruction], body: hlo.Computation, part: hlo.Instruction, trips: int
) -> bool:
    """Whether slices of all iterations are together the whole array."""
    stack, first, *others = body.operands(part)
    sizes, whole = part.shape.dims, stack.shape.dims
    if sizes[0] != 1 or sizes[1:] != whole[1:] or any(o.opcode != "constant" for o in others):
        return False
    # The place is sign * counter + offset.
    sign, offset, place = 1, 0, first
    while place.opcode in ("add", "subtract", "convert", "copy"):
        operands = body.operands(place)
        literals = [o.integer_literal() if o.opcode == "constant" else None for o in operands]
        if len(operands) == 2:
            known = next((k for k in (1, 0) if literals[k] is not None), None)
            if known is None:
                return False
            constant, minus = literals[known], place.opcode == "subtract"
            offset += sign * (-constant if minus and known == 1 else constant)
            sign = -sign if minus and known == 0 else sign
            place = operands[1 - known]
        else:
            place = operands[0]
    number = _element(body, place)
    start = elements[number].integer_literal() if number is not None else None
    if start is None or not _counts(body, number):
        return False
    last = whole[0] - 1
    places = {min(max(sign * (start + i) + offset, 0), last) for i in range(trips)}
    return len(places) == whole[0]


def _counts(body: hlo.Computation, number: int) -> bool:
    """Whether every iteration adds one to the element."""
    following = body.operands(body.root)[number]
    if following.opcode != "add":
        return False
    ones = [o.integer_literal() for o in body.operands(following)]
    return 1 in ones and any(_element(body, o) == number for o in body.operands(following))
