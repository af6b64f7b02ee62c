"""Branches on data: what a kernel costs if they go the dearest way.

Which branch runs is not known, but branches are not free to run together: of `pl.when(a)` and
`pl.when(~a)` one runs, wherever in the body the two stand. So costs are kept apart by when they
arise (the cubes of `scalars`), and added up in the end for each way that the predicates can go.
The dearest counts, at every point of the grid by itself: what a predicate says may differ between
them.
"""

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

import numpy as np

from tpusim.kernels.price import Price
from tpusim.kernels.scalars import TRUE, Cubes, Form, Reach, intersection

# Ways that predicates can go which are looked at; of those that are left open.
_MOST_WAYS, _MOST_OPEN_WAYS = 1 << 18, 1 << 8
_ANY: Reach = ((-math.inf, math.inf),)


class Points:
    """Points of the grid, or passes of a loop at them, that are looked at together."""

    def __init__(self, index: np.ndarray, rows: np.ndarray):
        """`index` are points of the grid, `rows` what tells them apart from each other."""
        self.index = index
        self.rows = rows

    def __len__(self) -> int:
        return len(self.index)

    def some(self, chosen: np.ndarray | slice) -> "Points":
        """Some of them."""
        return Points(self.index[chosen], self.rows[chosen])


class Sum:
    """Of costs at points of the grid."""

    def __init__(self) -> None:
        # Whatever predicates say, over all points.
        self.always = Price()
        # When a list of cubes holds, at one point.
        self._sometimes: dict[tuple[Points, Cubes], Price] = {}

    def charge(self, price: Price, points: Points, when: Cubes) -> None:
        """Adds the price of one point."""
        if when == TRUE:
            self.always += price.times(len(points))
        elif when and len(points):
            key = points, when
            self._sometimes[key] = self._sometimes.get(key, Price()) + price

    def add(self, other: "Sum") -> None:
        """Adds all of it."""
        self.always += other.always
        for (points, when), price in other._sometimes.items():
            self.charge(price, points, when)

    def mapped(self, change: Callable[[Price], Price]) -> "Sum":
        """With every price changed by a linear function."""
        result = Sum()
        result.always = change(self.always)
        result._sometimes = {key: change(price) for key, price in self._sometimes.items()}
        return result

    def gathered(
        self, points: Points, at: np.ndarray, some: Callable[[Points, np.ndarray], Points]
    ) -> "Sum":
        """Of passes of a loop at these points: row n of the passes happens at point at[n]."""
        result = Sum()
        result.always = self.always
        for (passes, when), price in self._sometimes.items():
            counts = np.bincount(at[passes.rows], minlength=len(points))
            for count in np.unique(counts).tolist():
                result.charge(price.times(count), some(points, counts == count), when)
        return result

    def decided(self, is_open: Callable[[Form], bool]) -> "Sum":
        """The dearest way for the predicates on forms that are not open; open ones are left."""
        result = Sum()
        result.always = self.always
        parts = [_Part(points, when, price) for (points, when), price in self._sometimes.items()]
        for group in _connected(parts, is_open):
            if all(is_open(form) for part in group for form in part.forms):
                for part in group:
                    result.charge(part.price, part.points, part.when)
                continue
            for cell, members in _cells(group):
                _decide(members, cell, is_open, result)
        return result


class _Part:
    """A price that arises sometimes."""

    def __init__(self, points: Points, when: Cubes, price: Price):
        self.points, self.when, self.price = points, when, price
        self.forms = dict.fromkeys(form for cube in when for form, _ in cube)


def _connected(parts: Sequence[_Part], is_open: Callable[[Form], bool]) -> list[list[_Part]]:
    """Groups of parts that depend on common predicates which are to be decided."""
    root: dict[Hashable, Hashable] = {}

    def find(item: Hashable) -> Hashable:
        root.setdefault(item, item)
        while root[item] != item:
            root[item] = item = root[root[item]]
        return item

    for number, part in enumerate(parts):
        for form in part.forms:
            if not is_open(form):
                root[find(form)] = find(number)
    groups: dict[Hashable, list[_Part]] = {}
    for number, part in enumerate(parts):
        groups.setdefault(find(number), []).append(part)
    return list(groups.values())


def _cells(parts: Sequence[_Part]) -> list[tuple[Points, list[_Part]]]:
    """Points at which the same parts arise, with these parts."""
    distinct = list(dict.fromkeys(part.points for part in parts))
    if len(distinct) == 1:
        return [(distinct[0], list(parts))]
    signature = np.zeros(1 + max(int(points.rows.max()) for points in distinct), np.int64)
    index = np.zeros_like(signature)
    members: list[frozenset[Points]] = [frozenset()]
    for points in distinct:
        signature = 2 * signature
        signature[points.rows] += 1
        index[points.rows] = points.index
        kinds, signature = np.unique(signature, return_inverse=True)
        members = [
            members[kind // 2] | ({points} if kind % 2 else set()) for kind in kinds.tolist()
        ]
    every = Points(index, np.arange(len(index)))
    return [
        (every.some(signature == kind), [part for part in parts if part.points in present])
        for kind, present in enumerate(members)
        if present
    ]


def _decide(
    parts: Sequence[_Part], points: Points, is_open: Callable[[Form], bool], result: Sum
) -> None:
    """Charges what the dearest way costs, for every way that open predicates can go."""
    regions = _regions(parts)
    open_forms = [form for form in regions if is_open(form)]
    others = [form for form in regions if not is_open(form)]
    _limit(regions, open_forms, _MOST_OPEN_WAYS)
    _limit(regions, [*open_forms, *others], _MOST_WAYS)
    forms = [*open_forms, *others]
    shape = [len(regions[form]) for form in forms]
    arises = [_arises(part.when, forms, regions).reshape(shape) for part in parts]
    weight = sum(
        (part.price.size * holds for part, holds in zip(parts, arises, strict=True)),
        np.zeros(shape),
    )
    for place in itertools.product(*(range(len(regions[form])) for form in open_forms)):
        dearest = int(np.argmax(weight[place]))
        price = Price()
        for part, holds in zip(parts, arises, strict=True):
            if holds[place].flat[dearest]:
                price += part.price
        cube = tuple(
            (form, regions[form][n])
            for form, n in zip(open_forms, place, strict=True)
            if regions[form][n] != _ANY
        )
        if price != Price():
            result.charge(price, points, (tuple(sorted(cube)),))


def _limit(regions: dict[Form, list[Reach]], forms: Sequence[Form], most: int) -> None:
    """Takes predicates as true until there are few ways: dearer, as more can happen together."""
    for form in reversed(forms):
        if math.prod(len(regions[f]) for f in forms) > most:
            regions[form] = [_ANY]


def _regions(parts: Sequence[_Part]) -> dict[Form, list[Reach]]:
    """Of each form: intervals between which no predicate tells."""
    starts: dict[Form, set[float]] = {}
    for part in parts:
        for cube in part.when:
            for form, reach in cube:
                known = starts.setdefault(form, {-math.inf})
                for low, high in reach:
                    known |= {low, high + 1} - {math.inf}
    regions: dict[Form, list[Reach]] = {}
    for form, ends in starts.items():
        ordered = [*sorted(ends), math.inf]
        regions[form] = [((a, b - 1),) for a, b in itertools.pairwise(ordered)]
    return regions


def _arises(when: Cubes, forms: Iterable[Form], regions: Mapping[Form, list[Reach]]) -> np.ndarray:
    """In which regions of all forms it does."""
    forms = list(forms)
    shape = [len(regions[form]) for form in forms]
    holds = np.zeros(shape, bool)
    for cube in when:
        inside = np.ones(shape, bool)
        for form, reach in cube:
            axis = forms.index(form)
            within = np.array([bool(intersection(reach, r)) for r in regions[form]])
            inside &= within.reshape([-1 if n == axis else 1 for n in range(len(forms))])
        holds |= inside
    return holds
