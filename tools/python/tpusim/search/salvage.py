"""A store that is damaged: all rows and programs that can be kept, in a sound file of that name.

A disk, a copy that was interrupted or a program that wrote to the wrong place may damage a file.
SQLite then refuses it, or what lies behind the damage. What the file still has is taken out of it
page by page (pages.py), judged by its checksums, and written anew. The damaged file is kept beside.

The new content is written in place, under the lock by which SQLite itself writes: other searches
on the same store wait, and go on with what is there then.
"""

import contextlib
import dataclasses
import fcntl
import os
import pathlib
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import BinaryIO

from tpusim.errors import Error
from tpusim.search import first_version, layout, pages
from tpusim.search.layout import StoredProgram, StoredRow, UnusableError

# What SQLite locks: pending, reserved, and the bytes that readers share.
_LOCKED_BYTES, _LOCKED_AT = 512, 0x40000000
PATIENCE_SECONDS = 60.0
_POLL_SECONDS = 0.05
# The counter of changes, and what it was when the version was written: by these SQLite knows that
# the pages it remembers are those of before.
_COUNTERS = (24, 92)
_KEY_LENGTH = 64  # of SHA-256 in hexadecimal


@dataclasses.dataclass
class Found:
    """What there is in a file, by key and by digest."""

    rows: dict[str, StoredRow] = dataclasses.field(default_factory=dict)
    programs: dict[str, StoredProgram] = dataclasses.field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.rows or self.programs)


def found_in(data: bytes) -> Found:
    """Of a store of any version; of several with the same key the latest."""
    found = Found()
    ages: dict[str, tuple[int, int]] = {}
    columns: list[str] = []
    for record in pages.records(data):
        values = record.values
        if values[:2] == ("table", "candidates") and isinstance(values[-1], str):
            columns = first_version.columns_in(values[-1]) or columns
        if not values or not isinstance(values[0], str) or len(values[0]) != _KEY_LENGTH:
            continue
        version, it = _understood(values, columns)
        age = (version, record.row_id)
        if it is None or age < ages.get(values[0], age):
            continue
        ages[values[0]] = age
        if isinstance(it, StoredRow):
            found.rows[it.key] = it
        else:
            found.programs[it.digest] = it
    return found


def _understood(
    values: layout.Values, columns: list[str]
) -> tuple[int, StoredRow | StoredProgram | None]:
    """The version that the values are of, and what they are."""
    fixed = len(layout.LEADING) + len(layout.FIELDS)
    readers: tuple[tuple[int, Callable[[], StoredRow | StoredProgram]], ...] = (
        (layout.VERSION, lambda: layout.row_of(values[:fixed], values[fixed:])),
        (layout.VERSION, lambda: layout.program_of(values)),
        (first_version.VERSION, lambda: first_version.row_of(columns, values)),
        (first_version.VERSION, lambda: first_version.program_of(values)),
    )
    for version, read in readers:
        with contextlib.suppress(UnusableError):
            return version, read()
    return 0, None


def restore(
    path: str,
    why: str,
    is_sound: Callable[[str], bool],
    write: Callable[[str, Found], None],
) -> str:
    """Puts a sound store in the place of a damaged one; returns a line about it.

    Args:
      path: the store, which this process has not open.
      why: what is wrong with it.
      is_sound: whether the file of that name is a sound store.
      write: makes a store of that name.

    Raises:
      tpusim.Error: nothing in the file is of a store, or it cannot be written.
    """
    try:
        with (
            _locked(path) as file,
            tempfile.TemporaryDirectory(prefix="tpusim-") as folder,
        ):
            data = file.read()
            copy = pathlib.Path(folder) / "copy"
            copy.write_bytes(data)
            if is_sound(str(copy)):
                return ""  # Another search has been here.
            found = found_in(data)
            if not found:
                raise Error(f"{path}: {why}; name another file, or remove this one")
            backup = _write_beside(path, data)
            anew = pathlib.Path(folder) / "anew"
            write(str(anew), found)
            # A journal of the damaged file is none of the new one.
            pathlib.Path(f"{path}-journal").unlink(missing_ok=True)
            file.seek(0)
            file.write(_counted_on(anew.read_bytes(), data))
            file.truncate()
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise Error(f"{path}: {why}; cannot be restored: {error.strerror or error}") from error
    return (
        f"{path}: {why}; {len(found.rows)} rows and {len(found.programs)} programs of it are "
        f"kept, what else there was is done again; the damaged file is {backup}"
    )


@contextlib.contextmanager
def _locked(path: str) -> Iterator[BinaryIO]:
    """The file, and nobody reads or writes it meanwhile."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    with pathlib.Path(path).open("r+b") as file:
        while True:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, _LOCKED_BYTES, _LOCKED_AT)
                break
            except (BlockingIOError, PermissionError):
                if time.monotonic() > deadline:
                    raise Error(f"{path}: damaged, and in use by another process") from None
                time.sleep(_POLL_SECONDS)
        yield file


def _write_beside(path: str, data: bytes) -> str:
    """Under a name that is free."""
    number = 1
    while True:
        name = f"{path}.damaged" + (f"-{number}" if number > 1 else "")
        try:
            with pathlib.Path(name).open("xb") as file:
                file.write(data)
        except FileExistsError:
            number += 1
            continue
        except OSError:
            pathlib.Path(name).unlink(missing_ok=True)
            raise
        return name


def _counted_on(anew: bytes, before: bytes) -> bytes:
    """The new file as a change of the one before."""
    first = _COUNTERS[0]
    counter = (int.from_bytes(before[first : first + 4]) + 1) % (1 << 32)
    changed = bytearray(anew)
    for at in _COUNTERS:
        changed[at : at + 4] = counter.to_bytes(4)
    return bytes(changed)
