"""Converts programs in StableHLO to HLO: text, bytecode, of `jax.export`, lowered functions.

JAX's own MLIR reads them and its own converter makes HLO of them, as it does of a function that is
lowered: shardings (of Shardy and of the older partitioner), the mesh, names of arguments and source
locations are those of the module.
"""

import dataclasses
from typing import Any

from tpusim import files, stablehlo_files, wire
from tpusim.errors import Error
from tpusim.jax_internals import lowering, mlir, mlir_rewrites
from tpusim.source_files import relative

# Fields of HloModuleProto and of StackFrameIndexProto.
_STACK_FRAMES, _FILE_NAMES = 17, 1


@dataclasses.dataclass(frozen=True)
class Converted:
    """A module as HLO, with what HLO does not say."""

    hlo_module: bytes
    name: str
    num_partitions: int
    argument_memory_kinds: tuple[str, ...]
    assumptions: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class _Source:
    """A module before it is parsed, with what its container says."""

    module: str | bytes  # text or bytecode
    file: str = ""  # that has the text, for source locations
    name: str = ""
    num_devices: int = 0
    platforms: tuple[str, ...] = ()


def converted(program: Any) -> Converted:
    """Converts a program in memory, or the file that a path names."""
    if stablehlo_files.is_program(program):
        try:
            return _converted(_source_of(program))
        except ValueError as error:
            raise Error(str(error)) from error
    path = files.path_of(program, "program")
    try:
        data = files.read_bytes(path)
        plain = files.unzipped(data)
        source = _source_of(plain)
        if isinstance(source.module, str) and plain is data:
            source = dataclasses.replace(source, file=path)
        return _converted(source)
    except (Error, ValueError) as error:
        said = str(error)
        raise Error(said if said.startswith(path) else f"{path}: {said}") from error


def _source_of(program: Any) -> _Source:
    if stablehlo_files.is_exported(program):
        module = bytes(program.mlir_module_serialized)
        return _Source(
            module,
            name=program.fun_name,
            num_devices=program.nr_devices,
            platforms=tuple(program.platforms),
        )
    platforms: tuple[str, ...] = ()
    if stablehlo_files.is_lowered(program):
        platforms = lowering.platforms(program)
        program = program.compiler_ir("stablehlo")
    if stablehlo_files.is_module(program):
        return _Source(mlir.bytecode(program), platforms=platforms)
    if isinstance(program, str):
        return _Source(program)
    data = bytes(program)
    if data.startswith(stablehlo_files.BYTECODE):
        return _Source(data)
    if (artifact := stablehlo_files.artifact_of(data)) is not None:
        return _Source(
            artifact.module,
            name=artifact.name,
            num_devices=artifact.num_devices,
            platforms=artifact.platforms,
        )
    if not stablehlo_files.is_text(data):
        raise Error("this is no StableHLO: neither text, nor bytecode, nor of jax.export")
    return _Source(files.text_of(data))


def _parsed(source: _Source) -> Any:
    """Parses a module; errors name the version of bytecode that is not read."""
    module = source.module
    try:
        return mlir.parse(module, source.file)
    except mlir.ModuleError as error:
        if isinstance(module, str):
            raise Error(f"this StableHLO text is not read: {error}") from error
        producer = module[len(stablehlo_files.BYTECODE) + 1 :][:64].split(b"\0")[0]
        written = producer.decode(errors="replace")
        raise Error(f"bytecode that {written} wrote is not read: {error}") from error


def _converted(source: _Source) -> Converted:
    try:
        prepared, bytecode = _prepared(source)
        # The module itself is gone by now: one of a hundred megabytes takes several times as much.
        return dataclasses.replace(prepared, hlo_module=_finished(mlir.to_hlo(bytecode)))
    except mlir.ModuleError as error:
        raise Error(f"this StableHLO has no HLO: {error}") from error


def _prepared(source: _Source) -> tuple[Converted, bytes]:
    """Parses and rewrites a module; returns all but its HLO, and the module as bytecode."""
    module = _parsed(source)
    main = mlir.main_function(module)
    _check_static(main)
    assumptions = _choose_platform(main, source.platforms)
    mlir_rewrites.name_arguments(main, mlir.of_arguments(main, "jax.arg_info"))
    partitions = _devices(module, source.num_devices)
    mlir_rewrites.outline_regions(module)
    name = source.name or mlir.attribute(module, "sym_name") or "main"
    kinds = tuple(kind or "device" for kind in mlir.of_arguments(main, "mhlo.memory_kind"))
    prepared = Converted(
        hlo_module=b"",
        name=name.removeprefix("jit_").removeprefix("pmap_"),
        num_partitions=partitions,
        argument_memory_kinds=kinds if any(kind != "device" for kind in kinds) else (),
        assumptions=assumptions,
    )
    return prepared, mlir.bytecode(module)


def _check_static(main: Any) -> None:
    """Refuses a program whose arguments have no sizes yet."""
    for number, argument in enumerate(main.arguments):
        if "?" in str(argument.type):
            raise Error(
                f"argument {number} of main is {argument.type}: a dynamic shape; export the "
                "program with the sizes that it is to run with"
            )


def _choose_platform(main: Any, platforms: tuple[str, ...]) -> tuple[str, ...]:
    """Takes the branches for TPUs of a program for several platforms; returns assumptions."""
    for number, constant in enumerate(mlir.of_arguments(main, "jax.global_constant")):
        if constant != "_platform_index":
            continue
        if not platforms:
            raise Error(
                "a program for several platforms, which its text does not name; give the artefact "
                "that jax.export serialised, or export it for TPUs alone"
            )
        index = platforms.index("tpu") if "tpu" in platforms else 0
        mlir_rewrites.set_argument(main, number, index)
    if platforms and "tpu" not in platforms:
        return (
            f"the program was lowered for {' and '.join(platforms)}, not for TPUs: operations "
            "that JAX lowers otherwise for TPUs are those of the other platform",
        )
    return ()


def _devices(module: Any, stated: int) -> int:
    """Returns over how many devices a module is; replicas become partitions."""
    partitions = mlir.attribute(module, "mhlo.num_partitions")
    replicas = mlir.attribute(module, "mhlo.num_replicas") or 1
    if partitions is None:
        partitions = stated or mlir_rewrites.devices_of_shardings(module) or 1
    if partitions < 1 or replicas < 1 or (replicas > 1 and partitions > 1):
        raise Error(
            f"a module of {replicas} replicas of {partitions} partitions; of the two numbers one "
            "may be more than 1"
        )
    if replicas > 1:
        mlir_rewrites.replicas_to_partitions(module)
    return replicas * partitions


def _finished(hlo: bytes) -> bytes:
    """Names source files as exports do."""
    return wire.serialize(
        (n, kind, _with_files(v) if n == _STACK_FRAMES and isinstance(v, bytes) else v)
        for n, kind, v in wire.parse(hlo)
    )


def _with_files(index: bytes) -> bytes:
    return wire.serialize(
        wire.blob(n, relative(v.decode(errors="replace")))
        if n == _FILE_NAMES and isinstance(v, bytes)
        else (n, kind, v)
        for n, kind, v in wire.parse(index)
    )
