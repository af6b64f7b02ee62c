"""Pairs the large kernels of tpusim with those of the compiler that do the same.

    for pair in pairs(report, optimized_text, summary):
        print(pair.ours.name, pair.theirs and pair.theirs["name"])

Names and fusions differ, so kernels are the same that do the same work on arrays of the same
numbers of elements (layouts, dimensions of 1 and merged dimensions aside):

* A product or convolution: both operands and the result. One that is made inside of a kernel, such
  as a one-hot, or that only a reduction inside reads, must not be on the outside of either.
* Other kernels: the kind of work that decides them (a sort, a scatter, a reduce, ... or elements
  one by one), and the largest arrays that they read and write.

A kernel of the compiler is the counterpart of as many of tpusim's as it is executed.
"""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import compiler_hlo
import compiler_summary

LARGE = 0.03  # of the compute of a step
# Names in the table on the page, by how names of programs begin.
MODELS = {"bert": "BERT", "gpt2": "GPT-2", "vit": "ViT", "resnet": "ResNet"}
_PRODUCTS = ("convolution", "dot", "ragged-dot")
# The first one inside of a kernel without a product decides what kind it is.
CONTROL = ("while", "conditional", "call", "async-start", "async-update", "async-done")
_DECIDING = ("custom-call", "sort", "scatter", "select-and-scatter", "gather", "reduce-window")
_SUMS = ("reduce",)


@dataclasses.dataclass(frozen=True)
class Work:
    """The work of a kernel in elements; `product` has operands and result of tpusim's."""

    kind: str
    read: tuple[int, ...]
    written: tuple[int, ...]
    product: tuple[int, int, int] | None = None


@dataclasses.dataclass(frozen=True)
class Kernel:
    """A large one of tpusim."""

    name: str
    scope: str
    results: str
    count: int
    share: float
    work: Work


@dataclasses.dataclass(frozen=True)
class Pair:
    """A kernel of tpusim, the row of the summary that does the same, and that row's share."""

    ours: Kernel
    theirs: dict[str, Any] | None = None
    share: float = 0


def kind_of(opcodes: Iterable[str]) -> str:
    """Returns the kind of a kernel with these operations inside."""
    inside = set(opcodes)
    if inside & set(_PRODUCTS):
        return "product"
    return next((opcode for opcode in (*_DECIDING, *_SUMS) if opcode in inside), "elements")


def _elements(arrays: Iterable[compiler_hlo.Array]) -> tuple[int, ...]:
    return tuple(sorted(array.elements for array in arrays))


def _product(
    module: compiler_hlo.Module, instruction: compiler_hlo.Instruction
) -> tuple[int, int, int] | None:
    """Elements of both operands and the result of the product inside of a fusion."""
    for name in instruction.called:
        computation = module.computations[name]
        for inner in computation.instructions:
            if inner.opcode in _PRODUCTS:
                lhs, rhs, *_ = [o.arrays[0].elements for o in computation.operands(inner)]
                return min(lhs, rhs), max(lhs, rhs), inner.arrays[0].elements
            found = _product(module, inner)
            if found:
                return found
    return None


def work_of_tpusim(
    module: compiler_hlo.Module,
    computation: compiler_hlo.Computation,
    instruction: compiler_hlo.Instruction,
) -> Work:
    """Returns the work of a kernel in a module that tpusim printed."""
    operands = list(computation.operands(instruction))
    read = _elements(a for operand in operands for a in operand.arrays)
    written = _elements(instruction.arrays)
    inside = {instruction.opcode, *compiler_summary.opcodes(module, instruction)}
    product = _product(module, instruction)
    if product is None and instruction.opcode in _PRODUCTS:
        lhs, rhs = sorted(operand.arrays[0].elements for operand in operands[:2])
        product = lhs, rhs, instruction.arrays[0].elements
    return Work(kind_of(inside), read, written, product)


def work_of_compiler(row: dict[str, Any]) -> Work:
    """Returns the work of a row of a summary."""

    def elements(texts: Sequence[str]) -> tuple[int, ...]:
        return _elements(a for text in texts for a in compiler_hlo.arrays_of(text))

    inside = {row["opcode"], *row.get("ops", ())}
    return Work(kind_of(inside), elements(row["operands"]), elements(row["results"]))


def same(ours: Work, theirs: Work) -> bool:
    """Whether both do the same, as the module says."""
    if ours.kind != theirs.kind:
        return False
    if ours.product is None:
        return max(ours.read, default=0) == max(theirs.read, default=0) and max(
            ours.written, default=0
        ) == max(theirs.written, default=0)
    *operands, result = ours.product
    return all(
        (elements in mine) == (elements in other)
        for elements, mine, other in (
            *((operand, ours.read, theirs.read) for operand in operands),
            (result, ours.written, theirs.written),
        )
    )


def large(report: dict[str, Any], text: str) -> list[Kernel]:
    """Kernels of tpusim that take more than a share of the compute, longest first."""
    module = compiler_hlo.parse(text)
    places = {
        i.name: (computation, i)
        for computation in module.computations.values()
        for i in computation.instructions
    }
    ops = [
        op
        for op in report["ops"]
        if op["engine"] == "tensor_core"
        and not op["category"].endswith(("-start", "-done", *CONTROL))
        and op["name"] in places
    ]
    total = sum(op["total_ns"] for op in ops)
    found = []
    for op in ops:
        share = op["total_ns"] / total
        if share > LARGE:
            computation, instruction = places[op["name"]]
            work = work_of_tpusim(module, computation, instruction)
            results = ", ".join(
                str(dataclasses.replace(array, layout="")) for array in instruction.arrays
            )
            found.append(Kernel(op["name"], op["scope"], results, op["count"], share, work))
    return sorted(found, key=lambda kernel: (-kernel.share, kernel.name))


def pairs(report: dict[str, Any], text: str, summary: dict[str, Any]) -> list[Pair]:
    """Large kernels of tpusim with their counterparts; of several, the longest."""
    rows = sorted(summary["kernels"], key=lambda row: -(row["cycles"] or 0))
    cycles = sum(row["count"] * (row["cycles"] or 0) for row in rows)
    works = [work_of_compiler(row) for row in rows]
    left = [row["count"] for row in rows]
    found = []
    for kernel in large(report, text):
        pair = Pair(kernel)
        for place, row in enumerate(rows):
            if left[place] >= kernel.count and same(kernel.work, works[place]):
                left[place] -= kernel.count
                taken = kernel.count * (row["cycles"] or 0)
                pair = Pair(kernel, row, taken / cycles if cycles else 0)
                break
        found.append(pair)
    return found
