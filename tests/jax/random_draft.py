"""Parts of random programs: values, steps, and the draft that a maker adds to.

A maker is a function of a draft. It looks at the values that exist, picks operands and returns a
step, or None if nothing fits; `@maker` registers it, `@maker_of` picks a first operand for it.
Makers are in `random_elementwise`, `random_movement`, `random_sums`, `random_lookups` and
`random_transforms`.

The dangerous dimensions are those that shards divide unevenly: their last shards end in padding,
which must never reach a result. A draft makes such values on purpose (`split_unevenly`): it
constrains a value and then puts garbage (NaN, infinity, the largest integer) wherever the index is
beyond the dimension. That changes no element that exists, but any padding that exists in shards
only. What is split so is kept in mind, and makers prefer to work along it.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec

AnyMesh = Mesh | AbstractMesh
Random = np.random.Generator

DTYPES = (jnp.float32, jnp.float32, jnp.bfloat16, jnp.int32, jnp.int32, jnp.bool_, jnp.uint8)
MAX_ELEMENTS = 1 << 13
SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 8, 9, 10, 12, 13, 16, 16, 18, 24, 32)


@dataclasses.dataclass(frozen=True)
class Value:
    """Facts about a value while the program is made."""

    shape: tuple[int, ...]
    dtype: Any
    computed: bool = False  # its floats may be off by roundings
    uneven: tuple[int, ...] = ()  # dimensions that were split unevenly

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def elements(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def is_float(self) -> bool:
        """True of f32 and bf16."""
        return bool(jnp.issubdtype(self.dtype, jnp.floating))

    @property
    def is_int(self) -> bool:
        """True of s32, u8 and the like, false of pred."""
        return bool(jnp.issubdtype(self.dtype, jnp.integer))

    @property
    def is_number(self) -> bool:
        """False of pred."""
        return self.is_float or self.is_int

    @property
    def is_exact(self) -> bool:
        """Two correct programs agree on every bit, and so on the order of its elements."""
        return not (self.is_float and self.computed)


@dataclasses.dataclass(frozen=True)
class Place:
    """The place of a step: on a mesh, and whether constraints count there."""

    mesh: AnyMesh
    constrains: bool = True
    explicit: bool = False  # shardings are part of types


@dataclasses.dataclass(frozen=True)
class Step:
    """`values.append(compute(*(values[i] for i in operands)))`."""

    name: str
    operands: tuple[int, ...]
    compute: Callable[..., Any]  # of the operands; of the place first, if it needs one
    exact: bool = False  # no roundings of its own
    needs_place: bool = False
    manual: bool = False  # has a region that runs per device, and so needs devices

    def run(self, place: Place, values: Sequence[Any]) -> Any:
        """The step's value."""
        operands = [values[i] for i in self.operands]
        return self.compute(place, *operands) if self.needs_place else self.compute(*operands)


@dataclasses.dataclass(frozen=True)
class Argument:
    """An argument of the program."""

    value: Value
    spec: PartitionSpec


def choose(random: Random, options: Sequence[Any]) -> Any:
    """One of them."""
    return options[int(random.integers(len(options)))]


def random_spec(
    random: Random,
    mesh: dict[str, int],
    shape: Sequence[int],
    even: bool,
    open_dims: bool = False,
    without: Sequence[str] = (),
) -> PartitionSpec:
    """Axes in any order on any dimensions, none twice."""
    left = [str(axis) for axis in random.permutation(list(mesh)) if axis not in without]
    chosen: dict[int, Any] = {}
    for d in random.permutation(len(shape)):
        axes: list[str] = []
        while left and random.random() < 0.5:
            shards = math.prod(mesh[a] for a in axes) * mesh[left[0]]
            if even and shape[d] % shards != 0:
                break
            axes.append(left.pop(0))
        chosen[int(d)] = tuple(axes) or None
        if open_dims and random.random() < 0.2:
            chosen[int(d)] = PartitionSpec.UNCONSTRAINED
    return PartitionSpec(*(chosen[d] for d in range(len(shape))))


def constrained(place: Place, value: Any, spec: PartitionSpec) -> Any:
    """Constrains the sharding, where shardings count."""
    if not place.constrains:
        return value
    around = jax.sharding.get_abstract_mesh()  # in a region: some axes are manual
    mesh = around if around.manual_axes else place.mesh
    if place.explicit:
        return jax.sharding.reshard(value, NamedSharding(mesh, spec))
    return lax.with_sharding_constraint(value, NamedSharding(mesh, spec))


class Draft:
    """A program in the making; an inner one is the body of a loop, a branch and the like."""

    def __init__(
        self,
        random: Random,
        mesh: dict[str, int],
        values: Sequence[Value] = (),
        depth: int = 0,
        explicit: bool = False,
        taken: Sequence[str] = (),
    ):
        self.random = random
        self.mesh = mesh
        self.values = list(values)
        self.nodes: list[Argument | Step] = []
        self.depth = depth
        self.explicit = explicit
        self.taken = tuple(taken)  # axes that are manual here
        self.preferred: int | None = None

    def inner(self, values: Sequence[Value], taken: Sequence[str] = ()) -> "Draft":
        """Returns the draft of a body whose parameters look like these."""
        taken = (*self.taken, *taken)
        return Draft(self.random, self.mesh, values, self.depth + 1, self.explicit, taken)

    def chance(self, probability: float) -> bool:
        """True as often as that."""
        return bool(self.random.random() < probability)

    def integer(self, low: int, high: int) -> int:
        """In [low, high)."""
        return int(self.random.integers(low, high))

    def choose(self, options: Sequence[Any]) -> Any:
        """One of them."""
        return choose(self.random, options)

    def size(self, limit: int = 40) -> int:
        """Draws a size of a dimension: some that eight devices divide, many that they do not."""
        one = self.choose(SIZES) if self.chance(0.8) else self.integer(1, 41)
        return min(int(one), limit)

    def pick(self, fits: Callable[[Value], bool] = lambda v: True) -> int | None:
        """The number of a value that fits; later ones are likelier, so that programs get deep."""
        if self.preferred is not None and fits(self.values[self.preferred]):
            return self.preferred
        found = [i for i, value in enumerate(self.values) if fits(value)]
        if not found:
            return None
        return int(self.choose(found[-3:] if self.chance(0.7) else found))

    def dimension(self, i: int) -> int:
        """One of value i; preferably one that is split unevenly."""
        value = self.values[i]
        if value.uneven and self.chance(0.8):
            return int(self.choose(value.uneven))
        return self.integer(0, value.rank)

    def dimensions(self, i: int) -> tuple[int, ...]:
        """Some of value i, at least one."""
        first = self.dimension(i)
        return tuple(d for d in range(self.values[i].rank) if d == first or self.chance(0.3))

    def operand(self, shape: Sequence[int], dtype: Any) -> int:
        """A further value that the program did not have: an argument, or a constant in a body."""
        value = Value(tuple(shape), jnp.dtype(dtype))
        if self.depth:
            numbers = np.random.default_rng(self.integer(0, 1 << 30)).integers(-3, 4, shape)
            self.nodes.append(Step("constant", (), lambda: jnp.asarray(numbers).astype(dtype)))
        else:
            spec = random_spec(self.random, self.mesh, value.shape, even=True)
            self.nodes.append(Argument(value, spec))
        self.values.append(value)
        return len(self.values) - 1

    def add(self, step: Step) -> bool:
        """Appends it, unless its value is too large or empty."""
        structs = [jax.ShapeDtypeStruct(v.shape, v.dtype) for v in self.values]
        mesh = AbstractMesh(
            tuple(self.mesh.values()), tuple(self.mesh), (AxisType.Auto,) * len(self.mesh)
        )
        place = Place(mesh, constrains=False)
        try:
            like = jax.eval_shape(lambda *values: step.run(place, values), *structs)
        except (TypeError, NotImplementedError):  # gradients that JAX does not have
            return False
        if math.prod(like.shape) > 2 * MAX_ELEMENTS or len(like.shape) > 5 or 0 in like.shape:
            return False
        operands = [self.values[i] for i in step.operands]
        computed = not step.exact or any(not v.is_exact for v in operands)
        uneven: tuple[int, ...] = ()
        if operands and operands[0].shape == tuple(like.shape):
            uneven = operands[0].uneven
        self.nodes.append(step)
        value = Value(tuple(like.shape), jnp.dtype(like.dtype), computed, uneven)
        self.values.append(value)
        return True

    def split_unevenly(self) -> int | None:
        """Constrains a value so that a dimension has uneven shards, with garbage for padding."""
        axes = [str(a) for a in self.random.permutation(list(self.mesh)) if a not in self.taken]
        axes = axes[: self.integer(1, len(axes) + 1)] if axes else []
        shards = math.prod(self.mesh[a] for a in axes)
        rest = [a for a in self.mesh if a not in axes and a not in self.taken]

        def dims(value: Value) -> list[int]:
            return [d for d, n in enumerate(value.shape) if n > 2 and n % shards != 0]

        i = self.pick(lambda v: bool(dims(v)))
        if i is None or not axes or self.explicit:
            return None
        value = self.values[i]
        d = self.choose(dims(value))
        entries: list[Any] = [None] * value.rank
        entries[d] = tuple(axes)
        for other in range(value.rank):
            if other == d or not rest or self.chance(0.6):
                continue
            if value.shape[other] % self.mesh[rest[-1]] == 0 or self.chance(0.2):
                entries[other] = rest.pop()
        spec = PartitionSpec(*entries)
        garbage = self.garbage(value)
        size = value.shape[d]

        def compute(place: Place, x: Any) -> Any:
            x = constrained(place, x, spec)
            exists = lax.broadcasted_iota(jnp.int32, x.shape, d) < size
            return jnp.where(exists, x, jnp.asarray(garbage, x.dtype))

        name = f"uneven {spec} {garbage}"
        self.nodes.append(Step(name, (i,), compute, exact=True, needs_place=True))
        self.values.append(dataclasses.replace(value, uneven=(d,)))
        return len(self.values) - 1

    def garbage(self, value: Value) -> Any:
        """Returns the value that padding holds."""
        if value.is_float:
            return self.choose([np.nan, np.inf, -np.inf, 1e4, -1e4])
        if value.is_int:
            info = np.iinfo(value.dtype)
            return self.choose([info.min, info.max, 7])
        return self.chance(0.5)


Maker = Callable[[Draft], Step | None]
MAKERS: dict[str, Maker] = {}


def maker(function: Maker) -> Maker:
    """Registers a kind of operation under the function's name."""
    MAKERS[function.__name__] = function
    return function


def maker_of(
    fits: Callable[[Value], bool] = lambda v: True,
) -> Callable[[Callable[[Draft, int], Step | None]], Maker]:
    """Registers a kind of operation on a value that fits, whose number the function gets."""

    def register(function: Callable[[Draft, int], Step | None]) -> Maker:
        def make(draft: Draft) -> Step | None:
            i = draft.pick(fits)
            return None if i is None else function(draft, i)

        MAKERS[function.__name__] = make
        return make

    return register


def extend(draft: Draft, count: int, names: Sequence[str] = ()) -> None:
    """Adds about `count` operations of these kinds, uneven shards among them."""
    names = [n for n in names or MAKERS if not (draft.depth > 1 and n in COMPOSITES)]
    done = 0
    for _ in range(10 * count):
        if done >= count:
            break
        draft.preferred = None
        if draft.chance(0.45):
            draft.preferred = draft.split_unevenly()
        along = [n for n in ALONG if n in names] if draft.preferred is not None else []
        name = draft.choose(along if along and draft.chance(0.7) else names)
        if draft.depth and name in COMPOSITES and draft.chance(0.7):
            continue
        step = MAKERS[name](draft)
        draft.preferred = None
        if step is not None and draft.add(step):
            done += 1


# Makers whose results depend on what is beyond a dimension's end, if it gets in.
ALONG = (
    *("reduce", "reduce", "reduce", "reduce_with", "dot", "dot", "cumulative", "cumulative"),
    *("argmax", "top_k", "sort", "convolution", "pool", "fft", "take", "take_two", "scatter"),
    *("scatter_set", "gather_windows", "slice_", "pad", "reverse", "concatenate", "roll", "wrap"),
    *("dynamic_slice", "dynamic_update_slice", "reshape", "scalar"),
)
# Makers with a body, which nest only so far.
COMPOSITES: set[str] = set()


def composite(function: Maker) -> Maker:
    """Registers a maker that has a body."""
    COMPOSITES.add(function.__name__)
    return maker(function)
