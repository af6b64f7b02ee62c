"""The TPU compiler's client, for devices that are only described.

Public is `Lowered.compile`, which is for the devices that the program was lowered for: those of
the CPU, or none at all where its mesh is abstract. The client itself takes the program with any
devices. Without what is private here, programs that are compiled cannot be had; others can.
"""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tpusim.jax_internals.lowering import facts
from tpusim.jax_internals.versions import internal, missing

_PURPOSE = "compile for TPUs ahead of time (compiled=True)"


def compiled(lowered: Any, devices: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """The executable of a program, partition i on devices[i]; raises what the compiler says."""
    known = facts(lowered)
    if "in_shardings" not in known or "out_shardings" not in known:
        raise missing("what a lowered program is made of", _PURPOSE)
    client = devices[0].client
    placed = np.array(devices, dtype=object)
    stated = {
        "num_replicas": 1,
        "num_partitions": len(devices),
        "device_assignment": placed.reshape(1, -1),
        "env_options_overrides": dict(options),
        "backend": client,
        "use_spmd_partitioning": True,
        "use_shardy_partitioner": True,
    }
    make = internal("jax._src.compiler", "get_compile_options", _PURPOSE)
    taken = inspect.signature(make).parameters
    made = make(**{name: value for name, value in stated.items() if name in taken})
    made.parameter_is_tupled_arguments = bool(known.get("tuple_args", False))
    # What is not stated the compiler may choose.
    propagated = internal("jax._src.interpreters.pxla", "get_prop_to_input_output", _PURPOSE)
    tokens = len(known.get("ordered_effects", ()))
    arguments, results = propagated(known["in_shardings"], known["out_shardings"], tokens)
    build = made.executable_build_options
    build.allow_spmd_sharding_propagation_to_parameters = list(arguments)
    build.allow_spmd_sharding_propagation_to_output = list(results)
    listed = internal("jaxlib._jax", "DeviceList", _PURPOSE)(tuple(devices))
    module = lowered.compiler_ir("stablehlo")
    return client.compile(module, executable_devices=listed, compile_options=made)


def devices_of(compiled: Any) -> Sequence[Any]:
    """Returns devices of a `jax.stages.Compiled` in the order of its partitions, or none."""
    executable = getattr(compiled, "_executable", None)
    unloaded = getattr(executable, "_unloaded_executable", None)
    return tuple(getattr(unloaded, "device_list", None) or ())


def refusal() -> type[Exception]:
    """Returns the class of errors of XLA's compilers."""
    error: type[Exception] = internal("jax.errors", "JaxRuntimeError", _PURPOSE)
    return error
