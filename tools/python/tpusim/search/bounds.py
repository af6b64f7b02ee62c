"""What a program takes at least, known before it is compiled to the end, let alone simulated.

The binary partitions the program and runs those of its passes that remove what no device need
compute: dead and repeated values, invariants of loops, ends of loops that transfers are pipelined
over. No other pass removes a product, so the products that are left, as often as loops are sure to
run them, are matrix work that every schedule does; the arrays do it at their peak at best. The
arguments that go into products are read from HBM, at its nominal rate at best. And all arguments
lie there from start to end. All three figures can only be exceeded.
"""

import dataclasses
import functools
import math
import pathlib
import tempfile
from collections.abc import Iterator, Sequence

from tpusim import hlo, wire
from tpusim.errors import Error
from tpusim.report import Report
from tpusim.runner import Simulation, execute
from tpusim.search import reads
from tpusim.workload import Workload

# Sides of a product below which it may be done without the arrays.
_LEAST_SIDE = 8
_PASSES = "memory-spaces,simplify,hoist-invariants,pipeline-host-copies"
_SIMPLIFIED = ("--passes", _PASSES, "--emit", "executable")
# f16, f32, f64, bf16: as PrimitiveType numbers them.
_WIDE = frozenset({10, 11, 12, 16})
_NARROW_NAMES = ("bf16", "s8", "s4", "f8e4m3fn", "f8e5m2")
_PROBE_SIDE = 4096
# The machine counts whole picoseconds: the rate here is that of one long product, and each
# product there may be rounded down.
_ROUNDING = 1e-6
_PICOSECOND = 1e-3
_DIRECTION, _TUPLE_INDEX, _PARAMETER_NUMBER, _DOT = 63, 13, 9, 30


@dataclasses.dataclass(frozen=True)
class Machine:
    """A slice, as programs are bounded by it."""

    chips: int
    usable_hbm_bytes: int
    ns_per_flop: float  # of a product of bfloat16 or wider floats
    ns_per_narrow_flop: float  # of the fastest format there is
    ns_per_byte: float  # of HBM


@functools.cache
def machine_of(words: tuple[str, ...]) -> Machine:
    """Measured: reports of one product per number format say what the arrays' peak is."""
    reports = {name: _probe(name, words) for name in _NARROW_NAMES}
    flop = 2 * _PROBE_SIDE**3
    times = {name: r.bound_ns.compute / flop for name, r in reports.items() if r is not None}
    any_report = next((r for r in reports.values() if r is not None), None)
    if any_report is None or "bf16" not in times:
        raise Error(f"{' '.join(words)}: no product can be simulated there")
    return Machine(
        any_report.chips,
        any_report.usable_hbm_bytes,
        times["bf16"],
        min(times.values()),
        1e9 / any_report.hbm_bytes_per_second,
    )


def _probe(number_format: str, words: Sequence[str]) -> Report | None:
    square = f"{number_format}[{_PROBE_SIDE},{_PROBE_SIDE}]"
    text = (
        f"HloModule probe\n\nENTRY main {{\n  a = {square} parameter(0)\n"
        f"  b = {square} parameter(1)\n  ROOT c = {square} dot(a, b), "
        "lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n"
    )
    with tempfile.TemporaryDirectory(prefix="tpusim-") as folder:
        path = pathlib.Path(folder) / "probe.hlo"
        path.write_text(text)
        try:
            return Simulation(path, words).run()
        except Error:
            if number_format == "bf16":
                raise
            return None


@dataclasses.dataclass(frozen=True)
class Work:
    """What one device has to do and to keep."""

    wide_flops: int
    narrow_flops: int
    argument_bytes: int
    read_bytes: int = 0  # of arguments, by products
    products: int = 0  # executions

    def hbm_ns(self, machine: Machine) -> float:
        """Of the reads alone."""
        return self.read_bytes * machine.ns_per_byte * (1 - _ROUNDING)

    def compute_ns(self, machine: Machine) -> float:
        """Of the products alone."""
        wide = self.wide_flops * machine.ns_per_flop
        time = wide + self.narrow_flops * machine.ns_per_narrow_flop
        return max(0.0, time * (1 - _ROUNDING) - self.products * _PICOSECOND)


def work_of(workload: Workload, words: Sequence[str]) -> Work:
    """Of the program on one device; `words` are options of `tpusim compile`."""
    with tempfile.TemporaryDirectory(prefix="tpusim-") as folder:
        path, out = pathlib.Path(folder) / "workload.pb", pathlib.Path(folder) / "simplified.pb"
        workload.save(path)
        execute(["compile", str(path), *_SIMPLIFIED, "-o", str(out), "--quiet", *words])
        module = hlo.Module(out.read_bytes())
    return _work_in(module, workload.argument_memory_kinds)


def _work_in(module: hlo.Module, memory_kinds: Sequence[str]) -> Work:
    flops = {True: 0, False: 0}
    products = 0
    for computation, dot, times in _executed_dots(module, module.entry, 1):
        left, right = computation.operands(dot)
        contracting = [left.shape.dims[d] for d in dot.contracting_dims()]
        batch = [left.shape.dims[d] for d in _batch_dims(dot)]
        inner, beside = math.prod(contracting), math.prod(batch)
        sides = (math.prod(o.shape.dims) // max(1, inner * beside) for o in (left, right))
        if min(inner, *sides) < _LEAST_SIDE:
            continue
        wide = {left.shape.element_type, right.shape.element_type} <= _WIDE
        products += times
        flops[wide] += 2 * times * inner * math.prod(dot.shape.dims)
    parameters = {
        wire.number_of(i.fields, _PARAMETER_NUMBER): i.shape.bytes
        for i in module.entry.instructions
        if i.opcode == "parameter"
    }
    in_hbm = {
        number: size
        for number, size in parameters.items()
        if number >= len(memory_kinds) or memory_kinds[number] == "device"
    }
    loops = (i for i in module.entry.instructions if i.opcode == "while")
    trips = {loop.id: _sure_trips(module, module.entry, loop) for loop in loops}
    read = reads.arguments_of_products(module, trips)
    read_bytes = sum(size for number, size in in_hbm.items() if number in read)
    return Work(flops[True], flops[False], sum(in_hbm.values()), read_bytes, products)


def _batch_dims(dot: hlo.Instruction) -> list[int]:
    return hlo.integers(wire.parse(wire.last_bytes(dot.fields, _DOT)), 3)


def _executed_dots(
    module: hlo.Module, computation: hlo.Computation, times: int
) -> Iterator[tuple[hlo.Computation, hlo.Instruction, int]]:
    """Those that are sure to run: not in branches, nor in loops whose length is data."""
    for instruction in computation.instructions:
        if instruction.opcode == "dot":
            yield computation, instruction, times
        elif instruction.opcode == "call":
            yield from _executed_dots(module, module.computations[instruction.called[0]], times)
        elif instruction.opcode == "while":
            trips = _sure_trips(module, computation, instruction)
            if trips > 0:
                body = module.computations[instruction.called[0]]
                yield from _executed_dots(module, body, times * trips)


def _sure_trips(module: hlo.Module, computation: hlo.Computation, loop: hlo.Instruction) -> int:
    """Of a loop that counts up by one while it is less than a constant; 0 of any other."""
    body, condition = (module.computations[called] for called in loop.called)
    compare = condition.root
    if compare.opcode != "compare" or wire.text(compare.fields, _DIRECTION) != "LT":
        return 0
    counter, _ = condition.operands(compare)
    if counter.opcode != "get-tuple-element" or body.root.opcode != "tuple":
        return 0
    index = wire.number_of(counter.fields, _TUPLE_INDEX)
    following = body.operands(body.root)[index]
    if following.opcode != "add":
        return 0
    before, one = body.operands(following)
    if one.opcode == "get-tuple-element":
        before, one = one, before
    counts = (
        before.opcode == "get-tuple-element"
        and wire.number_of(before.fields, _TUPLE_INDEX) == index
        and body.operands(before)[0].opcode == "parameter"
        and one.integer_literal() == 1
    )
    return (module.trip_count(computation, loop) or 0) if counts else 0
