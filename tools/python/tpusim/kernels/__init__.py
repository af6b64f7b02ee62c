"""Prices Pallas kernels from their jaxprs.

A kernel runs its body once per point of its grid. What depends on the point only (`program_id`,
tables that are constants of the program, and integers made of them) is known here, for all points
at once: which branch is taken, how often a loop runs, which block a block spec picks. What depends
on data is not: then the branches count that are dearest together, copies are as large as they can
be, and what a loop does in one pass is kept apart, under the name "KERNEL/loop.N" ("KERNEL/grid.N"
for an axis of the grid), until its trip count is stated.

    flops, transcendentals   of the body's operations on arrays, at every point; those on scalars
                             are free, as they run beside
    bytes                    of the blocks, each time that a block differs from the one at the point
                             before; of the copies that the body starts itself
    grid, blocks, products   how it is pipelined: which axes of the grid move which block, and the
                             matrix products of the body by size and number format
    stages                   what of the body can run side by side, and what waits for it

`body` walks a body, `scalars` has what is known of what it computes, `branches` which of them run
together, `copies` what they move, `operations` what each operation costs, `order` what waits for
what, `constants` the tables; `price` adds up.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tpusim.kernels.body import Kernel
from tpusim.kernels.constants import Scope
from tpusim.kernels.copies import bytes_of
from tpusim.kernels.price import KernelError, Loop, Price
from tpusim.workload import KernelBlock, KernelCost


def priced_kernels(traced: Any) -> Iterator[tuple[Any, Price | KernelError]]:
    """Every pallas_call of a traced program (a closed jaxpr), with its price.

    Instead of the price, why there is none. What differs between devices counts where it is
    dearest.
    """
    yield from _priced(traced.jaxpr, [Scope(traced.jaxpr, traced.consts)])


def _priced(jaxpr: Any, scopes: Sequence[Scope]) -> Iterator[tuple[Any, Price | KernelError]]:
    for equation in jaxpr.eqns:
        if equation.primitive.name == "pallas_call":
            try:
                yield equation, max((price(equation, s) for s in scopes), key=lambda p: p.size)
            except KernelError as error:
                yield equation, error
            continue
        found: dict[int, tuple[Any, list[Scope]]] = {}
        for scope in scopes:
            for inner, inside in scope.inside(equation):
                found.setdefault(id(inner), (inner, []))[1].extend(inside)
        for inner, inside in found.values():
            yield from _priced(inner, inside)


def price(call: Any, scope: Scope) -> Price:
    """Of a pallas_call equation."""
    mapping, body = call.params["grid_mapping"], call.params["jaxpr"]
    # Scalars that go ahead of the blocks are read once.
    ahead = call.invars[mapping.num_dynamic_grid_bounds :][: mapping.num_index_operands]
    tables = [scope.value(scalar) for scalar in ahead]
    bounds = map(scope.value, call.invars[: mapping.num_dynamic_grid_bounds])
    grid = [size if isinstance(size, int) else _length(next(bounds)) for size in mapping.grid]
    kernel = Kernel(call, _name(call), grid, mapping.vmapped_dims, tables)
    total = kernel.price(body)
    copied = total.bytes_accessed
    blocks: list[KernelBlock] = []
    sizes = moved = 0
    for number, block in enumerate(mapping.block_mappings):
        size, pipelined = kernel.block(block, output=number >= mapping.num_inputs)
        sizes += size
        if pipelined is not None:
            blocks.append(pipelined)
            moved += kernel.moved_with_axes(pipelined)
    total += Price(bytes_accessed=sizes)
    for axis in reversed(kernel.open_axes):
        total = total.in_loop(Loop(f"{kernel.name}/grid.{axis}", kernel.place))
    total += Price(bytes_accessed=sum(bytes_of(scalar.aval) for scalar in ahead))
    # Blocks that come back after another move more often than with whole axes.
    if total.loops or not blocks or abs(moved - sizes) > 0.01 * sizes:
        return total
    if copied > 0:  # What the body copies by itself goes beside the blocks, spread over all steps.
        axes = tuple(range(len(kernel.grid)))
        blocks.append(KernelBlock(math.ceil(copied / math.prod(kernel.grid)), False, axes))
    return Price(
        total.stages,
        total.bytes_accessed,
        total.remote_bytes,
        grid=kernel.grid,
        blocks=tuple(blocks),
        largest_copies=total.largest_copies,
    )


def _length(bound: np.ndarray | None) -> int | None:
    """Of an axis of the grid whose bound is computed; None if it depends on data."""
    return None if bound is None else max(0, int(bound))


def _name(call: Any) -> str:
    """What `pallas_call` was told, or else the name of the function that it was given."""
    function = getattr(call.params["jaxpr"].debug_info, "func_name", None)
    return str(call.params.get("name") or function or "pallas_call")


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
