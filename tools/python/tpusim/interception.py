"""Every call of a user's jitted function, before it is executed; execution itself is put off.

A pmapped function counts as jitted, and so does a `shard_map` that is called outside of any jit.
JAX's own helpers (`jax.numpy`, `jax.random`, ...) are jitted functions too, and not reported; nor
are calls below an outer jit, grad or vmap, which belong to the outer function. `f.lower(...)`
counts as a call.

The calls are evaluated as shapes, and executed when someone looks at a value (deferral.py); a
shard_map outside of any jit is executed at once.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
from jax._src import core, pjit

from tpusim import deferral
from tpusim.assumptions import relative


class Jitted:
    """Looks enough like the jitted function whose call was intercepted to be traced."""

    def __init__(self, function: Callable[..., Any], info: Any, name: str):
        self._fun = function
        self._jit_info = info
        self.__name__ = name

    @property
    def function(self) -> Callable[..., Any]:
        """What was jitted."""
        return self._fun

    def trace(self, *args: Any, **kwargs: Any) -> Any:
        """As that of `jax.jit`."""
        return pjit.jit_trace(self, *args, **kwargs)


@dataclasses.dataclass(frozen=True)
class Call:
    """A call that a script was about to make."""

    name: str
    place: str  # file:line of the function's definition, "" if it has none
    jitted: Jitted
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


@contextlib.contextmanager
def intercepted(reached: Callable[[Call], None]) -> Iterator[Callable[[], None]]:
    """Tells `reached` of every call inside the block; what it raises ends the call.

    Yields what puts everything back as it was, for a `reached` that uses JAX itself.
    """
    # Every call that is not cached, and every explicit trace, comes through the first; every
    # shard_map outside of a trace through the second.
    internals: Any = pjit
    evaluation: Any = core.EvalTrace
    infer_params = internals._infer_params
    process_shard_map = evaluation.process_shard_map
    # What executes a call after that.
    run_jit = internals._run_python_pjit
    latest: Call | None = None
    evaluating = False

    def intercept_jit(fun: Callable[..., Any], info: Any, args: Any, kwargs: Any) -> Any:
        nonlocal latest
        title, place = _title(fun)
        if title and not evaluating and _outermost(args, kwargs):
            latest = Call(title, place, Jitted(fun, info, title), args, kwargs)
            reached(latest)
        return infer_params(fun, info, args, kwargs)

    def put_off(inferred: Any, flat: Any, fun: Any, args: Any, kwargs: Any) -> Any:
        nonlocal evaluating
        jaxpr, call = inferred.params["jaxpr"], latest
        if call is None or call.jitted.function is not fun or not _outermost(args, kwargs):
            return run_jit(inferred, flat, fun, args, kwargs)

        def execute(values: Sequence[Any]) -> Sequence[Any]:
            return run_jit(inferred, values, fun, args, kwargs)[1]

        evaluating = True
        try:
            results = deferral.deferred(
                lambda: call.jitted.trace(*args, **kwargs),
                jaxpr.effects,
                execute,
                flat,
                inferred.params["donated_invars"],
            )
        finally:
            evaluating = False
        if results is None:
            return run_jit(inferred, flat, fun, args, kwargs)
        # No executable: the next call comes here, too.
        outs = jax.tree.unflatten(inferred.out_tree, results)
        return outs, results, inferred.out_tree, flat, jaxpr, None, None, []

    def intercept_shard_map(trace: Any, primitive: Any, fun: Any, args: Any, **params: Any) -> Any:
        if _outermost(args, {}):
            about = params["debug_info"]
            sharded: Any = jax.jit(
                lambda *args: list(primitive.bind(*args, subfuns=(fun,), **params))
            )
            jitted = Jitted(sharded._fun, sharded._jit_info, about.func_name)
            place = _place(about.func_filename, about.func_lineno)
            reached(Call(about.func_name, place, jitted, tuple(args), {}))
        return process_shard_map(trace, primitive, fun, args, **params)

    def restore() -> None:
        internals._infer_params = infer_params
        internals._run_python_pjit = run_jit
        evaluation.process_shard_map = process_shard_map

    # Functions called before the block are dispatched from C++ caches without asking Python.
    jax.clear_caches()
    internals._infer_params = intercept_jit
    internals._run_python_pjit = put_off
    evaluation.process_shard_map = intercept_shard_map
    try:
        yield restore
    finally:
        restore()


def _title(fun: Callable[..., Any]) -> tuple[str, str]:
    """Name and place of a user's function; an empty name for one of JAX's own."""
    module = getattr(fun, "__module__", None) or ""
    if module == "jax._src.pmap":
        # A wrapper of what the user has pmapped, which it holds in its closure.
        inner: Any = getattr(fun, "__wrapped__", fun)
        for cell in inner.__closure__ or ():
            info = getattr(cell.cell_contents, "debug_info", None)
            if info is not None:
                return str(info.func_name), _place(info.func_filename, info.func_lineno)
    if module.split(".")[0] in ("jax", "jaxlib"):
        return "", ""
    code = getattr(fun, "__code__", None)
    place = _place(code.co_filename, code.co_firstlineno) if code is not None else ""
    return getattr(fun, "__name__", None) or "function", place


def type_of(value: Any) -> str:
    """`bf16[8,16]@P('data',)` of an array, the value of anything else that a function can take."""
    try:
        text = core.typeof(value).str_short()
    except TypeError:
        return repr(value)
    spec = getattr(getattr(value, "sharding", None), "spec", None)
    return text if spec is None or not any(spec) else f"{text}@{spec}"


def _place(file: str | None, line: int | None) -> str:
    return f"{relative(file)}:{line}" if file else ""


def _outermost(args: Any, kwargs: Any) -> bool:
    if not core.trace_state_clean():
        return False
    return not any(isinstance(x, core.Tracer) for x in jax.tree.leaves((args, kwargs)))
