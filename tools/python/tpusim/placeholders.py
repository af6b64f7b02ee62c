"""Arrays without elements: what calls return that are not executed.

A script whose step is captured first initialises a model, which may take more memory and time than
this machine has, and may train it. Nothing of that is executed: what a jitted function returns is a
`Placeholder` for each array, with shape, dtype and the sharding that XLA would give it. It can be
passed on to other functions, and operations outside of any jit (`loss.mean()`, `params["w"] * 2`,
`x[0]`) give placeholders again.

Whoever looks at elements (prints them, compares them, makes a number of them) sees what follows
from zeros: `loss` is 0, `loss + 1` is 1, `loss < 0.1` holds. To that end small operations on
placeholders are executed, with zeros for what jitted functions return; large results are zeros.

Large arrays that a script makes without a jitted function (`jnp.zeros`, `jax.random.normal`) are
placeholders, too, but of known elements: if a traced function closes over one, say a mask or a
table of positions, it is computed then.
"""

import dataclasses
import math
import sys
import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import jax
import numpy as np

from tpusim.assumptions import is_users
from tpusim.errors import CaptureError
from tpusim.jax_internals import array_types, meshes
from tpusim.pausing import paused
from tpusim.source_files import relative

Execute = Callable[[Sequence[Any]], Sequence[Any]]

# Limits of what is executed for elements: bytes of all results together, and operations.
MOST_BYTES_OF_A_LOOK = 1 << 26
_MOST_OPERATIONS = 256
# A program holds constants whole, and its text several times as much.
_MOST_BYTES_OF_A_CONSTANT = 1 << 28
# Zeros that are an array of their own; larger ones are one zero seen many times.
_MOST_BYTES_OF_ZEROS = 1 << 26

# Held while operations are executed for a look. A thread that holds it may look, too.
_looking = threading.RLock()


class Looks:
    """Called about elements that a script reads and that no computation has made."""

    def __init__(self) -> None:
        # Blocks in which zeros stand for them; outside they are an error.
        self.blocks = 0
        self.first = ""
        # Told of branches that are taken by such elements, and of constants that stand for them.
        self.decided: Callable[[str, bool], None] = lambda place, value: None
        self.replaced: Callable[[str], None] = lambda what: None

    def at_unknown(self) -> None:
        """Called when the script reads an element whose value is unknown."""
        if not self.blocks:
            raise CaptureError(
                "tpusim.capture: this array was made inside of the block, where no jitted function "
                "is executed; it has no elements: make it again outside"
            )
        self.first = self.first or users_line()


looks = Looks()


class Placing:
    """The function that finds shardings of results; layouts.py sets it."""

    shardings: Callable[["Origin"], list[Any]]  # of each result


placing = Placing()


class Origin:
    """A call that is not executed.

    Its results are known if those of all that it depends on are. The function of a user is not
    executed in any case, and nothing that depends on it is known.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        execute: Execute | None,
        arguments: Sequence[Any],
        avals: Sequence[Any],
        *,
        key: Hashable = None,
        given: Sequence[Any] = (),
        has_mesh: bool = False,
        program: Any = None,
        mesh: Any = None,
    ):
        """A call.

        Args:
          function: takes the flat arguments; it can be traced.
          execute: the same for values, executed; None for what is never executed.
          arguments: the flat arguments.
          avals: of the flat results.
          key: equal for equal functions; None for one that is never met again.
          given: the sharding of each result that the call itself states, None for others.
          has_mesh: whether the call itself names devices.
          program: the call as JAX has traced or lowered it, if it has.
          mesh: that the call is made on, by default that of the context.
        """
        self.function = function
        self.execute = execute
        self.arguments = [_kept(a, execute is None) for a in arguments]
        self.avals = list(avals)
        self.key = key
        self.given = list(given) or [None] * len(self.avals)
        self.has_mesh = has_mesh
        self.program = program
        self.mesh = meshes.context() if mesh is None else mesh
        # Set by layouts.py: the sharding of each result, and whether it is bound to its devices.
        self.shardings: list[Any] | None = None
        self.committed = False
        self.unplaced = 0  # The length of the longest chain before it that has none.
        before = list(self.before())
        self.known = execute is not None and all(origin.known for origin in before)
        self.results: list[Any] | None = None

    def before(self) -> Iterator["Origin"]:
        """The calls that arguments come from."""
        for argument in self.arguments:
            if (placeholder := placeholder_of(argument)) is not None:
                yield placeholder.origin

    def nbytes(self) -> int:
        """Bytes of all results together."""
        return sum(bytes_of(aval) for aval in self.avals)


def _kept(argument: Any, only_described: bool) -> Any:
    """Returns the argument as a call keeps it; scripts refill buffers with the next batch."""
    if not isinstance(argument, np.ndarray):
        return argument
    if only_described:
        return jax.ShapeDtypeStruct(argument.shape, jax.dtypes.canonicalize_dtype(argument.dtype))
    return np.array(argument)


def placeholder_of(value: Any) -> "Placeholder | None":
    """The placeholder that a value is, or that is behind an array of random keys."""
    if isinstance(value, Placeholder):
        return value
    words = array_types.key_words(value) if isinstance(value, jax.Array) else None
    return words if isinstance(words, Placeholder) else None


def bytes_of(aval: Any) -> int:
    """Returns the bytes of an array of that type."""
    return math.prod(aval.shape) * max(1, aval.dtype.itemsize)


def results_of(origin: Origin) -> list[Any]:
    """A placeholder for each result of a call."""
    return [_result(origin, n, aval) for n, aval in enumerate(origin.avals)]


def _result(origin: Origin, index: int, aval: Any) -> Any:
    if not array_types.is_key(aval.dtype):
        return Placeholder(origin, index, aval)
    words = (*aval.shape, *array_types.words_shape(aval.dtype))
    word = Placeholder(origin, index, array_types.aval(words, np.uint32))
    return array_types.key_array(aval.dtype, word)


def elements(origin: Origin, most_bytes: int = MOST_BYTES_OF_A_LOOK) -> list[Any] | None:
    """The results of a call as arrays, or None if that would be to execute a model."""
    with _looking:
        if origin.results is not None:
            return origin.results
        order = _to_execute(origin, most_bytes)
        if order is None:
            return None
        for call in order:
            values = [_value(argument, call.known) for argument in call.arguments]
            assert call.execute is not None
            try:
                results = call.execute(values)
            except Exception:
                # Zeros are not where their placeholders would be.
                if call.known:
                    raise
                return None
            # Random keys as their words.
            call.results = [
                r if (words := array_types.key_words(r)) is None else words for r in results
            ]
        return origin.results


def _to_execute(origin: Origin, most_bytes: int) -> list[Origin] | None:
    """Returns the calls to execute, in order; None if they are too many or must not be executed."""
    order: list[Origin] = []
    seen: set[int] = set()
    stack = [(origin, False)]
    total = 0
    while stack:
        call, done = stack.pop()
        if done:
            order.append(call)
            continue
        if id(call) in seen or call.results is not None:
            continue
        seen.add(id(call))
        if call.execute is None:
            if call is origin:
                return None
            continue
        total += call.nbytes() + sum(_zeros_in(argument) for argument in call.arguments)
        if total > most_bytes or len(seen) > _MOST_OPERATIONS:
            return None
        stack.append((call, True))
        stack.extend((before, False) for before in call.before())
    return order


def _zeros_in(argument: Any) -> int:
    """Bytes of an argument that is not executed."""
    placeholder = placeholder_of(argument)
    unknown = placeholder is not None and placeholder.origin.execute is None
    return bytes_of(placeholder.described) if unknown else 0


def _value(argument: Any, known: bool) -> Any:
    placeholder = placeholder_of(argument)
    if placeholder is None:
        return argument
    results = placeholder.origin.results
    assert results is not None or not known
    value = _zeros(placeholder.described) if results is None else results[placeholder.index]
    return value if placeholder is argument else array_types.key_array(argument.dtype, value)


def _zeros(aval: Any) -> np.ndarray:
    zero = np.zeros((), aval.dtype)
    if bytes_of(aval) > _MOST_BYTES_OF_ZEROS:
        return np.broadcast_to(zero, aval.shape)
    zeros = np.zeros(aval.shape, aval.dtype)
    zeros.setflags(write=False)  # As what NumPy sees of every array of JAX.
    return zeros


class Placeholder(jax.Array):
    """An array of which all but the elements is known."""

    __slots__ = ("_type", "described", "index", "origin")
    __hash__ = None

    def __init__(self, origin: Origin, index: int, described: Any):
        self.origin = origin
        self.index = index
        # Its type, but for the sharding: `aval` has that, which may take work.
        self.described = described
        self._type: Any = None

    shape = property(lambda self: self.described.shape)
    dtype = property(lambda self: self.described.dtype)
    ndim = property(lambda self: len(self.described.shape))
    weak_type = property(lambda self: self.described.weak_type)
    size = property(lambda self: math.prod(self.described.shape))
    itemsize = property(lambda self: self.described.dtype.itemsize)
    nbytes = property(lambda self: bytes_of(self.described))

    # The sharding that the call states, if any.

    @property
    def aval(self) -> Any:
        """Its type, as JAX gives it to an array of its sharding."""
        if self._type is None:
            self._type = array_types.typed(self.described, self.sharding)
        return self._type

    @property
    def sharding(self) -> Any:
        """The sharding that XLA gives this result of the call."""
        return placing.shardings(self.origin)[self.index]

    @property
    def committed(self) -> bool:
        """Whether it is bound to its devices."""
        placing.shardings(self.origin)
        return self.origin.committed

    _committed = committed

    @property
    def device(self) -> Any:
        """The only one that it is on, or else its sharding."""
        devices = self.sharding.device_set
        return next(iter(devices)) if len(devices) == 1 else self.sharding

    _device = device

    @property
    def format(self) -> Any:
        """Its sharding, in a layout that is left to XLA."""
        return jax.experimental.layout.Format(None, self.sharding)

    def devices(self) -> set[Any]:
        """The devices that hold a part of the array."""
        return set(self.sharding.device_set)

    is_fully_addressable = property(lambda self: self.sharding.is_fully_addressable)
    is_fully_replicated = property(lambda self: self.sharding.is_fully_replicated)

    @property
    def addressable_shards(self) -> list["Shard"]:
        """One per device; their data are placeholders as well."""
        sharding = self.sharding
        if len(sharding.device_set) == 1:
            (device,) = sharding.device_set
            return [Shard(device, (slice(None),) * self.ndim, 0, self)]
        shape = sharding.shard_shape(self.shape)
        replicas: dict[str, int] = {}
        shards = []
        for device, index in sharding.devices_indices_map(self.shape).items():
            number = replicas[str(index)] = replicas.get(str(index), -1) + 1
            single = jax.sharding.SingleDeviceSharding(device)

            def part(values: Sequence[Any], index: Any = index) -> list[Any]:
                return [np.asarray(values[0])[index]]

            aval = array_types.aval(shape, self.dtype, self.weak_type)
            origin = Origin(lambda x: x, part, [self], [aval], given=[single], has_mesh=True)
            shards.append(Shard(device, index, number, Placeholder(origin, 0, aval)))
        return shards

    global_shards = addressable_shards

    def addressable_data(self, index: int) -> "Placeholder":
        """Returns the part of one device."""
        return self.addressable_shards[index].data

    # Nothing to wait for, nothing to give back.

    def block_until_ready(self) -> "Placeholder":
        """It never is more ready."""
        return self

    def copy_to_host_async(self) -> None:
        """There is nothing to copy."""

    def is_deleted(self) -> bool:
        """Calls that it is donated to are not executed."""
        return False

    def delete(self) -> None:
        """There is nothing to delete."""

    def is_ready(self) -> bool:
        """Returns True: there is no computation to wait for."""
        return True

    def on_device_size_in_bytes(self) -> int:
        """Without padding."""
        return self.nbytes

    # Elements.

    def _seen(self) -> tuple[Any, bool]:
        """The array as it is seen, and whether that is true."""
        results = elements(self.origin)
        if results is None or not self.origin.known:
            looks.at_unknown()
        if results is None:
            return _zeros(self.described), False
        return results[self.index], self.origin.known

    @property
    def _value(self) -> np.ndarray:
        return np.asarray(self._seen()[0])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        value = self._value
        if dtype is not None and value.dtype != dtype:
            return value.astype(dtype)
        return np.array(value) if copy else value

    def _scalar(self) -> Any:
        value = self._value
        if value.size != 1:
            raise TypeError(
                "Only scalar arrays can be converted to Python scalars; got " + str(self.described)
            )
        return value.reshape(()).item()

    def __bool__(self) -> bool:
        seen, is_true = self._seen()
        value = bool(np.asarray(seen))
        if not is_true and (place := users_line()):
            looks.decided(place, value)
        return value

    def __float__(self) -> float:
        return float(self._scalar())

    def __int__(self) -> int:
        return int(self._scalar())

    def __complex__(self) -> complex:
        return complex(self._scalar())

    def __index__(self) -> int:
        if self.ndim or not np.issubdtype(self.dtype, np.integer):
            raise TypeError("Only integer scalar arrays can be converted to a scalar index.")
        return self._value.item().__index__()

    def __hex__(self) -> str:
        return hex(self.__index__())

    def __oct__(self) -> str:
        return oct(self.__index__())

    def item(self, *args: int) -> Any:
        """One element as a number of Python."""
        return self._value.item(*args)

    def tolist(self) -> Any:
        """Nested lists of numbers."""
        return self._value.tolist()

    def tobytes(self, order: Any = "C") -> bytes:
        """Returns the bytes of all elements."""
        return self._value.tobytes(order)

    def __str__(self) -> str:
        return str(self._value) if self.nbytes <= _MOST_BYTES_OF_ZEROS else repr(self)

    def __repr__(self) -> str:
        if self.nbytes > _MOST_BYTES_OF_ZEROS:
            return f"Array(shape={self.shape}, dtype={self.dtype})"
        weak = ", weak_type=True" if self.weak_type else ""
        text = np.array2string(self._value, separator=", ", prefix="Array(")
        return f"Array({text}, dtype={self.dtype}{weak})"

    def __format__(self, how: str) -> str:
        return format(self._value[()] if self.ndim == 0 else str(self), how)

    def __len__(self) -> int:
        if self.ndim == 0:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        if self.ndim == 0:
            raise TypeError("iteration over a 0-d array")
        if len(self.sharding.device_set) == 1 or self.is_fully_replicated:
            return (self[n] for n in range(self.shape[0]))
        return map(self._row, range(self.shape[0]))

    def __reversed__(self) -> Iterator[Any]:
        return reversed(list(self))

    def _row(self, index: int) -> "Placeholder":
        """Returns a row of a split array, which JAX takes from the host to one device."""
        aval = array_types.aval(self.shape[1:], self.dtype)
        execute: Execute = lambda values: [np.asarray(values[0])[index]]  # noqa: E731
        origin = Origin(lambda x: x[index], execute, [self], [aval])
        with paused():
            origin.shardings = [jax.device_put(0.0).sharding]
        return Placeholder(origin, 0, aval)

    def __getitem__(self, index: Any) -> Any:
        return array_types.indexed(self, index)

    def __reduce__(self) -> Any:
        return (np.asarray, (self._value,))

    def __copy__(self) -> "Placeholder":
        return self

    def __deepcopy__(self, memo: Any) -> "Placeholder":
        return self

    def _real(self) -> Any:
        """An array with elements, for what only such arrays have."""
        with paused():
            return jax.numpy.asarray(self._value)

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self._real().__dlpack__(**kwargs)

    def __dlpack_device__(self) -> Any:
        return self._real().__dlpack_device__()

    def unsafe_buffer_pointer(self) -> int:
        """Returns the address of zeros that no other object holds."""
        return self._real().unsafe_buffer_pointer()


@dataclasses.dataclass(frozen=True)
class Shard:
    """The part of an array on one device, like `jax.Shard`."""

    device: Any
    index: Any
    replica_id: int
    data: Placeholder


def users_line() -> str:
    """`file:line` of the code that looks, "" if only JAX itself does."""
    frame = sys._getframe(1)
    while frame is not None:
        if is_users(frame) and not frame.f_globals.get("__name__", "").startswith("jax."):
            return f"{relative(frame.f_code.co_filename)}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


def _executable(placeholder: Placeholder) -> Any:
    """Returns an argument that JAX can execute with."""
    return placeholder._seen()[0]


def _constant(placeholder: Placeholder) -> np.ndarray:
    """Returns the constant for a function that closes over the placeholder."""
    if placeholder.nbytes > _MOST_BYTES_OF_A_CONSTANT:
        raise CaptureError(
            f"tpusim.capture: the function closes over an array of {placeholder.nbytes} bytes "
            f"({placeholder.described.str_short()}), which would be a constant of the program; "
            "pass it as an argument"
        )
    if placeholder.origin.known:
        results = elements(placeholder.origin, _MOST_BYTES_OF_A_CONSTANT)
        if results is not None:
            return np.asarray(results[placeholder.index])
    looks.at_unknown()
    looks.replaced(placeholder.described.str_short())
    # Zeros would be folded away, and what they are multiplied by with them.
    count = np.arange(placeholder.size) % 251 + 1
    return count.astype(placeholder.dtype).reshape(placeholder.shape)


array_types.give_methods(Placeholder, own=[*vars(Placeholder)])
array_types.register(Placeholder, _executable, _constant)
