"""Workloads of modules that the TPU compiler has compiled: what `compiled=True` makes.

The program is lowered as for any export, on whatever devices or abstract mesh it is written for,
and given to the compiler with the devices of a slice that is only described (topology.py). What
comes back is the module that a TPU would run: partitioned, fused, with layouts, memory spaces and a
schedule.
"""

import contextlib
import gzip
import hashlib
import importlib.util
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import jax

from tpusim import compiler_flags, files, topology, wire
from tpusim.errors import ArgumentTypeError, Error
from tpusim.jax_internals import compiling, versions
from tpusim.workload import (
    Compilation,
    CompilerOption,
    DeviceCoordinates,
    MemoryAnalysis,
    MeshAxis,
    Workload,
)

# The folder of compiled modules that are kept, if any; files of another format differ by name.
_folder: pathlib.Path | None = None
_FORM = 1
_ID = 5  # Of an HloModuleProto.

_FIELDS = ("argument", "output", "alias", "temp", "generated_code")
# Chips whose slices are named by two extents.
_TWO_AXES = ("v2", "v3", "v5e", "v6e")
# Characters of what the compiler says that an error repeats.
_MOST_SAID = 400

Options = Mapping[str, bool | int | float | str]


def compile_lowered(
    lowered: Any,
    config: str,
    mesh: Sequence[MeshAxis],
    partitions: int,
    places: Sequence[DeviceCoordinates],
    options: Options,
) -> tuple[bytes, tuple[DeviceCoordinates, ...], Compilation]:
    """The compiled module, where each of its partitions is, and how it was compiled."""
    described = topology.topology_of(config)
    devices = topology.placed(described, [axis.size for axis in mesh], partitions, places)
    version = _libtpu_of(devices[0])
    where = tuple(map(topology.coordinates_of, devices))
    kept = _kept_in(lowered, (version, described, where, sorted(options.items())))
    if kept is not None and kept.is_file():
        with contextlib.suppress(ValueError, OSError):
            found = Workload.from_bytes(gzip.decompress(kept.read_bytes()))
            if found.compilation is not None:
                return found.hlo_module, where, found.compilation
    try:
        executable = compiling.compiled(lowered, devices, options)
    except versions.MissingInternalError:
        raise
    except (compiling.refusal(), TypeError, ValueError) as error:
        raise Error(f"the TPU compiler refuses the program: {_said(error)}") from error
    texts = ((name, compiler_flags.text_of(value)) for name, value in options.items())
    made = Compilation(
        libtpu_version=version,
        topology=described.name,
        options=tuple(CompilerOption(name, value) for name, value in texts),
        init_args=compiler_flags.init_args(),
        memory=_memory(executable.get_compiled_memory_stats()),
    )
    module = _module(executable)
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        whole = Workload(module, coordinates=where, compilation=made)
        files.write_atomically(kept, gzip.compress(whole.to_bytes(), 1, mtime=0))
    return module, where, made


def keep(folder: str | os.PathLike[str] | None) -> None:
    """From now on compiled modules are kept in a folder, and taken from there."""
    global _folder
    _folder = None if folder is None else pathlib.Path(folder)


def _kept_in(lowered: Any, given: Any) -> pathlib.Path | None:
    """The file of a module: by the program and all that the compiler is told."""
    if _folder is None:
        return None
    module = lowered.compiler_ir("hlo").as_serialized_hlo_module_proto()
    plain = wire.serialize(f for f in wire.parse(module) if f[0] != _ID)
    told = (given, compiler_flags.init_args(), jax.__version__, _FORM)
    return _folder / f"{hashlib.sha256(plain + repr(told).encode()).hexdigest()}.pb.gz"


def module_of(
    compiled: jax.stages.Compiled,
) -> tuple[bytes, list[Any], tuple[MeshAxis, ...], Compilation]:
    """Returns module, devices, mesh and compilation of a program that is compiled already."""
    devices, mesh = _devices(compiled)
    platforms = sorted({device.platform for device in devices})
    if platforms and platforms != ["tpu"]:
        raise ArgumentTypeError(
            f"the program is compiled for {platforms[0]}, not for TPUs: compile it with devices of "
            "jax.experimental.topologies.get_topology_desc, or give the function and compiled=True"
        )
    executable = compiled.runtime_executable()
    if executable is None or not devices:
        raise Error("the compiled program does not say what it was compiled to")
    made = Compilation(
        libtpu_version=_libtpu_of(devices[0]),
        topology=_topology_of(devices),
        memory=_memory(executable.get_compiled_memory_stats()),
    )
    return _module(executable), devices, mesh, made


def config_of(devices: Sequence[Any]) -> str:
    """The slice that these devices are all of, "v5e-4x2"; "" if there is none such."""
    from tpusim.chip_view import DEVICE_KINDS

    chips = [c for c, (kind, _) in DEVICE_KINDS.items() if kind == devices[0].device_kind]
    places = [topology.coordinates_of(device) for device in devices]
    count = len({place.slice_index for place in places})
    extents = [1 + max(getattr(place, axis) for place in places) for axis in "xyz"]
    if len(chips) != 1 or len({(p.x, p.y, p.z, p.slice_index) for p in places}) != (
        count * extents[0] * extents[1] * extents[2]
    ):
        return ""
    axes = extents[:2] if chips[0] in _TWO_AXES else extents
    name = f"{chips[0]}-{'x'.join(map(str, axes))}"
    return name if count == 1 else f"{count}x({name})"


def _devices(compiled: jax.stages.Compiled) -> tuple[list[Any], tuple[MeshAxis, ...]]:
    """In the order of partitions, and the mesh, if arguments or results name one."""
    shardings = jax.tree.leaves((compiled.input_shardings, compiled.output_shardings))
    for sharding in shardings:
        mesh = getattr(sharding, "mesh", None)
        if isinstance(mesh, jax.sharding.Mesh):
            sizes = zip(mesh.axis_names, mesh.devices.shape, strict=True)
            return list(mesh.devices.flat), tuple(MeshAxis(str(n), s) for n, s in sizes)
    devices = list(compiling.devices_of(compiled))
    if not devices and len(shardings) > 0 and len(shardings[0].device_set) == 1:
        devices = list(shardings[0].device_set)
    return devices, ()


def _topology_of(devices: Sequence[Any]) -> str:
    config = config_of(devices)
    return topology.topology_of(config).name if config else ""


def _libtpu_of(device: Any) -> str:
    """The version of the wheel if it has the library that runs, else the line of its build."""
    if not os.environ.get("TPU_LIBRARY_PATH") and importlib.util.find_spec("libtpu") is not None:
        return topology.require_libtpu()
    lines = str(device.client.platform_version).splitlines()
    return next((line for line in lines if line.startswith("Built on")), " ".join(lines))


def _module(executable: Any) -> bytes:
    module: bytes = executable.hlo_modules()[0].as_serialized_hlo_module_proto()
    return module


def _memory(stats: Any) -> MemoryAnalysis:
    sizes = {f"{kind}_bytes": getattr(stats, f"{kind}_size_in_bytes") for kind in _FIELDS}
    return MemoryAnalysis(**sizes, peak_bytes=getattr(stats, "peak_memory_in_bytes", 0))


def _said(error: Exception) -> str:
    """In one line."""
    return " ".join(str(error).split())[:_MOST_SAID]
