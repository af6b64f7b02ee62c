"""Devices and shardings of a lowered program.

Without the private record of it, what arguments say of themselves stands. Shardings of results are
found by the partitioner's own propagation, which the bindings of its compiler offer; with versions
for which that is not tested the program is compiled, which is public, and takes longer.
"""

import math
import re
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec

from tpusim.jax_internals import array_types
from tpusim.jax_internals.versions import optional, propagates

_PIPELINE = "builtin.module(sdy-propagation-pipeline)"


def facts(lowered: Any) -> dict[str, Any]:
    """Returns the arguments that JAX would compile the program with."""
    return getattr(getattr(lowered, "_lowering", None), "compile_args", None) or {}


def compiler_options(traced: Any) -> dict[str, Any]:
    """Returns the options of the compiler that `jax.jit` was given."""
    return dict(getattr(traced, "_params", {}).get("compiler_options_kvs", ()))


def in_shardings(lowered: Any, arguments: Any) -> Sequence[Any]:
    """Returns shardings of the arguments that the program keeps, or of all if JAX does not say."""
    found = facts(lowered).get("in_shardings")
    if found is None:
        return [getattr(leaf, "sharding", None) for leaf in jax.tree.leaves(arguments)]
    return found


def num_devices(lowered: Any, shardings: Sequence[Any]) -> int:
    """Over how many devices it is partitioned."""
    found = facts(lowered).get("num_devices")
    return found or max((s.num_devices for s in shardings if hasattr(s, "num_devices")), default=1)


def platforms(lowered: Any) -> tuple[str, ...]:
    """Returns the platforms that a program is lowered for; none if JAX does not say."""
    return tuple(getattr(getattr(lowered, "_lowering", None), "_platforms", None) or ())


def result_shardings(program: Any) -> tuple[list[Any], bool]:
    """Returns the sharding of each flat result, and whether results are committed.

    `program` is traced or lowered.
    """
    traced = program if hasattr(program, "lower") else None
    if traced is not None:
        # A kernel for TPUs is lowered for nothing else; what is to be compiled is so for CPUs.
        platforms = ("tpu",) if propagates() else None
        program = traced.lower(lowering_platforms=platforms)
    devices = _devices(program)
    found = None if devices is None else _found(program, devices)
    if found is None:
        lowered = program if traced is None else traced.lower()
        found = jax.tree.leaves(lowered.compile().output_shardings)
    return found, bool(facts(program).get("committed", True))


def _found(lowered: Any, devices: Sequence[Any]) -> list[Any] | None:
    """Without compiling; None if that takes the compiler."""
    known = facts(lowered)
    count = len(jax.tree.leaves(lowered.out_info))
    # What the user states, and what the types of results say.
    out = known.get("out_shardings") or [None] * count
    stated = [sharding if is_whole(sharding) else None for sharding in out]
    if None not in stated:
        return stated
    meshes = _meshes(known)
    if len(devices) == 1:
        found = _on_one(lowered, devices[0], meshes, out)
    else:
        found = _propagated(lowered, devices, meshes) if propagates() else None
    if found is None or len(found) != count:
        return None
    avals = known.get("global_out_avals") or [None] * count
    placed = [s or _typed(f, aval) for s, f, aval in zip(stated, found, avals, strict=True)]
    return None if None in placed else placed


def is_whole(sharding: Any) -> bool:
    """Whether it is a sharding on devices that leaves nothing to the compiler."""
    if not isinstance(sharding, jax.sharding.Sharding):
        return False
    if isinstance(getattr(sharding, "mesh", None), AbstractMesh):
        return False
    return PartitionSpec.UNCONSTRAINED not in array_types.partitions(sharding)


def _meshes(known: dict[str, Any]) -> list[Mesh]:
    """Returns meshes that a program names; the one that JAX takes for results is first."""
    found: list[Any] = []
    for of in ("in_shardings", "intermediate_shardings", "out_shardings"):
        found += [getattr(sharding, "mesh", None) for sharding in known.get(of) or ()]
    found.append(known.get("context_mesh"))
    return [mesh for mesh in found if isinstance(mesh, Mesh) and not mesh.empty]


def _typed(sharding: Any, aval: Any) -> Any:
    """On a mesh whose axes have the types that the type of the result says; None if on another."""
    mine, own = (
        getattr(sharding, "mesh", None),
        getattr(getattr(aval, "sharding", None), "mesh", None),
    )
    if mine is None or own is None or own.empty or AxisType.Manual in own.axis_types:
        return sharding
    if own.shape_tuple != mine.shape_tuple:
        return None
    if own.axis_types == mine.axis_types:
        return sharding
    return sharding.update(mesh=Mesh(mine.devices, mine.axis_names, axis_types=own.axis_types))


def _devices(lowered: Any) -> tuple[Any, ...] | None:
    devices = getattr(getattr(lowered, "_lowering", None), "_device_list", None)
    return None if devices is None else tuple(devices)


def _on_one(
    lowered: Any, device: Any, meshes: Sequence[Mesh], out: Sequence[Any]
) -> list[Any] | None:
    """Shardings of results of a program of one device; `out` has those that are stated."""
    attributes = _result_attributes(lowered.compiler_ir("stablehlo").operation)
    if attributes is None:
        return None
    found = []
    for stated, result in zip(out, attributes, strict=True):
        sharding: Any = jax.sharding.SingleDeviceSharding(device)
        if meshes:
            axes = array_types.partitions(stated)
            left = [None if a is PartitionSpec.UNCONSTRAINED else a for a in axes]
            sharding = NamedSharding(meshes[0], PartitionSpec(*left))
        found.append(_in_memory(sharding, result))
    return found


def _propagated(lowered: Any, devices: Sequence[Any], meshes: Sequence[Mesh]) -> list[Any] | None:
    manager: Any = optional("jaxlib.mlir.passmanager", "PassManager")
    if manager is None:
        return None
    # JAX keeps the module, and compiles it, should someone ask.
    module = lowered.compiler_ir("stablehlo").operation.clone()
    try:
        with module.context:
            manager.parse(_PIPELINE).run(module.operation)
    except Exception:  # Of MLIR: no such pipeline, or a program that it refuses.
        return None
    operations = list(module.regions[0].blocks[0].operations)
    texts = [str(op) for op in operations if op.operation.name == "sdy.mesh"]
    named = dict(filter(None, (_mesh_of(text, devices, meshes) for text in texts)))
    # Whose replicas results are that nothing is said of.
    everywhere = next((m for m in [*meshes, *named.values()] if m.size == len(devices)), None)
    attributes = _result_attributes(module)
    if everywhere is None or attributes is None:
        return None
    results = []
    for result in attributes:
        text = str(result["sdy.sharding"]) if "sdy.sharding" in result else ""
        sharding = _sharding_of(text, named) if text else NamedSharding(everywhere, PartitionSpec())
        if sharding is None:
            return None
        results.append(_in_memory(sharding, result))
    return results


def _result_attributes(module: Any) -> list[Any] | None:
    """Returns an attribute dictionary for each result of a module's main function."""
    for operation in module.regions[0].blocks[0].operations:
        attributes = operation.operation.attributes
        if operation.operation.name == "func.func" and str(attributes["sym_name"]) == '"main"':
            if "res_attrs" in attributes:
                return list(attributes["res_attrs"])
            return [{}] * len(list(attributes["function_type"].value.results))
    return None


def _in_memory(sharding: Any, result: Any) -> Any:
    """In the memory that the attributes of a result name."""
    if "mhlo.memory_kind" not in result:
        return sharding
    return sharding.with_memory_kind(str(result["mhlo.memory_kind"]).strip('"'))


def _mesh_of(text: str, devices: Sequence[Any], meshes: Sequence[Mesh]) -> tuple[str, Mesh] | None:
    """Parses `sdy.mesh @mesh = <["x"=4, "y"=2], device_ids=[...]>` into its name and the mesh."""
    match = re.search(r"sdy\.mesh @(\S+) = <\[(.*?)\](?:, device_ids=\[(.*?)\])?>", text)
    if match is None:
        return None
    axes = re.findall(r'"((?:[^"\\]|\\.)*)"=(\d+)', match[2])
    names, sizes = tuple(n for n, _ in axes), tuple(int(s) for _, s in axes)
    if not axes or math.prod(sizes) != len(devices):
        return None
    ids = [int(i) for i in match[3].split(",")] if match[3] else range(len(devices))
    laid_out = np.array([devices[i] for i in ids], dtype=object).reshape(sizes)
    for mesh in meshes:
        if mesh.axis_names == names and np.array_equal(mesh.devices, laid_out):
            return match[1], mesh
    return match[1], Mesh(laid_out, names)


def _sharding_of(text: str, named: dict[str, Mesh]) -> NamedSharding | None:
    """Parses `#sdy.sharding<@mesh, [{"x"}, {}]>`; None if no PartitionSpec can say it."""
    match = re.fullmatch(r"#sdy\.sharding<@(\S+), \[(.*?)\](?:, replicated=\{.*\})?>", text)
    if match is None or match[1] not in named or ":(" in match[2]:
        return None
    dimensions = []
    for axes in re.findall(r"\{(.*?)\}", match[2]):
        names = re.findall(r'"((?:[^"\\]|\\.)*)"', axes)
        dimensions.append(None if not names else names[0] if len(names) == 1 else tuple(names))
    while dimensions and dimensions[-1] is None:
        dimensions.pop()
    return NamedSharding(named[match[1]], PartitionSpec(*dimensions))
