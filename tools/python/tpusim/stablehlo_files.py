"""Recognises programs in StableHLO: text, bytecode, artefacts that `jax.export` serialised.

Nothing is imported that the command `tpusim` would not need; `stablehlo.py` converts.
"""

import os
import re
import sys
import zlib
from typing import Any, NamedTuple

BYTECODE = b"ML\xefR"
# The first words of MLIR text, after blanks and comments.
_TEXT = re.compile(
    rb'(?:\s|//[^\n]*(?:\n|$))*(?:module\s*[@{a]|"builtin\.module"|#loc|#map|func\.func|sdy\.mesh)'
)
# Bytes of a file in which its first word has to stand.
_HEAD = 1 << 16
# Numbers of fields of the flatbuffer table `Exported` in JAX's serialization.fbs.
_FUNCTION_NAME, _FEW_DEVICES, _PLATFORMS, _MODULE, _DEVICES = 1, 6, 9, 13, 18
_MOST_FIELDS = 64


class Artifact(NamedTuple):
    """Fields of a serialised `jax.export.Exported` beside its types and shardings."""

    module: bytes  # a portable artefact of StableHLO, in bytecode
    name: str  # of the function
    num_devices: int
    platforms: tuple[str, ...]


class _Table:
    """The root table of a flatbuffer; reads beyond the end are errors."""

    def __init__(self, data: bytes):
        self._data = data
        self._start = self._number(0)
        self._fields = self._start - self._number(self._start, signed=True)
        if self._fields < 4 or self._number(self._fields, 2) > 4 + 2 * _MOST_FIELDS:
            raise ValueError("no flatbuffer")

    def _number(self, at: int, size: int = 4, *, signed: bool = False) -> int:
        if not 0 <= at <= len(self._data) - size:
            raise ValueError("no flatbuffer")
        return int.from_bytes(self._data[at : at + size], "little", signed=signed)

    def _at(self, field: int) -> int:
        """Returns where a field stands, or 0."""
        entry = 4 + 2 * field
        if entry >= self._number(self._fields, 2):
            return 0
        offset = self._number(self._fields + entry, 2)
        return self._start + offset if offset else 0

    def integer(self, field: int, size: int) -> int:
        """Returns an unsigned number of so many bytes; 0 if the table does not have it."""
        at = self._at(field)
        return self._number(at, size) if at else 0

    def _blob(self, at: int) -> bytes:
        start = at + self._number(at)
        end = start + 4 + self._number(start)
        if end > len(self._data):
            raise ValueError("no flatbuffer")
        return self._data[start + 4 : end]

    def blob(self, field: int) -> bytes:
        """Returns a vector of bytes; none if the table does not have it."""
        at = self._at(field)
        return self._blob(at) if at else b""

    def texts(self, field: int) -> tuple[str, ...]:
        """Returns a vector of strings."""
        if not (at := self._at(field)):
            return ()
        start = at + self._number(at)
        count = min(self._number(start), len(self._data))
        return tuple(self._blob(start + 4 + 4 * n).decode() for n in range(count))


def artifact_of(data: bytes) -> Artifact | None:
    """Reads a serialised `jax.export.Exported`; None if the bytes are something else.

    ValueError: it is damaged.
    """
    if not may_be_artifact(data) or BYTECODE not in data:
        return None
    try:
        table = _Table(data)
        module = table.blob(_MODULE)
        name, platforms = table.blob(_FUNCTION_NAME).decode(), table.texts(_PLATFORMS)
        devices = table.integer(_DEVICES, 4) or table.integer(_FEW_DEVICES, 2)
    except ValueError:
        raise ValueError("an artefact of jax.export that is cut short or damaged") from None
    return Artifact(module, name, devices, platforms)


def is_text(data: bytes) -> bool:
    """Whether bytes begin as MLIR text does."""
    return _TEXT.match(data[:_HEAD]) is not None


def may_be_artifact(head: bytes) -> bool:
    """Whether a file's first bytes may be the offset of a flatbuffer's table.

    No protocol buffer and no text has three zeros there.
    """
    return len(head) > 4 and head[1:4] == b"\0\0\0" and head[0] != 0


def holds(path: str | os.PathLike[str]) -> bool:
    """Whether a file, compressed by gzip or not, holds a program in StableHLO."""
    try:
        with open(path, "rb") as file:
            head = file.read(_HEAD)
            if head.startswith(b"\x1f\x8b"):
                head = zlib.decompressobj(wbits=31).decompress(head, _HEAD)
            if head.startswith(BYTECODE) or is_text(head):
                return True
            # A pipe can be read once.
            return may_be_artifact(head) and file.seekable() and BYTECODE in head + file.read()
    except (OSError, ValueError, zlib.error):
        return False


def is_stablehlo(program: Any) -> bool:
    """Whether it is StableHLO in memory, or the path of a file that holds some."""
    if is_program(program):
        return True
    return isinstance(program, str | os.PathLike) and bool(program) and holds(program)


def is_program(program: Any) -> bool:
    """Whether it is StableHLO in memory: text, bytes, an object of JAX that has such a module."""
    if isinstance(program, str):
        return is_text(program.encode(errors="replace")) and not os.path.exists(program)
    if isinstance(program, bytes | bytearray | memoryview):
        return True
    return is_exported(program) or is_lowered(program) or is_module(program)


def is_exported(program: Any) -> bool:
    """Whether it is a `jax.export.Exported`; who has one has loaded JAX."""
    module = sys.modules.get("jax.export")
    return module is not None and isinstance(program, module.Exported)


def is_lowered(program: Any) -> bool:
    """Whether it is a `jax.stages.Lowered`."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(program, jax.stages.Lowered)


def is_module(program: Any) -> bool:
    """Whether it is a module of jaxlib's MLIR, such as `lowered.compiler_ir()` returns."""
    ir = sys.modules.get("jaxlib.mlir.ir")
    return ir is not None and isinstance(program, ir.Module)
