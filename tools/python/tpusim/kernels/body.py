"""Walks the body of one kernel for sets of grid points."""

import dataclasses
import math
from collections.abc import Iterable, Sequence
from typing import Any

import jax
import numpy as np
from jax._src import source_info_util

from tpusim.assumptions import relative
from tpusim.kernels import operations, order
from tpusim.kernels.order import Order
from tpusim.kernels.price import KernelError, Price, Stage
from tpusim.workload import KernelBlock

# Vector registers of a TensorCore: 64 of 8 x 128 words, on every TPU so far.
_REGISTERS = 64 * 8 * 128 * 4


@dataclasses.dataclass(frozen=True)
class Table:
    """An array that is known, behind a reference: a scalar that goes ahead of the blocks."""

    values: np.ndarray


# Values over the points of the grid that are looked at, or None if they depend on data.
Known = np.ndarray | Table | None
Environment = dict[Any, Known]


def source(equation: Any) -> str:
    """Where the user wrote it."""
    frame = source_info_util.user_frame(equation.source_info.traceback)
    return "" if frame is None else f"{relative(frame.file_name)}:{frame.start_line}"


def bytes_of(aval: Any) -> int:
    """Of an array or of what a reference names."""
    inner = getattr(aval, "inner_aval", aval)
    return math.prod(inner.shape) * np.dtype(inner.dtype).itemsize


def in_hbm(aval: Any) -> bool:
    """Whether a reference names an array outside of the kernel's memory."""
    space = str(getattr(aval, "memory_space", None)).lower()
    return any(word in space for word in ("any", "hbm", "host"))


class Kernel:
    """A kernel's grid, and what is known and has been seen of its values."""

    def __init__(
        self,
        name: str,
        grid: Sequence[Any],
        vmapped: Sequence[int],
        tables: Sequence[np.ndarray | None],
    ):
        self.name = name
        # The body does not know of the axes that vmap has put into the grid.
        self._program_axes = [axis for axis in range(len(grid)) if axis not in vmapped]
        # Axes whose length is data are looked at in one place, and taken for all.
        self.open_axes = [a for a, size in enumerate(grid) if not isinstance(size, int)]
        self.grid = tuple(1 if a in self.open_axes else size for a, size in enumerate(grid))
        self._tables = [None if t is None else Table(t) for t in tables]
        self._loops: dict[int, str] = {}
        self._orders: dict[Any, Order] = {}
        # What is behind a reference, or has been stored.
        self._in_vmem: set[Any] = set()

    def all_points(self) -> np.ndarray:
        """Of the grid, the last axis fastest."""
        return np.arange(math.prod(self.grid))

    def price(self, body: Any) -> Price:
        """Of the body at all points."""
        known: Environment = dict(zip(body.invars, self._tables, strict=False))
        return self._run(body, known, self.all_points())

    def block(self, block: Any, output: bool) -> tuple[int, KernelBlock | None]:
        """What one block spec moves between HBM and the kernel, and with which axes."""
        aval = block.array_aval
        if in_hbm(block.transformed_block_aval):
            return 0, None  # No blocks: the body copies what it needs.
        points = self.all_points()
        index_map = block.index_map_jaxpr.jaxpr
        known: Environment = {}
        for axis, variable in enumerate(index_map.invars[: len(self.grid)]):
            known[variable] = self._places(points, axis)
        known |= zip(index_map.invars[len(self.grid) :], self._tables, strict=False)
        self._run(index_map, known, points)
        indices = [self._value(v, known, points) for v in index_map.outvars]
        elements = np.ones(len(points), np.int64)
        moved = np.zeros(len(points), bool)
        moved[:1] = True
        full = 1
        axes: set[int] = set()
        for size, extent, index in zip(block.block_shape, aval.shape, indices, strict=True):
            length = getattr(size, "block_size", size if isinstance(size, int) else 1)
            full *= min(length, extent)
            if not isinstance(index, np.ndarray):
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
        total = int(elements[moved].sum()) * item
        # Blocks that a table leaves out, or that stand out, make the others smaller on average.
        average = min(full * item, math.ceil(total / max(1, self._times_moved(axes))))
        return total, KernelBlock(average, output, tuple(sorted(axes)))

    def moved_with_axes(self, block: KernelBlock) -> int:
        """Bytes that move if the block is another whenever one of its axes goes on."""
        return block.bytes * self._times_moved(block.moves_with)

    def _times_moved(self, axes: Iterable[int]) -> int:
        """How often one of these axes of the grid goes on, the first block counted."""
        return math.prod(self.grid[: max(axes, default=-1) + 1])

    def _places(self, points: np.ndarray, axis: int) -> Known:
        """`program_id(axis)` of grid points."""
        if axis in self.open_axes:
            return None
        return points // math.prod(self.grid[axis + 1 :]) % self.grid[axis]

    def _run(self, jaxpr: Any, known: Environment, points: np.ndarray) -> Price:
        """The price of a jaxpr at all of `points`; values it computes are added to `known`."""
        total = Price()
        if not len(points):
            return total
        self._in_vmem.update(v for v in jaxpr.invars if _is_reference(v))
        last = {v: n for n, e in enumerate(jaxpr.eqns) for v in e.invars if _is_variable(v)}
        for number, equation in enumerate(jaxpr.eqns):
            needed = [v for v in equation.invars if _is_variable(v) and last[v] > number]
            total += self._equation(equation, known, points, needed)
        return total

    def _value(self, atom: Any, known: Environment, points: np.ndarray) -> Known:
        if hasattr(atom, "val"):
            return np.full(len(points), atom.val) if np.ndim(atom.val) == 0 else None
        return known.get(atom)

    def _equation(
        self, equation: Any, known: Environment, points: np.ndarray, needed: Sequence[Any]
    ) -> Price:
        name, params = equation.primitive.name, equation.params
        if name in ("program_id", "num_programs"):
            axis = self._program_axes[params["axis"]]
            size = None if axis in self.open_axes else np.full(len(points), self.grid[axis])
            place = self._places(points, axis)
            known[equation.outvars[0]] = place if name == "program_id" else size
            return Price()
        if name in operations.CALLS:
            return self._call(equation, params[operations.CALLS[name]], known, points)
        if name == "cond":
            return self._cond(equation, known, points)
        if name == "scan":
            inner: Environment = {}
            body = params["jaxpr"].jaxpr
            consts = params["num_consts"]
            for formal, actual in zip(body.invars[:consts], equation.invars, strict=False):
                inner[formal] = self._value(actual, known, points)
            return self._within(equation, equation.invars, body, inner, points).times(
                params["length"]
            )
        if name == "while":
            return self._while(equation, known, points)
        if name == "dma_start":
            return _copy(equation).times(len(points))
        return self._operation(equation, known, points, needed)

    def _within(
        self,
        equation: Any,
        actuals: Sequence[Any],
        body: Any,
        inner: Environment,
        points: np.ndarray,
    ) -> Price:
        """Of a jaxpr inside of an equation; knows what there waits for what."""
        pairs = [(f, a) for f, a in zip(body.invars, actuals, strict=False) if _is_variable(a)]
        for formal, actual in pairs:
            self._orders[formal] = self._order([actual])
            if actual in self._in_vmem:
                self._in_vmem.add(formal)
        price = self._run(body, inner, points)
        for formal, actual in pairs:
            if _is_reference(actual):
                self._orders[actual] = order.together([self._orders[formal], self._order([actual])])
        for outer, result in zip(equation.outvars, body.outvars, strict=False):
            self._orders[outer] = order.together([self._order([outer]), self._order([result])])
        return price

    def _order(self, atoms: Iterable[Any]) -> Order:
        return order.together(self._orders.get(a, Order()) for a in atoms if _is_variable(a))

    def _call(self, equation: Any, jaxpr: Any, known: Environment, points: np.ndarray) -> Price:
        body = getattr(jaxpr, "jaxpr", jaxpr)
        inner: Environment = {}
        for formal, actual in zip(body.invars, equation.invars, strict=False):
            inner[formal] = self._value(actual, known, points)
        total = self._within(equation, equation.invars, body, inner, points)
        for outer, result in zip(equation.outvars, body.outvars, strict=False):
            known[outer] = self._value(result, inner, points)
        return total

    def _cond(self, equation: Any, known: Environment, points: np.ndarray) -> Price:
        which = self._value(equation.invars[0], known, points)
        branches = [branch.jaxpr for branch in equation.params["branches"]]
        if isinstance(which, np.ndarray):
            which = np.clip(which.astype(np.int64), 0, len(branches) - 1)
        prices = []
        for number, branch in enumerate(branches):
            chosen = slice(None) if which is None else which == number
            inner: Environment = {}
            for formal, actual in zip(branch.invars, equation.invars[1:], strict=True):
                inner[formal] = _at(self._value(actual, known, points), chosen)
            prices.append(
                self._within(equation, equation.invars[1:], branch, inner, points[chosen])
            )
        if which is not None:
            return sum(prices, Price())
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
            first, end = (
                self._value(outer.get(a, a) if _is_variable(a) else a, known, points)
                for a in compare.invars
            )
            if isinstance(first, np.ndarray) and isinstance(end, np.ndarray):
                trips = np.maximum(end - first, 0)
        inner: Environment = {}
        actuals = equation.invars[consts[0] :]
        for formal, actual in zip(body.invars, actuals[: consts[1]], strict=False):
            inner[formal] = self._value(actual, known, points)
        if trips is None:
            name = self._loops.setdefault(id(equation), f"{self.name}/loop.{len(self._loops)}")
            once = self._within(equation, actuals, body, inner, points)
            return Price(loops=(((name, source(equation)), once),))
        # Points with as many trips go together.
        total = Price()
        for count in np.unique(trips):
            chosen = trips == count
            part = {k: _at(v, chosen) for k, v in inner.items()}
            once = self._within(equation, actuals, body, part, points[chosen])
            total += once.times(int(count))
        return total

    def _operation(
        self, equation: Any, known: Environment, points: np.ndarray, needed: Sequence[Any]
    ) -> Price:
        name = equation.primitive.name
        results = [v.aval for v in equation.outvars]
        if name == "get":
            self._read(equation, known, points)
        scalars = all(getattr(a, "shape", ()) == () for a in results)
        if scalars and name not in operations.REDUCTIONS:
            self._scalar(equation, known, points)
            self._stored(equation)
            return Price()
        at = self._order(equation.invars)
        spilled = 0
        if name == "dot_general":
            one = operations.product(equation)
            if one is None:
                dtype = equation.invars[0].aval.dtype
                raise KernelError(f"there is no rule for products of {dtype} at {source(equation)}")
            at = ready = order.of_product(at)
            spilled = self._spilled([*equation.invars, *equation.outvars])
        else:
            one = operations.on_arrays(equation)
            if one is None:
                raise KernelError(f"there is no rule for {name} at {source(equation)}")
            ready = at
            if name in operations.REDUCTIONS:
                ready = order.after_reduction(at)
                spilled = self._spilled(needed)
        for result in equation.outvars:
            self._orders[result] = ready
        self._stored(equation)
        stage = one + Stage(spilled_bytes=spilled)
        if stage == Stage():
            return Price()
        return Price((*[Stage()] * at.stage, stage.times(len(points))))

    def _spilled(self, variables: Iterable[Any]) -> int:
        """Bytes of those that registers do not hold and that are in no memory yet.

        What a product makes or takes, and what is needed again after it has been reduced, is there
        as a whole at some time; anything else can be made, used and forgotten register by register.
        """
        total = 0
        for variable in variables:
            if not _is_variable(variable) or variable in self._in_vmem:
                continue
            self._in_vmem.add(variable)
            size = bytes_of(variable.aval)
            total += size if size > _REGISTERS else 0
        return total

    def _read(self, equation: Any, known: Environment, points: np.ndarray) -> None:
        """What a `get` reads: some of a table, or an array that is in memory already."""
        reference, *leaves = equation.invars
        result = equation.outvars[0]
        self._in_vmem.add(result)
        table = known.get(reference)
        transforms = jax.tree.unflatten(equation.params["tree"], leaves)
        if not isinstance(table, Table) or len(transforms) != 1:
            return
        indices = [
            self._value(i, known, points) if _is_atom(i) else i
            for i in getattr(transforms[0], "indices", ())
        ]
        if all(isinstance(i, int | np.integer | np.ndarray) for i in indices):
            # A program that looks ahead may look beyond the end; it ignores what it finds.
            bounds = zip(indices, table.values.shape, strict=True)
            inside = tuple(np.clip(i, 0, extent - 1) for i, extent in bounds)
            known[result] = np.broadcast_to(table.values[inside], points.shape)

    def _stored(self, equation: Any) -> None:
        """What a reference holds is there when all of it is."""
        if equation.primitive.name in ("swap", "addupdate"):
            self._orders[equation.invars[0]] = self._order(equation.invars)

    def _scalar(self, equation: Any, known: Environment, points: np.ndarray) -> None:
        name = equation.primitive.name
        values = [self._value(v, known, points) for v in equation.invars]
        numbers = [v for v in values if isinstance(v, np.ndarray)]
        if name == "convert_element_type" and numbers:
            known[equation.outvars[0]] = numbers[0].astype(equation.params["new_dtype"])
        elif name in operations.SCALAR and len(numbers) == len(values):
            known[equation.outvars[0]] = operations.SCALAR[name](*numbers)
        elif name not in operations.SCALAR and operations.on_arrays(equation) is None:
            raise KernelError(f"there is no rule for {name} at {source(equation)}")


def _is_atom(value: Any) -> bool:
    return hasattr(value, "aval")


def _is_variable(atom: Any) -> bool:
    return not hasattr(atom, "val")


def _is_reference(atom: Any) -> bool:
    return hasattr(atom.aval, "inner_aval")


def _at(value: Known, chosen: Any) -> Known:
    return value[chosen] if isinstance(value, np.ndarray) else value


def _copy(equation: Any) -> Price:
    # A reference is a variable, or one with views of it.
    start, target, *_, device = jax.tree.unflatten(equation.params["tree"], equation.invars)
    avals = [getattr(end, "ref", end).aval for end in (start, target)]
    size = bytes_of(avals[0])
    for view in getattr(start, "transforms", ()):
        shape = getattr(view, "get_indexer_shape", None)
        if shape is not None:
            size = math.prod(shape()) * np.dtype(avals[0].dtype).itemsize
    ends_in_hbm = sum(map(in_hbm, avals))
    return Price(bytes_accessed=size * ends_in_hbm, remote_bytes=0 if device is None else size)
