"""What a call of a kernel costs, as amounts that add up."""

import collections
import dataclasses
import itertools

from tpusim.workload import KernelBlock, KernelCost, KernelLoop, KernelProduct, KernelStage


class KernelError(ValueError):
    """Why a kernel cannot be priced; its cost has to be stated."""


@dataclasses.dataclass(frozen=True)
class Stage:
    """What may run side by side. Stages of a body run one after another (`order.py`)."""

    flops: int = 0
    transcendentals: int = 0
    # Of arrays that registers do not hold: each is stored once and loaded once.
    spilled_bytes: int = 0
    # How many products of each kind; the count of a KernelProduct key is 1.
    products: tuple[tuple[KernelProduct, int], ...] = ()

    def __add__(self, other: "Stage") -> "Stage":
        products = collections.Counter(dict(self.products))
        products.update(dict(other.products))
        return Stage(
            self.flops + other.flops,
            self.transcendentals + other.transcendentals,
            self.spilled_bytes + other.spilled_bytes,
            tuple(products.items()),
        )

    def times(self, count: int) -> "Stage":
        """So many of it."""
        products = tuple((product, count * number) for product, number in self.products)
        return Stage(
            count * self.flops,
            count * self.transcendentals,
            count * self.spilled_bytes,
            products,
        )

    def kernel_products(self) -> tuple[KernelProduct, ...]:
        """As a workload states them."""
        return tuple(
            dataclasses.replace(product, count=count)
            for product, count in sorted(self.products, key=lambda p: dataclasses.astuple(p[0]))
            if count
        )


@dataclasses.dataclass(frozen=True)
class Price:
    """Of one call, on one device."""

    stages: tuple[Stage, ...] = ()
    bytes_accessed: int = 0
    remote_bytes: int = 0
    grid: tuple[int, ...] = ()
    blocks: tuple[KernelBlock, ...] = ()
    # What one pass of each loop on data costs, by the loop and its source.
    loops: tuple[tuple[tuple[str, str], "Price"], ...] = ()

    @property
    def total(self) -> Stage:
        """Of all stages."""
        return sum(self.stages, Stage())

    def __add__(self, other: "Price") -> "Price":
        loops = dict(self.loops)
        for loop, once in other.loops:
            loops[loop] = loops[loop] + once if loop in loops else once
        pairs = itertools.zip_longest(self.stages, other.stages, fillvalue=Stage())
        return Price(
            tuple(a + b for a, b in pairs),
            self.bytes_accessed + other.bytes_accessed,
            self.remote_bytes + other.remote_bytes,
            loops=tuple(loops.items()),
        )

    def times(self, count: int) -> "Price":
        """So many of it."""
        return Price(
            tuple(stage.times(count) for stage in self.stages),
            count * self.bytes_accessed,
            count * self.remote_bytes,
            loops=tuple((loop, once.times(count)) for loop, once in self.loops),
        )

    @property
    def size(self) -> tuple[int, int]:
        """By which the dearest branch is found; loops on data count one pass."""
        sizes = [once.size for _, once in self.loops]
        total = self.total
        return (
            total.flops + total.transcendentals + sum(s[0] for s in sizes),
            self.bytes_accessed + sum(s[1] for s in sizes),
        )

    def cost(self, name: str) -> KernelCost:
        """As a workload states it, for the instruction of that name."""
        total = self.total
        stages = tuple(
            KernelStage(s.flops, s.transcendentals, s.spilled_bytes, s.kernel_products())
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
            tuple(KernelLoop(loop, once.cost(""), source) for (loop, source), once in self.loops),
            stages=stages,
        )
