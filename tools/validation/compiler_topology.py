"""Compiles a program for a slice that is only described: what needs libtpu."""

import functools
from typing import Any

import jax
import jaxlib
import libtpu
from jax.experimental import mesh_utils, topologies
from tpusim import exporter

from workloads.examples.example import Example


@functools.cache
def devices_of(topology: str) -> tuple[Any, ...]:
    """The devices of a topology such as "v5e:4x2"."""
    options: dict[str, Any] = {}
    if set(topology.partition(":")[2].split("x")) == {"1"}:
        # A host has four chips unless it is said to have one.
        options["chips_per_host_bounds"] = [1, 1, 1]
    described = topologies.get_topology_desc(platform="tpu", topology_name=topology, **options)
    return tuple(described.devices)


def compile_program(example: Example, topology: str, slice_name: str) -> dict[str, Any]:
    """Text and memory of the program on the first devices of the topology.

    The mesh has the order of `jax.make_mesh` on this slice, which tpusim assumes, too.
    """
    devices = devices_of(topology)
    if example.num_devices > len(devices):
        raise ValueError(f"{slice_name} has {len(devices)} devices, not {example.num_devices}")
    grid = mesh_utils.create_device_mesh(
        tuple(example.mesh.values()), list(devices[: example.num_devices])
    )
    step, arguments = example(example.concrete_mesh(list(grid.flat)))
    compiled = exporter.traceable(step).trace(*arguments).lower().compile()
    memory = compiled.memory_analysis()
    kinds = ("argument", "output", "alias", "temp", "generated_code")
    sizes = {f"{kind}_bytes": getattr(memory, f"{kind}_size_in_bytes") for kind in kinds}
    versions = {
        "jax": jax.__version__,
        "jaxlib": jaxlib.__version__,
        "libtpu": libtpu.__version__,
    }
    return {
        "text": compiled.as_text(),
        "memory": {**sizes, "peak_bytes": memory.peak_memory_in_bytes},
        "versions": versions,
    }
