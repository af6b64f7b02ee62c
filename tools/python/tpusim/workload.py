"""`Workload`: what tpusim needs to know about one exported program.

It mirrors the message of workloads/workload.proto: JAX's own serialized HloModuleProto, untouched,
beside the things that an HLO module cannot say about itself. Reading and writing need neither JAX
nor the protobuf runtime.

    workload = Workload.load("step.pb")
    print(workload.name, workload.num_partitions, workload.mesh)
"""

import dataclasses
import os

from tpusim import arguments as checks
from tpusim import files, wire
from tpusim.errors import ArgumentTypeError, Error

FORMAT = "tpusim.workload/1"


@dataclasses.dataclass(frozen=True)
class MeshAxis:
    """One axis of the device mesh; axes are listed major to minor."""

    name: str
    size: int


@dataclasses.dataclass(frozen=True)
class DeviceCoordinates:
    """The device of a partition: position on the torus in chips, core on that chip, slice."""

    x: int
    y: int = 0
    z: int = 0
    core_on_chip: int = 0
    slice_index: int = 0


@dataclasses.dataclass(frozen=True)
class TripCount:
    """The trip count of a data-dependent loop; `loop` is the instruction's name or a glob."""

    loop: str
    count: int


@dataclasses.dataclass(frozen=True)
class KernelCost:
    """Stated costs of one call of an opaque kernel, on one device; `name` may be a glob.

    `picoseconds` is how long a call takes; alone it leaves what is known of the kernel as it is.
    Pallas kernels of which nothing is stated cost what their bodies say, which are in the module.
    """

    name: str
    flops: int = 0
    transcendentals: int = 0
    bytes_accessed: int = 0
    remote_bytes: int = 0
    picoseconds: int = 0


@dataclasses.dataclass(frozen=True)
class MemoryAnalysis:
    """Bytes of a device's HBM as the TPU compiler says: `memory_analysis()` of JAX."""

    argument_bytes: int = 0
    output_bytes: int = 0
    alias_bytes: int = 0  # of results that stand where arguments were
    temp_bytes: int = 0
    generated_code_bytes: int = 0
    peak_bytes: int = 0


@dataclasses.dataclass(frozen=True)
class CompilerOption:
    """An option that a program was compiled with, by its name without dashes."""

    name: str
    value: str


@dataclasses.dataclass(frozen=True)
class Compilation:
    """Compilation of a workload's module by the TPU compiler, ahead of time or for real devices."""

    libtpu_version: str = ""  # of the wheel, or what the runtime says of itself
    topology: str = ""  # as libtpu calls the slice, "v5e:4x2"
    options: tuple[CompilerOption, ...] = ()
    init_args: str = ""  # LIBTPU_INIT_ARGS
    memory: MemoryAnalysis = MemoryAnalysis()


@dataclasses.dataclass(frozen=True)
class Workload:
    """An exported program. Empty tuples and strings mean "not stated"."""

    hlo_module: bytes  # serialized HloModuleProto, as JAX makes it
    name: str = ""  # what reports call the program
    num_partitions: int = 1
    mesh: tuple[MeshAxis, ...] = ()
    coordinates: tuple[DeviceCoordinates, ...] = ()  # of partition 0, 1, ...
    argument_memory_kinds: tuple[str, ...] = ()  # of each kept argument: "device", "pinned_host"
    trip_counts: tuple[TripCount, ...] = ()
    kernels: tuple[KernelCost, ...] = ()
    jax_version: str = ""  # that exported it
    config: str = ""  # the slice that was named while exporting, a default
    assumptions: tuple[str, ...] = ()  # what the exporter took for granted
    # Source files of packages: operations are attributed to lines of others.
    library_files: tuple[str, ...] = ()
    compilation: Compilation | None = None  # of a module that is compiled; None of others
    xla_flags: str = ""  # "--xla_...=VALUE ...", defaults of `tpusim run --xla-flags`

    def to_bytes(self) -> bytes:
        """Serializes as tpusim.Workload; equal workloads give equal bytes."""
        if not isinstance(self.hlo_module, bytes):
            raise ArgumentTypeError(checks.wrong("hlo_module", self.hlo_module, "bytes"))
        for field in ("name", "jax_version", "config", "xla_flags"):
            checks.text(field, getattr(self, field), empty=True)
        checks.whole("num_partitions", self.num_partitions)
        fields = [wire.blob(15, FORMAT), wire.blob(16, self.hlo_module)]
        if self.name:
            fields.append(wire.blob(17, self.name))
        fields.append(wire.integer(18, self.num_partitions))
        fields += [wire.blob(19, _message(a.name, a.size)) for a in self.mesh]
        fields += [
            wire.blob(20, _message(c.x, c.y, c.z, c.core_on_chip, c.slice_index))
            for c in self.coordinates
        ]
        fields += [wire.blob(21, kind) for kind in self.argument_memory_kinds]
        fields += [wire.blob(22, _message(t.loop, t.count)) for t in self.trip_counts]
        if self.jax_version:
            fields.append(wire.blob(24, self.jax_version))
        if self.config:
            fields.append(wire.blob(25, self.config))
        fields += [wire.blob(26, sentence) for sentence in self.assumptions]
        fields += [wire.blob(27, name) for name in self.library_files]
        if self.compilation is not None:
            fields.append(wire.blob(28, _compilation_message(self.compilation)))
        fields += [wire.blob(29, _message(*dataclasses.astuple(k))) for k in self.kernels]
        if self.xla_flags:
            fields.append(wire.blob(30, self.xla_flags))
        return wire.serialize(fields)

    @classmethod
    def from_bytes(cls, data: bytes) -> "Workload":
        """Reads a serialized tpusim.Workload; ValueError if the bytes are something else."""
        if not isinstance(data, bytes):
            raise ArgumentTypeError(
                f"Workload.from_bytes: data: {type(data).__name__}: expected bytes"
            )
        try:
            return cls._from_fields(wire.parse(data))
        except RecursionError:
            raise ValueError("its messages are nested too deeply") from None

    @classmethod
    def _from_fields(cls, fields: list[wire.Field]) -> "Workload":
        if wire.last_bytes(fields, 15) != FORMAT.encode():
            raise ValueError(f"not a {FORMAT} file")
        axes = [wire.parse(b) for b in wire.all_bytes(fields, 19)]
        places = [wire.parse(b) for b in wire.all_bytes(fields, 20)]
        loops = [wire.parse(b) for b in wire.all_bytes(fields, 22)]
        kernels = [wire.parse(b) for b in wire.all_bytes(fields, 29)]
        number = wire.number_of
        return cls(
            hlo_module=wire.last_bytes(fields, 16),
            name=wire.text(fields, 17),
            num_partitions=number(fields, 18),
            mesh=tuple(MeshAxis(wire.text(a, 1), number(a, 2)) for a in axes),
            coordinates=tuple(
                DeviceCoordinates(*(number(c, i) for i in range(1, 6))) for c in places
            ),
            argument_memory_kinds=tuple(b.decode() for b in wire.all_bytes(fields, 21)),
            trip_counts=tuple(TripCount(wire.text(t, 1), number(t, 2)) for t in loops),
            kernels=tuple(
                KernelCost(wire.text(k, 1), *(number(k, i) for i in range(2, 7))) for k in kernels
            ),
            jax_version=wire.text(fields, 24),
            config=wire.text(fields, 25),
            assumptions=tuple(b.decode() for b in wire.all_bytes(fields, 26)),
            library_files=tuple(b.decode() for b in wire.all_bytes(fields, 27)),
            compilation=next(map(_compilation_from, wire.all_bytes(fields, 28)), None),
            xla_flags=wire.text(fields, 30),
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Workload":
        """Reads a workload file, compressed or not; tpusim.Error if it is something else."""
        data = files.read_bytes(path)
        try:
            return cls.from_bytes(files.unzipped(data))
        except ValueError as error:
            raise Error(f"{os.fspath(path)}: not a workload of tpusim: {error}") from error

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the file whole or not at all, compressed by gzip if its name ends in `.gz`."""
        data = self.to_bytes()
        packed = files.path_of(path, "path").endswith(".gz")
        files.write_atomically(path, files.zipped(data) if packed else data)


def _message(*values: str | int) -> bytes:
    """A flat message with fields 1, 2, ...; zeros and empty strings are left out (proto3)."""
    return wire.serialize(
        wire.blob(i, v) if isinstance(v, str) else wire.integer(i, v)
        for i, v in enumerate(values, start=1)
        if v
    )


def _compilation_message(compilation: Compilation) -> bytes:
    fields = wire.parse(_message(compilation.libtpu_version, compilation.topology))
    fields += [wire.blob(3, _message(o.name, o.value)) for o in compilation.options]
    if compilation.init_args:
        fields.append(wire.blob(4, compilation.init_args))
    fields.append(wire.blob(5, _message(*dataclasses.astuple(compilation.memory))))
    return wire.serialize(fields)


def _compilation_from(message: bytes) -> Compilation:
    fields = wire.parse(message)
    options = [wire.parse(option) for option in wire.all_bytes(fields, 3)]
    memory = wire.parse(wire.last_bytes(fields, 5))
    return Compilation(
        libtpu_version=wire.text(fields, 1),
        topology=wire.text(fields, 2),
        options=tuple(CompilerOption(wire.text(o, 1), wire.text(o, 2)) for o in options),
        init_args=wire.text(fields, 4),
        memory=MemoryAnalysis(*(wire.number_of(memory, i) for i in range(1, 7))),
    )
