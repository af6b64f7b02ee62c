"""The mesh that `jax.set_mesh` has made the context of a call.

Results of a call are on the devices of that mesh, even of a call without arguments. A JAX that does
not say which mesh that is counts as one without: results are where arguments are.
"""

import contextlib
from typing import Any

import jax

from tpusim.jax_internals.versions import optional


def context() -> Any:
    """The concrete mesh; None without one."""
    get = optional("jax._src.mesh", "get_concrete_mesh")
    mesh = None if get is None else get()
    return None if mesh is None or mesh.empty else mesh


def using(mesh: Any) -> contextlib.AbstractContextManager[Any]:
    """Sets the mesh like `jax.set_mesh`; None unsets it."""
    if mesh == context():
        return contextlib.nullcontext()
    if mesh is None:
        mesh = optional("jax._src.mesh", "empty_concrete_mesh")
    return jax.set_mesh(mesh)
