"""`Timeline`: what happened when, read back from a trace that tpusim wrote.

    timeline = tpusim.simulate(step, *avals, config="v5e-4x2").timeline()
    for track in timeline.tracks:
        print(track.path, len(track.slices), len(track.samples))

Reads what sim/results/trace/perfetto_trace.proto describes, no more: traces of other tools have
other messages.
"""

import dataclasses
import os
import struct
from typing import Any

from tpusim import files, wire
from tpusim.errors import Error


@dataclasses.dataclass(frozen=True)
class Slice:
    """Something with a beginning and an end; slices of greater `depth` are inside of others."""

    name: str
    category: str
    start_ns: int
    end_ns: int
    depth: int


@dataclasses.dataclass
class Track:
    """A line of the trace: slices of what was done, or samples (time_ns, value) of a counter."""

    name: str
    path: tuple[str, ...]  # of its group and itself: ("TPU_0(process=0,(0,0,0,0))", "MXU")
    slices: list[Slice] = dataclasses.field(default_factory=list)
    samples: list[tuple[int, float]] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Timeline:
    """The tracks of a trace, in the order in which it shows them."""

    tracks: tuple[Track, ...]

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Timeline":
        """Reads a trace file; tpusim.Error if it cannot be read, or is something else."""
        data = files.read_bytes(path)
        reader = _Reader()
        try:
            packets = wire.all_bytes(wire.parse(data), 1)
            for packet in packets:
                reader.read(packet)
        except wire.WireError as error:
            why = files.compressed(data) or str(error)
            raise Error(f"{os.fspath(path)}: not a trace of tpusim: {why}") from error
        except (LookupError, ValueError, TypeError, struct.error) as error:
            # Of messages that are well-formed, but not those of the schema.
            raise Error(f"{os.fspath(path)}: a trace that tpusim did not write") from error
        if not packets:
            raise Error(f"{os.fspath(path)}: not a trace of tpusim: it has no packets")
        if reader.unfinished():
            raise Error(f"{os.fspath(path)}: the trace is cut off: slices in it do not end")
        return cls(tuple(reader.tracks.values()))

    def first_device(self) -> tuple[Track, ...]:
        """The tracks of one device: the first that the trace has."""
        leaves = [t for t in self.tracks if t.slices or t.samples]
        if not leaves:
            return ()
        # A summary of the pod, which has no steps, comes before the devices.
        group = next((t.path[:-1] for t in leaves if t.name == "Steps"), leaves[0].path[:-1])
        return tuple(t for t in leaves if t.path[:-1] == group)


class _Reader:
    """Takes packets in their order, and keeps what they interned."""

    def __init__(self) -> None:
        self.tracks: dict[int, Track] = {}
        self._names: dict[int, str] = {}
        self._categories: dict[int, str] = {}
        self._open: dict[int, list[tuple[str, str, int]]] = {}

    def unfinished(self) -> bool:
        """Whether something began that did not end."""
        return any(self._open.values())

    def read(self, packet: bytes) -> None:
        """Takes the next packet."""
        fields: dict[int, Any] = {number: value for number, _, value in wire.parse(packet)}
        if 60 in fields:
            self._describe(wire.parse(fields[60]))
        if 12 in fields:
            interned = wire.parse(fields[12])
            for number, table in ((1, self._categories), (2, self._names)):
                for entry in map(wire.parse, wire.all_bytes(interned, number)):
                    table[wire.number_of(entry, 1)] = wire.text(entry, 2)
        if 11 in fields:
            self._event(wire.parse(fields[11]), fields.get(8, 0))

    def _describe(self, fields: list[wire.Field]) -> None:
        name = wire.text(fields, 2)
        parent = self.tracks.get(wire.number_of(fields, 5))
        path = (*(parent.path if parent is not None else ()), name)
        self.tracks[wire.number_of(fields, 1)] = Track(name, path)

    def _event(self, fields: list[wire.Field], time_ns: int) -> None:
        event: dict[int, Any] = {number: value for number, _, value in fields}
        track, pending = self.tracks[event[11]], self._open.setdefault(event[11], [])
        kind = event[9]
        if kind == 1:
            name, category = self._names[event[10]], self._categories.get(event.get(3, 0), "")
            pending.append((name, category, time_ns))
        elif kind == 2:
            name, category, start_ns = pending.pop()
            track.slices.append(Slice(name, category, start_ns, time_ns, len(pending)))
        elif kind == 4:
            # Bytes are whole numbers, all else is not.
            value = float(event[30]) if 30 in event else struct.unpack("<d", event[44])[0]
            track.samples.append((time_ns, value))
