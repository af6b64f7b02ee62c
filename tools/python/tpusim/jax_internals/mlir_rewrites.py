"""Rewrites modules of StableHLO before they become HLO, by operations of JAX's own MLIR.

What HLO has no word for, or what older versions of JAX wrote otherwise, becomes what a function
that is lowered today has. Without the bindings there is no module to rewrite (`mlir.py`).
"""

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

from tpusim.jax_internals import mlir

# Collectives over replicas, unless a channel says otherwise.
_OVER_REPLICAS = {"stablehlo.all_reduce", "stablehlo.all_gather", "stablehlo.reduce_scatter"}
_TO_SHARD, _FROM_SHARD, _CONSTRAINT = "SPMDFullToShardShape", "SPMDShardToFullShape", "Sharding"


def name_arguments(function: Any, names: Sequence[str | None]) -> None:
    """Gives arguments without a name of their own the ones that attributes say.

    The bindings of JAX 0.7 cannot: arguments go by their number there.
    """
    ir = mlir.bindings()
    for argument, name in zip(function.arguments, names, strict=True):
        unnamed = re.fullmatch(r'loc\(unknown\)|loc\("[^"]*":\d+:.*\)', str(argument.location))
        if name and unnamed and hasattr(argument, "set_location"):
            argument.set_location(ir.Location.name(name, argument.location, function.context))


def set_argument(function: Any, number: int, value: int) -> None:
    """Replaces the uses of an integer argument by a constant."""
    ir = mlir.bindings()
    argument = function.arguments[number]
    with function.context, ir.Location.unknown(), ir.InsertionPoint.at_block_begin(argument.owner):
        element = ir.IntegerAttr.get(ir.RankedTensorType(argument.type).element_type, value)
        dense = ir.DenseElementsAttr.get_splat(argument.type, element)
        constant = ir.Operation.create(
            "stablehlo.constant", results=[argument.type], attributes={"value": dense}
        )
        argument.replace_all_uses_with(constant.results[0])


def replicas_to_partitions(module: Any) -> None:
    """Makes collectives over replicas, of a module of one partition, ones over partitions."""
    ir = mlir.bindings()
    for operation in list(mlir.operations(module)):
        if operation.name == "stablehlo.replica_id":
            number = ir.Operation.create(
                "stablehlo.partition_id",
                results=[operation.results[0].type],
                loc=operation.location,
                ip=ir.InsertionPoint(operation),
            )
            operation.results[0].replace_all_uses_with(number.results[0])
            operation.erase()
        elif operation.name in _OVER_REPLICAS and "channel_handle" in operation.attributes:
            del operation.attributes["channel_handle"]


def devices_of_shardings(module: Any) -> int:
    """Returns the most devices that a sharding of the older partitioner is over; 0 without any."""
    texts = []
    for operation in mlir.operations(module):
        attributes = operation.attributes
        if "mhlo.sharding" in attributes:
            texts.append(str(attributes["mhlo.sharding"]))
        for of_values in ("arg_attrs", "res_attrs"):
            if operation.name == "func.func" and of_values in attributes:
                texts.append(str(attributes[of_values]))
    dimensions = re.findall(r"devices=\[([\d,]+)\]", " ".join(texts))
    return max((math.prod(map(int, of.split(","))) for of in dimensions), default=0)


def outline_regions(module: Any) -> None:
    """Moves what stands between the older partitioner's markers of a shard_map to a function.

    JAX of 2023 wrote the body in place; later versions, and the partitioner of tpusim, have a call
    of it between the markers.
    """
    for function in mlir.functions(module):
        block = function.regions[0].blocks[0]
        entries = [op for op in _custom_calls(block, _TO_SHARD) if not _is_called(op)]
        while entries:
            region = _Region(entries[0])
            region.outline(module)
            entries = [op for op in entries if op not in region.entries]


def _custom_calls(block: Any, target: str) -> list[Any]:
    return [op.operation for op in block.operations if _is_target(op.operation, target)]


def _is_target(operation: Any, target: str) -> bool:
    if operation.name != "stablehlo.custom_call":
        return False
    return mlir.attribute(operation, "call_target_name") == target


def _users(operation: Any) -> list[Any]:
    return [use.owner.operation for result in operation.results for use in result.uses]


def _is_called(entry: Any) -> bool:
    return all(user.name == "func.call" for user in _users(entry))


class _Region:
    """The operations between markers that belong together, and what they use."""

    def __init__(self, entry: Any):
        self.entries = [entry]
        self._inside: list[Any] = []
        waiting = _users(entry)
        while waiting:
            operation = waiting.pop()
            if operation in self._inside or self._leaves(operation):
                continue
            self._inside.append(operation)
            waiting += _users(operation)
            for operand in operation.operands:
                made_by = operand.owner
                if not hasattr(made_by, "operation"):
                    continue  # An argument of the function.
                if _is_target(made_by.operation, _TO_SHARD):
                    if made_by.operation not in self.entries:
                        self.entries.append(made_by.operation)
                        waiting += _users(made_by.operation)
                else:
                    waiting.append(made_by.operation)

    def _leaves(self, operation: Any) -> bool:
        """Whether it is the marker of a result, or the constraint before it."""
        if _is_target(operation, _FROM_SHARD):
            return True
        users = _users(operation)
        return _is_target(operation, _CONSTRAINT) and all(
            _is_target(user, _FROM_SHARD) for user in users
        )

    def outline(self, module: Any) -> None:
        """Makes the function, and a call of it where the first result leaves."""
        ir = mlir.bindings()
        block = self.entries[0].block
        inside = [op.operation for op in block.operations if op.operation in self._inside]
        leaving = [result for op in inside for result in op.results if not self._stays(result.uses)]
        arguments = [entry.results[0] for entry in self.entries]
        with module.context, self.entries[0].location:
            kind = ir.FunctionType.get([a.type for a in arguments], [r.type for r in leaving])
            name = f"shmap_body_{len(list(module.body.operations))}"
            function = ir.Operation.create(
                "func.func",
                regions=1,
                attributes={
                    "sym_name": ir.StringAttr.get(name),
                    "function_type": ir.TypeAttr.get(kind),
                    "sym_visibility": ir.StringAttr.get("private"),
                },
                ip=ir.InsertionPoint(module.body),
            )
            call = ir.Operation.create(
                "func.call",
                results=[result.type for result in leaving],
                operands=arguments,
                attributes={"callee": ir.FlatSymbolRefAttr.get(name)},
                ip=ir.InsertionPoint(self._first_after(block, inside)),
            )
            body = function.regions[0].blocks.append(
                *kind.inputs, arg_locs=[entry.location for entry in self.entries]
            )
            end = ir.Operation.create("func.return", operands=leaving, ip=ir.InsertionPoint(body))
            for operation in inside:
                operation.move_before(end)
            for old, new in zip(leaving, call.results, strict=True):
                self._replace(old.uses, new, keep=[*inside, end])
            for old, new in zip(arguments, body.arguments, strict=True):
                self._replace(old.uses, new, keep=[call])

    def _stays(self, uses: Iterable[Any]) -> bool:
        return all(use.owner.operation in self._inside for use in uses)

    def _first_after(self, block: Any, inside: list[Any]) -> Any:
        """Returns the operation after the last one that moves."""
        listed = [op.operation for op in block.operations]
        return listed[listed.index(inside[-1]) + 1]

    def _replace(self, uses: Iterable[Any], value: Any, keep: list[Any]) -> None:
        for use in list(uses):
            if use.owner.operation not in keep:
                use.owner.operation.operands[use.operand_number] = value
