"""`Workload`: what tpusim needs to know about one exported program.

It mirrors the message of workloads/workload.proto: JAX's own serialized HloModuleProto, untouched,
beside the things that an HLO module cannot say about itself. Reading and writing need neither JAX
nor the protobuf runtime.

    workload = Workload.load("step.pb")
    print(workload.name, workload.num_partitions, workload.mesh)
"""

import dataclasses
import os
from collections.abc import Iterable

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
    """Where a partition runs: position on the torus in chips, core on that chip, which slice."""

    x: int
    y: int = 0
    z: int = 0
    core_on_chip: int = 0
    slice_index: int = 0


@dataclasses.dataclass(frozen=True)
class TripCount:
    """How often a data-dependent loop runs; `loop` is the instruction's name or a glob."""

    loop: str
    count: int


@dataclasses.dataclass(frozen=True)
class KernelBlock:
    """A block that a pipelined kernel reads or writes, and the axes of the grid that move it."""

    bytes: int
    output: bool = False
    moves_with: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True)
class KernelProduct:
    """`count` products [m,k] x [k,n] in the number format ("bf16", "f32_high", "int8", ...)."""

    m: int
    k: int
    n: int
    number_format: str = "bf16"
    count: int = 1


@dataclasses.dataclass(frozen=True)
class KernelArray:
    """`count` arrays of so many bytes, one after another."""

    bytes: int
    count: int = 1


@dataclasses.dataclass(frozen=True)
class KernelStage:
    """What of a kernel's body may run side by side; its stages run one after another.

    `arrays` are there as a whole at some time: each that the chip's registers do not hold is stored
    to VMEM once and loaded once. `spilled_bytes` are so on every chip.
    """

    flops: int = 0
    transcendentals: int = 0
    spilled_bytes: int = 0
    products: tuple[KernelProduct, ...] = ()
    arrays: tuple[KernelArray, ...] = ()


@dataclasses.dataclass(frozen=True)
class KernelCost:
    """What one call of an opaque kernel does on one device; `name` may be a glob.

    `grid`, `blocks`, `products` and `stages` say how it does it, if that is known: one step per
    point of the grid. `flops` contains those of the products, and both those of all stages.
    `loops` add to it as often as they turn out to run. `unpriced` says why nothing is known.
    `assumed` says what was taken for granted of this one kernel: sentences without their subject.
    `picoseconds` is how long a call takes, if that is stated; what it does says nothing then of
    how long it takes.
    """

    name: str
    flops: int = 0
    transcendentals: int = 0
    bytes_accessed: int = 0
    remote_bytes: int = 0
    grid: tuple[int, ...] = ()
    blocks: tuple[KernelBlock, ...] = ()
    products: tuple[KernelProduct, ...] = ()
    loops: tuple["KernelLoop", ...] = ()
    unpriced: str = ""
    stages: tuple[KernelStage, ...] = ()
    assumed: tuple[str, ...] = ()
    picoseconds: int = 0


@dataclasses.dataclass(frozen=True)
class KernelLoop:
    """A loop inside a kernel, or an axis of its grid, whose length is data.

    `once` is what one pass costs, summed over all times that a call reaches the loop. Each time it
    runs `at_most` so often, if that is known.
    """

    name: str
    once: KernelCost
    source: str = ""
    at_most: int | None = None


@dataclasses.dataclass(frozen=True)
class MemoryAnalysis:
    """What the TPU compiler says of a device's HBM, in bytes: `memory_analysis()` of JAX."""

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
    """How the TPU compiler made the module of a workload, ahead of time or for real devices."""

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

    def to_bytes(self) -> bytes:
        """Serializes as tpusim.Workload; equal workloads give equal bytes."""
        if not isinstance(self.hlo_module, bytes):
            raise ArgumentTypeError(checks.wrong("hlo_module", self.hlo_module, "bytes"))
        for field in ("name", "jax_version", "config"):
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
        fields += [wire.blob(23, _kernel_message(k)) for k in self.kernels]
        if self.jax_version:
            fields.append(wire.blob(24, self.jax_version))
        if self.config:
            fields.append(wire.blob(25, self.config))
        fields += [wire.blob(26, sentence) for sentence in self.assumptions]
        fields += [wire.blob(27, name) for name in self.library_files]
        if self.compilation is not None:
            fields.append(wire.blob(28, _compilation_message(self.compilation)))
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
        if wire.text(fields, 15) != FORMAT:
            raise ValueError(f"not a {FORMAT} file")
        axes = [wire.parse(b) for b in wire.all_bytes(fields, 19)]
        places = [wire.parse(b) for b in wire.all_bytes(fields, 20)]
        loops = [wire.parse(b) for b in wire.all_bytes(fields, 22)]
        kernels = [wire.parse(b) for b in wire.all_bytes(fields, 23)]
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
            kernels=tuple(_kernel_from(k) for k in kernels),
            jax_version=wire.text(fields, 24),
            config=wire.text(fields, 25),
            assumptions=tuple(b.decode() for b in wire.all_bytes(fields, 26)),
            library_files=tuple(b.decode() for b in wire.all_bytes(fields, 27)),
            compilation=next(map(_compilation_from, wire.all_bytes(fields, 28)), None),
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Workload":
        """Reads a workload file; tpusim.Error if it cannot be read, or is something else."""
        data = files.read_bytes(path)
        try:
            return cls.from_bytes(data)
        except ValueError as error:
            why = files.compressed(data) or str(error)
            raise Error(f"{os.fspath(path)}: not a workload of tpusim: {why}") from error

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the file whole or not at all: to a temporary name beside it, then renamed."""
        files.write_atomically(path, self.to_bytes())


def _message(*values: str | int) -> bytes:
    """A flat message with fields 1, 2, ...; zeros and empty strings are left out (proto3)."""
    return wire.serialize(
        wire.blob(i, v) if isinstance(v, str) else wire.integer(i, v)
        for i, v in enumerate(values, start=1)
        if v
    )


def _kernel_message(kernel: KernelCost) -> bytes:
    amounts = (kernel.flops, kernel.transcendentals, kernel.bytes_accessed, kernel.remote_bytes)
    fields = wire.parse(_message(kernel.name, *amounts))
    fields += [wire.integer(6, size) for size in kernel.grid]
    for block in kernel.blocks:
        moves = [wire.integer(3, axis) for axis in block.moves_with]
        fields.append(
            wire.blob(7, _message(block.bytes, int(block.output)) + wire.serialize(moves))
        )
    fields += [wire.blob(8, _product_message(product)) for product in kernel.products]
    for loop in kernel.loops:
        once = wire.serialize([wire.blob(2, _kernel_message(loop.once))])
        most = [wire.integer(4, loop.at_most)] if loop.at_most is not None else []
        rest = _message("", "", loop.source) + wire.serialize(most)
        fields.append(wire.blob(9, _message(loop.name) + once + rest))
    if kernel.unpriced:
        fields.append(wire.blob(10, kernel.unpriced))
    for stage in kernel.stages:
        amounts = _message(stage.flops, stage.transcendentals, stage.spilled_bytes)
        products = [wire.blob(4, _product_message(product)) for product in stage.products]
        arrays = [wire.blob(5, _message(array.bytes, array.count)) for array in stage.arrays]
        fields.append(wire.blob(11, amounts + wire.serialize([*products, *arrays])))
    fields += [wire.blob(12, sentence) for sentence in kernel.assumed]
    if kernel.picoseconds:
        fields.append(wire.integer(13, kernel.picoseconds))
    return wire.serialize(fields)


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


def _product_message(product: KernelProduct) -> bytes:
    return _message(product.m, product.k, product.n, product.number_format, product.count)


def _product_from(fields: list[wire.Field]) -> KernelProduct:
    sizes = (wire.number_of(fields, i) for i in range(1, 4))
    return KernelProduct(*sizes, wire.text(fields, 4), wire.number_of(fields, 5))


def _kernel_from(fields: Iterable[wire.Field]) -> KernelCost:
    fields = list(fields)
    number = wire.number_of

    def numbers(of: Iterable[wire.Field], which: int) -> tuple[int, ...]:
        return tuple(value for n, _, value in of if n == which and isinstance(value, int))

    blocks = [wire.parse(b) for b in wire.all_bytes(fields, 7)]
    stages = [wire.parse(b) for b in wire.all_bytes(fields, 11)]

    def products(of: Iterable[wire.Field], which: int) -> tuple[KernelProduct, ...]:
        return tuple(_product_from(wire.parse(p)) for p in wire.all_bytes(of, which))

    def arrays(of: Iterable[wire.Field], which: int) -> tuple[KernelArray, ...]:
        parsed = map(wire.parse, wire.all_bytes(of, which))
        return tuple(KernelArray(number(a, 1), number(a, 2)) for a in parsed)

    return KernelCost(
        wire.text(fields, 1),
        *(number(fields, i) for i in range(2, 6)),
        numbers(fields, 6),
        tuple(KernelBlock(number(b, 1), bool(number(b, 2)), numbers(b, 3)) for b in blocks),
        products(fields, 8),
        tuple(
            KernelLoop(
                wire.text(loop, 1),
                _kernel_from(wire.parse(wire.last_bytes(loop, 2))),
                wire.text(loop, 3),
                number(loop, 4) if any(n == 4 for n, *_ in loop) else None,
            )
            for loop in map(wire.parse, wire.all_bytes(fields, 9))
        ),
        wire.text(fields, 10),
        tuple(
            KernelStage(*(number(s, i) for i in range(1, 4)), products(s, 4), arrays(s, 5))
            for s in stages
        ),
        tuple(b.decode() for b in wire.all_bytes(fields, 12)),
        number(fields, 13),
    )
