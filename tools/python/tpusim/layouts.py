"""Shardings that results of calls would have, for calls that are not executed.

Results on one device, and results whose sharding the call states, need no more. Shardings of others
are up to XLA: the program of the call is lowered and its shardings are propagated, once for equal
calls, and only when the script asks for one.
"""

from collections.abc import Hashable
from typing import Any

import jax
from jax.sharding import SingleDeviceSharding

from tpusim.jax_internals import array_types, jaxprs, lowering, meshes
from tpusim.pausing import paused
from tpusim.placeholders import Origin, placeholder_of, placing

# Shardings by function and arguments, and whether results are committed.
_found: dict[Hashable, tuple[list[Any], bool]] = {}
# Calls in a chain whose shardings nobody has asked for.
_MOST_UNPLACED = 32
# Operations that say where their results are.
PLACING = frozenset({"sharding_constraint", "shard_map", "reshard", "mesh_cast", "device_put"})


def shardings(origin: Origin) -> list[Any]:
    """Returns the sharding of each result."""
    # A stack of its own: chains of steps are as long as a script's loop.
    stack = [origin]
    while stack:
        call = stack[-1]
        if call.shardings is None:
            waiting = [before for before in call.before() if before.shardings is None]
            if waiting:
                stack.extend(waiting)
                continue
            with paused(), meshes.using(call.mesh):
                call.shardings, call.committed = _place(call)
            call.unplaced = 0
            if call.execute is None:
                call.arguments = []  # What they come from may go.
        stack.pop()
    assert origin.shardings is not None
    return origin.shardings


placing.shardings = shardings


def settle(origin: Origin) -> None:
    """Keeps chains of calls without shardings short: a loop of a script may be of any length."""
    waiting = [before.unplaced for before in origin.before() if before.shardings is None]
    origin.unplaced = 1 + max(waiting, default=0)
    if origin.unplaced > _MOST_UNPLACED:
        shardings(origin)


def is_known(value: Any) -> bool:
    """Whether the sharding of a value is there without work."""
    placeholder = placeholder_of(value)
    return placeholder is None or placeholder.origin.shardings is not None


def has_mesh(jaxpr: Any) -> bool:
    """Whether a program says itself on which devices something is."""
    pending = [jaxpr]
    seen: set[int] = set()
    while pending:
        program = pending.pop()
        if id(program) in seen:
            continue
        seen.add(id(program))
        for equation in program.eqns:
            if equation.primitive.name in PLACING:
                return True
            for stated in ("in_shardings", "out_shardings"):
                if any(map(is_stated, equation.params.get(stated, ()))):
                    return True
            pending.extend(jaxprs.inside(equation.params))
    return any(is_explicit(v.aval) for v in (*jaxpr.invars, *jaxpr.outvars) if hasattr(v, "aval"))


def is_stated(sharding: Any) -> bool:
    """Whether the user has said where something is."""
    return isinstance(sharding, jax.sharding.Sharding)


def is_explicit(aval: Any) -> bool:
    """Whether the type of an array has its sharding."""
    mesh = getattr(getattr(aval, "sharding", None), "mesh", None)
    return mesh is not None and not mesh.empty


def _place(call: Origin) -> tuple[list[Any], bool]:
    if call.program is not None:
        return lowering.result_shardings(call.program)
    if all(map(lowering.is_whole, call.given)):
        return call.given, True
    structs = [_described(argument) for argument in call.arguments]
    bound = [s.sharding for s in structs if getattr(s, "sharding", None) is not None]
    devices = set().union(*(sharding.device_set for sharding in bound))
    if not call.has_mesh and call.mesh is None and len(devices) <= 1:
        one = SingleDeviceSharding(next(iter(devices), None) or _default_device())
        return [one] * len(call.avals), bool(devices)
    key = None
    if call.key is not None:
        key = (call.key, call.mesh, *((s.shape, s.dtype, s.sharding) for s in structs))
        if key in _found:
            return _found[key]
    traced = jax.jit(lambda *arguments: call.function(*arguments)).trace(*structs)
    found, committed = lowering.result_shardings(traced)
    chosen = [
        given if lowering.is_whole(given) else sharding
        for given, sharding in zip(call.given, found, strict=True)
    ]
    placed = chosen, committed
    if key is not None:
        _found[key] = placed
    return placed


def _described(argument: Any) -> Any:
    """Shape, dtype, and where it is if it has to be there."""
    if isinstance(argument, jax.ShapeDtypeStruct):
        return argument
    aval = jax.typeof(argument)
    sharding = argument.sharding if getattr(argument, "_committed", False) else None
    if len(array_types.partitions(sharding)) > len(aval.shape):
        # Random keys of one device say that of their words.
        kept = array_types.partitions(sharding)[: len(aval.shape)]
        sharding = sharding.update(spec=jax.sharding.PartitionSpec(*kept))
    return jax.ShapeDtypeStruct(aval.shape, aval.dtype, sharding=sharding)


def _default_device() -> Any:
    device = jax.config.jax_default_device
    return device if isinstance(device, jax.Device) else jax.local_devices()[0]
