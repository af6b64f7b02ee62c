"""A program as XLA's own partitioner splits it: what tpusim's partitioner is compared with.

The module is the one that tpusim gets, lowered for TPU. The CPU compiler partitions it, since
partitioning comes before anything that depends on the machine, and writes the module down.
"""

import hashlib
import pathlib
import tempfile
from typing import Any

import jax
import numpy as np
from jax._src.interpreters import mlir
from jaxlib import xla_client
from tpusim import exporter, hlo

from workloads.examples import Example

_xla: Any = xla_client._xla


def partition(example: Example, cache: pathlib.Path | None = None) -> bytes:
    """The HloModuleProto right after XLA's partitioner; kept in `cache` by its input."""
    return partition_function(*example(example.concrete_mesh(jax.devices())), cache)


def partition_function(function: Any, arguments: Any, cache: pathlib.Path | None) -> bytes:
    """Partitions any function with these arguments by XLA."""
    jitted = exporter.traceable(function)
    lowered = jitted.trace(*arguments).lower(lowering_platforms=("tpu",))
    code = mlir.module_to_bytecode(lowered.compiler_ir("stablehlo"))
    # Shardings of results that were not asked for are the partitioner's to choose.
    wanted = lowered._lowering.compile_args["out_shardings"]
    free = [type(sharding).__name__ == "UnspecifiedValue" for sharding in wanted]
    key = hashlib.sha256(code + bytes(free) + jax.__version__.encode()).hexdigest()[:24]
    kept = cache / f"{key}.pb" if cache else None
    if kept and kept.exists():
        return kept.read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        module = _compile(code, free, _devices(arguments), pathlib.Path(folder))
    if kept:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(module)
    return module


def _devices(arguments: Any) -> list[jax.Device]:
    """The devices of the mesh that arguments are laid over; all, if they name none."""
    for leaf in jax.tree.leaves(arguments):
        mesh = getattr(leaf.sharding, "mesh", None)
        if mesh is not None:
            return list(mesh.devices.flat)
    return jax.devices()


def _compile(
    code: bytes, free: list[bool], devices: list[jax.Device], folder: pathlib.Path
) -> bytes:
    options = _xla.CompileOptions()
    build = options.executable_build_options
    options.num_partitions = build.num_partitions = len(devices)
    options.num_replicas = build.num_replicas = 1
    build.use_spmd_partitioning = build.use_shardy_partitioner = True
    build.allow_spmd_sharding_propagation_to_output = free
    assignment = _xla.DeviceAssignment.create(np.array([[d.id for d in devices]]))
    options.device_assignment = build.device_assignment = assignment
    debug = build.debug_options
    debug.xla_backend_optimization_level = 0
    debug.xla_dump_to = str(folder)
    debug.xla_dump_hlo_pass_re = "spmd-partition.*"
    debug.xla_dump_hlo_as_proto = True
    refused = None
    try:
        devices[0].client.compile_and_load(code, _xla.DeviceList(tuple(devices)), options)
    except jax.errors.JaxRuntimeError as error:
        refused = error  # What CPUs cannot do is noticed after partitioning.
    dumps = list(folder.glob("*.after_spmd-partitioning.*.hlo.pb"))
    if len(dumps) != 1:
        raise RuntimeError(f"XLA wrote {len(dumps)} partitioned modules") from refused
    return hlo.module_bytes(dumps[0].read_bytes())
