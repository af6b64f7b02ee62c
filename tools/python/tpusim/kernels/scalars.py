"""What is known of the scalars in a kernel's body.

Scalars decide what a kernel does: which branch it takes, how often a loop runs, how large a copy
is. Of each is kept what there is of

    exact     its values at the points of the grid that are looked at, where nothing of it is data
    low, high bounds of all values that it can have: `min(128, n)` is at most 128 whatever n is
    symbol    what it is made of, so that what is computed twice is known to be the same

Integers have linear symbols: a constant, and multiples of atoms (loads, `min(a, b)`, anything
without a rule of its own). A comparison of two of them says in which intervals the difference of
both lies. Booleans are such statements combined: two lists of cubes, one for true and one for
false. A cube is a conjunction, an interval or several for each linear form in it; those of both
lists together exclude each other and leave nothing out. `i < n`, `n <= i` and `~(i < n)`
are thus statements about the same form, i - n, and known to be equal or complements.
"""

import dataclasses
import math
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tpusim.kernels.operations import SCALAR, words

# Multiples of atoms, by the atom's number.
Form = tuple[tuple[int, int], ...]
# Closed intervals of integers that do not overlap, in order; ends may be infinite.
Reach = tuple[tuple[float, float], ...]
# All of these hold; sorted by form, each form once.
Cube = tuple[tuple[Form, Reach], ...]
# One of these holds; they exclude each other. ((),) is true, () is false.
Cubes = tuple[Cube, ...]

TRUE: Cubes = ((),)
# Booleans made of more are atoms.
_MOST_CUBES = 64
# The result is the operand, as far as scalars go.
_SAME = words(
    "copy copy_p reshard mesh_cast sharding_constraint layout_constraint stop_gradient pvary pcast "
    "optimization_barrier multiple_of squeeze reshape expand_dims broadcast_in_dim reduce_precision"
)
# Which differences of the operands make a comparison true.
_COMPARED: dict[str, Reach] = {
    "eq": ((0, 0),),
    "ne": ((-math.inf, -1), (1, math.inf)),
    "lt": ((-math.inf, -1),),
    "le": ((-math.inf, 0),),
    "gt": ((1, math.inf),),
    "ge": ((0, math.inf),),
}
# Sums of the operands with these factors; of a product one is a number.
_LINEAR: dict[str, tuple[int, ...]] = {"add": (1, 1), "sub": (1, -1), "neg": (-1,), "mul": ()}
_EVERYTHING: Reach = ((-math.inf, math.inf),)


class Linear(NamedTuple):
    """An integer: multiples of atoms, and a constant."""

    form: Form
    constant: int = 0


class Predicate(NamedTuple):
    """A boolean: when it is true, when it is false."""

    true: Cubes
    false: Cubes


Symbol = Linear | Predicate


@dataclasses.dataclass(frozen=True, eq=False)
class Scalar:
    """What is known of one scalar."""

    symbol: Symbol
    exact: np.ndarray | None = None
    low: float = -math.inf
    high: float = math.inf
    # Of a boolean: at which points it can be true, at which false. Nothing: at all of them.
    possible: tuple[np.ndarray, np.ndarray] | None = None

    def at(self, chosen: Any) -> "Scalar":
        """Of some of the points."""
        exact = None if self.exact is None else self.exact[chosen]
        possible = self.possible and (self.possible[0][chosen], self.possible[1][chosen])
        return dataclasses.replace(self, exact=exact, possible=possible)

    def outcomes(self, points: int) -> tuple[np.ndarray, np.ndarray]:
        """At which points a boolean can be true, and at which it can be false."""
        if self.exact is not None:
            return self.exact.astype(bool), ~self.exact.astype(bool)
        return self.possible or (np.ones(points, bool), np.ones(points, bool))


def intersection(one: Reach, other: Reach) -> Reach:
    """Of two sets of integers."""
    ends = ((max(a, c), min(b, d)) for a, b in one for c, d in other)
    return tuple(sorted((low, high) for low, high in ends if low <= high))


def complement(reach: Reach) -> Reach:
    """All other integers."""
    gaps, low = [], -math.inf
    for start, end in reach:
        if low < start:
            gaps.append((low, start - 1))
        low = end + 1
    return (*gaps, (low, math.inf)) if low < math.inf else tuple(gaps)


def both(one: Cubes, other: Cubes) -> Cubes:
    """When one cube of either list holds."""
    joined = []
    for a in one:
        for b in other:
            forms = dict(a)
            for form, reach in b:
                forms[form] = intersection(forms.get(form, _EVERYTHING), reach)
            if all(forms.values()):
                joined.append(tuple(sorted(forms.items())))
    return tuple(joined)


def refined(scalar: Scalar, when: Cubes) -> Scalar:
    """With the bounds that it has when one of these cubes holds."""
    if not isinstance(scalar.symbol, Linear) or not when:
        return scalar
    form, constant = scalar.symbol
    negated = tuple((atom, -factor) for atom, factor in form)
    lows, highs = [], []
    for cube in when:
        low, high = scalar.low, scalar.high
        for other, reach in cube:
            if other == form:
                low = max(low, reach[0][0] + constant)
                high = min(high, reach[-1][1] + constant)
            elif other == negated:
                low = max(low, constant - reach[-1][1])
                high = min(high, constant - reach[0][0])
        lows.append(low)
        highs.append(high)
    return dataclasses.replace(scalar, low=min(lows), high=max(highs))


class Scalars:
    """Makes scalars out of others; numbers the atoms of one kernel.

    `depth` is the number of loops around what is looked at. An atom belongs to the innermost loop
    that changes it.
    """

    def __init__(self) -> None:
        self.depth = 0
        self._numbers: dict[Hashable, int] = {}
        self._depths: list[int] = []
        # What integers made of booleans were made of.
        self._booleans: dict[Form, Predicate] = {}

    def depth_of(self, form: Form) -> int:
        """How many loops are around the innermost that changes it."""
        return max((self._depths[atom] for atom, _ in form), default=0)

    def unknown(self, *, boolean: bool = False) -> Scalar:
        """A scalar that nothing is known of, other than all before."""
        return self._of_atom(self._new_atom(self.depth), boolean)

    def counted(self, low: float, high: float) -> Scalar:
        """An integer between these, another in every pass of the innermost loop."""
        return dataclasses.replace(self.unknown(), low=low, high=high)

    def made_of(
        self, what: Hashable, operands: Iterable[Scalar], *, boolean: bool, changes: bool = False
    ) -> Scalar:
        """The same for the same operands; `changes` if another in every pass of a loop."""
        symbols = tuple(operand.symbol for operand in operands)
        key = (what, symbols)
        if key not in self._numbers:
            depth = max(map(self._depth_of_symbol, symbols), default=0)
            self._numbers[key] = self._new_atom(self.depth if changes else depth)
        return self._of_atom(self._numbers[key], boolean)

    def constant(self, value: Any, points: int) -> Scalar:
        """A number of the program."""
        exact = np.full(points, value)
        if exact.dtype == bool:
            return Scalar(Predicate(TRUE, ()) if value else Predicate((), TRUE), exact, 0, 1)
        if exact.dtype.kind not in "iu":
            number = self.made_of(("number", float(value)), (), boolean=False)
            return dataclasses.replace(number, exact=exact)
        return Scalar(Linear((), int(value)), exact, int(value), int(value))

    def known(self, exact: np.ndarray, symbol: Scalar) -> Scalar:
        """A scalar whose values are known, made as `symbol` says."""
        if exact.dtype.kind not in "iu" or not exact.size:
            return dataclasses.replace(symbol, exact=exact)
        return Scalar(symbol.symbol, exact, int(exact.min()), int(exact.max()))

    def cases(self, index: Scalar, count: int) -> list[Cubes]:
        """When a conditional of so many branches takes each of them."""
        symbol = index.symbol
        if isinstance(symbol, Linear) and symbol.constant == 0 and symbol.form in self._booleans:
            symbol = self._booleans[symbol.form]
        if isinstance(symbol, Predicate):
            return [symbol.false, symbol.true, *[()] * (count - 2)]
        if count == 1:
            return [TRUE]
        # An index beyond the ends is taken to the nearest branch.
        ends = [(-math.inf, 0), *((n, n) for n in range(1, count - 1)), (count - 1, math.inf)]
        return [self._within(symbol, (end,)).true for end in ends]

    def apply(self, equation: Any, operands: Sequence[Scalar], points: int) -> Scalar:
        """The result of an operation on scalars, at so many points; an atom without a rule."""
        name = equation.primitive.name
        boolean = equation.outvars[0].aval.dtype == np.bool_
        kinds = {v.aval.dtype.kind for v in equation.invars}
        result = self._symbolic(name, equation, operands, boolean)
        exact = None
        if can_evaluate(equation) and all(operand.exact is not None for operand in operands):
            exact = evaluated(equation, [operand.exact for operand in operands])
        elif boolean and TRUE in result.symbol:  # Bounds decide it.
            exact = np.full(points, result.symbol.true == TRUE)
        elif kinds == {"b"}:
            possible = _possible(name, [operand.outcomes(points) for operand in operands])
            result = dataclasses.replace(result, possible=possible)
        if exact is None:
            return result
        if name not in _LINEAR and exact.dtype.kind in "iu" and np.all(exact == exact[:1]):
            return self.constant(exact[0], points)
        return self.known(exact, result)

    def _symbolic(
        self, name: str, equation: Any, operands: Sequence[Scalar], boolean: bool
    ) -> Scalar:
        kinds = {v.aval.dtype.kind for v in equation.invars}
        symbols = [operand.symbol for operand in operands]
        if name in _SAME:
            return dataclasses.replace(operands[0], exact=None)
        if name == "convert_element_type":
            return self._converted(equation, operands[0])
        if name in _COMPARED and kinds <= set("iu"):
            return self._compared(name, *operands)
        if name in _COMPARED and kinds & set("fV"):  # V: narrow floating-point numbers
            return self._of_predicate(self._sign(name, *operands))
        if kinds == {"b"} and boolean:
            combined = _combined(name, symbols)
            if combined is not None and max(map(len, combined)) <= _MOST_CUBES:
                return self._of_predicate(combined)
        parameters = str(sorted((k, str(v)) for k, v in equation.params.items()))
        made = self.made_of((name, parameters), operands, boolean=boolean)
        if boolean or equation.outvars[0].aval.dtype.kind not in "iu":
            return made
        if name == "select_n":
            cases = self.cases(operands[0], len(operands) - 1)
            operands = [operands[0], *map(refined, operands[1:], cases)]
        low, high = _bounds(name, operands)
        symbol = _linear(name, symbols) or made.symbol
        return Scalar(symbol, None, low, high)

    def _converted(self, equation: Any, operand: Scalar) -> Scalar:
        kind = np.dtype(equation.params["new_dtype"]).kind
        before = equation.invars[0].aval.dtype.kind
        symbol = operand.symbol
        if kind in "iu" and before in "iu":
            return dataclasses.replace(operand, exact=None)
        if kind in "iu" and isinstance(symbol, Predicate):
            made = self.made_of("integer", (operand,), boolean=False)
            self._booleans[made.symbol.form] = symbol
            return Scalar(made.symbol, None, 0, 1)
        if kind == "b" and isinstance(symbol, Linear):
            if symbol.constant == 0 and symbol.form in self._booleans:
                return self._of_predicate(self._booleans[symbol.form])
            return self._of_predicate(self._within(symbol, _COMPARED["ne"]))
        if kind == before:
            return dataclasses.replace(operand, exact=None)
        return self.made_of(("convert", kind), (operand,), boolean=kind == "b")

    def _compared(self, name: str, left: Scalar, right: Scalar) -> Scalar:
        difference = _linear("sub", [left.symbol, right.symbol])
        if difference is None:
            return self.made_of(name, (left, right), boolean=True)
        within: Reach = ((left.low - right.high, left.high - right.low),)
        reach = _COMPARED[name]
        if not intersection(reach, within):
            return self._of_predicate(Predicate((), TRUE))
        if not intersection(complement(reach), within):
            return self._of_predicate(Predicate(TRUE, ()))
        return self._of_predicate(self._within(difference, reach))

    def _within(self, symbol: Linear, reach: Reach) -> Predicate:
        """Whether an integer lies in these intervals."""
        form = symbol.form
        reach = tuple((low - symbol.constant, high - symbol.constant) for low, high in reach)
        if not form:
            holds = bool(intersection(reach, ((0, 0),)))
            return Predicate(TRUE, ()) if holds else Predicate((), TRUE)
        if form[0][1] < 0:  # So that a - b and b - a are one form.
            form = tuple((atom, -factor) for atom, factor in form)
            reach = tuple(sorted((-high, -low) for low, high in reach))
        outside = complement(reach)
        return Predicate(((((form, reach),)),), ((((form, outside),)),) if outside else ())

    def _sign(self, name: str, left: Scalar, right: Scalar) -> Predicate:
        """A comparison of numbers that are no integers: the sign of their difference is an atom."""
        reach = _COMPARED[name]
        if repr(right.symbol) < repr(left.symbol):
            left, right = right, left
            reach = tuple(sorted((-high, -low) for low, high in reach))
        sign = self.made_of("sign of difference", (left, right), boolean=False)
        return self._within(sign.symbol, reach)

    def _of_predicate(self, predicate: Predicate) -> Scalar:
        return Scalar(predicate, None, 0, 1)

    def _of_atom(self, atom: int, boolean: bool) -> Scalar:
        form = ((atom, 1),)
        if not boolean:
            return Scalar(Linear(form))
        return self._of_predicate(Predicate((((form, ((1, 1),)),),), (((form, ((0, 0),)),),)))

    def _new_atom(self, depth: int) -> int:
        self._depths.append(depth)
        return len(self._depths) - 1

    def _depth_of_symbol(self, symbol: Symbol) -> int:
        if isinstance(symbol, Linear):
            return self.depth_of(symbol.form)
        cubes = (*symbol.true, *symbol.false)
        return max((self.depth_of(form) for cube in cubes for form, _ in cube), default=0)


def _linear(name: str, symbols: Sequence[Symbol]) -> Linear | None:
    """Sums, differences and multiples of linear symbols."""
    if not all(isinstance(symbol, Linear) for symbol in symbols):
        return None
    factors = _LINEAR.get(name)
    if name == "mul":
        number = next((s.constant for s in symbols if not s.form), None)
        if number is None:
            return None
        symbols = [s for s in symbols if s.form] or symbols[:1]
        factors = (number,)
    if not factors:
        return None
    atoms: dict[int, int] = {}
    for symbol, factor in zip(symbols, factors, strict=False):
        for atom, times in symbol.form:
            atoms[atom] = atoms.get(atom, 0) + factor * times
    constant = sum(f * s.constant for s, f in zip(symbols, factors, strict=False))
    return Linear(tuple(sorted((a, n) for a, n in atoms.items() if n)), constant)


def _combined(name: str, symbols: Sequence[Predicate]) -> Predicate | None:
    """Booleans made of booleans."""
    one = symbols[0]
    if name == "not":
        return Predicate(one.false, one.true)
    if len(symbols) < 2:
        return None
    other = symbols[1]
    if name == "and":
        false = (*one.false, *both(one.true, other.false))
        return Predicate(both(one.true, other.true), false)
    if name == "or":
        true = (*one.true, *both(one.false, other.true))
        return Predicate(true, both(one.false, other.false))
    differ = (*both(one.true, other.false), *both(one.false, other.true))
    alike = (*both(one.true, other.true), *both(one.false, other.false))
    if name in ("xor", "ne"):
        return Predicate(differ, alike)
    if name == "eq":
        return Predicate(alike, differ)
    if name == "select_n" and len(symbols) == 3:
        if_true = symbols[2]
        return Predicate(
            (*both(one.false, other.true), *both(one.true, if_true.true)),
            (*both(one.false, other.false), *both(one.true, if_true.false)),
        )
    return None


def _possible(
    name: str, outcomes: Sequence[tuple[np.ndarray, np.ndarray]]
) -> tuple[np.ndarray, np.ndarray] | None:
    """At which points a boolean can be true, and false, of those that it is made of."""
    true, false = outcomes[0]
    if name == "convert_element_type":
        return true, false
    if name == "not":
        return false, true
    if name == "and":
        return true & outcomes[1][0], false | outcomes[1][1]
    if name == "or":
        return true | outcomes[1][0], false & outcomes[1][1]
    return None


def can_evaluate(equation: Any) -> bool:
    """Whether there is a rule for the values of its result, a scalar."""
    name = equation.primitive.name
    one = len(equation.outvars) == 1 and bool(equation.invars)
    scalars = all(getattr(v.aval, "shape", None) == () for v in equation.invars)
    return one and scalars and (name in _SAME or name in SCALAR or name == "convert_element_type")


def evaluated(equation: Any, values: Sequence[np.ndarray]) -> np.ndarray:
    """The result, at all points."""
    name, dtype = equation.primitive.name, equation.outvars[0].aval.dtype
    if name in _SAME:
        return values[0]
    if name == "convert_element_type":
        return values[0].astype(dtype)
    if name == "div" and np.dtype(dtype).kind not in "iu":
        return values[0] / values[1]
    return SCALAR[name](*values)


def _times(a: float, b: float) -> float:
    return 0 if 0 in (a, b) else a * b


def _quotient(a: float, b: float) -> float:
    """Rounded to zero, as lax.div does."""
    if math.isinf(b):
        return 0
    if math.isinf(a):
        return a
    return -(-a // b) if a < 0 else a // b


def _bounds(name: str, operands: Sequence[Scalar]) -> tuple[float, float]:
    """Of the result, from those of integer operands."""
    lows, highs = [o.low for o in operands], [o.high for o in operands]
    if name == "add":
        return sum(lows), sum(highs)
    if name == "sub":
        return lows[0] - highs[1], highs[0] - lows[1]
    if name == "neg":
        return -highs[0], -lows[0]
    if name == "min":
        return min(lows), min(highs)
    if name == "max":
        return max(lows), max(highs)
    if name == "mul":
        corners = [_times(a, b) for a in (lows[0], highs[0]) for b in (lows[1], highs[1])]
        return min(corners), max(corners)
    if name == "div" and lows[1] > 0:
        corners = [_quotient(a, b) for a in (lows[0], highs[0]) for b in (lows[1], highs[1])]
        return min(corners), max(corners)
    if name == "rem" and lows[1] > 0:
        most = highs[1] - 1
        return (0 if lows[0] >= 0 else max(lows[0], -most)), (
            min(highs[0], most) if highs[0] > 0 else 0
        )
    if name == "select_n":
        return min(lows[1:]), max(highs[1:])
    if name == "clamp":
        return max(lows[0], min(lows[1], lows[2])), min(highs[2], max(highs[1], highs[0]))
    if name == "abs":
        return (0 if lows[0] < 0 < highs[0] else min(abs(lows[0]), abs(highs[0]))), max(
            abs(lows[0]), abs(highs[0])
        )
    if name == "sign":
        return max(-1, min(1, lows[0])), max(-1, min(1, highs[0]))
    if name == "and" and max(lows) >= 0:
        return 0, min(high for low, high in zip(lows, highs, strict=True) if low >= 0)
    return -math.inf, math.inf
