"""What a call of a kernel costs, as amounts that add up."""

import collections
import dataclasses
import itertools
from collections.abc import Iterator, Sequence

from tpusim.workload import (
    KernelArray,
    KernelBlock,
    KernelCost,
    KernelLoop,
    KernelProduct,
    KernelStage,
)

# By what branches are compared: seconds on v5e, whose peaks these are (configs/chips/v5e.json):
# FLOPs of products, lanes of the four vector units, lanes of the unit for transcendentals, bytes of
# HBM and of a link. Which of two branches is dearer hardly depends on the chip.
_PRODUCT, _VECTOR, _TRANSCENDENTAL = 1 / 197e12, 1 / (4 * 1024 * 1.5e9), 1 / (1024 * 1.5e9)
_BYTE, _REMOTE_BYTE = 1 / 819e9, 1 / 45e9
# Copies that an assumption names.
_MOST_NAMED = 3


class KernelError(ValueError):
    """Why a kernel cannot be priced; its cost has to be stated."""


@dataclasses.dataclass(frozen=True)
class Stage:
    """What may run side by side. Stages of a body run one after another (`order.py`)."""

    flops: int = 0
    transcendentals: int = 0
    # How many products of each kind; the count of a KernelProduct key is 1.
    products: tuple[tuple[KernelProduct, int], ...] = ()
    # How many arrays of each size are there as a whole at some time: where registers do not hold
    # one, it is stored once and loaded once.
    arrays: tuple[tuple[int, int], ...] = ()

    def __add__(self, other: "Stage") -> "Stage":
        products = collections.Counter(dict(self.products))
        products.update(dict(other.products))
        arrays = collections.Counter(dict(self.arrays))
        arrays.update(dict(other.arrays))
        return Stage(
            self.flops + other.flops,
            self.transcendentals + other.transcendentals,
            tuple(products.items()),
            tuple(arrays.items()),
        )

    def times(self, count: int) -> "Stage":
        """So many of it."""
        products = tuple((product, count * number) for product, number in self.products)
        return Stage(
            count * self.flops,
            count * self.transcendentals,
            products,
            tuple((size, count * number) for size, number in self.arrays),
        )

    def kernel_products(self) -> tuple[KernelProduct, ...]:
        """As a workload states them."""
        return tuple(
            dataclasses.replace(product, count=count)
            for product, count in sorted(self.products, key=lambda p: dataclasses.astuple(p[0]))
            if count
        )


@dataclasses.dataclass(frozen=True)
class Loop:
    """A loop on data: its name, its place, and how often it can run at most, if that is known."""

    name: str
    source: str = ""
    at_most: int | None = None

    @property
    def number(self) -> int:
        """Of the loops of its kernel."""
        return int(self.name.rpartition(".")[2])

    def joined(self, other: "Loop") -> "Loop":
        """The same loop, reached at another time."""
        known = self.at_most is not None and other.at_most is not None
        return Loop(self.name, self.source, max(self.at_most, other.at_most) if known else None)


@dataclasses.dataclass(frozen=True)
class Price:
    """Of one call, on one device."""

    stages: tuple[Stage, ...] = ()
    bytes_accessed: int = 0
    remote_bytes: int = 0
    grid: tuple[int, ...] = ()
    blocks: tuple[KernelBlock, ...] = ()
    # What one pass of each loop on data costs.
    loops: tuple[tuple["Loop", "Price"], ...] = ()
    # Copies whose size is data, as they were counted: "f32[8,128] at FILE:LINE".
    largest_copies: tuple[str, ...] = ()

    @property
    def total(self) -> Stage:
        """Of all stages."""
        return sum(self.stages, Stage())

    def __add__(self, other: "Price") -> "Price":
        loops = {loop.name: (loop, once) for loop, once in self.loops}
        for loop, once in other.loops:
            before, so_far = loops.get(loop.name, (loop, Price()))
            loops[loop.name] = before.joined(loop), so_far + once
        pairs = itertools.zip_longest(self.stages, other.stages, fillvalue=Stage())
        return Price(
            tuple(a + b for a, b in pairs),
            self.bytes_accessed + other.bytes_accessed,
            self.remote_bytes + other.remote_bytes,
            loops=tuple(loops.values()),
            largest_copies=tuple(dict.fromkeys((*self.largest_copies, *other.largest_copies))),
        )

    def times(self, count: int) -> "Price":
        """So many of it."""
        return Price(
            tuple(stage.times(count) for stage in self.stages),
            count * self.bytes_accessed,
            count * self.remote_bytes,
            loops=tuple((loop, once.times(count)) for loop, once in self.loops),
            largest_copies=self.largest_copies if count else (),
        )

    def in_loop(self, loop: Loop) -> "Price":
        """Of a loop on data, if this is what one pass costs."""
        return Price(loops=((loop, self),)) if self != Price() else Price()

    @property
    def size(self) -> float:
        """By which the dearest branch is found; loops on data count one pass."""
        total = self.total
        products = sum(2 * p.m * p.k * p.n * count for p, count in total.products)
        return (
            _PRODUCT * products
            + _VECTOR * (total.flops - products)
            + _TRANSCENDENTAL * total.transcendentals
            + _BYTE * self.bytes_accessed
            + _REMOTE_BYTE * self.remote_bytes
            + sum(once.size for _, once in self.loops)
        )

    def all_copies(self) -> Iterator[str]:
        """Those of loops too."""
        yield from self.largest_copies
        for _, once in self.loops:
            yield from once.all_copies()

    def cost(self, name: str) -> KernelCost:
        """As a workload states it, for the instruction of that name."""
        total, copies = self.total, list(dict.fromkeys(self.all_copies()))
        stages = tuple(
            KernelStage(
                s.flops,
                s.transcendentals,
                products=s.kernel_products(),
                arrays=tuple(KernelArray(*array) for array in sorted(s.arrays) if array[1]),
            )
            for s in self.stages
            if s != Stage()
        )
        return KernelCost(
            name,
            total.flops,
            total.transcendentals,
            self.bytes_accessed,
            self.remote_bytes,
            self.grid,
            self.blocks if self.grid else (),
            total.kernel_products(),
            tuple(
                KernelLoop(loop.name, once.cost(""), loop.source, loop.at_most)
                for loop, once in sorted(self.loops, key=lambda pair: pair[0].number)
            ),
            stages=stages,
            assumed=(_counted_at_most(copies),) if name and copies else (),
        )


def _counted_at_most(copies: Sequence[str]) -> str:
    """The sentence about copies whose size is data."""
    listed = ", ".join(copies[:_MOST_NAMED])
    more = f" and {len(copies) - _MOST_NAMED} more" if len(copies) > _MOST_NAMED else ""
    return f"copies slices whose size is data, counted at their largest: {listed}{more}"
