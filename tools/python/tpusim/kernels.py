"""Prices Pallas kernels from their jaxprs.

A kernel runs its body once per point of its grid. What depends on the point only (`program_id` and
integers made of it) is known here, for all points at once: which branch is taken, how often a loop
runs, which block a block spec picks. What depends on data is not: then the dearest branch counts,
and what a loop does in one pass is kept apart, under the name "KERNEL/loop.N" ("KERNEL/grid.N" for
an axis of the grid), until its trip count is stated.

    flops, transcendentals   of the body's operations on arrays, at every point; those on scalars
                             are free, as they run beside
    bytes                    of the blocks, each time that a block differs from the one at the point
                             before; of the copies that the body starts itself
    grid, blocks, products   how it is pipelined: which axes of the grid move which block, and the
                             matrix products of the body by size and number format. Grid and blocks
                             are left out where a block moves in another way than with whole axes.
"""

import collections
import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax._src import source_info_util
from jax.extend.core import jaxprs_in_params

from tpusim.assumptions import relative
from tpusim.workload import KernelBlock, KernelCost, KernelLoop, KernelProduct

# Values over the points of the grid that are looked at, or None if they depend on data.
Known = np.ndarray | None
Environment = dict[Any, Known]


@dataclasses.dataclass(frozen=True)
class Price:
    """Of one call, on one device."""

    flops: int = 0
    transcendentals: int = 0
    bytes_accessed: int = 0
    remote_bytes: int = 0
    # How many products of each kind; the count of a KernelProduct key is 1.
    products: tuple[tuple[KernelProduct, int], ...] = ()
    grid: tuple[int, ...] = ()
    blocks: tuple[KernelBlock, ...] = ()
    # What one pass of each loop on data costs, by the loop and its source.
    loops: tuple[tuple[tuple[str, str], "Price"], ...] = ()

    @property
    def amounts(self) -> tuple[int, int, int, int]:
        """What adds up."""
        return self.flops, self.transcendentals, self.bytes_accessed, self.remote_bytes

    def __add__(self, other: "Price") -> "Price":
        products = collections.Counter(dict(self.products))
        products.update(dict(other.products))
        amounts = (a + b for a, b in zip(self.amounts, other.amounts, strict=True))
        loops = dict(self.loops)
        for loop, once in other.loops:
            loops[loop] = loops[loop] + once if loop in loops else once
        return Price(*amounts, tuple(products.items()), loops=tuple(loops.items()))

    def times(self, count: int) -> "Price":
        """So many of it."""
        products = tuple((product, count * number) for product, number in self.products)
        loops = tuple((loop, once.times(count)) for loop, once in self.loops)
        return Price(*(count * value for value in self.amounts), products, loops=loops)

    @property
    def size(self) -> tuple[int, int]:
        """By which the dearest branch is found; loops on data count one pass."""
        sizes = [once.size for _, once in self.loops]
        return (
            self.flops + self.transcendentals + sum(s[0] for s in sizes),
            self.bytes_accessed + sum(s[1] for s in sizes),
        )

    def cost(self, name: str) -> KernelCost:
        """As a workload states it, for the instruction of that name."""
        products = tuple(
            dataclasses.replace(product, count=count)
            for product, count in sorted(self.products, key=lambda p: dataclasses.astuple(p[0]))
            if count
        )
        pipelined = (self.grid, self.blocks) if self.grid else ((), ())
        loops = tuple(
            KernelLoop(loop, once.cost(""), source) for (loop, source), once in self.loops
        )
        return KernelCost(name, *self.amounts, *pipelined, products, loops)


class KernelError(ValueError):
    """Why a kernel cannot be priced; its cost has to be stated."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_TRANSCENDENTAL = _words(
    "exp exp2 expm1 log log1p tanh logistic sin cos tan asin acos atan atan2 sinh cosh asinh acosh "
    "atanh erf erfc erf_inv rsqrt sqrt cbrt pow lgamma digamma"
)
# One operation per element of the result.
_ELEMENTWISE = _words(
    "add sub mul div rem max min and or xor not neg abs sign floor ceil round eq ne lt le gt ge "
    "select_n clamp nextafter is_finite convert_element_type shift_left shift_right_logical "
    "shift_right_arithmetic integer_pow square population_count clz add_any "
    "stochastic_round mulhi"
)
# One operation per element that goes in.
_REDUCTIONS = _words(
    "reduce_sum reduce_max reduce_min reduce_prod reduce_and reduce_or reduce_xor argmax argmin "
    "cumsum cumprod cummax cummin cumlogsumexp"
)
# Nothing is computed: names, places, and loads and stores, which go with what they feed.
_FREE = _words(
    "broadcast_in_dim reshape transpose squeeze expand_dims concatenate slice dynamic_slice pad "
    "dynamic_update_slice rev iota tile gather bitcast_convert_type copy copy_p stop_gradient get "
    "swap addupdate masked_load masked_swap load store program_id num_programs axis_index "
    "debug_print debug_print_p multiple_of repeat roll bitcast delay "
    "optimization_barrier create_token "
    "semaphore_signal semaphore_wait semaphore_read get_barrier_semaphore dma_wait "
    "prng_seed prng_random_bits empty_ref free_ref ref_cast pvary pcast reduce_precision"
)
_CALLS = {
    **{"jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "core_call": "call_jaxpr"},
    **{"custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr", "remat2": "jaxpr"},
    **{"checkpoint": "jaxpr", "run_scoped": "jaxpr", "run_state": "jaxpr"},
}
_SCALAR: dict[str, Callable[..., np.ndarray]] = {
    **{"add": np.add, "sub": np.subtract, "mul": np.multiply, "max": np.maximum},
    **{"min": np.minimum, "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal},
    **{"gt": np.greater, "ge": np.greater_equal, "neg": np.negative, "sign": np.sign},
    **{"and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b},
    "abs": np.abs,
    "not": lambda a: ~a,
    "rem": np.fmod,
    "div": lambda a, b: np.trunc(a / b).astype(np.int64),
    "select_n": lambda which, *cases: np.choose(np.asarray(which, int), cases),
    "clamp": lambda low, x, high: np.clip(x, low, high),
}


def priced_kernels(jaxpr: Any) -> Iterator[tuple[Any, Price | KernelError]]:
    """Every pallas_call of a traced program, with its price.

    Instead of the price, why there is none.
    """
    for equation in jaxpr.eqns:
        if equation.primitive.name == "pallas_call":
            try:
                yield equation, price(equation)
            except KernelError as error:
                yield equation, error
            continue
        for inner in jaxprs_in_params(equation.params):
            yield from priced_kernels(inner)


def price(call: Any) -> Price:
    """Of a pallas_call equation."""
    mapping, body = call.params["grid_mapping"], call.params["jaxpr"]
    kernel = _Kernel(_name(call), mapping.grid)
    total = kernel.run(body, {}, np.arange(math.prod(kernel.grid)))
    blocks: list[KernelBlock] = []
    moved = 0
    for number, block in enumerate(mapping.block_mappings):
        size, pipelined = kernel.block(block, output=number >= mapping.num_inputs)
        total += Price(bytes_accessed=size)
        if pipelined is not None:
            blocks.append(pipelined)
            moved += kernel.moved_with_axes(pipelined)
    for axis in reversed(kernel.open_axes):
        total = Price(loops=(((f"{kernel.name}/grid.{axis}", ""), total),))
    # Scalars that go ahead of the blocks are read once.
    for scalar in call.invars[mapping.num_dynamic_grid_bounds :][: mapping.num_index_operands]:
        total += Price(bytes_accessed=_bytes(scalar.aval))
    if total.loops:
        return total
    # Blocks that stand out of an array, or come back after another, move differently.
    sizes = sum(kernel.block(b, output=False)[0] for b in mapping.block_mappings)
    if not blocks or abs(moved - sizes) > 0.01 * sizes:
        return total
    return dataclasses.replace(total, grid=kernel.grid, blocks=tuple(blocks))


def _name(call: Any) -> str:
    """What `pallas_call` was told, or else the name of the function that it was given."""
    function = getattr(call.params["jaxpr"].debug_info, "func_name", None)
    return str(call.params.get("name") or function or "pallas_call")


def _source(equation: Any) -> str:
    """Where the user wrote it."""
    frame = source_info_util.user_frame(equation.source_info.traceback)
    return "" if frame is None else f"{relative(frame.file_name)}:{frame.start_line}"


def _bytes(aval: Any) -> int:
    inner = getattr(aval, "inner_aval", aval)
    return math.prod(inner.shape) * np.dtype(inner.dtype).itemsize


# Number formats of the arrays, as the parameters chip.mxu.passes_* call them, and as the simulator
# takes products outside of kernels. float16 is none of them and goes in as float32 does.
_FORMATS = {"bfloat16": "bf16", "bool": "bf16", "float32": "f32", "float16": "f32"}
_FORMATS |= dict.fromkeys(_words("int8 uint8"), "int8")
_FORMATS |= dict.fromkeys(_words("int4 uint4 int2 uint2"), "int4")
_FORMATS |= dict.fromkeys(_words("int16 uint16 int32 uint32"), "int32")


def _product(equation: Any) -> Price | None:
    """Of a dot_general; nothing for operands that the arrays do not take."""
    left, right = (v.aval for v in equation.invars)
    (contracted, _), (batch, _) = equation.params["dimension_numbers"]
    depth = math.prod(left.shape[d] for d in contracted)
    batches = math.prod(left.shape[d] for d in batch)
    rows = math.prod(left.shape) // max(1, depth * batches)
    columns = math.prod(right.shape) // max(1, depth * batches)
    dtype = str(left.dtype)
    number_format = "fp8" if dtype.startswith("float8_") else _FORMATS.get(dtype)
    if number_format is None:
        return None
    precision = str(equation.params.get("precision"))
    if number_format == "f32":
        number_format += (
            "_highest" if "HIGHEST" in precision else "_high" if "HIGH" in precision else ""
        )
    product = KernelProduct(rows, depth, columns, number_format)
    return Price(flops=2 * batches * rows * depth * columns, products=((product, batches),))


def _in_hbm(aval: Any) -> bool:
    space = str(getattr(aval, "memory_space", None)).lower()
    return any(word in space for word in ("any", "hbm", "host"))


class _Kernel:
    """Walks one kernel's body for sets of grid points."""

    def __init__(self, name: str, grid: Sequence[Any]):
        self.name = name
        # Axes whose length is data are looked at in one place, and taken for all.
        self.open_axes = [a for a, size in enumerate(grid) if not isinstance(size, int)]
        self.grid = tuple(1 if a in self.open_axes else size for a, size in enumerate(grid))
        self.loops: dict[Any, str] = {}

    def places(self, points: np.ndarray, axis: int) -> Known:
        """`program_id(axis)` of grid points; the last axis runs fastest."""
        if axis in self.open_axes:
            return None
        return points // math.prod(self.grid[axis + 1 :]) % self.grid[axis]

    def moved_with_axes(self, block: KernelBlock) -> int:
        """Bytes that move if the block is another whenever one of its axes goes on."""
        last = max(block.moves_with, default=-1)
        return block.bytes * math.prod(self.grid[: last + 1])

    def block(self, block: Any, output: bool) -> tuple[int, KernelBlock | None]:
        """What one block spec moves between HBM and the kernel, and with which axes."""
        aval = block.array_aval
        if _in_hbm(block.transformed_block_aval):
            return 0, None  # No blocks: the body copies what it needs.
        points = np.arange(math.prod(self.grid))
        index_map = block.index_map_jaxpr.jaxpr
        known: Environment = {}
        for axis, variable in enumerate(index_map.invars[: len(self.grid)]):
            known[variable] = self.places(points, axis)
        self.run(index_map, known, points)
        indices = [self._value(v, known, points) for v in index_map.outvars]
        elements = np.ones(len(points), np.int64)
        moved = np.zeros(len(points), bool)
        moved[:1] = True
        full = 1
        axes: set[int] = set()
        for size, extent, index in zip(block.block_shape, aval.shape, indices, strict=True):
            length = getattr(size, "block_size", size if isinstance(size, int) else 1)
            full *= min(length, extent)
            if index is None:
                moved[:] = True  # It depends on data: another block every time.
                elements *= min(length, extent)
                axes.update(range(len(self.grid)))
                continue
            laid_out = index.reshape(self.grid)
            axes.update(a for a in range(len(self.grid)) if np.diff(laid_out, axis=a).any())
            moved[1:] |= index[1:] != index[:-1]
            # The last block of a dimension may stand out.
            elements *= np.clip(extent - index * length, 0, length)
        item = np.dtype(aval.dtype).itemsize
        pipelined = KernelBlock(full * item, output, tuple(sorted(axes)))
        return int(elements[moved].sum()) * item, pipelined

    def run(self, jaxpr: Any, known: Environment, points: np.ndarray) -> Price:
        """The price of a jaxpr at all of `points`; values it computes are added to `known`."""
        total = Price()
        if not len(points):
            return total
        for equation in jaxpr.eqns:
            total += self._equation(equation, known, points)
        return total

    def _value(self, atom: Any, known: Environment, points: np.ndarray) -> Known:
        if hasattr(atom, "val"):
            return np.full(len(points), atom.val) if np.ndim(atom.val) == 0 else None
        return known.get(atom)

    def _equation(self, equation: Any, known: Environment, points: np.ndarray) -> Price:
        name, params = equation.primitive.name, equation.params
        if name in ("program_id", "num_programs"):
            axis = params["axis"]
            size = None if axis in self.open_axes else np.full(len(points), self.grid[axis])
            known[equation.outvars[0]] = self.places(points, axis) if name == "program_id" else size
            return Price()
        if name in _CALLS:
            return self._call(equation, params[_CALLS[name]], known, points)
        if name == "cond":
            return self._cond(equation, known, points)
        if name == "scan":
            inner: Environment = {}
            body = params["jaxpr"].jaxpr
            for formal, actual in zip(
                body.invars[: params["num_consts"]], equation.invars, strict=False
            ):
                inner[formal] = self._value(actual, known, points)
            return self.run(body, inner, points).times(params["length"])
        if name == "while":
            return self._while(equation, known, points)
        if name == "dma_start":
            return self._copy(equation).times(len(points))
        return self._operation(equation, known, points)

    def _call(self, equation: Any, jaxpr: Any, known: Environment, points: np.ndarray) -> Price:
        body = getattr(jaxpr, "jaxpr", jaxpr)
        inner: Environment = {}
        for formal, actual in zip(body.invars, equation.invars, strict=False):
            inner[formal] = self._value(actual, known, points)
        total = self.run(body, inner, points)
        for outer, result in zip(equation.outvars, body.outvars, strict=False):
            known[outer] = self._value(result, inner, points)
        return total

    def _cond(self, equation: Any, known: Environment, points: np.ndarray) -> Price:
        which = self._value(equation.invars[0], known, points)
        branches = [branch.jaxpr for branch in equation.params["branches"]]
        total = Price()
        if which is not None:
            which = np.clip(which.astype(np.int64), 0, len(branches) - 1)
        prices = []
        for number, branch in enumerate(branches):
            chosen = slice(None) if which is None else which == number
            inner: Environment = {}
            for formal, actual in zip(branch.invars, equation.invars[1:], strict=True):
                value = self._value(actual, known, points)
                inner[formal] = None if value is None else value[chosen]
            prices.append(self.run(branch, inner, points[chosen]))
        if which is not None:
            for one in prices:
                total += one
            return total
        return max(prices, key=lambda p: p.size)

    def _while(self, equation: Any, known: Environment, points: np.ndarray) -> Price:
        params = equation.params
        condition, body = params["cond_jaxpr"].jaxpr, params["body_jaxpr"].jaxpr
        consts = params["cond_nconsts"], params["body_nconsts"]
        carried = equation.invars[sum(consts) :]
        outer = dict(zip(condition.invars, [*equation.invars[: consts[0]], *carried], strict=True))
        # What fori_loop makes: a comparison of the counter, which goes up by one, with a bound.
        trips = None
        compare = condition.eqns[-1] if condition.eqns else None
        if compare is not None and compare.primitive.name == "lt" and len(condition.eqns) == 1:
            ends = [
                self._value(outer.get(a, a) if not hasattr(a, "val") else a, known, points)
                for a in compare.invars
            ]
            if ends[0] is not None and ends[1] is not None:
                trips = np.maximum(ends[1] - ends[0], 0)
        inner: Environment = {}
        first = equation.invars[consts[0] : sum(consts)]
        for formal, actual in zip(body.invars, first, strict=False):
            inner[formal] = self._value(actual, known, points)
        total = Price()
        if trips is None:
            name = self.loops.setdefault(id(equation), f"{self.name}/loop.{len(self.loops)}")
            once = self.run(body, inner, points)
            return Price(loops=(((name, _source(equation)), once),))
        # Points with as many trips go together.
        for count in np.unique(trips):
            chosen = trips == count
            part = {k: None if v is None else v[chosen] for k, v in inner.items()}
            total += self.run(body, part, points[chosen]).times(int(count))
        return total

    def _copy(self, equation: Any) -> Price:
        # A reference is a variable, or one with views of it.
        source, target, *_, device = jax.tree.unflatten(equation.params["tree"], equation.invars)
        avals = [getattr(end, "ref", end).aval for end in (source, target)]
        size = _bytes(avals[0])
        for view in getattr(source, "transforms", ()):
            shape = getattr(view, "get_indexer_shape", None)
            if shape is not None:
                size = math.prod(shape()) * np.dtype(avals[0].dtype).itemsize
        in_hbm = sum(map(_in_hbm, avals))
        return Price(bytes_accessed=size * in_hbm, remote_bytes=0 if device is None else size)

    def _operation(self, equation: Any, known: Environment, points: np.ndarray) -> Price:
        name = equation.primitive.name
        results = [v.aval for v in equation.outvars]
        if all(getattr(a, "shape", ()) == () for a in results) and name not in _REDUCTIONS:
            self._scalar(equation, known, points)
            return Price()
        if name == "dot_general":
            product = _product(equation)
            if product is None:
                dtype = equation.invars[0].aval.dtype
                raise KernelError(
                    f"there is no rule for products of {dtype} at {_source(equation)}"
                )
            one = product
        elif name in _TRANSCENDENTAL:
            one = Price(transcendentals=math.prod(results[0].shape))
        elif name in _ELEMENTWISE:
            one = Price(flops=math.prod(results[0].shape))
        elif name in _REDUCTIONS:
            one = Price(flops=math.prod(equation.invars[0].aval.shape))
        elif name in _FREE:
            return Price()
        else:
            raise KernelError(f"there is no rule for {name} at {_source(equation)}")
        return one.times(len(points))

    def _scalar(self, equation: Any, known: Environment, points: np.ndarray) -> None:
        name = equation.primitive.name
        values = [self._value(v, known, points) for v in equation.invars]
        if name == "convert_element_type" and values[0] is not None:
            known[equation.outvars[0]] = values[0].astype(equation.params["new_dtype"])
        elif name in _SCALAR and all(v is not None for v in values):
            known[equation.outvars[0]] = _SCALAR[name](*values)
        elif name not in _SCALAR | dict.fromkeys(_ELEMENTWISE | _TRANSCENDENTAL | _FREE):
            raise KernelError(f"there is no rule for {name} at {_source(equation)}")


def assign(
    instructions: Sequence[tuple[str, str, tuple[tuple[int, ...], ...]]],
    priced: Sequence[tuple[Any, Price | KernelError]],
) -> Mapping[str, KernelCost]:
    """Which custom call is which kernel.

    Instructions are (name, op_name, shapes of operands and results). Calls of the same name and
    shapes are one kernel; should they differ nevertheless, in constants, the dearest counts.
    """
    costs: dict[str, KernelCost] = {}
    for name, op_name, shapes in instructions:
        found = []
        for call, cost in priced:
            own = call.params.get("name")
            avals = [v.aval for v in (*call.invars, *call.outvars)]
            if own and own not in op_name.split("/"):
                continue
            if tuple(tuple(a.shape) for a in avals) == shapes:
                found.append(cost)
        errors = [reason for reason in found if isinstance(reason, KernelError)]
        prices = [cost for cost in found if isinstance(cost, Price)]
        if errors:
            costs[name] = KernelCost(name, unpriced=str(errors[0]))
        elif prices:
            costs[name] = max(prices, key=lambda price: price.size).cost(name)
        else:
            costs[name] = KernelCost(
                name, unpriced=f"no pallas_call of the traced program looks like {op_name}"
            )
    return costs
