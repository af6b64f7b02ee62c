"""Turns a JAX function into a `Workload`: the code behind `tpusim.export` and `tpusim.capture`.

The function is traced and lowered for TPU on whatever machine this is; nothing is compiled and no
TPU software is needed. Meshes may be abstract (`jax.sharding.AbstractMesh`, nothing but shapes) or
made of forced CPU devices; either way a partition is one device in the mesh's flat order.
"""

import contextlib
import dataclasses
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax

from tpusim import arguments as checks
from tpusim import (
    callbacks,
    checkpoint_names,
    chip_view,
    compiler_flags,
    compiling,
    stablehlo,
    stablehlo_files,
    topology,
    wire,
)
from tpusim.assumptions import Assumptions
from tpusim.errors import ArgumentTypeError, ArgumentValueError, Error
from tpusim.jax_internals import frames, lowering, pmapped, versions
from tpusim.slices import devices_of
from tpusim.source_files import library_files, roots
from tpusim.workload import DeviceCoordinates, KernelCost, MeshAxis, TripCount, Workload

# Frames of this package are plumbing: operations are attributed to the user's lines.
frames.leave_out(os.path.dirname(__file__))

# A context of its own: what was traced before, for other devices and callbacks, is traced anew.
_tracing = jax.make_user_context()

# Fields of HloModuleProto.
_ID, _FRONTEND_ATTRIBUTES = 5, 19

Coordinates = Sequence[Sequence[int]]
_Costs = Mapping[str, Mapping[str, int]]
KernelCosts = Mapping[str, Mapping[str, float]]


def exported(
    function: Any,
    arguments: Sequence[Any],
    keyword_arguments: Mapping[str, Any],
    **options: Any,
) -> Workload:
    """Exports a function, jitted or not, a program that JAX has compiled for TPUs, or StableHLO.

    StableHLO is what `stablehlo.converted` takes: a path, text, bytes, lowered functions.
    """
    compiled = isinstance(function, jax.stages.Compiled)
    lowered = isinstance(function, str | os.PathLike) or stablehlo_files.is_program(function)
    if not compiled and not lowered:
        return workload_of(traceable(function), arguments, keyword_arguments, **options)
    of_function = {
        "arguments": arguments,
        "keyword_arguments": keyword_arguments,
        "compiled": options.pop("compiled", None) and lowered,
        "compiler_options": options.pop("compiler_options", None),
    }
    if given := [name for name, value in of_function.items() if value]:
        state = "compiled" if compiled else "lowered"
        raise ArgumentTypeError(f"{', '.join(given)}: the program is {state} already")
    return _of_compiled(function, **options) if compiled else _of_stablehlo(function, **options)


def workload_of(
    jitted: Any,
    arguments: Sequence[Any],
    keyword_arguments: Mapping[str, Any],
    *,
    config: str | os.PathLike[str] = "",
    name: str = "",
    coordinates: Coordinates | None = None,
    trip_counts: Mapping[str, int] | None = None,
    kernel_costs: KernelCosts | None = None,
    assumptions: Assumptions | None = None,
    compiled: bool = False,
    compiler_options: Mapping[str, Any] | None = None,
    programs_options: Mapping[str, Any] | None = None,
) -> Workload:
    """Exports `jitted`, which is anything with a `trace` like that of `jax.jit`.

    `assumptions` are those that led here; what this assumes is added to them. `programs_options` of
    the compiler are defaults of a run.
    """
    versions.check()
    assumptions = assumptions or Assumptions()
    given = _Given.checked(config, name, coordinates, trip_counts, kernel_costs)
    config = given.config
    options = checks.compiler_options(compiler_options)
    check_compiled(compiled, config, options)
    with (
        _source_lines(),
        _tracing(object()),
        callbacks.caught(assumptions),
        chip_view.shown(config, assumptions),
        contextlib.nullcontext() if compiled else checkpoint_names.kept(),
    ):
        traced = jitted.trace(*arguments, **keyword_arguments)
        lowered = traced.lower(lowering_platforms=("tpu",))
        module = _without_id(lowered.compiler_ir("hlo").as_serialized_hlo_module_proto())
    shardings = lowering.in_shardings(lowered, (arguments, keyword_arguments))
    mesh = mesh_of(module)
    # JAX counts the devices of arguments and results, not of an abstract mesh that only
    # constraints inside name.
    partitions = lowering.num_devices(lowered, shardings)
    if partitions == 1:
        partitions = math.prod(axis.size for axis in mesh)
    _check_devices(partitions, config)
    where = given.coordinates_of(partitions)
    if where is None:
        where = _tpu_coordinates(shardings, partitions)
    memory_kinds, compilation = _memory_kinds(shardings), None
    flags = compiler_flags.of_program(lowering.compiler_options(traced) | (programs_options or {}))
    if compiled:
        flags = ""  # The compiler has read them.
        module, where, compilation = compiling.compile_lowered(
            lowered, config, mesh, partitions, where, options
        )
        module = _without_id(module)
        # Layouts of the module say in which memory its arguments are.
        memory_kinds = ()
    return given.workload(
        module,
        name=getattr(jitted, "__name__", ""),
        num_partitions=partitions,
        mesh=mesh,
        coordinates=where,
        argument_memory_kinds=memory_kinds,
        assumptions=assumptions.sentences,
        compilation=compilation,
        xla_flags=flags,
    )


@dataclasses.dataclass(frozen=True)
class _Given:
    """Holds what a caller states of any program, after checks."""

    config: str
    name: str
    coordinates: Coordinates | None
    trip_counts: Mapping[str, int]
    kernel_costs: _Costs

    @classmethod
    def checked(
        cls,
        config: str | os.PathLike[str] = "",
        name: str = "",
        coordinates: Coordinates | None = None,
        trip_counts: Mapping[str, int] | None = None,
        kernel_costs: KernelCosts | None = None,
    ) -> "_Given":
        """Checks what was given; errors name the argument."""
        return cls(
            checks.config(config),
            checks.text("name", name, empty=True),
            checks.coordinates(coordinates),
            checks.trip_counts(trip_counts),
            checks.kernel_costs(kernel_costs),
        )

    def coordinates_of(self, partitions: int) -> tuple[DeviceCoordinates, ...] | None:
        """Returns the coordinates of so many partitions; None if they were not given."""
        if self.coordinates is None:
            return None
        return _given_coordinates(self.coordinates, partitions)

    def workload(self, module: bytes, *, name: str, config: str = "", **fields: Any) -> Workload:
        """Makes the workload; `name` and `config` count where none was given."""
        counts = self.trip_counts.items()
        return Workload(
            hlo_module=module,
            name=self.name or name,
            trip_counts=tuple(TripCount(loop, count) for loop, count in counts),
            kernels=_stated(self.kernel_costs),
            jax_version=jax.__version__,
            config=self.config or config,
            library_files=library_files(module),
            **fields,
        )


def _check_devices(partitions: int, config: str) -> None:
    available = devices_of(config)
    if available is not None and partitions > available:
        raise Error(
            f"the program has {partitions} partitions, but {config} has only {available} devices; "
            "choose a larger slice or a smaller mesh"
        )


def check_compiled(
    compiled: bool, config: str | os.PathLike[str], options: Mapping[str, Any] | None
) -> None:
    """Says what is missing for the TPU compiler before anything is traced."""
    if checks.flag("compiled", compiled):
        topology.topology_of(checks.config(config))
        topology.require_libtpu()
    elif checks.compiler_options(options):
        raise ArgumentValueError("compiler_options: only with compiled=True")


def _of_compiled(compiled: jax.stages.Compiled, **options: Any) -> Workload:
    """Exports a program that JAX has compiled, by default under the name of its module."""
    given = _Given.checked(**options)
    module, devices, mesh, compilation = compiling.module_of(compiled)
    module = _without_id(module)
    where = given.coordinates_of(len(devices))
    return given.workload(
        module,
        name=wire.text(wire.parse(module), 1).removeprefix("jit_"),
        config=compiling.config_of(devices),
        num_partitions=len(devices),
        mesh=mesh,
        coordinates=tuple(map(topology.coordinates_of, devices)) if where is None else where,
        compilation=compilation,
    )


def _of_stablehlo(program: Any, **options: Any) -> Workload:
    """Exports a program in StableHLO, by default under the name of its function."""
    versions.check()
    given = _Given.checked(**options)
    converted = stablehlo.converted(program)
    module = _without_id(converted.hlo_module)
    mesh = mesh_of(module)
    partitions = converted.num_partitions
    if partitions == 1:
        partitions = math.prod(axis.size for axis in mesh)
    _check_devices(partitions, given.config)
    return given.workload(
        module,
        name=converted.name,
        num_partitions=partitions,
        mesh=mesh,
        coordinates=given.coordinates_of(partitions) or (),
        argument_memory_kinds=converted.argument_memory_kinds,
        assumptions=converted.assumptions,
        xla_flags=compiler_flags.of_program({}),
    )


class _Pmapped:
    """A pmapped function with a `trace` like that of `jax.jit`, which it otherwise lacks."""

    def __init__(self, function: Callable[..., Any], find: Callable[..., tuple[Any, Any]]):
        self.__name__ = getattr(function, "__name__", "")
        self._find = find

    def trace(self, *args: Any, **kwargs: Any) -> Any:
        jitted, flat = self._find(*args, **kwargs)
        return jitted.trace(*flat)


def traceable(function: Callable[..., Any]) -> Any:
    """The function as something that can be traced: jitted if it is not, pmapped if it is."""
    if not callable(function):
        raise ArgumentTypeError(checks.wrong("function", function, "a function, jitted or not"))
    if (find := pmapped.jitted(function)) is not None:
        return _Pmapped(function, find)
    if hasattr(function, "trace"):
        return function
    return jax.jit(function)


def _without_id(module: bytes) -> bytes:
    """The module less its id: XLA counts modules per process, a program does not depend on it."""
    return wire.serialize(f for f in wire.parse(module) if f[0] != _ID)


def _given_coordinates(coordinates: Coordinates, partitions: int) -> tuple[DeviceCoordinates, ...]:
    places = tuple(DeviceCoordinates(*c) for c in coordinates)
    if len(places) != partitions:
        raise ArgumentValueError(
            f"coordinates: {len(places)} given for {partitions} partitions; give one "
            "(x, y[, z[, core[, slice]]]) per device of the mesh, in its flat order"
        )
    if len(set(places)) != partitions:
        raise ArgumentValueError("coordinates: two partitions share one device")
    return places


def _stated(costs: _Costs) -> tuple[KernelCost, ...]:
    """Costs of opaque kernels as messages of the workload; Pallas kernels need none."""
    return tuple(KernelCost(kernel, **cost) for kernel, cost in costs.items())


def mesh_of(module: bytes) -> tuple[MeshAxis, ...]:
    """The mesh an exported module was written for: the largest one in its Shardy mesh table.

    The table is a module attribute, `{mesh = #sdy.mesh<["x"=4, "y"=2]>, ...}`.
    """
    attributes = wire.parse(wire.last_bytes(wire.parse(module), _FRONTEND_ATTRIBUTES))
    table = ""
    for entry in map(wire.parse, wire.all_bytes(attributes, 1)):
        if wire.text(entry, 1) == "xla.sdy.meshes":
            table = wire.text(entry, 2)
    best: tuple[MeshAxis, ...] = ()
    best_size = 0
    for axes in re.findall(r"#sdy\.mesh<\[(.*?)\]", table):
        mesh = tuple(MeshAxis(n, int(s)) for n, s in re.findall(r'"((?:[^"\\]|\\.)*)"=(\d+)', axes))
        size = 1
        for axis in mesh:
            size *= axis.size
        if mesh and size > best_size:
            best, best_size = mesh, size
    return best


def _memory_kinds(shardings: Sequence[Any]) -> tuple[str, ...]:
    """Memory kind per kept argument; empty when every argument is in device memory."""
    kinds = []
    for sharding in shardings:
        kind = getattr(sharding, "memory_kind", None)
        on_device = kind in (None, "device") or kind == _default_memory_kind(sharding)
        kinds.append("device" if on_device else str(kind))
    return tuple(kinds) if any(kind != "device" for kind in kinds) else ()


def _default_memory_kind(sharding: Any) -> str:
    """Returns the name that the sharding's devices have for their own memory."""
    if isinstance(getattr(sharding, "mesh", None), jax.sharding.AbstractMesh):
        return "device"
    return min(sharding.device_set, key=lambda d: d.id).default_memory().kind


def _tpu_coordinates(shardings: Sequence[Any], count: int) -> tuple[DeviceCoordinates, ...]:
    """Coordinates of a mesh of real TPU devices (or of a TPU topology), else nothing."""
    for sharding in shardings:
        mesh = getattr(sharding, "mesh", None)
        if not isinstance(mesh, jax.sharding.Mesh) or mesh.size != count:
            continue
        devices = list(mesh.devices.flat)
        if all(hasattr(d, "coords") and d.platform == "tpu" for d in devices):
            return tuple(map(topology.coordinates_of, devices))
    return ()


@contextlib.contextmanager
def _source_lines() -> Iterator[None]:
    """Source files appear relative to the working directory or to site-packages, also in kernels.

    A workload then does not depend on, nor tell, where this machine keeps its files. An own rule of
    the user for files stays. Kernels keep their lines in their bodies, from which JAX 0.12 takes
    them out.
    """
    wanted = {
        "jax_hlo_source_file_canonicalization_regex": (
            None,
            "^(?:" + "|".join(map(re.escape, roots())) + ")",
        ),
        "jax_mosaic_unzip_debug_locations": (True, False),
    }
    changed = [o for o, (default, _) in wanted.items() if getattr(jax.config, o, ...) is default]
    for option in changed:
        jax.config.update(option, wanted[option][1])
    try:
        yield
    finally:
        for option in changed:
            jax.config.update(option, wanted[option][0])
