"""Calls of jitted functions and single operations, on their way to be executed.

Two calls of Python code stand before everything that executes: what infers the parameters of a
jitted call, and what runs it; an operation outside of any jit comes through the trace that
evaluates. C++ code that dispatches without asking Python only does so for calls that Python has
executed before.

All of that is private; a version of JAX that lacks some of it is an error that names it.
"""

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import jax

from tpusim.jax_internals.versions import internal, optional

_PURPOSE = "see what a script calls (tpusim.capture)"

# Private names that `handled` replaces.
_NEEDED = (
    ("jax._src.pjit", "_infer_params"),
    ("jax._src.pjit", "_pjit_call_impl_python"),
    ("jax._src.pjit", "jit_trace"),
    ("jax._src.pjit", "jit_p"),
    ("jax._src.core", "EvalTrace.process_primitive"),
    ("jax._src.core", "EvalTrace.process_shard_map"),
)

# Goes on as JAX would.
Go = Callable[..., Any]


class Handler(Protocol):
    """Callbacks for every call, operation and transfer; `go` does what JAX would do."""

    def infer(self, function: Any, info: Any, args: Any, kwargs: Any, go: Go) -> Any:
        """A call of `jax.jit(function)`, or that it is lowered or traced."""

    def run(self, args: Sequence[Any], params: dict[str, Any], go: Go) -> Sequence[Any] | None:
        """Its flat results, or None to execute it."""

    def operate(self, primitive: Any, args: Sequence[Any], params: dict[str, Any], go: Go) -> Any:
        """An operation outside of any jit."""

    def shard_map(self, primitive: Any, function: Any, args: Any, params: Any, go: Go) -> Any:
        """A `shard_map` outside of any jit."""

    def program(self, traced: Any, args: Any, kwargs: Any, go: Go) -> Any:
        """A call of `jax.jit(f).trace(...)`, which is a function of such arguments."""

    def put(self, arrays: Sequence[Any], avals: Any, places: Any, go: Go) -> Sequence[Any]:
        """`jax.device_put` of some arrays."""

    def fill(self, shape: Any, sharding: Any, dtype: Any, go: Go) -> Any:
        """An array of what a function gives for each shard; `go` takes what JAX then sees of it."""

    def assemble(self, shape: Any, sharding: Any, arrays: Sequence[Any], go: Go) -> Any:
        """An array that is made of its shards."""

    def ask(self, go: Go) -> Any:
        """A question for shapes or for the program, which is no call."""

    def lower(self, platforms: Any, go: Go) -> Any:
        """`f.lower(...)` for these platforms, or for that of the devices."""

    def compile(self, lowered: Any, options: dict[str, Any], go: Go) -> Any:
        """`f.lower(...).compile(options)`."""


class Jitted:
    """Looks enough like the jitted function whose call was seen to be traced."""

    def __init__(self, function: Callable[..., Any], info: Any, name: str):
        self._fun = function
        self._jit_info = info
        self.__name__ = name

    def trace(self, *args: Any, **kwargs: Any) -> Any:
        """Traces like `jax.jit(...).trace`."""
        return internal("jax._src.pjit", "jit_trace", _PURPOSE)(self, *args, **kwargs)


def jitted(function: Any, name: str) -> Jitted:
    """Wraps what `jax.jit` returned, so that its calls are seen."""
    return Jitted(function._fun, function._jit_info, name)


def is_outermost(leaves: Sequence[Any]) -> bool:
    """Whether nothing is being traced, and none of the arguments is."""
    is_clean = optional("jax._src.core", "trace_state_clean")
    if is_clean is not None and not is_clean():
        return False
    return not any(isinstance(x, jax.core.Tracer) for x in leaves)


def abstract_results(primitive: Any, avals: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """Returns abstract values of an operation's results without executing it."""
    if primitive.name == "stage":  # Nothing but an array of NumPy on its way to JAX.
        return list(avals)
    found = primitive.abstract_eval(*avals, **params)
    # With effects, since some time.
    results = found[0] if isinstance(found, tuple) and len(found) == 2 else found
    return list(results) if primitive.multiple_results else [results]


def call(params: dict[str, Any]) -> Callable[..., Any]:
    """A jitted call with these parameters, as a function of its flat arguments."""
    primitive = internal("jax._src.pjit", "jit_p", _PURPOSE)
    return lambda *args: primitive.bind(*args, **params)


class Inner:
    """A function of the user's that JAX has wrapped, as a jitted one; `about` describes it."""

    def __init__(self, function: Callable[..., Any], about: Any, default: str):
        self.jitted: Any = jax.jit(function)
        self.name = str(getattr(about, "func_name", None) or default)
        self.file = getattr(about, "func_filename", None)
        self.line = getattr(about, "func_lineno", None)


class ShardMapped(Inner):
    """A `shard_map`, of its flat arguments."""

    def __init__(self, primitive: Any, function: Any, params: dict[str, Any]):
        self._form: Any = None

        def bind(*args: Any) -> list[Any]:
            try:
                self._form = primitive.bind(*args, subfuns=(function,), **params)
            except TypeError:
                self._form = primitive.bind(function, *args, **params)  # Before JAX 0.9.
            return list(self._form)

        about = params.get("debug_info") or getattr(function, "debug_info", None)
        super().__init__(bind, about, "shard_map")

    def result(self, flat: Sequence[Any]) -> Any:
        """Flat results in the form in which JAX expects them, once it has been traced."""
        left = iter(flat)
        return self._form.map(lambda _: next(left)) if hasattr(self._form, "map") else list(flat)


def source_of(program: Any) -> str | None:
    """The file of the function that a program was traced from."""
    about = getattr(program, "debug_info", None)
    return getattr(about, "func_filename", None)


def is_call(primitive: Any) -> bool:
    """Whether the operation is a jitted call."""
    return primitive is optional("jax._src.pjit", "jit_p")


@contextlib.contextmanager
def handled(handler: Handler) -> Iterator[Callable[[], None]]:
    """`handler` is told inside the block; yields what puts everything back before its end."""
    for module, name in _NEEDED:
        internal(module, name, _PURPOSE)
    evaluation: Any = internal("jax._src.core", "EvalTrace", _PURPOSE)
    # JAX has no trace while an operation is on its way; a handler calls operations of its own.
    evaluating: Any = internal("jax._src.core", "set_current_trace", _PURPOSE)
    pjit: Any = sys.modules["jax._src.pjit"]
    with contextlib.ExitStack() as stack:

        def put(owner: Any, name: str, make: Callable[[Go], Any]) -> None:
            before = getattr(owner, name)
            stack.callback(setattr, owner, name, before)
            setattr(owner, name, make(before))

        def infer(go: Go) -> Any:
            return lambda fun, info, args, kwargs: handler.infer(fun, info, args, kwargs, go)

        def run(go: Go) -> Any:
            def run(*args: Any, **params: Any) -> Any:
                results = handler.run(args, params, go)
                # No executable: the next call comes here, too.
                return go(*args, **params) if results is None else (results, None, None, [])

            return run

        def operate(go: Go) -> Any:
            def operate(trace: Any, primitive: Any, args: Any, params: Any) -> Any:
                with evaluating(trace):
                    return handler.operate(
                        primitive, args, params, lambda *given: go(trace, primitive, given, params)
                    )

            return operate

        def shard_map(go: Go) -> Any:
            def shard_map(trace: Any, primitive: Any, fun: Any, args: Any, **params: Any) -> Any:
                with evaluating(trace):
                    return handler.shard_map(
                        primitive,
                        fun,
                        args,
                        params,
                        lambda: go(trace, primitive, fun, args, **params),
                    )

            return shard_map

        def program(go: Go) -> Any:
            return lambda traced, *args, **kwargs: handler.program(
                traced, args, kwargs, functools.partial(go, traced)
            )

        def transfer(go: Go) -> Any:
            def transfer(*arrays: Any, devices: Any, dst_avals: Any, **more: Any) -> Any:
                more |= {"devices": devices, "dst_avals": dst_avals}
                return handler.put(arrays, dst_avals, devices, lambda: go(*arrays, **more))

            return transfer

        def fill(go: Go) -> Any:
            def make(shape: Any, sharding: Any, data_callback: Any, dtype: Any = None) -> Any:
                def fill(seen: Callable[[Any], Any]) -> Any:
                    return go(shape, sharding, lambda index: seen(data_callback(index)), dtype)

                return handler.fill(shape, sharding, dtype, fill)

            return make

        def assemble(go: Go) -> Any:
            return lambda shape, sharding, arrays, **more: handler.assemble(
                shape, sharding, arrays, lambda: go(shape, sharding, arrays, **more)
            )

        def ask(go: Go) -> Any:
            return lambda *args, **kwargs: handler.ask(lambda: go(*args, **kwargs))

        def make_jaxpr(go: Go) -> Any:
            return lambda *args, **kwargs: ask(go(*args, **kwargs))

        def lowering(go: Go) -> Any:
            return lambda traced, *, lowering_platforms=None, **more: handler.lower(
                lowering_platforms,
                lambda platforms: go(traced, lowering_platforms=platforms, **more),
            )

        def compiling(go: Go) -> Any:
            return lambda lowered, compiler_options=None, **more: handler.compile(
                lowered,
                dict(compiler_options or {}),
                lambda given: go(lowered, compiler_options=given, **more),
            )

        # Functions called before the block are dispatched without asking Python.
        jax.clear_caches()
        put(pjit, "_infer_params", infer)
        put(pjit, "_pjit_call_impl_python", run)
        put(evaluation, "process_primitive", operate)
        put(evaluation, "process_shard_map", shard_map)
        put(jax, "eval_shape", ask)
        put(jax, "make_jaxpr", make_jaxpr)
        put(jax.stages.Traced, "lower", lowering)
        put(jax.stages.Lowered, "compile", compiling)
        if "__call__" in vars(jax.stages.Traced):
            put(jax.stages.Traced, "__call__", program)
        put(jax, "make_array_from_callback", fill)
        put(jax, "make_array_from_single_device_arrays", assemble)
        # By their other names, which JAX itself uses.
        for owner, name, make in (
            ("jax._src.dispatch", "_batched_device_put_impl", transfer),
            ("jax._src.api", "eval_shape", ask),
            ("jax._src.pjit", "jit_eval_shape", ask),
            ("jax._src.array", "make_array_from_callback", fill),
            ("jax._src.array", "make_array_from_single_device_arrays", assemble),
        ):
            if optional(owner, name) is not None:
                put(sys.modules[owner], name, make)
        yield stack.close
