"""Callbacks to Python while a program is traced for export.

A TPU calls back through channels of its runtime, which are no part of a workload.

    jax.debug.print, jax.debug.callback,     left out: no value depends on them
    jax.debug.inspect_array_sharding,
    io_callback without results
    jax.pure_callback, io_callback           a custom call that takes the operands and gives the
                                             results; what it costs has to be stated, or is nothing

Each is an assumption of the workload. The primitives are caught when they are bound, so nothing of
them is in the jaxpr: neither effects, which several devices or an abstract mesh do not allow, nor
rules of other transformations matter. Programs have to be traced anew for that; `exporter` does.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
from jax.experimental.xla_metadata import set_xla_metadata

from tpusim.assumptions import Assumptions, users_place
from tpusim.jax_internals import callbacks

TARGET = "tpusim.host_callback"


@contextlib.contextmanager
def caught(assumptions: Assumptions) -> Iterator[None]:
    """Programs that are traced in this block do not call back."""

    def leave_out(what: str) -> Callable[..., list[Any]]:
        def bind(*_: Any, **__: Any) -> list[Any]:
            assumptions.add(f"{what} at {users_place()} is left out")
            return []

        return bind

    def pure(*arguments: Any, callback: Any, result_avals: Any, vmap_method: Any, **_: Any) -> Any:
        return _call("jax.pure_callback", callback, result_avals, arguments, vmap_method, False)

    def io(*arguments: Any, callback: Any, result_avals: Any, **_: Any) -> Any:
        if not result_avals:
            return leave_out("io_callback")()
        return _call("io_callback", callback, result_avals, arguments, "sequential", True)

    binds: dict[Any, Callable[..., Any]] = {
        primitive: leave_out(what) for primitive, what in callbacks.debugging().items()
    }
    for primitive, bind in ((callbacks.pure(), pure), (callbacks.io(), io)):
        if primitive is not None:
            binds[primitive] = bind
    for primitive, bind in binds.items():
        primitive.bind = bind
    try:
        yield
    finally:
        for primitive in binds:
            del primitive.bind  # That of its class shows again.


def _call(
    what: str,
    function: Any,
    results: Sequence[Any],
    arguments: Sequence[Any],
    vmap_method: str | None,
    side_effect: bool,
) -> list[Any]:
    """The custom call in place of a callback; reports find it by the Python function's name."""
    name = getattr(getattr(function, "callback_func", None), "__name__", "") or what
    shapes = [jax.ShapeDtypeStruct(r.shape, r.dtype) for r in results]
    call = jax.ffi.ffi_call(TARGET, shapes, has_side_effect=side_effect, vmap_method=vmap_method)
    with set_xla_metadata(kernel_name=name):
        return list(call(*arguments))
