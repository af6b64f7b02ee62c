"""Jitted functions that are evaluated as shapes, and executed only if a value is asked for.

A script whose step is captured first initialises a model, which may take more memory and time than
this machine has. What a jitted function returns is therefore a `Deferred` for each array: it has
shape, dtype and the sharding that XLA gives it, and can be passed on to other functions. Whoever
looks at its elements (prints them, computes with them outside of a jitted function) has it executed
then, with everything that it depends on; the script sees no difference.

Functions with effects (callbacks, prints) are executed when they are called.

Threads of a script may look at values at the same time; one executes, the others wait for it. Calls
are not executed in the order in which the script made them, so none may delete what another still
needs: donated arguments are copies.
"""

import math
import threading
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy
from jax._src import array, basearray, core, dtypes
from jax._src.interpreters import mlir, pxla

Execute = Callable[[Sequence[Any]], Sequence[Any]]

# Held while a call is executed. A thread that holds it may look at values, too.
_executing = threading.RLock()


class Pending:
    """A call not executed yet: `execute` takes flat arguments, and returns flat results."""

    def __init__(self, execute: Execute, arguments: Sequence[Any], donated: Sequence[bool]):
        self._execute = execute
        self._arguments: Sequence[Any] | None = arguments
        self._donated = donated
        self._results: Sequence[Any] = ()

    def results(self) -> Sequence[Any]:
        """Executes the call, after those it depends on, once."""
        with _executing:
            return self._executed()

    def _executed(self) -> Sequence[Any]:
        # A stack of its own: chains of steps are as long as a script's loop.
        stack = [self]
        while stack:
            call = stack[-1]
            arguments = call._arguments
            if arguments is None:
                stack.pop()
                continue
            first = [
                a._pending
                for a in arguments
                if isinstance(a, Deferred) and a._pending._arguments is not None
            ]
            if first:
                stack.extend(first)
                continue
            values = [a.value() if isinstance(a, Deferred) else a for a in arguments]
            with core.eval_context():
                values = [
                    value.copy() if donated and isinstance(value, array.ArrayImpl) else value
                    for value, donated in zip(values, call._donated, strict=True)
                ]
                call._results = call._execute(values)
            call._arguments = None
            stack.pop()
        return self._results


class Deferred(basearray.Array):
    """An array of which all but the elements is known."""

    __slots__ = ("_committed", "_index", "_pending", "aval", "sharding")
    __hash__ = None

    def __init__(self, pending: Pending, index: int, aval: Any, sharding: Any, committed: bool):
        self._pending = pending
        self._index = index
        self.aval = aval
        self.sharding = sharding
        self._committed = committed

    def value(self) -> Any:
        """The array itself."""
        return self._pending.results()[self._index]

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    ndim = property(lambda self: self.aval.ndim)
    weak_type = property(lambda self: self.aval.weak_type)
    size = property(lambda self: math.prod(self.aval.shape))
    itemsize = property(lambda self: self.aval.dtype.itemsize)
    nbytes = property(lambda self: self.size * self.itemsize)
    committed = property(lambda self: self._committed)

    def __len__(self) -> int:
        if self.ndim == 0:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def devices(self) -> Any:
        """As of any array."""
        return self.sharding.device_set

    def block_until_ready(self) -> "Deferred":
        """Waits for nothing."""
        return self

    def copy_to_host_async(self) -> None:
        """Is no need for a value yet."""

    def is_deleted(self) -> bool:
        """Donated arrays are not deleted before the call that they are donated to."""
        return False


# What belongs to the object, not to the array.
_OWN = {
    *("__class__", "__new__", "__init__", "__getattribute__", "__setattr__", "__delattr__"),
    *("__init_subclass__", "__subclasshook__", "__dir__", "__doc__", "__module__", "__dict__"),
    *("__weakref__", "__slots__", "__sizeof__", "__hash__", "__annotations__"),
}


def _forward_to_values() -> None:
    """Everything else that arrays can do is done by the value."""

    def method(name: str) -> Any:
        return lambda self, *args, **kwargs: getattr(self.value(), name)(*args, **kwargs)

    def attribute(name: str) -> Any:
        return property(lambda self: getattr(self.value(), name))

    for name in dir(array.ArrayImpl):
        if name not in _OWN and name not in vars(Deferred):
            special = name.startswith("__") and callable(getattr(array.ArrayImpl, name))
            setattr(Deferred, name, method(name) if special else attribute(name))


def _shard(arguments: Any, shardings: Any, layouts: Any, semantics: Any) -> Any:
    values = [argument.value() for argument in arguments]
    return pxla.shard_args(shardings, layouts, semantics, values)


def _constant(value: Deferred, aval: Any) -> Any:
    return mlir.get_constant_handler(array.ArrayImpl)(value.value(), aval)


_forward_to_values()
core.pytype_aval_mappings[Deferred] = lambda deferred: deferred.aval
dtypes.register_canonicalize_value_handler(Deferred, None)
pxla.shard_arg_handlers[Deferred] = _shard
mlir.register_constant_handler(Deferred, _constant)


def deferred(
    trace: Callable[[], Any],
    effects: Any,
    execute: Execute,
    arguments: Sequence[Any],
    donated: Sequence[bool],
) -> list[Deferred] | None:
    """The flat results of a call, or None if it has to be executed.

    Args:
      trace: traces the call, as `jax.jit(f).trace(...)` does.
      effects: those of its jaxpr.
      execute: executes it.
      arguments: the flat arguments.
      donated: which of them the call may overwrite.
    """
    if effects:
        return None
    traced = trace()
    avals = traced.jaxpr.out_avals
    if any(dtypes.issubdtype(aval.dtype, dtypes.extended) for aval in avals):
        return None  # Random keys.
    lowered = traced.lower()
    # Only XLA knows the shardings that nobody states.
    shardings = jax.tree.leaves(lowered.compile().output_shardings)
    if len(shardings) != len(avals):
        return None
    committed = bool(lowered._lowering.compile_args.get("committed", True))
    # Scripts fill the same buffer with the next batch.
    kept = [numpy.array(a) if isinstance(a, numpy.ndarray) else a for a in arguments]
    pending = Pending(execute, kept, donated)
    return [
        Deferred(pending, i, aval, sharding, committed)
        for i, (aval, sharding) in enumerate(zip(avals, shardings, strict=True))
    ]
