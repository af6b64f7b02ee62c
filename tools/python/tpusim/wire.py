"""Protocol Buffers wire format, as much of it as tpusim needs.

A message is a list of ``(field number, wire type, value)``. Value is an int for varints and bytes
for everything else; a nested message is bytes that `parse` takes apart again. `parse` and
`serialize` are inverse for canonical input, so unknown fields survive a rewrite.

    fields = parse(data)
    name = text(fields, 1)
    data = serialize([*fields, integer(18, 8)])
"""

from collections.abc import Iterable

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5

Field = tuple[int, int, "int | bytes"]


class WireError(ValueError):
    """The bytes are not a protocol buffer message."""


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if position >= len(data) or shift > 63:
            raise WireError("truncated or overlong varint")
        byte = data[position]
        value |= (byte & 0x7F) << shift
        shift += 7
        position += 1
        if byte < 0x80:
            return value, position


def encode_varint(value: int) -> bytes:
    """Encodes an integer; negative ones as 64-bit two's complement, like int64 fields."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def parse(data: bytes) -> list[Field]:
    """Splits one message into its fields."""
    fields: list[Field] = []
    position = 0
    while position < len(data):
        key, position = _read_varint(data, position)
        number, wire_type = key >> 3, key & 7
        if wire_type == VARINT:
            value, position = _read_varint(data, position)
            fields.append((number, wire_type, value))
            continue
        if wire_type == BYTES:
            length, position = _read_varint(data, position)
        elif wire_type in (FIXED64, FIXED32):
            length = 8 if wire_type == FIXED64 else 4
        else:
            raise WireError(f"wire type {wire_type} in field {number}")
        if position + length > len(data):
            raise WireError(f"field {number} runs past the end")
        fields.append((number, wire_type, bytes(data[position : position + length])))
        position += length
    return fields


def serialize(fields: Iterable[Field]) -> bytes:
    """Joins fields into a message, in the order given."""
    out = bytearray()
    for number, wire_type, value in fields:
        out += encode_varint(number << 3 | wire_type)
        if isinstance(value, int):
            out += encode_varint(value)
        elif wire_type == BYTES:
            out += encode_varint(len(value)) + value
        else:
            out += value
    return bytes(out)


def integer(number: int, value: int) -> Field:
    """A varint field."""
    return number, VARINT, value


def blob(number: int, value: bytes | str) -> Field:
    """A bytes, string or message field."""
    return number, BYTES, value.encode() if isinstance(value, str) else value


def all_bytes(fields: Iterable[Field], number: int) -> list[bytes]:
    """Every length-delimited value of a field."""
    return [v for n, _, v in fields if n == number and isinstance(v, bytes)]


def last_bytes(fields: Iterable[Field], number: int) -> bytes:
    """The last value wins, as the format prescribes; empty when the field is absent."""
    return (all_bytes(fields, number) or [b""])[-1]


def text(fields: Iterable[Field], number: int) -> str:
    """A string field, empty when absent."""
    return last_bytes(fields, number).decode()


def number_of(fields: Iterable[Field], number: int) -> int:
    """A signed integer field, 0 when absent."""
    value = 0
    for n, _, v in fields:
        if n == number and isinstance(v, int):
            value = v
    return value - (1 << 64) if value >> 63 else value
