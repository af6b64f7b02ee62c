"""`with tpusim.capture("workload.pb"):` takes a workload out of a script that already exists.

The first call of a jitted function inside the block is exported with the arguments of that call
instead of being executed, and the block ends there, as if the call had been its last statement:

    with tpusim.capture("step.pb", config="v5e-4x2") as captured:
        train()                     # builds a mesh, shards its arrays, calls train_step(...)
    print(captured.workload.name)

JAX's own helpers (`jax.numpy`, `jax.random`, ...) are jitted functions too and run as usual; so
does, with `function="train_step"`, every function of another name. Calls below an outer jit, grad
or vmap belong to the outer function. `f.lower(...)` counts as a call.
"""

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
from jax._src import core, pjit

from tpusim.exporter import Coordinates, KernelCosts, workload_of
from tpusim.workload import Workload


class CaptureError(RuntimeError):
    """The block ended without a call that could be captured."""


class Captured:
    """What a capture block found; `workload` is set once the block has ended."""

    workload: Workload | None = None


class _Stop(BaseException):
    """Ends the block. Not an Exception, so a script's `except Exception` lets it through."""


class _Jitted:
    """Looks enough like the jitted function whose call was intercepted to be traced."""

    def __init__(self, function: Callable[..., Any], info: Any):
        self._fun = function
        self._jit_info = info
        self.__name__ = getattr(function, "__name__", "")

    def trace(self, *args: Any, **kwargs: Any) -> Any:
        return pjit.jit_trace(self, *args, **kwargs)


@contextlib.contextmanager
def capture(
    path: str | os.PathLike[str] = "workload.pb",
    *,
    config: str = "",
    name: str = "",
    function: str = "",
    coordinates: Coordinates | None = None,
    trip_counts: Mapping[str, int] | None = None,
    kernel_costs: KernelCosts | None = None,
) -> Iterator[Captured]:
    """Exports the first jitted call of the block to `path` and leaves the block.

    `function` restricts the capture to jitted functions of that name; the other options are those
    of `tpusim.export`. Raises CaptureError if the block ends without such a call.
    """
    captured = Captured()
    stop = _Stop()
    # Every call that is not cached, and every explicit trace, comes through here.
    internals: Any = pjit
    infer_params = internals._infer_params

    def intercept(fun: Callable[..., Any], info: Any, args: Any, kwargs: Any) -> Any:
        if not _wanted(fun, function, args, kwargs):
            return infer_params(fun, info, args, kwargs)
        internals._infer_params = infer_params
        workload = workload_of(
            _Jitted(fun, info),
            args,
            kwargs,
            config=config,
            name=name,
            coordinates=coordinates,
            trip_counts=trip_counts,
            kernel_costs=kernel_costs,
        )
        workload.save(path)
        captured.workload = workload
        raise stop

    # Functions called before the block are dispatched from C++ caches without asking Python.
    jax.clear_caches()
    internals._infer_params = intercept
    try:
        yield captured
    except _Stop as reached:
        if reached is not stop:
            raise
    finally:
        internals._infer_params = infer_params
    if captured.workload is None:
        what = f"of {function!r}" if function else "of a jitted function"
        raise CaptureError(
            f"tpusim.capture: the block ended without a call {what}; wrap the step in jax.jit and "
            "call it inside the block"
        )


def _wanted(fun: Callable[..., Any], name: str, args: Any, kwargs: Any) -> bool:
    module = getattr(fun, "__module__", None) or ""
    if module.split(".")[0] in ("jax", "jaxlib"):
        return False
    if name and getattr(fun, "__name__", "") != name:
        return False
    if not core.trace_state_clean():
        return False
    return not any(isinstance(x, core.Tracer) for x in jax.tree.leaves((args, kwargs)))
