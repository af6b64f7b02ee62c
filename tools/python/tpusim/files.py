"""Files that users name: read with errors that name them, written whole or not at all.

Every failure is one `tpusim.Error` that begins with the path as it was given. What writes a file
writes to another name first:

    with files.whole("step.pb") as written:
        written.write_bytes(data)
"""

import contextlib
import errno
import gzip
import io
import os
import pathlib
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from typing import Any

from tpusim.errors import ArgumentTypeError, ArgumentValueError, Error

Path = str | os.PathLike[str]

_GZIP = b"\x1f\x8b"


def path_of(value: Any, parameter: str) -> str:
    """The path that a parameter gives, as a string; TypeError or ValueError if it is none."""
    expected = "the path of a file, as a str or a pathlib.Path"
    try:
        path = os.fspath(value)
    except TypeError:
        raise ArgumentTypeError(f"{parameter}: {value!r:.80}: expected {expected}") from None
    if not isinstance(path, str):
        raise ArgumentTypeError(f"{parameter}: {value!r:.80} is bytes: expected {expected}")
    if not path:
        raise ArgumentValueError(f"{parameter}: an empty path: expected {expected}")
    try:
        valid = b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        valid = False
    if not valid:
        raise ArgumentValueError(f"{parameter}: {path!r:.80}: no file can have this name")
    return path


def read_bytes(path: Path) -> bytes:
    """Reads a file; tpusim.Error if it cannot be read."""
    name = path_of(path, "path")
    try:
        return pathlib.Path(name).read_bytes()
    except OSError as error:
        raise Error(f"{name}: cannot be read: {error.strerror or error}") from error


def compressed(data: bytes) -> str:
    """Returns what to do about compressed bytes; "" if they are not compressed."""
    return "it is compressed with gzip; unpack it" if data.startswith(_GZIP) else ""


def zipped(data: bytes) -> bytes:
    """Compresses by gzip; equal data gives equal bytes, whenever and by whichever Python."""
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=packed, mtime=0) as file:
        file.write(data)
    return packed.getvalue()


def unzipped(data: bytes) -> bytes:
    """Decompresses what gzip has compressed and returns other bytes as they are; ValueError."""
    if not data.startswith(_GZIP):
        return data
    try:
        return gzip.decompress(data)
    except (EOFError, OSError, zlib.error) as error:
        raise ValueError(f"its gzip data is damaged ({error})") from None


def text_of(data: bytes) -> str:
    """The bytes as text; ValueError that says what they are instead."""
    if not data:
        raise ValueError("it is empty")
    if why := compressed(data):
        raise ValueError(why)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"it is no text (byte {error.start} is no UTF-8)") from None


def check_target(path: Path, parameter: str) -> str:
    """The path, if a file can be written there: what takes long asks before it begins."""
    name = path_of(path, parameter)
    target = pathlib.Path(os.path.realpath(name))
    if target.is_dir():
        raise Error(f"{name}: cannot be written: it is a folder")
    where = target if _is_special(target) else target.parent
    if not where.exists():
        raise Error(f"{name}: cannot be written: {os.strerror(errno.ENOENT)}")
    if not os.access(where, os.W_OK):
        raise Error(f"{name}: cannot be written: {os.strerror(errno.EACCES)}")
    return name


def _is_special(target: pathlib.Path) -> bool:
    return target.exists() and not target.is_file() and not target.is_dir()


@contextlib.contextmanager
def whole(path: Path) -> Iterator[pathlib.Path]:
    """A name to write to; when the block ends without an error, what is there becomes the file.

    No reader ever sees half a file, and a failure leaves what was there before. Links are followed.
    A file that is replaced keeps its permissions. What is no regular file (/dev/stdout, a pipe) is
    written to in place.
    """
    name = path_of(path, "path")
    try:
        target = pathlib.Path(os.path.realpath(name))
        if target.is_dir():
            raise Error(f"{name}: cannot be written: it is a folder")
        special = _is_special(target)
        # Beside the target, since only there a file can be renamed to it.
        beside = None if special else target.parent
        with tempfile.TemporaryDirectory(prefix=".tpusim-", dir=beside) as folder:
            written = pathlib.Path(folder) / "written"
            yield written
            if special:
                with written.open("rb") as source, target.open("wb") as sink:
                    shutil.copyfileobj(source, sink)
            else:
                if target.exists():
                    shutil.copymode(target, written)
                written.replace(target)
    except OSError as error:
        raise Error(f"{name}: cannot be written: {error.strerror or error}") from error


def write_atomically(path: Path, data: bytes) -> None:
    """Replaces the file by `data` in one step."""
    with whole(path) as written:
        written.write_bytes(data)
