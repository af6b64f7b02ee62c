"""Finds the jitted `shard_map` inside of a pmapped function (JAX 0.8 or 0.9 and later).

Older versions have another pmap, and this one behind a setting, which is made before the user's
functions are pmapped.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import jax
from jax.sharding import NamedSharding, PartitionSpec

from tpusim.errors import Error

_SETTING = "jax_pmap_shmap_merge"
# Functions that return their array unchanged where there is one process.
_PLACING = ("host_local_array_to_global_array", "global_array_to_host_local_array")
# Modules that define the wrapper: since 0.9, and before.
_MODULES = ("jax._src.pmap", "jax._src.linear_util")


@contextlib.contextmanager
def by_shard_map() -> Iterator[None]:
    """Functions that are pmapped inside the block are of the new kind."""
    before = getattr(jax.config, _SETTING, True)
    if before:
        yield
        return
    jax.config.update(_SETTING, True)
    try:
        yield
    finally:
        jax.config.update(_SETTING, before)


def placed(primitive: Any, aval: Any, params: dict[str, Any]) -> tuple[Any, Any] | None:
    """Type and sharding of what pmap lays out over its mesh, before 0.9 by own operations."""
    if primitive.name not in _PLACING:
        return None
    mesh, spec = params["global_mesh"], params["pspec"]
    everywhere = PartitionSpec(*[None] * len(aval.shape))
    typed = aval.update(sharding=NamedSharding(mesh.abstract_mesh, everywhere))
    return typed, NamedSharding(mesh, spec)


def is_wrapper(function: Any) -> bool:
    """Whether it is what JAX makes of a pmapped function to jit it."""
    return getattr(function, "__module__", None) in _MODULES


def within(function: Any) -> Any:
    """Returns JAX's `debug_info` of the user's function inside of such a wrapper."""
    inner = getattr(function, "__wrapped__", function)
    if (held := getattr(inner, "__self__", None)) is not None:
        return getattr(held, "debug_info", None)
    for cell in getattr(inner, "__closure__", None) or ():
        info = getattr(cell.cell_contents, "debug_info", None)
        if info is not None:
            return info
    return None


def jitted(function: Callable[..., Any]) -> Callable[..., tuple[Any, Any]] | None:
    """Returns a function from arguments to (jitted function, flat arguments) of a pmapped one.

    Its `lower` holds what finds them; None if it is not pmapped.
    """
    if type(function).__name__ == "PmapFunction":
        raise Error(
            f"JAX {jax.__version__} does not partition pmapped functions as a shard_map; "
            f'jax.config.update("{_SETTING}", True) before jax.pmap changes that'
        )
    lower = getattr(function, "lower", None)
    names = getattr(getattr(lower, "__code__", None), "co_freevars", ())
    if "infer_params" not in names:
        return None
    infer = lower.__closure__[names.index("infer_params")].cell_contents

    def find(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        found = infer(*args, **kwargs)
        at = next(n for n, value in enumerate(found) if hasattr(value, "trace"))
        return found[at], found[at + 1]

    return find
