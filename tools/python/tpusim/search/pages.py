"""The records of an SQLite file, read without SQLite: whatever a damaged file still has.

SQLite finds a row by way of the schema, the pages above and the index; where any of these is
damaged, it gives up. But rows lie in leaf pages of tables, each of which says where its cells are,
and a cell holds its record whole, or a part of it and the number of the page that goes on. This
takes every page for such a leaf, since what a page says of itself may be damaged, too. What it
finds may be garbage, or older than what replaced it: records come with their row ids, and the
caller looks at checksums.

The format is https://sqlite.org/fileformat2.html, sections 1.3, 1.6, 2.1.
"""

import dataclasses
import struct
from collections.abc import Iterator
from typing import Any

MAGIC = b"SQLite format 3\0"
_HEADER = 100
# Bytes 20 to 23: nothing is reserved in pages; fractions of the payload, which are fixed.
_FIXED = b"\0\x40\x20\x20"
_USUAL_PAGE = 4096
_LEAF_HEADER = 8
_SIZES = {0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8, 7: 8, 8: 0, 9: 0}
_FIRST_BLOB, _FIRST_TEXT = 12, 13


@dataclasses.dataclass(frozen=True)
class Record:
    """A row of some table."""

    row_id: int
    values: tuple[Any, ...]


class _BrokenError(ValueError):
    """This is no record."""


def has_sound_header(data: bytes) -> bool:
    """Whether SQLite would take the file for a database that may be written."""
    versions = data[18:20]
    return data[:16] == MAGIC and data[20:24] == _FIXED and versions in (b"\1\1", b"\2\2")


def records(data: bytes) -> Iterator[Record]:
    """All that there are, in the order of the file."""
    size = _page_size(data)
    for start in range(0, len(data), size):
        page = data[start : start + size]
        header = _HEADER if start == 0 else 0
        if len(page) < size:
            break
        for cell in _cells(page, header):
            try:
                yield _record(data, size, start + cell)
            except _BrokenError:
                continue


def _page_size(data: bytes) -> int:
    size = int.from_bytes(data[16:18]) or _USUAL_PAGE
    size = 1 << 16 if size == 1 else size
    plausible = size >= 512 and size & (size - 1) == 0
    return size if plausible and len(data) % size == 0 else _USUAL_PAGE


def _cells(page: bytes, header: int) -> Iterator[int]:
    """Where cells begin: as far as there are places, whatever the page says of their number.

    Of other pages than leaves the first or second place is mostly none.
    """
    at, end = header + _LEAF_HEADER, len(page)
    first = end
    while at + 2 <= first:
        cell = int.from_bytes(page[at : at + 2])
        at += 2
        if not at <= cell < end:
            break
        first = min(first, cell)
        yield cell


def _record(data: bytes, size: int, at: int) -> Record:
    length, at = _varint(data, at)
    row_id, at = _varint(data, at)
    if length > len(data):
        raise _BrokenError
    payload = _payload(data, size, at, length)
    head, position = _varint(payload, 0)
    types = []
    while position < head:
        kind, position = _varint(payload, position)
        types.append(kind)
    values, position = [], head
    for kind in types:
        value, position = _value(payload, kind, position)
        values.append(value)
    return Record(row_id, tuple(values))


def _payload(data: bytes, size: int, at: int, length: int) -> bytes:
    """With what lies in other pages."""
    most, least = size - 35, (size - 12) * 32 // 255 - 23
    local = length
    if length > most:
        local = least + (length - least) % (size - 4)
        local = local if local <= most else least
    parts, missing = [data[at : at + local]], length - local
    following = int.from_bytes(data[at + local : at + local + 4]) if missing else 0
    while missing > 0:
        start = (following - 1) * size
        if following < 2 or start + size > len(data):
            raise _BrokenError
        part = data[start + 4 : start + size][:missing]
        parts.append(part)
        missing -= len(part)
        following = int.from_bytes(data[start : start + 4])
    payload = b"".join(parts)
    if len(payload) != length:
        raise _BrokenError
    return payload


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Up to nine bytes, of which the last has eight bits."""
    value = 0
    for number in range(9):
        if at >= len(data):
            raise _BrokenError
        byte = data[at]
        at += 1
        if number == 8:
            return value << 8 | byte, at
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at
    raise _BrokenError


def _value(payload: bytes, kind: int, at: int) -> tuple[Any, int]:
    if kind >= _FIRST_BLOB:
        end = at + (kind - _FIRST_BLOB) // 2
    elif kind in _SIZES:
        end = at + _SIZES[kind]
    else:
        raise _BrokenError
    part = payload[at:end]
    if end > len(payload):
        raise _BrokenError
    if kind >= _FIRST_BLOB:
        if kind % 2 == _FIRST_BLOB % 2:
            return part, end
        try:
            return part.decode(), end
        except UnicodeDecodeError:
            raise _BrokenError from None
    if kind in (0, 8, 9):
        return {0: None, 8: 0, 9: 1}[kind], end
    return (struct.unpack(">d", part)[0] if kind == 7 else int.from_bytes(part, signed=True)), end
