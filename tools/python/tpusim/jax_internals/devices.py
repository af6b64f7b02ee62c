"""The types of devices and clients, and JAX's table of TPUs.

The types are those of what public functions return. Without the table, kernels that ask for it get
JAX's own answer, which is that there is no TPU.
"""

import types
from typing import Any

import jax

from tpusim.jax_internals.versions import optional

# Asks devices for their slice, to lay out meshes over several.
MESH_LAYOUT_MODULE = "jax._src.mesh_utils"


def device_type() -> type:
    """Returns the class of `jax.devices()[0]`, or the one that all kinds of devices share."""
    return optional("jaxlib._jax", "Device") or type(jax.devices()[0])


def client_type() -> type:
    """Returns the class of backends."""
    return optional("jaxlib._jax", "Client") or type(jax.devices()[0].client)


def tpu_info() -> types.ModuleType | None:
    """The module whose `get_tpu_info` Pallas programs ask for the chip."""
    # Since 0.11 lowering asks it, too, and Pallas has the names from there.
    for module in ("jax._src.tpu_info", "jax._src.pallas.mosaic.tpu_info"):
        get: Any = optional(module, "get_tpu_info")
        kind: Any = optional(module, "get_device_kind")
        if get is not None and kind is not None:
            return optional(module.rpartition(".")[0], module.rpartition(".")[2])
    return None
