"""What a lowered program knows of its devices and shardings.

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
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from tpusim.jax_internals.versions import optional, propagates

_PIPELINE = "builtin.module(sdy-propagation-pipeline)"


def facts(lowered: Any) -> dict[str, Any]:
    """What JAX would compile it with."""
    return getattr(getattr(lowered, "_lowering", None), "compile_args", None) or {}


def in_shardings(lowered: Any, arguments: Any) -> Sequence[Any]:
    """Of each argument that the program keeps, in order; of all of them if JAX does not say."""
    found = facts(lowered).get("in_shardings")
    if found is None:
        return [getattr(leaf, "sharding", None) for leaf in jax.tree.leaves(arguments)]
    return found


def num_devices(lowered: Any, shardings: Sequence[Any]) -> int:
    """Over how many devices it is partitioned."""
    found = facts(lowered).get("num_devices")
    return found or max((s.num_devices for s in shardings if hasattr(s, "num_devices")), default=1)


def is_committed(lowered: Any) -> bool:
    """Whether results are bound to their devices."""
    return bool(facts(lowered).get("committed", True))


def result_shardings(lowered: Any, meshes: Sequence[Mesh] = ()) -> list[Any]:
    """As XLA chooses them, one per flat result; `meshes` name the axes where there is a choice."""
    count = len(jax.tree.leaves(lowered.out_info))
    devices = _devices(lowered)
    if devices is not None:
        if len(devices) == 1:
            kind = jax.sharding.SingleDeviceSharding(devices[0])
            return [kind] * count
        found = _propagated(lowered, devices, meshes) if propagates() else None
        if found is not None and len(found) == count:
            return found
    return jax.tree.leaves(lowered.compile().output_shardings)


def _devices(lowered: Any) -> tuple[Any, ...] | None:
    devices = getattr(getattr(lowered, "_lowering", None), "_device_list", None)
    return None if devices is None else tuple(devices)


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
    everywhere = next((m for m in named.values() if m.size == len(devices)), None)
    if everywhere is None:
        return None
    for operation in operations:
        attributes = operation.operation.attributes
        if operation.operation.name != "func.func" or str(attributes["sym_name"]) != '"main"':
            continue
        shapes = len(list(attributes["function_type"].value.results))
        if "res_attrs" not in attributes:
            return [NamedSharding(everywhere, PartitionSpec())] * shapes
        results = []
        for result in attributes["res_attrs"]:
            text = str(result["sdy.sharding"]) if "sdy.sharding" in result else ""
            sharding = _sharding_of(text, named) if text else None
            if text and sharding is None:
                return None
            sharding = sharding or NamedSharding(everywhere, PartitionSpec())
            if "mhlo.memory_kind" in result:
                kind = str(result["mhlo.memory_kind"]).strip('"')
                sharding = sharding.with_memory_kind(kind)
            results.append(sharding)
        return results
    return None


def _mesh_of(text: str, devices: Sequence[Any], meshes: Sequence[Mesh]) -> tuple[str, Mesh] | None:
    """Of `sdy.mesh @mesh = <["x"=4, "y"=2], device_ids=[...]>`, its name and the mesh."""
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
    """Of `#sdy.sharding<@mesh, [{"x"}, {}]>`; None if it is beyond a PartitionSpec."""
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
