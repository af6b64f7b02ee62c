"""Walks the body of one kernel for sets of grid points."""

import collections
import dataclasses
import functools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import jax
import numpy as np

from tpusim.jax_internals import frames, pallas
from tpusim.kernels import operations, order, passes
from tpusim.kernels.branches import Points, Sum
from tpusim.kernels.copies import bytes_of, copies, in_hbm
from tpusim.kernels.order import Order
from tpusim.kernels.price import KernelError, Loop, Price, Stage
from tpusim.kernels.scalars import TRUE, Cubes, Scalar, Scalars, both, refined
from tpusim.source_files import relative
from tpusim.workload import KernelBlock

# Conditions on which a branch depends; beyond that the outer ones are forgotten.
_MOST_CUBES = 64


class Reference:
    """What a reference names: what it is known to hold, and whether the kernel writes to it."""

    def __init__(self, values: np.ndarray | None = None, written: bool = True):
        self.values = values
        self.written = written
        # Goes up with what may have changed it.
        self.version = 0


@dataclasses.dataclass(frozen=True)
class _Loop:
    """A loop of a body: what its jaxpr takes is `consts` constants, then what it carries."""

    equation: Any
    body: Any
    actuals: Sequence[Any]
    consts: int
    carried: int
    at_most: int | None

    @property
    def formals(self) -> Sequence[Any]:
        """Of what it carries."""
        return self.body.invars[self.consts : self.consts + self.carried]

    @property
    def first(self) -> Sequence[Any]:
        """What it carries, before the first pass."""
        return self.actuals[self.consts : self.consts + self.carried]


# By variable.
Environment = dict[Any, Scalar | Reference]


def source(equation: Any) -> str:
    """Where the user wrote it."""
    frame = frames.users(equation)
    return "" if frame is None else f"{relative(frame.file_name)}:{frame.line}"


class Kernel:
    """A kernel's grid, and what is known and has been seen of its values."""

    def __init__(
        self,
        call: Any,
        name: str,
        grid: Sequence[int | None],
        vmapped: Sequence[int],
        tables: Sequence[np.ndarray | None],
    ):
        """`grid` has None for lengths that are data; `tables` are the scalars ahead of blocks."""
        self.name = name
        # The body does not know of the axes that vmap has put into the grid.
        self._program_axes = [axis for axis in range(len(grid)) if axis not in vmapped]
        # Axes whose length is data are looked at in one place, and taken for all.
        self.open_axes = [a for a, size in enumerate(grid) if size is None]
        self.grid = tuple(1 if size is None else size for size in grid)
        self._tables = tables
        self._loops: dict[int, str] = {}
        self._orders: dict[Any, Order] = {}
        # What is behind a reference, or has been stored.
        self._in_vmem: set[Any] = set()
        self._scalars = Scalars()
        self._subsets: dict[tuple[Points, bytes], Points] = {}
        self._all_points = Points(*[np.arange(math.prod(self.grid))] * 2)
        # When what is looked at runs.
        self._when: Cubes = TRUE
        # What is looked at, the innermost last.
        self._inside_of = [call]

    @property
    def place(self) -> str:
        """Of what is looked at, or else of the innermost around it that has a place."""
        places = (source(equation) for equation in reversed(self._inside_of))
        return next(filter(None, places), "an unknown place")

    def price(self, body: Any) -> Price:
        """Of the body at all points."""
        written = {e.input for e in body.effects if not _reads(e)}
        known: Environment = {}
        for number, variable in enumerate(body.invars):
            values = self._tables[number] if number < len(self._tables) else None
            known[variable] = Reference(values, variable in written)
        total = self._run(body, known, self._all_points)
        return total.decided(is_open=lambda _: False).always

    def block(self, block: Any, output: bool) -> tuple[int, KernelBlock | None]:
        """What one block spec moves between HBM and the kernel, and with which axes."""
        aval = pallas.blocked_array(block)
        if in_hbm(block.transformed_block_aval):
            return 0, None  # No blocks: the body copies what it needs.
        points = self._all_points
        index_map = block.index_map_jaxpr.jaxpr
        known: Environment = {}
        for axis, variable in enumerate(index_map.invars[: len(self.grid)]):
            known[variable] = self._place_on(axis, points)
        for variable, values in zip(index_map.invars[len(self.grid) :], self._tables, strict=False):
            known[variable] = Reference(values, written=False)
        self._run(index_map, known, points)
        indices = [self._value(v, known, points).exact for v in index_map.outvars]
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

    def _some(self, points: Points, chosen: np.ndarray | slice) -> Points:
        """Some points; the same object for the same ones."""
        if isinstance(chosen, slice) or chosen.all():
            return points
        return self._subsets.setdefault((points, chosen.tobytes()), points.some(chosen))

    def _place_on(self, axis: int, points: Points) -> Scalar:
        """`program_id(axis)` of grid points."""
        symbol = self._scalars.made_of(("program_id", axis), (), boolean=False)
        if axis in self.open_axes:
            return symbol
        places = points.index // math.prod(self.grid[axis + 1 :]) % self.grid[axis]
        return self._scalars.known(places, symbol)

    def _run(self, jaxpr: Any, known: Environment, points: Points) -> Sum:
        """The price of a jaxpr at all of `points`; values it computes are added to `known`."""
        total = Sum()
        if not len(points):
            return total
        for variable in (*jaxpr.constvars, *jaxpr.invars):
            if variable not in known:
                self._define(variable, known)
        # It may have been walked before.
        self._in_vmem.difference_update(v for e in jaxpr.eqns for v in e.outvars)
        self._in_vmem.update(v for v in jaxpr.invars if _is_reference(v))
        last = {v: n for n, e in enumerate(jaxpr.eqns) for v in e.invars if _is_variable(v)}
        for number, equation in enumerate(jaxpr.eqns):
            self._inside_of.append(equation)
            needed = [v for v in equation.invars if _is_variable(v) and last[v] > number]
            self._equation(equation, known, points, needed, total)
            for variable in equation.outvars:
                if variable not in known:
                    self._define(variable, known)
            self._inside_of.pop()
        return total

    def _define(self, variable: Any, known: Environment) -> None:
        """A variable of which nothing is known."""
        if _is_reference(variable):
            known[variable] = Reference()
        elif _is_scalar(variable):
            known[variable] = self._scalars.unknown(boolean=_is_boolean(variable))

    def _value(self, atom: Any, known: Environment, points: Points) -> Scalar:
        if hasattr(atom, "val"):
            if np.ndim(atom.val) == 0:
                return self._scalars.constant(atom.val, len(points))
        elif isinstance(known.get(atom), Scalar):
            return known[atom]
        return self._scalars.unknown(boolean=_is_boolean(atom))

    def _size(self, atom: Any, known: Environment, points: Points) -> Scalar:
        """What is known of a number where it is used."""
        return refined(self._value(atom, known, points), self._when)

    def _bound(
        self, formals: Iterable[Any], actuals: Iterable[Any], known: Environment, points: Points
    ) -> Environment:
        """What is known inside of a jaxpr of its operands."""
        inner: Environment = {}
        for formal, actual in zip(formals, actuals, strict=False):
            if not hasattr(actual, "val") and actual in known:
                inner[formal] = known[actual]
            elif _is_scalar(formal):
                inner[formal] = self._value(actual, known, points)
        return inner

    def _equation(
        self,
        equation: Any,
        known: Environment,
        points: Points,
        needed: Sequence[Any],
        total: Sum,
    ) -> None:
        name, params = equation.primitive.name, equation.params
        if name in ("program_id", "num_programs"):
            axis = self._program_axes[params["axis"]]
            if name == "program_id":
                known[equation.outvars[0]] = self._place_on(axis, points)
            elif axis not in self.open_axes:
                size = self._scalars.constant(self.grid[axis], len(points))
                known[equation.outvars[0]] = size
        elif name in operations.CALLS:
            total.add(self._call(equation, params[operations.CALLS[name]], known, points))
        elif name == "cond":
            total.add(self._cond(equation, known, points))
        elif name == "scan":
            total.add(self._scan(equation, known, points))
        elif name == "while":
            total.add(self._while(equation, known, points))
        elif name == "dma_start":
            sizes = functools.partial(self._size, known=known, points=points)
            for copy in copies(equation, sizes, lambda: self.place):
                total.charge(copy.price, self._some(points, copy.chosen), self._when)
            self._changed(equation, known)
        else:
            price = self._operation(equation, known, points, needed)
            if price != Price():
                total.charge(price, points, self._when)

    def _within(
        self,
        equation: Any,
        actuals: Sequence[Any],
        body: Any,
        inner: Environment,
        points: Points,
        formals: Sequence[Any] = (),
    ) -> Sum:
        """Of a jaxpr inside of an equation; knows what there waits for what."""
        formals = formals or body.invars
        pairs = [(f, a) for f, a in zip(formals, actuals, strict=False) if _is_variable(a)]
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

    def _call(self, equation: Any, jaxpr: Any, known: Environment, points: Points) -> Sum:
        body = getattr(jaxpr, "jaxpr", jaxpr)
        # What an open jaxpr closes over comes first (run_scoped).
        formals = body.invars if body is not jaxpr else [*body.constvars, *body.invars]
        inner = self._bound(formals, equation.invars, known, points)
        total = self._within(equation, equation.invars, body, inner, points, formals)
        known |= self._bound(equation.outvars, body.outvars, inner, points)
        return total

    def _cond(self, equation: Any, known: Environment, points: Points) -> Sum:
        which = self._value(equation.invars[0], known, points)
        branches = [branch.jaxpr for branch in equation.params["branches"]]
        actuals = equation.invars[1:]
        total = Sum()
        outside = self._when
        cases = self._scalars.cases(which, len(branches))
        for number, (branch, case) in enumerate(zip(branches, cases, strict=True)):
            operands = self._bound(branch.invars, actuals, known, points)
            for chosen, sure in self._taken(which, number, len(branches), points):
                if not sure:
                    when = both(outside, case)
                    self._when = when if len(when) <= _MOST_CUBES else case
                if self._when:  # Else what is around it rules it out.
                    inner = {v: _at(value, chosen) for v, value in operands.items()}
                    some = self._some(points, chosen)
                    total.add(self._within(equation, actuals, branch, inner, some))
                self._when = outside
        return total

    def _taken(
        self, which: Scalar, number: int, count: int, points: Points
    ) -> Iterator[tuple[np.ndarray | slice, bool]]:
        """Points at which a branch is taken for sure, and those at which it may be."""
        if which.exact is not None:
            yield np.clip(which.exact.astype(np.int64), 0, count - 1) == number, True
        elif count == 2 and which.possible is not None:
            false, true = which.possible[::-1]
            mine, other = (false, true) if number == 0 else (true, false)
            yield mine & ~other, True
            yield mine & other, False
        else:
            yield slice(None), False

    def _scan(self, equation: Any, known: Environment, points: Points) -> Sum:
        params = equation.params
        body, consts = params["jaxpr"].jaxpr, params["num_consts"]
        loop = _Loop(equation, body, equation.invars, consts, params["num_carry"], params["length"])
        trips = np.full(len(points), params["length"])
        return self._repeated(loop, known, points, trips)

    def _while(self, equation: Any, known: Environment, points: Points) -> Sum:
        params = equation.params
        condition, body = params["cond_jaxpr"].jaxpr, params["body_jaxpr"].jaxpr
        consts = params["cond_nconsts"], params["body_nconsts"]
        carried = equation.invars[sum(consts) :]
        outer = dict(zip(condition.invars, [*equation.invars[: consts[0]], *carried], strict=True))
        # What fori_loop makes: a comparison of the counter, which goes up by one, with a bound.
        trips, at_most = None, None
        compare = condition.eqns[-1] if condition.eqns else None
        if compare is not None and compare.primitive.name == "lt" and len(condition.eqns) == 1:
            first, end = (
                self._value(outer.get(a, a) if _is_variable(a) else a, known, points)
                for a in compare.invars
            )
            if first.exact is not None and end.exact is not None:
                trips = np.maximum(end.exact - first.exact, 0)
                at_most = int(trips.max(initial=0))
            elif math.isfinite(end.high - first.low):
                at_most = max(0, int(end.high - first.low))
        actuals = equation.invars[consts[0] :]
        loop = _Loop(equation, body, actuals, consts[1], len(carried), at_most)
        if trips is not None:
            return self._repeated(loop, known, points, trips)
        name = self._loops.setdefault(id(equation), f"{self.name}/loop.{len(self._loops)}")
        described = Loop(name, self.place, at_most)
        inner = self._enter_loop(loop, known, points)
        once = self._within(equation, actuals, body, inner, points)
        return self._leave_loop(loop, known, once).mapped(lambda price: price.in_loop(described))

    def _repeated(
        self, loop: "_Loop", known: Environment, points: Points, trips: np.ndarray
    ) -> Sum:
        """Of a loop that runs as often as `trips` says for every point."""
        equation, body, actuals = loop.equation, loop.body, loop.actuals
        inner = self._enter_loop(loop, known, points)
        total = Sum()
        values = None
        if passes.decides(body):
            first = self._exact(loop.formals, loop.first, known, points)
            fixed = {v: value.exact for v, value in inner.items() if _is_exact(value)}
            first = {v: values for v, values in first.items() if v not in fixed}
            values = passes.carried(body, loop.formals, first, fixed, trips)
        if values is not None:
            # Every pass at every point by itself.
            at = passes.happen(trips)
            each = Points(points.index[at], np.arange(len(at)))
            part = {k: _at(v, at) for k, v in inner.items()}
            for variable, exact in values.items():
                part[variable] = self._scalars.known(exact, self._scalars.unknown())
            once = self._within(equation, actuals, body, part, each)
            once = self._leave_loop(loop, known, once)
            return once.gathered(points, at, self._some)
        # Points with as many trips go together.
        for count in np.unique(trips).tolist():
            chosen = trips == count
            part = {k: _at(v, chosen) for k, v in inner.items()}
            once = self._within(equation, actuals, body, part, self._some(points, chosen))
            total.add(once.mapped(lambda price, count=count: price.times(count)))
        return self._leave_loop(loop, known, total)

    def _exact(
        self, formals: Sequence[Any], actuals: Sequence[Any], known: Environment, points: Points
    ) -> dict[Any, np.ndarray]:
        """The scalars of a loop whose values before it are known."""
        pairs = zip(formals, actuals, strict=False)
        values = {f: self._value(a, known, points).exact for f, a in pairs if _is_scalar(f)}
        return {formal: value for formal, value in values.items() if value is not None}

    def _enter_loop(self, loop: "_Loop", known: Environment, points: Points) -> Environment:
        """What is known inside: of its constants, and of what it carries without changing it."""
        self._changed(loop.equation, known)  # What the body writes is another in each pass.
        self._scalars.depth += 1
        body = loop.body
        inner = self._bound(body.invars[: loop.consts], loop.actuals, known, points)
        made_by = {v: e for e in body.eqns for v in e.outvars}
        for formal, actual, result in zip(loop.formals, loop.first, body.outvars, strict=False):
            if not _is_scalar(formal):
                continue
            before = self._value(actual, known, points)
            step = made_by.get(result) if _is_variable(result) else None
            if result is formal:
                inner[formal] = before
            elif hasattr(result, "val"):
                after = self._value(result, known, points)
                low, high = min(before.low, after.low), max(before.high, after.high)
                inner[formal] = self._scalars.counted(low, high)
            elif step is not None and _counts(step, formal):
                most = math.inf if loop.at_most is None else max(0, loop.at_most - 1)
                inner[formal] = self._scalars.counted(before.low, before.high + most)
        return inner

    def _leave_loop(self, loop: "_Loop", known: Environment, once: Sum) -> Sum:
        """One pass, with predicates decided that may be others in the next one."""
        depth = self._scalars.depth
        once = once.decided(is_open=lambda form: self._scalars.depth_of(form) < depth)
        self._scalars.depth -= 1
        self._changed(loop.equation, known)
        return once

    def _changed(self, equation: Any, known: Environment) -> None:
        """References of the operands may hold something else from now on."""
        for operand in equation.invars:
            reference = known.get(operand) if _is_variable(operand) else None
            if isinstance(reference, Reference) and reference.written:
                reference.version += 1

    def _operation(
        self, equation: Any, known: Environment, points: Points, needed: Sequence[Any]
    ) -> Price:
        """The price at one point."""
        name = equation.primitive.name
        results = [v.aval for v in equation.outvars]
        if name == "get":
            self._read(equation, known, points)
        elif name not in operations.READS:
            self._changed(equation, known)
        scalars = all(getattr(a, "shape", ()) == () for a in results)
        if scalars and name not in operations.REDUCTIONS:
            self._scalar(equation, known, points)
            self._stored(equation)
            return Price()
        at = self._order(equation.invars)
        kept: tuple[tuple[int, int], ...] = ()
        if name == "dot_general":
            one = operations.product(equation)
            if one is None:
                dtype = equation.invars[0].aval.dtype
                raise KernelError(f"there is no rule for products of {dtype} at {self.place}")
            at = ready = order.of_product(at)
            kept = self._kept([*equation.invars, *equation.outvars])
        else:
            one = operations.on_arrays(equation)
            if one is None:
                raise KernelError(f"there is no rule for {name} at {self.place}")
            ready = at
            if name in operations.REDUCTIONS:
                ready = order.after_reduction(at)
                kept = self._kept(needed)
        for result in equation.outvars:
            self._orders[result] = ready
        self._stored(equation)
        stage = one + Stage(arrays=kept)
        if stage == Stage():
            return Price()
        return Price((*[Stage()] * at.stage, stage))

    def _kept(self, variables: Iterable[Any]) -> tuple[tuple[int, int], ...]:
        """Sizes in bytes of those that are in no memory yet, and how many have each.

        What a product makes or takes, and what is needed again after it has been reduced, is there
        as a whole at some time; anything else can be made, used and forgotten register by register.
        """
        sizes: collections.Counter[int] = collections.Counter()
        for variable in variables:
            if not _is_variable(variable) or variable in self._in_vmem:
                continue
            self._in_vmem.add(variable)
            sizes[bytes_of(variable.aval)] += 1
        return tuple(sizes.items())

    def _read(self, equation: Any, known: Environment, points: Points) -> None:
        """What a `get` reads: some of a table, or an array that is in memory already."""
        variable, *leaves = equation.invars
        result = equation.outvars[0]
        self._in_vmem.add(result)
        reference = known.get(variable)
        transforms = jax.tree.unflatten(equation.params["tree"], leaves)
        if not isinstance(reference, Reference) or len(transforms) != 1:
            return
        if getattr(result.aval, "shape", None) != ():
            return
        indices = [
            self._value(i, known, points) if _is_atom(i) else self._scalars.constant(i, len(points))
            for i in getattr(transforms[0], "indices", ())
            if _is_atom(i) or isinstance(i, int | np.integer)
        ]
        if len(indices) != len(getattr(variable.aval, "inner_aval", variable.aval).shape):
            return
        # The same place holds the same until the kernel writes there.
        value = self._scalars.made_of(
            ("load", reference, reference.version),
            indices,
            boolean=_is_boolean(result),
            changes=reference.written,
        )
        table = reference.values
        if table is not None and all(i.exact is not None for i in indices):
            # A program that looks ahead may look beyond the end; it ignores what it finds.
            bounds = zip(indices, table.shape, strict=True)
            inside = tuple(np.clip(i.exact, 0, extent - 1) for i, extent in bounds)
            value = self._scalars.known(np.broadcast_to(table[inside], len(points)), value)
        known[result] = value

    def _stored(self, equation: Any) -> None:
        """What a reference holds is there when all of it is."""
        if equation.primitive.name in ("swap", "addupdate"):
            self._orders[equation.invars[0]] = self._order(equation.invars)

    def _scalar(self, equation: Any, known: Environment, points: Points) -> None:
        name = equation.primitive.name
        if operations.on_arrays(equation) is None and name not in operations.SCALAR:
            raise KernelError(f"there is no rule for {name} at {self.place}")
        if not equation.outvars or equation.outvars[0] in known or _has_references(equation):
            return
        operands = [self._value(v, known, points) for v in equation.invars]
        if name == "optimization_barrier":
            known |= zip(equation.outvars, operands, strict=True)
        elif operands and len(equation.outvars) == 1:
            result = self._scalars.apply(equation, operands, len(points))
            known[equation.outvars[0]] = result


def _reads(effect: Any) -> bool:
    """Whether an effect leaves the references of a jaxpr as they are."""
    return not hasattr(effect, "input") or type(effect).__name__ == "ReadEffect"


def _is_atom(value: Any) -> bool:
    return hasattr(value, "aval")


def _is_variable(atom: Any) -> bool:
    return not hasattr(atom, "val")


def _is_reference(atom: Any) -> bool:
    return hasattr(atom.aval, "inner_aval")


def _is_scalar(atom: Any) -> bool:
    return getattr(atom.aval, "shape", None) == ()


def _is_boolean(atom: Any) -> bool:
    return getattr(atom.aval, "dtype", None) == np.bool_


def _is_exact(value: Any) -> bool:
    return isinstance(value, Scalar) and value.exact is not None


def _counts(step: Any, counter: Any) -> bool:
    """Whether it adds one."""
    one = step.primitive.name == "add" and getattr(step.invars[1], "val", None) == 1
    return one and step.invars[0] is counter


def _has_references(equation: Any) -> bool:
    return any(_is_reference(v) for v in (*equation.invars, *equation.outvars))


def _at(value: Scalar | Reference, chosen: Any) -> Scalar | Reference:
    return value.at(chosen) if isinstance(value, Scalar) else value
