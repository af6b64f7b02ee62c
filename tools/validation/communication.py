"""Bytes that a partitioned module sends over links: the measure of a partitioner.

The cost of a collective is the sum, over directed links, of the bytes that have to cross them, by
the best algorithm: shortest ways for what goes to one device, shortest trees for what goes to all
of a group. On a tree of t links

    all-gather of r bytes       r t      every shard crosses the tree
    reduce-scatter of r bytes   r t      the same backwards
    all-reduce of r bytes       2 r t    both
    all-to-all                  bytes x distance, over all pairs of a group
    collective-permute          bytes x distance, over all pairs

A collective in a loop counts as often as the loop runs.
"""

import collections
import dataclasses
import math
from collections.abc import Sequence

import hlo_execution
from tpusim import hlo

Place = tuple[int, int]
Groups = tuple[tuple[int, ...], ...]

KINDS = (
    *("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute"),
    *("ragged-all-to-all", "collective-broadcast"),
)


def places(mesh: Sequence[int]) -> list[Place]:
    """Returns the places of a mesh's devices on 4 x 2 chips: the longest axis along the long side.

    An axis of eight goes round the outside, so that all its neighbours are neighbours.
    """
    if max(mesh) == 8:
        return [(x, 0) for x in range(4)] + [(3 - x, 1) for x in range(4)]
    axes = [size for size in mesh if size > 1]
    if axes == [4, 2]:
        return [(x, y) for x in range(4) for y in range(2)]
    if axes == [2, 4]:
        return [(x, y) for y in range(2) for x in range(4)]
    if axes == [2, 2, 2]:
        return [(2 * x + y, z) for x in range(2) for y in range(2) for z in range(2)]
    if axes == [4]:
        return [(0, 0), (1, 0), (1, 1), (0, 1)]
    if axes == [2, 2]:
        return [(x, y) for x in range(2) for y in range(2)]
    raise ValueError(f"no placement for a mesh of {list(mesh)}")


def distance(a: Place, b: Place) -> int:
    """Links of the shortest way; a 4 x 2 slice has no wrapped links."""
    return abs(a[0] - b[0]) + abs(a[1] - b[1])


def tree(group: Sequence[Place]) -> int:
    """Links of the shortest tree that connects the group along shortest ways."""
    links, joined, left = 0, [group[0]], list(group[1:])
    while left:
        length, nearest = min((min(distance(a, b) for b in joined), a) for a in left)
        links += length
        joined.append(nearest)
        left.remove(nearest)
    return links


@dataclasses.dataclass
class Communication:
    """Bytes per kind and groups, the cost of all of it, and FLOPs of products per device."""

    sent: dict[tuple[str, Groups], int]
    cost: int
    dot_flops: int


def communication(module: hlo.Module, mesh: Sequence[int], unknown_trips: int = 1) -> Communication:
    """Measures a partitioned module."""
    at = places(mesh)
    sent: dict[tuple[str, Groups], int] = collections.defaultdict(int)
    cost = flops = 0
    for computation, instruction, times in hlo_execution.executed(module, unknown_trips):
        if instruction.opcode in ("dot", "ragged-dot"):
            flops += times * _dot_flops(computation, instruction)
        kind = instruction.opcode.removesuffix("-start")
        if kind not in KINDS:
            continue
        operands = sum(o.shape.bytes for o in computation.operands(instruction))
        if kind == "collective-permute":
            pairs = sorted(
                p for p in hlo_execution.source_target_pairs(instruction) if p[0] != p[1]
            )
            groups: Groups = tuple(pairs)
            links = operands * sum(distance(at[a], at[b]) for a, b in pairs)
            size = operands
        else:
            listed = hlo_execution.replica_groups(instruction.fields) or [list(range(len(at)))]
            groups = tuple(sorted(tuple(sorted(g)) for g in listed if len(g) > 1))
            size = operands * len(listed[0]) if kind == "all-gather" else operands
            links = sum(_links(kind, size, [at[d] for d in group]) for group in groups)
        if groups and times:
            sent[kind, groups] += size * times
            cost += links * times
    return Communication(dict(sent), cost, flops)


def _links(kind: str, size: int, group: Sequence[Place]) -> int:
    if kind in ("all-to-all", "ragged-all-to-all"):
        return sum(distance(a, b) for a in group for b in group) * size // len(group)
    return size * tree(group) * (2 if kind == "all-reduce" else 1)


def _dot_flops(computation: hlo.Computation, dot: hlo.Instruction) -> int:
    left = computation.operands(dot)[0].shape.dims
    contracted = math.prod(left[d] for d in hlo_execution.contracting_dims(dot))
    return 2 * math.prod(dot.shape.dims) * contracted
