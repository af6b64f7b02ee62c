"""The primitive that names a value for rematerialisation, `jax.ad_checkpoint.checkpoint_name`.

A JAX that has none, or another one, exports programs without their names.
"""

import threading
from collections.abc import Callable
from typing import Any

from jax.interpreters import mlir

from tpusim.jax_internals.versions import optional

_registering = threading.Lock()
_registered = False


def lower_names_for_tpu(named: Callable[[Any, str], Any], wanted: Callable[[], bool]) -> None:
    """From now on, where it is wanted, a name is lowered for TPU to what `named` makes of a value.

    Elsewhere it stays what it is to JAX: nothing.
    """
    global _registered
    with _registering:
        primitive: Any = optional("jax._src.ad_checkpoint", "name_p")
        if _registered or primitive is None:
            return
        lowered: Any = mlir.lower_fun(lambda x, *, name: named(x, name), multiple_results=False)

        def lower(ctx: Any, x: Any, *, name: str) -> Any:
            return lowered(ctx, x, name=name) if wanted() else [x]

        mlir.register_lowering(primitive, lower, platform="tpu")
        _registered = True
