"""Shardings that tpusim propagates are those that JAX's own compiler propagates.

Random small programs over a 4x2 mesh: XLA compiles each for eight CPU devices and says how its
results are sharded; tpusim says the same of the exported program. Results include values from the
middle of the program, so that more than its end is compared.
"""

import pathlib
import re
import subprocess
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tpusim
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

SIZES = (8, 16, 32)
MESH_SHAPE, MESH_AXES = (4, 2), ("x", "y")


def mesh() -> jax.sharding.Mesh:
    devices = np.array(jax.devices()[:8]).reshape(MESH_SHAPE)
    return jax.sharding.Mesh(devices, MESH_AXES)


def parse_spec(text: str) -> P:
    """`[{x,y}, {}]` as a PartitionSpec."""
    dims = re.findall(r"\{([^{}]*)\}", text)
    return P(*(tuple(d.split(",")) if d else None for d in dims))


def our_results(binary: str, function: Any, arguments: Sequence[Any], folder: pathlib.Path):
    """Specs of the program's results as `--emit sharded` prints them, and the text."""
    file = folder / "program.pb"
    tpusim.export(function, *arguments, path=file, config="v5e-4x2")
    done = subprocess.run(
        [binary, "compile", "--config", "v5e-4x2", str(file), "--emit", "sharded"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    entry = done.stdout[done.stdout.index("ENTRY") :]
    root = next(line for line in entry.splitlines() if line.startswith("  ROOT"))
    shardings = root[root.index(", sharding=") + len(", sharding=") : root.index("  // ")]
    return [parse_spec(s) for s in re.findall(r"\[[^\[\]]*\]", shardings)], done.stdout


def compare(binary: str, function: Any, arguments: Sequence[Any], folder: pathlib.Path) -> None:
    jitted = function if hasattr(function, "lower") else jax.jit(function)
    compiled = jitted.lower(*arguments).compile()
    wanted = jax.tree.leaves(compiled.output_shardings)
    results = jax.tree.leaves(jax.eval_shape(jitted, *arguments))
    ours, text = our_results(binary, jitted, arguments, folder)
    assert len(ours) == len(wanted)
    for number, (spec, want, result) in enumerate(zip(ours, wanted, results, strict=True)):
        got = NamedSharding(mesh(), spec)
        assert got.is_equivalent_to(want, len(result.shape)), (
            f"result {number}: {spec}, JAX has {getattr(want, 'spec', want)}\n{text}"
        )


class Program:
    """A random program: `build()` replays the same choices while JAX traces it."""

    def __init__(self, seed: int, length: int = 8):
        self.seed, self.length = seed, length
        random = np.random.default_rng([seed, 0])
        self.arguments = []
        for _ in range(random.integers(2, 4)):
            shape = tuple(int(s) for s in random.choice(SIZES, random.integers(1, 4)))
            sharding = NamedSharding(mesh(), self.spec(random, shape))
            self.arguments.append(jax.ShapeDtypeStruct(shape, jnp.float32, sharding=sharding))

    @staticmethod
    def spec(random: np.random.Generator, shape: Sequence[int], may_be_open: bool = False) -> P:
        """Axes on dimensions that they divide, each at most once."""
        dims: list[Any] = [[] for _ in shape]
        for axis in random.permutation(MESH_AXES):
            place = int(random.integers(0, len(shape) + 1))
            if place == len(shape):
                continue
            size = MESH_SHAPE[MESH_AXES.index(axis)]
            used = np.prod([MESH_SHAPE[MESH_AXES.index(a)] for a in dims[place]], dtype=int)
            if shape[place] % (size * used) == 0:
                dims[place].append(str(axis))
        entries: list[Any] = [tuple(d) if d else None for d in dims]
        if may_be_open:
            entries = [
                P.UNCONSTRAINED if e is None and random.random() < 0.5 else e for e in entries
            ]
        return P(*entries)

    def __call__(self, *arguments: jax.Array) -> list[jax.Array]:
        """Returns the last value and up to two others, for JAX to trace."""
        random = np.random.default_rng([self.seed, 1])
        values = list(arguments)
        steps = list(STEPS.values())
        while len(values) < len(arguments) + self.length:
            made = steps[random.integers(len(steps))](random, values)
            if made is not None and 0 < made.ndim < 5 and made.size <= 1 << 16:
                values.append(made)
        made = values[len(arguments) :]
        chosen = random.permutation(len(made) - 1)[: random.integers(0, 3)]
        return [made[-1], *(made[i] for i in sorted(chosen))]


Step = Callable[[np.random.Generator, list[jax.Array]], jax.Array | None]


def pick(random: np.random.Generator, values: list[jax.Array]) -> jax.Array:
    # Rather a late value: long chains.
    return values[len(values) - 1 - int(min(random.geometric(0.35), len(values)) - 1)]


def unary(random, values):
    return [jnp.sin, jnp.negative, lambda v: v * 2.0][random.integers(3)](pick(random, values))


def binary_op(random, values):
    a = pick(random, values)
    same = [v for v in values if v.shape == a.shape and v is not a]
    return a + same[random.integers(len(same))] if same else None


def dot(random, values):
    a, b = pick(random, values), values[random.integers(len(values))]
    pairs = [(i, j) for i in range(a.ndim) for j in range(b.ndim) if a.shape[i] == b.shape[j]]
    if not pairs:
        return None
    i, j = pairs[random.integers(len(pairs))]
    return jax.lax.dot_general(a, b, (((i,), (j,)), ((), ())))


def batch_dot(random, values):
    a = pick(random, values)
    same = [v for v in values if v.ndim > 1 and v.shape[:1] == a.shape[:1]]
    if a.ndim < 2 or not same:
        return None
    b = same[random.integers(len(same))]
    if a.shape[-1] != b.shape[-1]:
        return None
    return jax.lax.dot_general(a, b, (((a.ndim - 1,), (b.ndim - 1,)), ((0,), (0,))))


def transpose(random, values):
    a = pick(random, values)
    return jnp.transpose(a, random.permutation(a.ndim))


def reshape(random, values):
    a = pick(random, values)
    shape = list(a.shape)
    d = int(random.integers(len(shape)))
    if random.random() < 0.5 and d + 1 < len(shape):
        shape[d : d + 2] = [shape[d] * shape[d + 1]]
    elif shape[d] % 4 == 0 and len(shape) < 4:
        major = int(random.choice([2, 4]))
        shape[d : d + 1] = [major, shape[d] // major]
    return jnp.reshape(a, shape)


def broadcast(random, values):
    a = pick(random, values)
    place = int(random.integers(a.ndim + 1))
    shape = list(a.shape)
    shape.insert(place, int(random.choice(SIZES)))
    dims = [d if d < place else d + 1 for d in range(a.ndim)]
    return jax.lax.broadcast_in_dim(a, shape, dims)


def reduce_sum(random, values):
    a = pick(random, values)
    return jnp.sum(a, axis=int(random.integers(a.ndim)))


def constraint(random, values):
    a = pick(random, values)
    spec = Program.spec(random, a.shape, may_be_open=random.random() < 0.5)
    return jax.lax.with_sharding_constraint(a, NamedSharding(mesh(), spec))


def scale_by_one_dim(random, values):
    a = pick(random, values)
    d = int(random.integers(a.ndim))
    same = [v for v in values if v.ndim == 1 and v.shape[0] == a.shape[d]]
    if not same:
        return None
    return a * jax.lax.broadcast_in_dim(same[random.integers(len(same))], a.shape, (d,))


def loop(random, values):
    a = pick(random, values)
    return jax.lax.fori_loop(0, 3, lambda _, v: jnp.sin(v) + a, a)


def concatenate(random, values):
    a = pick(random, values)
    d = int(random.integers(a.ndim))
    return jnp.concatenate([a, jnp.cos(a)], axis=d)


def cut(random, values):
    a = pick(random, values)
    d = int(random.integers(a.ndim))
    return jax.lax.slice_in_dim(a, 0, a.shape[d] // 2, axis=d) if a.shape[d] >= 8 else None


STEPS: dict[str, Step] = {
    step.__name__: step  # type: ignore[attr-defined]
    for step in (
        unary,
        unary,
        binary_op,
        dot,
        batch_dot,
        transpose,
        reshape,
        broadcast,
        reduce_sum,
        constraint,
        scale_by_one_dim,
        loop,
        concatenate,
        cut,
    )
}


@pytest.mark.parametrize("seed", range(60))
def test_random_program(seed: int, binary: str, tmp_path: pathlib.Path):
    program = Program(seed)
    compare(binary, jax.jit(program), program.arguments, tmp_path)
