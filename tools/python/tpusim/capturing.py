"""`with tpusim.capture("workload.pb"):` takes a workload out of a script that already exists.

The first call of a jitted function inside the block is exported with the arguments of that call
instead of being executed, and the block ends there, as if the call had been its last statement:

    with tpusim.capture("step.pb", config="v5e-4x2") as captured:
        train()                     # builds a mesh, shards its arrays, calls train_step(...)
    print(captured.workload.name)

A pmapped function counts as jitted, and so does a `shard_map` that is called outside of any jit.
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

from tpusim import chip_view
from tpusim.assumptions import Assumptions
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

    def __init__(self, function: Callable[..., Any], info: Any, name: str):
        self._fun = function
        self._jit_info = info
        self.__name__ = name

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
    assumptions = Assumptions()
    stop = _Stop()
    # Every call that is not cached, and every explicit trace, comes through the first; every
    # shard_map outside of a trace through the second.
    internals: Any = pjit
    evaluation: Any = core.EvalTrace
    infer_params = internals._infer_params
    process_shard_map = evaluation.process_shard_map

    def take(jitted: Any, args: Any, kwargs: Any) -> None:
        restore()
        captured.workload = workload_of(
            jitted,
            args,
            kwargs,
            config=config,
            name=name,
            coordinates=coordinates,
            trip_counts=trip_counts,
            kernel_costs=kernel_costs,
            assumptions=assumptions,
        )
        captured.workload.save(path)
        raise stop

    def intercept_jit(fun: Callable[..., Any], info: Any, args: Any, kwargs: Any) -> Any:
        title = _title(fun)
        if _wanted(title, function, args, kwargs):
            take(_Jitted(fun, info, title), args, kwargs)
        return infer_params(fun, info, args, kwargs)

    def intercept_shard_map(trace: Any, primitive: Any, fun: Any, args: Any, **params: Any) -> Any:
        title = params["debug_info"].func_name
        if _wanted(title, function, args, {}):
            sharded: Any = jax.jit(
                lambda *args: list(primitive.bind(*args, subfuns=(fun,), **params))
            )
            take(_Jitted(sharded._fun, sharded._jit_info, title), args, {})
        return process_shard_map(trace, primitive, fun, args, **params)

    def restore() -> None:
        internals._infer_params = infer_params
        evaluation.process_shard_map = process_shard_map

    # Functions called before the block are dispatched from C++ caches without asking Python.
    jax.clear_caches()
    internals._infer_params = intercept_jit
    evaluation.process_shard_map = intercept_shard_map
    try:
        with chip_view.shown(config, assumptions, as_tpu=False):
            yield captured
    except _Stop as reached:
        if reached is not stop:
            raise
    finally:
        restore()
    if captured.workload is None:
        what = f"of {function!r}" if function else "of a jitted function"
        raise CaptureError(
            f"tpusim.capture: the block ended without a call {what}; wrap the step in jax.jit and "
            "call it inside the block"
        )


def _title(fun: Callable[..., Any]) -> str:
    """The name of a user's function; empty for one of JAX's own."""
    module = getattr(fun, "__module__", None) or ""
    if module == "jax._src.pmap":
        # A wrapper of what the user has pmapped, which it holds in its closure.
        inner: Any = getattr(fun, "__wrapped__", fun)
        for cell in inner.__closure__ or ():
            info = getattr(cell.cell_contents, "debug_info", None)
            if info is not None:
                return str(info.func_name)
    if module.split(".")[0] in ("jax", "jaxlib"):
        return ""
    return getattr(fun, "__name__", None) or "function"


def _wanted(title: str, name: str, args: Any, kwargs: Any) -> bool:
    if not title or (name and title != name):
        return False
    if not core.trace_state_clean():
        return False
    return not any(isinstance(x, core.Tracer) for x in jax.tree.leaves((args, kwargs)))
