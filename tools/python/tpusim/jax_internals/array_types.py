"""Registers a class as an array with JAX.

Public is only what an array looks like (`jax.Array`). What JAX does with a class that it does not
know is refuse it: there is no way around these tables.
"""

import functools
from collections.abc import Callable, Collection, Sequence
from typing import Any

import jax
import numpy as np

from tpusim.jax_internals.versions import internal, optional
from tpusim.pausing import paused

_PURPOSE = "let placeholders pass for arrays (tpusim.capture)"


def aval_type() -> type:
    """Returns the class of abstract values of arrays."""
    return internal("jax.core", "ShapedArray", _PURPOSE)


def aval(shape: Sequence[int], dtype: Any, weak_type: bool = False) -> Any:
    """The type of an array, of whatever sharding."""
    return aval_type()(tuple(shape), dtype, weak_type=weak_type)


def typed(aval: Any, sharding: Any) -> Any:
    """The type that JAX gives an array of that sharding: with the mesh and its explicit axes."""
    return internal("jax._src.core", "update_aval_with_sharding", _PURPOSE)(aval, sharding)


def unsharded(aval: Any) -> Any:
    """Returns the abstract value without a sharding; any other value as it is."""
    return aval.update(sharding=None) if isinstance(aval, aval_type()) else aval


def partitions(sharding: Any) -> tuple[Any, ...]:
    """Returns the mesh axes of each dimension, as far as the sharding has a PartitionSpec."""
    spec = getattr(sharding, "spec", ())
    # A spec with unreduced axes is no sequence.
    return tuple(getattr(spec, "partitions", spec))


def key_array(dtype: Any, base: Any) -> Any:
    """An array of random keys of that dtype, made of the words in `base`."""
    return _key_array_type()(dtype._impl, base)


@functools.cache
def _key_array_type() -> Any:
    """Returns the class of arrays of random keys."""
    with paused():
        return type(jax.random.key(0))


def key_words(keys: Any) -> Any:
    """Returns the integers behind an array of random keys; None for any other array."""
    return getattr(keys, "_base_array", None)


def words_shape(dtype: Any) -> tuple[int, ...]:
    """Returns the shape of the integers behind one random key."""
    return tuple(dtype._impl.key_shape)


def is_key(dtype: Any) -> bool:
    """Whether elements are random keys."""
    return jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key)


def register(
    cls: type,
    value: Callable[[Any], Any],
    constant: Callable[[Any], np.ndarray],
) -> None:
    """Lets objects of a class with `aval` and `sharding` be arguments of anything in JAX.

    Args:
      cls: a subclass of `jax.Array`.
      value: gives the array in place of an object that is executed with.
      constant: gives the elements of an object that a traced function closes over.
    """
    internal("jax._src.core", "pytype_aval_mappings", _PURPOSE)[cls] = lambda array: array.aval
    canonicalize = optional("jax._src.dtypes", "register_canonicalize_value_handler")
    if canonicalize is not None:
        canonicalize(cls, None)
    else:
        handlers = internal("jax._src.dtypes", "canonicalize_value_handlers", _PURPOSE)
        handlers[cls] = lambda array: array
    shard_args = internal("jax._src.interpreters.pxla", "shard_args", _PURPOSE)
    ir_constant = internal("jax._src.interpreters.mlir", "ir_constant", _PURPOSE)

    def shard(arrays: Any, shardings: Any, layouts: Any, semantics: Any) -> Any:
        return shard_args(shardings, layouts, semantics, [value(array) for array in arrays])

    internal("jax._src.interpreters.pxla", "shard_arg_handlers", _PURPOSE)[cls] = shard
    internal("jax._src.interpreters.mlir", "register_constant_handler", _PURPOSE)(
        cls, lambda array, *_: ir_constant(constant(array))
    )


def give_methods(cls: type, own: Collection[str]) -> None:
    """The operators and methods of arrays, but for its own; they are operations of `jax.numpy`."""
    give = internal("jax._src.numpy.array_methods", "_set_array_base_attributes", _PURPOSE)
    give(cls, exclude=set(own))


def indexed(array: Any, index: Any) -> Any:
    """`array[index]`."""
    return internal("jax._src.numpy.indexing", "rewriting_take", _PURPOSE)(array, index)
