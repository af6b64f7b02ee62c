"""Every call of a user's jitted function, before it would be executed; none is.

A pmapped function counts as jitted, and so does a `shard_map` that is called outside of any jit.
JAX's own helpers (`jax.numpy`, `jax.random`, ...) are jitted functions too, and not reported; nor
are calls below an outer jit, grad or vmap, which belong to the outer function. `f.lower(...)`
counts as a call, `jax.eval_shape(f, ...)` does not.

What the calls return are placeholders (placeholders.py). Operations outside of any jit are executed
if they have nothing to do with them and are small.
"""

import contextlib
import dataclasses
import functools
import inspect
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax

from tpusim import callbacks, layouts
from tpusim.assumptions import Assumptions, is_users_file
from tpusim.jax_internals import array_types, dispatch, jaxprs, pmapped
from tpusim.pausing import is_paused, paused
from tpusim.placeholders import Origin, Placeholder, bytes_of, placeholder_of, results_of
from tpusim.source_files import relative

# Part of the key by which JAX finds what it has traced before.
_tracing = jax.make_user_context()
# Results of operations outside of any jit that are computed at once, as JAX does.
_MOST_BYTES_AT_ONCE = 1 << 20
# Memory kinds on a device for memory spaces that name no device.
_MEMORY_KINDS = {"Device": "device", "Host": "pinned_host"}


@dataclasses.dataclass(frozen=True)
class Call:
    """A call that a script was about to make."""

    name: str
    place: str  # file:line of the function's definition, "" if it has none
    jitted: Any  # It has a `trace` like that of `jax.jit`.
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    options: dict[str, Any]  # of the compiler, with which the script compiles
    program: Callable[[], Any]  # Traces it: a jaxpr with constants, `in_avals` and `out_avals`.


class _Local(threading.local):
    """The state of interception in one thread."""

    # The program of the call that it infers, and whether it is a user's.
    latest: tuple[Any, bool] = (None, False)


_local = _Local()


@contextlib.contextmanager
def intercepted(reached: Callable[[Call], None]) -> Iterator[Callable[[], None]]:
    """Tells `reached` of every call inside the block; what it raises ends the call.

    Yields what puts everything back as it was, for a `reached` that uses JAX itself.
    """
    with pmapped.by_shard_map(), dispatch.handled(_Interceptor(reached)) as restore:
        yield restore


class _Interceptor(dispatch.Handler):
    """Reports calls, and answers with placeholders."""

    def __init__(self, reached: Callable[[Call], None]):
        self._reached = reached
        self._options: dict[str, Any] = {}

    def infer(self, function: Any, info: Any, args: Any, kwargs: Any, go: dispatch.Go) -> Any:
        if is_paused() or not dispatch.is_outermost(jax.tree.leaves((args, kwargs))):
            return go(function, info, args, kwargs)
        title, place = _title(function)
        if not title:
            found = go(function, info, args, kwargs)
        else:

            @functools.cache
            def trace() -> Any:
                with self._without_callbacks():
                    return go(function, info, args, kwargs)

            def program() -> Any:
                return trace()[0].params["jaxpr"]

            jitted = dispatch.Jitted(function, info, title)
            self._reached(Call(title, place, jitted, tuple(args), kwargs, self._options, program))
            found = trace()
        _local.latest = (found[0].params["jaxpr"], bool(title))
        return found

    @contextlib.contextmanager
    def _without_callbacks(self) -> Iterator[None]:
        """Traces functions that are not executed, so that they can be lowered for TPU.

        Traced outside of the block they call back.
        """
        with _tracing(self), callbacks.caught(Assumptions()):
            yield

    def run(
        self, args: Sequence[Any], params: dict[str, Any], go: dispatch.Go
    ) -> Sequence[Any] | None:
        if is_paused() or not dispatch.is_outermost(args):
            return None
        return _called(args, params, lambda *given: go(*given, **params)[0])

    def operate(
        self, primitive: Any, args: Sequence[Any], params: dict[str, Any], go: dispatch.Go
    ) -> Any:
        if is_paused():
            return go(*args)
        if dispatch.is_call(primitive):
            results = _called(args, params, go)
            return go(*args) if results is None else results
        hidden = any(placeholder_of(argument) is not None for argument in args)
        hidden = hidden or primitive.name == "pallas_call"
        try:
            avals = dispatch.abstract_results(primitive, list(map(jax.typeof, args)), params)
        except Exception:
            if hidden:
                raise
            with paused():
                return go(*args)  # JAX says what is wrong, or knows better.
        if primitive.name == "inspect_sharding" and hidden:
            params["callback"](args[0].sharding)
            return []
        if not all(map(_is_array_type, avals)) or not avals:
            # A print, or a reference: executed with what placeholders look like.
            args = [_looked_at(argument) for argument in args]
            with paused():
                return go(*args)
        if not hidden and sum(map(bytes_of, avals)) <= _MOST_BYTES_AT_ONCE:
            with paused():
                return go(*args)
        if primitive.name == "device_put":
            return self.put(args, avals, params["devices"], go)

        if (placed := pmapped.placed(primitive, avals[0], params)) is not None:
            return _put(args[0], *placed)

        def execute(values: Sequence[Any]) -> Sequence[Any]:
            with paused():
                results = go(*values)
                return results if primitive.multiple_results else [results]

        origin = Origin(
            lambda *given: primitive.bind(*given, **params),
            execute,
            args,
            avals,
            key=_key(primitive, params),
            given=_stated(primitive, params),
            has_mesh=primitive.name in layouts.PLACING or any(map(layouts.is_explicit, avals)),
            mesh=params.get("concrete_mesh"),  # Of a reshard.
        )
        results = _answer(origin)
        return results if primitive.multiple_results else results[0]

    def shard_map(
        self, primitive: Any, function: Any, args: Any, params: Any, go: dispatch.Go
    ) -> Any:
        if is_paused() or not dispatch.is_outermost(args):
            return go()
        call = dispatch.ShardMapped(primitive, function, params)
        return call.result(self._inner(call, args, {})[1])

    def program(self, traced: Any, args: Any, kwargs: Any, go: dispatch.Go) -> Any:
        if is_paused() or not dispatch.is_outermost(jax.tree.leaves((args, kwargs))):
            return go(*args, **kwargs)
        call = dispatch.Inner(go, traced.jaxpr.jaxpr.debug_info, traced.fun_name)
        anew, results = self._inner(call, args, kwargs)
        return jax.tree.unflatten(jax.tree.structure(anew.out_info), results)

    def _inner(self, call: dispatch.Inner, args: Any, kwargs: Any) -> tuple[Any, list[Any]]:
        """Reports a call, and returns how it is traced and its flat results."""
        jitted, place = dispatch.jitted(call.jitted, call.name), _place(call.file, call.line)

        @functools.cache
        def trace() -> Any:
            with paused():
                return call.jitted.trace(*args, **kwargs)

        self._reached(
            Call(
                call.name, place, jitted, tuple(args), kwargs, self._options, lambda: trace().jaxpr
            )
        )
        traced = trace()
        arrays = [x for x in jax.tree.leaves((args, kwargs)) if isinstance(x, jax.Array)]
        avals = traced.jaxpr.out_avals
        origin = Origin(call.jitted, None, arrays, avals, program=traced, has_mesh=True)
        return traced, _answer(origin)

    def put(self, arrays: Sequence[Any], avals: Any, places: Any, go: dispatch.Go) -> Sequence[Any]:
        if is_paused():
            return go()
        types = [a or jax.typeof(x) for x, a in zip(arrays, avals, strict=True)]
        hidden = any(placeholder_of(array) is not None for array in arrays)
        if not hidden and sum(map(bytes_of, types)) <= _MOST_BYTES_AT_ONCE:
            with paused():  # It may cut arrays in pieces.
                return go()
        return [_put(*one) for one in zip(arrays, types, places, strict=True)]

    def fill(self, shape: Any, sharding: Any, dtype: Any, go: dispatch.Go) -> Any:
        if is_paused() or dtype is None:
            return go(_looked_at)  # Only the data say what they are.
        aval = array_types.aval(shape, jax.dtypes.canonicalize_dtype(dtype))
        if bytes_of(aval) <= _MOST_BYTES_AT_ONCE:
            return go(_looked_at)
        where = getattr(sharding, "sharding", sharding)

        def execute(_: Sequence[Any]) -> Sequence[Any]:
            with paused():
                return [go(_looked_at)]

        return _answer(Origin(lambda: None, execute, (), [aval], given=[where], has_mesh=True))[0]

    def assemble(self, shape: Any, sharding: Any, arrays: Sequence[Any], go: dispatch.Go) -> Any:
        if is_paused() or all(placeholder_of(array) is None for array in arrays):
            return go()
        aval = array_types.aval(shape, arrays[0].dtype)
        where = getattr(sharding, "sharding", sharding)
        return _answer(Origin(lambda: None, None, (), [aval], given=[where], has_mesh=True))[0]

    def ask(self, go: dispatch.Go) -> Any:
        with paused():
            return go()

    def lower(self, platforms: Any, go: dispatch.Go) -> Any:
        return go(platforms if is_paused() else platforms or ("tpu",))

    def compile(self, lowered: Any, options: dict[str, Any], go: dispatch.Go) -> Any:
        if is_paused():
            return go(options or None)
        self._options.update(options)
        return _Compiled(lowered, go)


def _answer(origin: Origin) -> list[Any]:
    layouts.settle(origin)
    return results_of(origin)


def _stated(primitive: Any, params: dict[str, Any]) -> list[Any]:
    """Returns the shardings that an operation states for its results."""
    return [params["sharding"]] if primitive.name == "sharding_constraint" else []


def _called(args: Sequence[Any], params: dict[str, Any], go: dispatch.Go) -> list[Any] | None:
    """The results of a jitted call; None if it is to be executed."""
    program = params["jaxpr"]
    latest, users = _local.latest
    if latest is not program:
        # Made of a user's function by grad or vmap.
        file = dispatch.source_of(program.jaxpr)
        users = file is None or is_users_file(file)
    avals = program.out_avals
    hidden = any(placeholder_of(argument) is not None for argument in args)
    small = sum(map(bytes_of, avals)) <= _MOST_BYTES_AT_ONCE
    users = users or jaxprs.kernels(program.jaxpr)  # CPUs execute no kernel.
    if not users and not hidden and small:
        return None

    def execute(values: Sequence[Any]) -> Sequence[Any]:
        with paused():
            return go(*values)

    if not all(map(_is_array_type, avals)) or (not users and program.effects):
        return list(execute([_looked_at(argument) for argument in args]))
    origin = Origin(
        dispatch.call(params),
        None if users else execute,
        args,
        avals,
        key=_key("jit", params),
        given=params["out_shardings"],
        has_mesh=layouts.has_mesh(program.jaxpr)
        or any(map(layouts.is_stated, (*params["in_shardings"], *params["out_shardings"]))),
    )
    return _answer(origin)


def _put(value: Any, aval: Any, where: Any) -> Any:
    """`jax.device_put` of one array."""
    if where is None and isinstance(value, jax.Array):
        return value
    target = getattr(where, "sharding", where)  # Of a layout with a place.
    if isinstance(target, jax.Device):
        target = jax.sharding.SingleDeviceSharding(target)
    elif target is not None and not isinstance(target, jax.sharding.Sharding):
        kind = getattr(where, "memory_kind", None) or _MEMORY_KINDS.get(str(where.name), "device")
        target = value.sharding.with_memory_kind(kind)

    def execute(values: Sequence[Any]) -> Sequence[Any]:
        with paused():
            return [jax.device_put(values[0], where)]

    return _answer(Origin(lambda x: x, execute, [value], [aval], given=[target]))[0]


def _is_array_type(aval: Any) -> bool:
    """Not that of a reference to an array that changes, or of a token."""
    return isinstance(aval, array_types.aval_type())


def _looked_at(value: Any) -> Any:
    """Returns the elements of a placeholder as the script may read them."""
    placeholder = placeholder_of(value)
    if placeholder is None:
        return value
    with paused():
        words = jax.numpy.asarray(placeholder._value)
        return words if placeholder is value else array_types.key_array(value.dtype, words)


def _key(function: Any, params: dict[str, Any]) -> Any:
    """Equal for equal calls, None where parameters cannot be compared."""
    key = (function, *sorted(params.items(), key=lambda item: item[0]))
    try:
        hash(key)
    except TypeError:
        return None
    return key


class _Compiled:
    """`f.lower(...).compile()`: compiled only for what nothing else can tell, never executed."""

    def __init__(self, lowered: Any, go: dispatch.Go):
        self._lowered = lowered
        self._go = go
        self._real: Any = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        infos, tree = jax.tree.flatten(self._lowered.out_info)
        avals = [array_types.aval(info.shape, info.dtype) for info in infos]
        leaves = [x for x in jax.tree.leaves((args, kwargs)) if isinstance(x, jax.Array)]
        origin = Origin(lambda: None, None, leaves, avals, program=self._lowered, has_mesh=True)
        return jax.tree.unflatten(tree, _answer(origin))

    def memory_analysis(self) -> "_NoBytes":
        return _NoBytes()

    def cost_analysis(self) -> Any:
        return self._lowered.cost_analysis()

    def __getattr__(self, name: str) -> Any:
        if self._real is None:
            self._real = self._go(None)  # Options are of TPUs.
        return getattr(self._real, name)


class _NoBytes:
    """The memory of a program that is not compiled: zeros to whoever looks."""

    def __getattr__(self, name: str) -> int:
        if not name.endswith("_in_bytes"):
            raise AttributeError(name)
        return 0


def _title(function: Callable[..., Any]) -> tuple[str, str]:
    """Name and place of a user's function; an empty name for one of JAX's own."""
    if pmapped.is_wrapper(function) and (about := pmapped.within(function)) is not None:
        return str(about.func_name), _place(about.func_filename, about.func_lineno)
    module = getattr(function, "__module__", None) or ""
    if module.split(".")[0] in ("jax", "jaxlib"):
        return "", ""
    function = inspect.unwrap(function)
    while isinstance(function, functools.partial):
        function = function.func
    code = getattr(function, "__code__", None)
    place = _place(code.co_filename, code.co_firstlineno) if code is not None else ""
    return getattr(function, "__name__", None) or "function", place


def shape_of(value: Any) -> str:
    """`bf16[8,16]` of an array, the value of anything else that a function can take."""
    if isinstance(value, Placeholder):
        return array_types.unsharded(value.described).str_short()
    try:
        return array_types.unsharded(jax.typeof(value)).str_short()
    except TypeError:
        return re.sub(r" at 0x[0-9a-f]+(?=>)", "", repr(value))  # The same in every run.


def type_of(value: Any) -> str:
    """`bf16[8,16]@P('data',)`: with the sharding of an array, which may take work."""
    sharding = getattr(value, "sharding", None)
    if not any(array_types.partitions(sharding)):
        return shape_of(value)
    return f"{shape_of(value)}@{str(sharding.spec).replace('PartitionSpec', 'P')}"


def _place(file: str | None, line: int | None) -> str:
    return f"{relative(file)}:{line}" if file else ""
