"""The primitives that call back to Python.

They are public only as functions. One that this JAX does not have, or calls otherwise, is not left
out of an export; JAX then lowers the callback for TPU, or says why it cannot.
"""

from typing import Any

from tpusim.jax_internals.versions import optional

_DEBUG = {
    "debug_print_p": "jax.debug.print",
    "debug_callback_p": "jax.debug.callback",
    "inspect_sharding_p": "jax.debug.inspect_array_sharding",
}


def debugging() -> dict[Any, str]:
    """Primitives without results, by what the user calls them."""
    found = {optional("jax._src.debugging", name): said for name, said in _DEBUG.items()}
    return {primitive: said for primitive, said in found.items() if primitive is not None}


def pure() -> Any:
    """Returns the primitive of `jax.pure_callback`."""
    return optional("jax._src.callback", "pure_callback_p")


def io() -> Any:
    """Returns the primitive of `jax.experimental.io_callback`."""
    return optional("jax._src.callback", "io_callback_p")
