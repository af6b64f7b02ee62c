"""What the copies that a kernel's body starts by itself move.

The size of a slice may be computed (`pl.ds(start, size)`): what is left of a sequence, say. Where
it is known at every point of the grid, each point has its own. Where it is data, the largest copy
that there can be counts: no slice is longer than the dimension that it is taken from, at either
end, nor longer than what its size is bounded by (`jnp.minimum(block, left)`).
"""

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

from tpusim.kernels.price import KernelError, Price
from tpusim.kernels.scalars import Scalar

# What is known of the atom of a jaxpr.
ScalarOf = Callable[[Any], Scalar]


@dataclasses.dataclass(frozen=True)
class Copy:
    """A copy, at some points of the grid."""

    chosen: np.ndarray | slice
    price: Price


def bytes_of(aval: Any) -> int:
    """Of an array or of what a reference names."""
    inner = getattr(aval, "inner_aval", aval)
    return math.prod(inner.shape) * np.dtype(inner.dtype).itemsize


def in_hbm(aval: Any) -> bool:
    """Whether a reference names an array outside of the kernel's memory."""
    space = str(getattr(aval, "memory_space", None)).lower()
    return any(word in space for word in ("any", "hbm", "host"))


def copies(equation: Any, scalar_of: ScalarOf, place: Callable[[], str]) -> Iterator[Copy]:
    """What a dma_start moves; more than one if its size differs between points of the grid."""
    # A reference is a variable, or one with views of it.
    start, target, *_, device = jax.tree.unflatten(equation.params["tree"], equation.invars)
    ends = start, target
    sizes = {size: scalar_of(size) for end in ends for size in _computed_sizes(end)}
    known = {size: scalar.exact for size, scalar in sizes.items() if scalar.exact is not None}
    if not known:
        yield Copy(slice(None), _price(ends, sizes, {}, device, place))
        return
    rows, which = np.unique(np.stack(list(known.values())), axis=1, return_inverse=True)
    for number, row in enumerate(rows.T.tolist()):
        at = dict(zip(known, row, strict=True))
        yield Copy(which.ravel() == number, _price(ends, sizes, at, device, place))


def _price(
    ends: tuple[Any, Any],
    sizes: dict[Any, Scalar],
    known: dict[Any, int],
    device: Any,
    place: Callable[[], str],
) -> Price:
    def largest(size: Any, extent: int) -> int:
        if hasattr(size, "val"):
            return int(size.val)
        most = known.get(size, sizes[size].high)
        return max(0, int(min(extent, most)))

    views = [_view(end, largest, place) for end in ends]
    view = min(views, key=bytes_of)
    size = bytes_of(view)
    in_hbms = sum(in_hbm(_reference(end).aval) for end in ends)
    assumed = ()
    if len(known) < len(sizes):
        shape = ",".join(map(str, view.shape))
        assumed = (f"{np.dtype(view.dtype).name}[{shape}] at {place()}",)
    return Price(
        bytes_accessed=size * in_hbms,
        remote_bytes=0 if device is None else size,
        largest_copies=assumed if size else (),
    )


def _reference(end: Any) -> Any:
    reference = getattr(end, "ref", end)
    return reference[0] if isinstance(reference, tuple | list) else reference


def _slices(transform: Any) -> list[tuple[int, Any]]:
    """Dimensions that a view of a reference takes slices of, whose sizes are computed."""
    indices = getattr(transform, "indices", ())
    sizes = ((n, getattr(index, "size", None)) for n, index in enumerate(indices))
    return [
        (n, size)
        for n, size in sizes
        if isinstance(indices[n], jax.ds(0, 1).__class__) and not isinstance(size, int)
    ]


def _computed_sizes(end: Any) -> Iterator[Any]:
    return itertools.chain.from_iterable(
        (size for _, size in _slices(transform) if not hasattr(size, "val"))
        for transform in getattr(end, "transforms", ())
    )


def _view(end: Any, largest: Callable[[Any, int], int], place: Callable[[], str]) -> Any:
    """The shape and type of an end, sizes that are computed taken as `largest` has them."""
    aval = _reference(end).aval
    aval = getattr(aval, "inner_aval", aval)
    for transform in getattr(end, "transforms", ()):
        computed = _slices(transform)
        if computed:
            indices = list(transform.indices)
            for dimension, size in computed:
                length = largest(size, aval.shape[dimension])
                indices[dimension] = dataclasses.replace(indices[dimension], size=length)
            transform = dataclasses.replace(transform, indices=tuple(indices))
        if hasattr(transform, "transform_types"):
            continue  # It picks one of several references of one type.
        aval = transform.transform_type(aval)
    if not all(isinstance(extent, int | np.integer) for extent in aval.shape):
        raise KernelError(f"there is no rule for a copy of {aval} at {place()}")
    return aval
