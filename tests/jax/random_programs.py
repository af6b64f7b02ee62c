"""Random sharded programs: JAX says what is right, tpusim's partitioned module says the same.

A program is made from its seed alone: a mesh of eight devices, arguments of random shapes, types
and shardings, a few random operations, constraints between them (uneven ones included), shardings
of the results. JAX runs it on one device, without constraints, so that nobody else's partitioner is
part of the answer; only a shard_map runs on the mesh.

`MAKERS` has one entry per kind of operation; a maker looks at the values that exist, picks operands
and returns a step, or None if nothing fits. More of them are in `random_operations`.

    python tests/jax/random_programs.py --seeds 0:1000     # a long run; names every seed that fails
    python tests/jax/random_programs.py --seeds 17 --show  # one program, written out
    python tests/jax/random_programs.py --seeds 0:200 --only dot,reduce   # with these operations

Comparisons of floats, roundings and the like are kept away from computed floats: two correct
programs may fall on different sides of the edge.
"""

import argparse
import collections
import dataclasses
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from typing import Any

if __name__ == "__main__":
    ROOT = pathlib.Path(__file__).resolve().parents[2]
    sys.path[:0] = [str(ROOT), str(ROOT / "tools" / "python"), str(ROOT / "tests" / "jax")]
    from tpusim.export import force_cpu_devices

    force_cpu_devices(8)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # XLA's remarks on marked modules

import jax
import jax.numpy as jnp
import numpy as np
import oracle
import tpusim
from jax import lax
from jax.sharding import AbstractMesh, Mesh, NamedSharding, PartitionSpec

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONFIG = "v5e-4x2"
MESHES = ({"x": 8}, {"x": 4, "y": 2}, {"x": 2, "y": 4}, {"x": 2, "y": 2, "z": 2})
DTYPES = (jnp.float32, jnp.bfloat16, jnp.int32, jnp.bool_)
MAX_ELEMENTS = 1 << 14
# Errors grow from operation to operation, so more than a single operation is allowed.
TOLERANCE = {"float32": 2e-4, "bfloat16": 8e-2}

AnyMesh = Mesh | AbstractMesh
Random = np.random.Generator


@dataclasses.dataclass(frozen=True)
class Value:
    """What is known of a value while the program is made."""

    shape: tuple[int, ...]
    dtype: Any
    computed: bool = False  # not an argument: floats may be off by roundings

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def is_float(self) -> bool:
        """True of f32 and bf16."""
        return bool(jnp.issubdtype(self.dtype, jnp.floating))

    @property
    def is_int(self) -> bool:
        """True of s32, false of pred."""
        return bool(jnp.issubdtype(self.dtype, jnp.integer))


@dataclasses.dataclass(frozen=True)
class Step:
    """`values.append(compute(mesh)(*(values[i] for i in operands)))`."""

    name: str
    operands: tuple[int, ...]
    compute: Callable[..., Any]  # of the operands; of the mesh first, if it needs one
    needs_mesh: bool = False


Maker = Callable[[Random, Sequence[Value]], Step | None]
MAKERS: dict[str, Maker] = {}


def maker(function: Maker) -> Maker:
    """Registers a kind of operation under the function's name."""
    MAKERS[function.__name__] = function
    return function


def pick(random: Random, values: Sequence[Value], fits: Callable[[Value], bool]) -> int | None:
    """The number of a value that fits; later ones are likelier, so that programs get deep."""
    found = [i for i, value in enumerate(values) if fits(value)]
    if not found:
        return None
    return int(random.choice(found[-3:] if random.random() < 0.7 else found))


def choose(random: Random, options: Sequence[Any]) -> Any:
    return options[int(random.integers(len(options)))]


def size(random: Random, limit: int = 40) -> int:
    """Mostly sizes that eight devices divide, often others."""
    sizes = (1, 2, 4, 8, 8, 16, 16, 24, 32)
    one = int(choose(random, sizes)) if random.random() < 0.6 else int(random.integers(1, 41))
    return min(one, limit)


def is_number(value: Value) -> bool:
    return value.dtype != jnp.bool_


# ---- operations -------------------------------------------------------------


@maker
def unary(random: Random, values: Sequence[Value]) -> Step | None:
    i = pick(random, values, lambda v: True)
    floats = {
        "tanh": jnp.tanh,
        "sin": jnp.sin,
        "logistic": jax.nn.sigmoid,
        "negative": jnp.negative,
        "abs": jnp.abs,
        "exp": lambda x: jnp.exp(-jnp.abs(x)),
        "rsqrt": lambda x: lax.rsqrt(1 + x * x),
        "log1p": lambda x: jnp.log1p(jnp.abs(x)),
    }
    ints = {"negative": jnp.negative, "abs": jnp.abs, "not": jnp.bitwise_not, "sign": jnp.sign}
    table = floats if values[i].is_float else ints if values[i].is_int else {"not": jnp.logical_not}
    name = choose(random, list(table))
    return Step(name, (i,), table[name])


@maker
def binary(random: Random, values: Sequence[Value]) -> Step | None:
    i = pick(random, values, lambda v: True)
    j = pick(random, values, lambda v: v.shape == values[i].shape and v.dtype == values[i].dtype)
    common = {"add": lambda x, y: x + y, "subtract": lambda x, y: x - y, "multiply": jnp.multiply}
    common |= {"maximum": jnp.maximum, "minimum": jnp.minimum}
    bits = {"and": jnp.bitwise_and, "or": jnp.bitwise_or, "xor": jnp.bitwise_xor}
    table = common if values[i].is_float else bits | common if values[i].is_int else bits
    name = choose(random, list(table))
    return Step(name, (i, j), table[name])


@maker
def compare(random: Random, values: Sequence[Value]) -> Step | None:
    i = pick(random, values, lambda v: v.is_int or (v.is_float and not v.computed))
    if i is None:
        return None
    bound = np.asarray(0, values[i].dtype)
    return Step("compare", (i,), lambda x: x > bound)


@maker
def select(random: Random, values: Sequence[Value]) -> Step | None:
    p = pick(random, values, lambda v: v.dtype == jnp.bool_)
    if p is None:
        return None
    i = pick(random, values, lambda v: v.shape == values[p].shape and is_number(v))
    if i is None:
        return None
    return Step("select", (p, i), lambda c, x: jnp.where(c, x, x * 2 + 1))


@maker
def clamp(random: Random, values: Sequence[Value]) -> Step | None:
    i = pick(random, values, is_number)
    return None if i is None else Step("clamp", (i,), lambda x: jnp.clip(x, -1, 2))


@maker
def convert(random: Random, values: Sequence[Value]) -> Step | None:
    i = pick(random, values, lambda v: True)
    dtype = values[i].dtype
    if dtype == jnp.int32:
        # Small integers, so that floats stay near one.
        return Step("s32->f32", (i,), lambda x: (x % 17).astype(jnp.float32) / 16)
    to = {jnp.dtype("float32"): jnp.bfloat16, jnp.dtype("bfloat16"): jnp.float32}
    target = to.get(jnp.dtype(dtype), jnp.int32)
    return Step("convert", (i,), lambda x: x.astype(target))


@maker
def broadcast(random: Random, values: Sequence[Value]) -> Step | None:
    i = pick(random, values, lambda v: v.rank < 4 and math.prod(v.shape) <= MAX_ELEMENTS)
    if i is None:
        return None
    value = values[i]
    extent = size(random, max(1, MAX_ELEMENTS // max(1, math.prod(value.shape))))
    at = int(random.integers(value.rank + 1))
    shape = (*value.shape[:at], extent, *value.shape[at:])
    kept = tuple(d for d in range(len(shape)) if d != at)
    return Step(f"broadcast {shape}", (i,), lambda x: lax.broadcast_in_dim(x, shape, kept))


@maker
def reshape(random: Random, values: Sequence[Value]) -> Step | None:
    i = pick(random, values, lambda v: v.rank > 0)
    if i is None:
        return None
    dims = list(values[i].shape)
    for _ in range(int(random.integers(1, 3))):
        at = int(random.integers(len(dims)))
        divisors = [d for d in range(1, dims[at] + 1) if dims[at] % d == 0]
        if random.random() < 0.5 and len(dims) < 4:
            first = int(choose(random, divisors))
            dims[at : at + 1] = [first, dims[at] // first]
        elif at + 1 < len(dims):
            dims[at : at + 2] = [dims[at] * dims[at + 1]]
    return Step(f"reshape {tuple(dims)}", (i,), lambda x: x.reshape(dims))


@maker
def transpose(random: Random, values: Sequence[Value]) -> Step | None:
    i = pick(random, values, lambda v: v.rank > 1)
    if i is None:
        return None
    order = tuple(int(d) for d in random.permutation(values[i].rank))
    return Step(f"transpose {order}", (i,), lambda x: x.transpose(order))


@maker
def slice_(random: Random, values: Sequence[Value]) -> Step | None:
    i = pick(random, values, lambda v: v.rank > 0)
    if i is None:
        return None
    dims = []
    for extent in values[i].shape:
        if random.random() < 0.5:
            dims.append((0, extent, 1))
            continue
        start = int(random.integers(extent))
        dims.append((start, int(random.integers(start, extent)) + 1, int(random.integers(1, 4))))
    starts, limits, strides = zip(*dims, strict=True)
    return Step(f"slice {dims}", (i,), lambda x: lax.slice(x, starts, limits, strides))


@maker
def pad(random: Random, values: Sequence[Value]) -> Step | None:
    i = pick(random, values, lambda v: v.rank > 0 and math.prod(v.shape) <= MAX_ELEMENTS // 8)
    if i is None:
        return None
    config = []
    for extent in values[i].shape:
        low, high, interior = (int(n) for n in random.integers((-2, -2, 0), (5, 5, 3)))
        inside = extent + (extent - 1) * interior
        if random.random() < 0.5 or low + high + inside < 1:
            low = high = interior = 0
        config.append((low, high, interior))
    fill = np.asarray(1, values[i].dtype)
    return Step(f"pad {config}", (i,), lambda x: lax.pad(x, fill, config))


@maker
def reverse(random: Random, values: Sequence[Value]) -> Step | None:
    i = pick(random, values, lambda v: v.rank > 0)
    if i is None:
        return None
    dims = tuple(d for d in range(values[i].rank) if random.random() < 0.5)
    return Step(f"reverse {dims}", (i,), lambda x: lax.rev(x, dims))


@maker
def concatenate(random: Random, values: Sequence[Value]) -> Step | None:
    i = pick(random, values, lambda v: v.rank > 0)
    if i is None:
        return None
    at = int(random.integers(values[i].rank))

    def without(shape: tuple[int, ...]) -> tuple[int, ...]:
        return (*shape[:at], *shape[at + 1 :])

    def fits(v: Value) -> bool:
        wanted = values[i]
        same = v.rank == wanted.rank and v.dtype == wanted.dtype
        return same and without(v.shape) == without(wanted.shape)

    j = pick(random, values, fits)
    return Step(f"concatenate {at}", (i, j), lambda x, y: lax.concatenate([x, y], at))


@maker
def iota(random: Random, values: Sequence[Value]) -> Step | None:
    i = pick(random, values, lambda v: v.rank > 0 and is_number(v))
    if i is None:
        return None
    value, at = values[i], int(random.integers(values[i].rank))
    return Step(
        f"add iota {at}", (i,), lambda x: x + lax.broadcasted_iota(value.dtype, value.shape, at)
    )


@maker
def dot(random: Random, values: Sequence[Value]) -> Step | None:
    i = pick(random, values, lambda v: v.rank > 0 and is_number(v))
    if i is None:
        return None
    left = values[i]
    j = pick(
        random,
        values,
        lambda v: v.rank > 0 and v.dtype == left.dtype and bool(set(v.shape) & set(left.shape)),
    )
    right = values[j]
    pairs = [
        (a, b)
        for a in range(left.rank)
        for b in range(right.rank)
        if left.shape[a] == right.shape[b]
    ]
    contract: list[tuple[int, int]] = []
    batch: list[tuple[int, int]] = []
    for at in random.permutation(len(pairs)):
        a, b = pairs[at]
        if any(a == c or b == d for c, d in contract + batch):
            continue
        if not contract or random.random() < 0.2:
            contract.append((a, b))
        elif random.random() < 0.5:
            batch.append((a, b))
    free = [d for n, d in enumerate(left.shape) if all(n != a for a, _ in contract)]
    free += [d for n, d in enumerate(right.shape) if all(n != b for _, b in contract + batch)]
    summed = math.prod(left.shape[a] for a, _ in contract)
    if len(free) > 4 or math.prod(free) > MAX_ELEMENTS or math.prod(free) * summed > 1 << 20:
        return None
    dims = tuple(tuple(zip(*p, strict=True)) if p else ((), ()) for p in (contract, batch))

    def compute(x: Any, y: Any) -> Any:
        product = lax.dot_general(x, y, dims, preferred_element_type=x.dtype)
        return product if left.is_int else product / np.asarray(math.sqrt(summed), left.dtype)

    return Step(f"dot {dims}", (i, j), compute)


@maker
def reduce(random: Random, values: Sequence[Value]) -> Step | None:
    i = pick(random, values, lambda v: v.rank > 0)
    if i is None:
        return None
    value = values[i]
    dims = tuple(d for d in range(value.rank) if random.random() < 0.5) or (0,)
    count = math.prod(value.shape[d] for d in dims)
    numbers = {"sum": jnp.sum, "max": jnp.max, "min": jnp.min}
    if value.is_float:
        scale = np.asarray(math.sqrt(count), value.dtype)
        numbers["sum"] = lambda x, axis: jnp.sum(x, axis=axis, dtype=x.dtype) / scale
    if value.is_int:
        numbers["prod"] = jnp.prod
    table = numbers if is_number(value) else {"any": jnp.any, "all": jnp.all}
    name = choose(random, list(table))
    return Step(f"{name} over {dims}", (i,), lambda x: table[name](x, axis=dims))


@maker
def dynamic_slice(random: Random, values: Sequence[Value]) -> Step | None:
    i = pick(random, values, lambda v: v.rank > 0)
    n = pick(random, values, lambda v: v.is_int and v.rank == 0)
    if i is None:
        return None
    value = values[i]
    sizes = [int(random.integers(1, s + 1)) if random.random() < 0.5 else s for s in value.shape]
    starts = [int(random.integers(-2, s + 2)) for s in value.shape]

    def compute(x: Any, *index: Any) -> Any:
        # Around the dimension's ends, so that the start is clamped now and then.
        moved = index[0] % 3 if index else 0
        return lax.dynamic_slice(x, [np.int32(s) + moved for s in starts], sizes)

    return Step(f"dynamic_slice {starts} {sizes}", (i,) if n is None else (i, n), compute)


@maker
def dynamic_update_slice(random: Random, values: Sequence[Value]) -> Step | None:
    i = pick(random, values, lambda v: v.rank > 0)
    if i is None:
        return None
    value = values[i]

    def fits(v: Value) -> bool:
        smaller = v.rank == value.rank and v.dtype == value.dtype
        return smaller and all(a <= b for a, b in zip(v.shape, value.shape, strict=True))

    j = pick(random, values, fits)
    starts = [int(random.integers(-2, s + 2)) for s in value.shape]
    return Step(
        f"dynamic_update_slice {starts}",
        (i, j),
        lambda x, y: lax.dynamic_update_slice(x, y, [np.int32(s) for s in starts]),
    )


@maker
def loop(random: Random, values: Sequence[Value]) -> Step | None:
    i = pick(random, values, lambda v: v.is_float)
    if i is None:
        return None
    count = int(random.integers(1, 4))
    return Step(
        f"loop {count}",
        (i,),
        lambda x: lax.fori_loop(0, count, lambda n, c: jnp.tanh(c + x) * 0.5, x),
    )


@maker
def scan(random: Random, values: Sequence[Value]) -> Step | None:
    i = pick(random, values, lambda v: v.rank > 1 and is_number(v))
    if i is None:
        return None

    def body(carry: Any, row: Any) -> Any:
        carry = jnp.maximum(carry, row)
        return carry, carry - row

    return Step("scan", (i,), lambda x: lax.scan(body, x[0], x)[1])


@maker
def branch(random: Random, values: Sequence[Value]) -> Step | None:
    i = pick(random, values, is_number)
    n = pick(random, values, lambda v: v.is_int and v.rank == 0)
    if i is None or n is None:
        return None
    return Step(
        "cond", (n, i), lambda p, x: lax.cond(p % 2 == 0, lambda y: y + 1, lambda y: y * 3, x)
    )


# ---- shardings --------------------------------------------------------------


def random_spec(
    random: Random, mesh: dict[str, int], shape: Sequence[int], even: bool, open_dims: bool = False
) -> PartitionSpec:
    """Axes in any order on any dimensions, none twice."""
    left = [str(axis) for axis in random.permutation(list(mesh))]
    entries: list[Any] = []
    order = random.permutation(len(shape))
    chosen: dict[int, Any] = {}
    for d in order:
        axes: list[str] = []
        while left and random.random() < 0.5:
            shards = math.prod(mesh[a] for a in axes) * mesh[left[0]]
            if even and shape[d] % shards != 0:
                break
            axes.append(left.pop(0))
        chosen[int(d)] = tuple(axes) or None
        if open_dims and random.random() < 0.2:
            chosen[int(d)] = PartitionSpec.UNCONSTRAINED
    entries = [chosen[d] for d in range(len(shape))]
    return PartitionSpec(*entries)


def random_constraint(random: Random, mesh: dict[str, int], values: Sequence[Value]) -> Step | None:
    i = pick(random, values, lambda v: v.rank > 0)
    if i is None:
        return None
    even = random.random() < 0.5
    spec = random_spec(random, mesh, values[i].shape, even, open_dims=True)
    return Step(
        f"constraint {spec}",
        (i,),
        lambda m, x: lax.with_sharding_constraint(x, NamedSharding(m, spec)),
        needs_mesh=True,
    )


def random_region(random: Random, mesh: dict[str, int], values: Sequence[Value]) -> Step | None:
    """A shard_map over one value: sums, gathers and shifts along one axis."""
    i = pick(random, values, lambda v: v.rank > 0 and is_number(v))
    if i is None:
        return None
    spec = random_spec(random, mesh, values[i].shape, even=True)
    used = [(d, a) for d, axes in enumerate(spec) if axes for a in axes]
    if not used:
        return None
    d, axis = used[int(random.integers(len(used)))]
    n = mesh[axis]
    kinds: dict[str, Callable[[Any], Any]] = {
        "psum": lambda x: x + lax.psum(x, axis),
        "shift": lambda x: lax.ppermute(x, axis, [(k, (k + 1) % n) for k in range(n)]),
        "index": lambda x: x * lax.axis_index(axis).astype(x.dtype),
        "mean": lambda x: x - jnp.max(x, axis=d, keepdims=True),
        "gather": lambda x: x + lax.all_gather(x, axis, axis=0, tiled=False).sum(0).astype(x.dtype),
    }
    name = choose(random, list(kinds))
    return Step(
        f"shard_map {name} {axis} {spec}",
        (i,),
        lambda m, x: jax.shard_map(
            kinds[name], mesh=m, in_specs=spec, out_specs=spec, check_vma=False
        )(x),
        needs_mesh=True,
    )


# ---- programs ---------------------------------------------------------------


@dataclasses.dataclass
class RandomProgram:
    """Everything about the program of one seed."""

    mesh: dict[str, int]
    arguments: list[tuple[Value, PartitionSpec]]
    steps: list[Step]
    values: list[Value]
    results: list[tuple[int, PartitionSpec]]

    def build(self, mesh: AnyMesh) -> tuple[Callable[..., Any], tuple[jax.ShapeDtypeStruct, ...]]:
        """The jitted function and its arguments, over a mesh of either kind."""

        def function(*arguments: Any) -> Any:
            values = list(arguments)
            for step in self.steps:
                compute = step.compute
                if step.needs_mesh:
                    values.append(compute(mesh, *(values[i] for i in step.operands)))
                else:
                    values.append(compute(*(values[i] for i in step.operands)))
            return tuple(values[i] for i, _ in self.results)

        out = tuple(NamedSharding(mesh, spec) for _, spec in self.results)
        arguments = tuple(
            jax.ShapeDtypeStruct(v.shape, v.dtype, sharding=NamedSharding(mesh, spec))
            for v, spec in self.arguments
        )
        return jax.jit(function, out_shardings=out), arguments

    def concrete_mesh(self) -> Mesh:
        """The mesh over JAX's devices in their order."""
        devices = np.array(jax.devices()).reshape(tuple(self.mesh.values()))
        return Mesh(devices, tuple(self.mesh))

    def __str__(self) -> str:
        lines = [f"mesh {self.mesh}"]
        for number, (value, spec) in enumerate(self.arguments):
            lines.append(f"  v{number} = argument {value.dtype}{list(value.shape)} {spec}")
        for number, step in enumerate(self.steps, len(self.arguments)):
            value = self.values[number]
            operands = ", ".join(f"v{i}" for i in step.operands)
            lines.append(f"  v{number} = {step.name} ({operands}) {value.dtype}{list(value.shape)}")
        lines += [f"  result v{i} {spec}" for i, spec in self.results]
        return "\n".join(lines)


def make(seed: int, only: Sequence[str] = ()) -> RandomProgram:
    """The program of a seed; `only` restricts its operations to these makers."""
    random = np.random.default_rng(seed)
    mesh = choose(random, MESHES)
    arguments = []
    for _ in range(int(random.integers(2, 5))):
        rank = int(random.choice([0, 1, 2, 2, 3, 3, 4]))
        limit = max(1, int(MAX_ELEMENTS ** (1 / max(rank, 1))))
        shape = tuple(size(random, limit) for _ in range(rank))
        dtype = jnp.dtype(choose(random, DTYPES))
        arguments.append((Value(shape, dtype), random_spec(random, mesh, shape, even=True)))
        if random.random() < 0.5:  # Another one to combine it with.
            arguments.append((Value(shape, dtype), random_spec(random, mesh, shape, even=True)))
    values = [value for value, _ in arguments]
    steps: list[Step] = []
    names = list(only) or list(MAKERS)
    wanted = int(random.integers(3, 13))
    for _ in range(10 * wanted):
        if len(steps) == wanted:
            break
        draw = random.random()
        if draw < 0.2:
            step = random_constraint(random, mesh, values)
        elif draw < 0.25:
            step = random_region(random, mesh, values)
        else:
            step = MAKERS[choose(random, names)](random, values)
        if step is None:
            continue
        structs = [jax.ShapeDtypeStruct(values[i].shape, values[i].dtype) for i in step.operands]
        like = structs[0] if step.needs_mesh else jax.eval_shape(step.compute, *structs)
        if math.prod(like.shape) > 4 * MAX_ELEMENTS or len(like.shape) > 6 or 0 in like.shape:
            continue
        steps.append(step)
        values.append(Value(tuple(like.shape), jnp.dtype(like.dtype), computed=True))
    first = len(arguments)
    chosen = {len(values) - 1} | {
        int(i) for i in random.integers(first, len(values), 2) if first < len(values)
    }
    results = [(i, random_spec(random, mesh, values[i].shape, even=True)) for i in sorted(chosen)]
    return RandomProgram(mesh, arguments, steps, values, results)


def reference(program: RandomProgram, seed: int) -> tuple[oracle.PerDevice, oracle.PerDevice]:
    """What each device gets in, of the arguments that are used, and gives out."""
    random = np.random.default_rng(seed)
    mesh = program.concrete_mesh()
    function, structs = program.build(mesh)
    arguments = [oracle.random_array(random, struct, is_weight=False) for struct in structs]
    values: list[Any] = list(arguments)
    pending: list[Step] = []

    def run_pending() -> None:
        def run(known: list[Any]) -> list[Any]:
            for step in pending:
                known = [*known, step.compute(*(known[i] for i in step.operands))]
            return known

        values[:] = map(np.asarray, jax.jit(run)(values))
        pending.clear()

    for step in program.steps:
        if not step.needs_mesh:
            pending.append(step)
        elif step.name.startswith("constraint"):
            pending.append(dataclasses.replace(step, compute=lambda x: x))
        else:
            run_pending()
            whole = jax.jit(step.compute, static_argnums=0)(mesh, values[step.operands[0]])
            values.append(np.asarray(whole))
    run_pending()

    def split(value: Any, spec: PartitionSpec) -> list[np.ndarray]:
        return oracle.shards_of(jax.device_put(value, NamedSharding(mesh, spec)))

    kept = sorted(function.lower(*structs)._lowering.compile_args["kept_var_idx"])
    inputs = [split(arguments[k], program.arguments[k][1]) for k in kept]
    return inputs, [split(values[i], spec) for i, spec in program.results]


def partition(program: RandomProgram, binary: str, directory: pathlib.Path) -> bytes:
    """The module that tpusim makes of it, a HloModuleProto."""
    abstract = AbstractMesh(tuple(program.mesh.values()), tuple(program.mesh))
    function, arguments = program.build(abstract)
    source, target = directory / "program.pb", directory / "partitioned.pb"
    tpusim.export(function, *arguments, path=source, config=CONFIG)
    command = [binary, "compile", str(source), "--config", CONFIG]
    done = subprocess.run(
        [*command, "--emit", "partitioned", "-o", str(target)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr.strip()
    return oracle.hlo_module(target.read_bytes())


def verify(
    seed: int, binary: str, directory: pathlib.Path, only: Sequence[str] = ()
) -> RandomProgram:
    """Asserts that the partitioned program of a seed computes what JAX computes."""
    program = make(seed, only)
    module = partition(program, binary, directory)
    inputs, expected = reference(program, seed)
    oracle.check(oracle.run(module, inputs), expected, TOLERANCE)
    return program


def main(argv: Sequence[str]) -> int:
    """The long run."""
    parser = argparse.ArgumentParser(description="Random programs, partitioned and run.")
    parser.add_argument("--seeds", default="0:100", help="one seed, or FIRST:END")
    parser.add_argument("--only", default="", help="operations, by maker name, joined by commas")
    parser.add_argument("--show", action="store_true", help="print every program")
    parser.add_argument("--keep", default="", help="directory for the last program's files")
    flags = parser.parse_args(argv)
    first, _, end = flags.seeds.partition(":")
    only = [name for name in flags.only.split(",") if name]
    binary = os.environ.get("TPUSIM_BINARY", str(ROOT / "build" / "tpusim"))
    operations: collections.Counter[str] = collections.Counter()
    failures: list[int] = []
    seeds = range(int(first), int(end or int(first) + 1))
    with tempfile.TemporaryDirectory() as temporary:
        directory = pathlib.Path(flags.keep or temporary)
        for seed in seeds:
            try:
                if flags.show:
                    print(make(seed, only))
                program = verify(seed, binary, directory, only)
                operations.update(step.name.split()[0] for step in program.steps)
            except Exception as error:
                failures.append(seed)
                text = str(error) or traceback.format_exc()
                print(f"seed {seed}: {' '.join(text.split())[:400]}", flush=True)
            if seed % 50 == 49:
                jax.clear_caches()
    print(f"{len(seeds)} programs, {len(failures)} failed: {failures}")
    print("operations:", ", ".join(f"{n} {name}" for name, n in operations.most_common()))
    return 1 if failures else 0


if __name__ == "__main__":
    # The module of this name, not this script: it is the one that the operations register with.
    from random_operations import random_programs

    sys.exit(random_programs.main(sys.argv[1:]))
