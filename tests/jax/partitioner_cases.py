"""Small programs for a partitioner, from tables: one operation each, with stated shardings.

A sharding is written dimension by dimension, "-" for one that is whole: "x,-" or "-,xy". A result
of "?" is left to propagation. Meshes have four or eight devices; every dimension that is split is
split evenly.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

# Meshes by name.
MESHES = {
    "8": {"x": 8},
    "4": {"x": 4},
    "2x4": {"x": 2, "y": 4},
    "4x2": {"x": 4, "y": 2},
    "2x2": {"x": 2, "y": 2},
}
# Sizes of the dimensions of einsums, by letter.
SIZES = {"b": 16, "s": 32, "d": 64, "f": 128, "h": 8, "k": 16, "q": 32, "e": 8, "c": 16}


def spec_of(text: str) -> PartitionSpec:
    """The sharding that a text like "x,-,yz" states."""
    dims = [tuple(dim.replace("-", "")) for dim in text.split(",")]
    return PartitionSpec(*[dim if dim else None for dim in dims])


@dataclasses.dataclass(frozen=True)
class Case:
    """One program; `name` says all of it."""

    name: str
    mesh: str
    function: Callable[..., Any]
    arguments: tuple[tuple[tuple[int, ...], str, str], ...]  # shape, type, sharding
    result: str

    def build(self) -> tuple[Any, tuple[jax.ShapeDtypeStruct, ...]]:
        """The jitted function and its arguments."""
        sizes = MESHES[self.mesh]
        devices = np.array(jax.devices()[: int(np.prod(list(sizes.values())))])
        axes = (AxisType.Auto,) * len(sizes)
        mesh = Mesh(devices.reshape(tuple(sizes.values())), tuple(sizes), axis_types=axes)
        place = functools.partial(NamedSharding, mesh)
        arguments = tuple(
            jax.ShapeDtypeStruct(shape, kind, sharding=place(spec_of(spec)))
            for shape, kind, spec in self.arguments
        )
        options = {} if self.result == "?" else {"out_shardings": place(spec_of(self.result))}
        return jax.jit(self.function, **options), arguments


def _cases(rows: str) -> Iterator[tuple[str, list[str], list[str], str]]:
    """Mesh, words, operand shardings and result of each row: "2x4 | words | x,- y,- | -,x"."""
    for row in rows.strip().splitlines():
        mesh, words, operands, results = (part.strip() for part in row.split("|"))
        for result in results.split():
            yield mesh, words.split(), operands.split(), result


EINSUMS = """
2x4 | bd,df->bf | x,- -,y | x,y x,- -,y -,- ? y,-
2x4 | bd,df->bf | x,y y,- | x,- -,- x,y ? -,y y,-
2x4 | bd,df->bf | x,- x,y | x,y -,y ?
2x4 | bd,df->bf | x,y -,y | ? x,y
2x4 | bd,df->bf | xy,- xy,- | xy,- ?
4x2 | bd,df->bf | -,x x,y | -,y ? x,y
2x2 | bd,df->bf | x,- y,x | x,- ? x,y
4 | bd,df->bf | -,x x,- | -,- x,- -,x ?
8 | bd,df->bf | x,- -,x | x,- -,x ? -,-
2x4 | bsd,df->bsf | x,-,- x,y | x,-,y ? x,y,-
2x4 | bsd,df->bsf | x,y,- -,y | x,-,y x,y,- ?
2x4 | bsf,fd->bsd | x,-,y y,x | x,-,- x,y,- ? x,-,y
2x4 | bsd,bsf->df | x,-,- x,-,y | x,y -,y ? y,-
2x4 | bsd,bsf->df | x,y,- x,-,y | -,y ? x,y
2x4 | bhqd,bhkd->bhqk | x,y,-,- x,y,-,- | ? x,y,-,-
2x4 | bhqd,bhkd->bhqk | x,-,y,- x,-,y,- | x,-,y,- ?
2x4 | bhqk,bhkd->bqhd | x,y,-,- x,y,-,- | x,-,y,- x,y,-,-
4x2 | bsd,dhk->bshk | x,-,- -,y,- | x,-,y,- ?
4x2 | ecd,edf->ecf | x,-,- x,y,- | x,-,- ? x,-,y
4x2 | ecd,edf->ecf | y,x,- y,-,x | ? y,x,-
"""

RESHARDS = """
2x4 | 16,32,64 | x,y,- | y,x,- -,x,y xy,-,- x,-,y -,-,- x,-,- -,y,- -,xy,-
2x4 | 16,32,64 | xy,-,- | yx,-,- x,y,- -,xy,- -,x,y x,-,- y,-,- -,-,yx
2x4 | 16,32,64 | y,-,- | x,-,- -,y,- -,x,- xy,-,- -,-,-
4x2 | 16,32,64 | x,-,y | y,-,x -,x,y -,xy,- x,y,- -,-,-
8 | 16,32,64 | x,-,- | -,x,- -,-,x -,-,-
2x2 | 16,32,64 | x,y,- | y,x,- -,x,y xy,-,-
"""

REDUCTIONS = """
2x4 | sum 0 16,32,64 | x,y,- | y,- -,- x,y ? -,x
2x4 | sum 1 16,32,64 | x,y,- | x,- ? x,y -,-
2x4 | max 2 16,32,64 | x,-,y | x,- ? xy,-
2x4 | max 0,1 16,32,64 | x,y,- | - x y ?
2x4 | mean 1,2 16,32,64 | x,-,y | x - ?
2x4 | argmax 1 16,32,64 | x,-,y | x,y ?
8 | softmax 1 16,32 | x,- | x,- ?
8 | cumsum 0 16,32 | -,x | -,x ?
"""

RESHAPES = """
2x4 | 16,32,64->512,64 | x,y,- | xy,- x,- ? -,-
2x4 | 16,32,64->512,64 | y,-,- | y,- ?
2x4 | 512,64->16,32,64 | x,y | x,-,y ? x,y,-
2x4 | 512,64->16,32,64 | xy,- | xy,-,- x,y,- ?
2x4 | 16,32,64->16,2048 | x,y,- | x,y ?
2x4 | 16,32,64->16,2048 | x,-,y | x,y ? x,-
4x2 | 16,2048->16,32,64 | x,y | x,y,- x,-,y ?
2x4 | 16,32->32,16 | x,- | x,- ?
8 | 64,8->8,64 | x,- | x,- ?
2x4 | transpose 16,32,64->64,16,32 | x,y,- | -,x,y y,x,- ?
"""

SLICES = """
2x4 | x[:8] 16,32 | x,- | x,- -,- ?
2x4 | x[:,:16] 16,32 | x,y | x,y x,- ?
2x4 | x[::2] 16,32 | -,y | -,y ?
2x4 | x[4:] 16,32 | -,y | y,- ?
8 | x[::-1] 16,32 | -,x | -,x ?
2x4 | jnp.pad(x,((0,0),(8,8))) 16,32 | x,- | x,- x,y ?
2x4 | jnp.roll(x,1,1) 16,32 | x,- | x,- ?
2x4 | jnp.split(x,2,1)[1] 16,32 | x,- | x,- x,y ?
2x4 | jax.lax.dynamic_slice(x,(0,jnp.argmax(x)),(16,8)) 16,32 | x,- | x,- ?
2x4 | jax.lax.dynamic_update_slice(x,x[:,:8]+1,(0,8)) 16,32 | x,- | x,- ?
"""

JOINS = """
2x4 | 0 16,32 16,32 | x,y x,y | x,y ? -,y
2x4 | 1 16,32 16,32 | x,- x,- | x,- x,y ?
2x4 | 1 16,32 16,32 | x,y x,y | x,y ? x,-
2x4 | 0 16,32 32,32 | -,y -,y | -,y x,y ?
8 | 0 16,32 16,32 | -,x -,x | -,x x,- ?
"""

LOOKUPS = """
2x4 | take:t[i] 64,32 i16 | -,y x | x,y x,- ?
2x4 | take:t[i] 64,32 i16 | y,- x | x,- ? x,y
2x4 | take:t[i] 64,32 i16 | x,y - | -,y ? x,y
2x4 | take:t[i] 64,32 i16 | -,- x | -,- ?
2x4 | rows:t[jnp.arange(64),i] 64,32 i64 | x,- x | x ? -
2x4 | along:jnp.take_along_axis(t,i[:,None],1) 64,32 i64 | x,- x | x,- ?
2x4 | set:t.at[jnp.arange(64),i].set(1.0) 64,32 i64 | x,- x | x,- ?
2x4 | add:t.at[i].add(1.0) 64,32 i16 | -,y x | -,y ?
2x4 | add:t.at[i].add(1.0) 64,32 i16 | x,y - | x,y ?
2x4 | add:t.at[i].add(1.0) 64,32 i16 | -,y - | -,y ? x,y
"""

CONVOLUTIONS = """
8 | 16,16,16,8 3,3,8,16 SAME | x,-,-,- -,-,-,- | x,-,-,- ? -,-,-,x
2x4 | 16,16,16,8 3,3,8,16 SAME | x,-,-,- -,-,-,y | x,-,-,y ? x,-,-,-
2x4 | 16,16,16,8 3,3,8,16 SAME | x,-,-,y -,-,y,- | x,-,-,- ? x,-,-,y
2x4 | 16,16,16,8 3,3,8,16 SAME | x,y,-,- -,-,-,- | x,y,-,- ? x,-,-,-
2x4 | 16,16,16,8 1,1,8,16 VALID | x,y,-,- -,-,-,- | x,y,-,- ?
"""


def _einsum(equation: str) -> Callable[..., Any]:
    return functools.partial(jnp.einsum, equation)


def _reduction(name: str, dims: str) -> Callable[..., Any]:
    axes = tuple(map(int, dims.split(",")))
    if name == "softmax":
        return lambda x: jax.nn.softmax(x, axis=axes)
    if name in ("argmax", "cumsum"):
        return lambda x: getattr(jnp, name)(x, axis=axes[0])
    return lambda x: getattr(jnp, name)(x, axis=axes)


def _reshape(shapes: str, transposed: bool) -> Callable[..., Any]:
    before, after = (_dims(shape) for shape in shapes.split("->"))
    if transposed:
        order = tuple(before.index(size) for size in after)
        return lambda x: jnp.transpose(x, order) * 2
    return lambda x: jnp.reshape(x, after) * 2


def _expression(text: str, *names: str) -> Callable[..., Any]:
    scope = {"jax": jax, "jnp": jnp}
    return eval(f"lambda {','.join(names)}: {text}", scope)


def _convolution(padding: str) -> Callable[..., Any]:
    numbers = ("NHWC", "HWIO", "NHWC")
    return lambda x, w: jax.lax.conv_general_dilated(
        x, w, (1, 1), padding, dimension_numbers=numbers
    )


def _dims(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(",")))


def _made(
    kind: str, words: list[str]
) -> tuple[Callable[..., Any], list[tuple[tuple[int, ...], str]]]:
    """The function of a row's words, and its operands' shapes and types."""
    if kind == "einsum":
        inputs = words[0].split("->")[0].split(",")
        return _einsum(words[0]), [(tuple(SIZES[c] for c in i), "float32") for i in inputs]
    if kind == "reshard":
        return lambda x: x + 1, [(_dims(words[0]), "float32")]
    if kind == "reduce":
        return _reduction(*words[:2]), [(_dims(words[2]), "float32")]
    if kind == "reshape":
        before = _dims(words[-1].split("->")[0])
        return _reshape(words[-1], words[0] == "transpose"), [(before, "float32")]
    if kind == "slice":
        return _expression(words[0], "x"), [(_dims(words[1]), "float32")]
    if kind == "join":
        join = functools.partial(jnp.concatenate, axis=int(words[0]))
        return lambda a, b: join([a, b]), [(_dims(shape), "float32") for shape in words[1:]]
    if kind == "lookup":
        expression, table, indices = words[0].split(":", 1)[1], words[1], words[2][1:]
        operands = [(_dims(table), "float32"), (_dims(indices), "int32")]
        return _expression(expression, "t", "i"), operands
    return _convolution(words[2]), [(_dims(shape), "float32") for shape in words[:2]]


TABLES = {
    "einsum": EINSUMS,
    "reshard": RESHARDS,
    "reduce": REDUCTIONS,
    "reshape": RESHAPES,
    "slice": SLICES,
    "join": JOINS,
    "lookup": LOOKUPS,
    "convolution": CONVOLUTIONS,
}


def all_cases() -> dict[str, Case]:
    """Every case, by its name."""
    cases = {}
    for kind, rows in TABLES.items():
        for mesh, words, operands, result in _cases(rows):
            function, places = _made(kind, words)
            name = f"{kind} {mesh} {' '.join(words)} [{' '.join(operands)}] -> [{result}]"
            arguments = tuple(
                (shape, dtype, spec) for (shape, dtype), spec in zip(places, operands, strict=True)
            )
            cases[name] = Case(name, mesh, function, arguments, result)
    return cases
