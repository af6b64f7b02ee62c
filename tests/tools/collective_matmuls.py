"""Collective matmuls of many kinds and sizes, to sweep machines with.

Like those of the examples: rings of permutes between products, one way or both ways round, as a
loop in the program or written out. In the sizes communication outweighs compute or the other way
round.
"""

import dataclasses
import pathlib
from collections.abc import Callable

import jax
import jax.numpy as jnp
import tpusim
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

from workloads.examples.example import array
from workloads.examples.reduce_scatter_matmul import halves, ring

SLICE = "v5e-4x2"
MESH = AbstractMesh((2, 4), ("X", "Y"), (AxisType.Auto,) * 2)
STEPS = 4
DTYPES = {"bf16": jnp.bfloat16, "int32": jnp.int32, "int8": jnp.int8}
SIZES = (
    (256, 512, 1024),
    (512, 1024, 512),
    (512, 512, 512),
    (1024, 2048, 8192),
    (2048, 4096, 4096),
)


def repeat(first: int, body: Callable, carry: jax.Array, unroll: bool) -> jax.Array:
    """`body` for the steps from `first` on, in a loop or written out."""
    if not unroll:
        return lax.fori_loop(first, STEPS, body, carry)
    for step in range(first, STEPS):
        carry = body(step, carry)
    return carry


def gather_two_ways(a: jax.Array, w: jax.Array, unroll: bool) -> jax.Array:
    """A[X, Y] @ W[-, Y]: halves of the chunks of A go round in opposite directions."""
    depth = a.shape[1]
    half = depth // 2
    me = lax.axis_index("Y")

    def products(step: int, left: jax.Array, right: jax.Array) -> jax.Array:
        of_left, of_right = (me + step) % STEPS, (me - step) % STEPS
        return left @ lax.dynamic_slice_in_dim(
            w, of_left * depth, half
        ) + right @ lax.dynamic_slice_in_dim(w, of_right * depth + half, half)

    def body(step: int, carry: tuple) -> tuple:
        total, left, right = carry
        left, right = lax.ppermute(left, "Y", ring(-1)), lax.ppermute(right, "Y", ring(1))
        return total + products(step, left, right), left, right

    left, right = a[:, :half], a[:, half:]
    return repeat(1, body, (products(0, left, right), left, right), unroll)[0]


def reduce_scatter(a: jax.Array, w: jax.Array, direction: int, unroll: bool) -> jax.Array:
    """The own block of columns of the sum of a @ w over Y."""
    width = w.shape[1] // STEPS

    def product(step: int) -> jax.Array:
        owner = (lax.axis_index("Y") + direction * (STEPS - 1 - step)) % STEPS
        return a @ lax.dynamic_slice_in_dim(w, owner * width, width, axis=1)

    def body(step: int, total: jax.Array) -> jax.Array:
        return lax.ppermute(total, "Y", ring(direction)) + product(step)

    return repeat(1, body, product(0), unroll)


def all_gather(block: jax.Array, direction: int, unroll: bool) -> jax.Array:
    """Gathers the blocks of columns along Y."""
    width, me = block.shape[1], lax.axis_index("Y")

    def put(every: jax.Array, block: jax.Array, step: int) -> jax.Array:
        owner = (me - direction * step) % STEPS
        return lax.dynamic_update_slice_in_dim(every, block, owner * width, axis=1)

    def body(step: int, carry: tuple) -> tuple:
        every, block = carry
        block = lax.ppermute(block, "Y", ring(direction))
        return put(every, block, step), block

    every = jnp.zeros((block.shape[0], width * STEPS), block.dtype)
    return repeat(1, body, (put(every, block, 0), block), unroll)[0]


def reduce_scatter_two_ways(a: jax.Array, w: jax.Array, unroll: bool) -> jax.Array:
    """A[-, Y] @ W[Y, -], half of the columns each way round."""
    parts = [
        reduce_scatter(a, half, way, unroll) for half, way in zip(halves(w), (1, -1), strict=True)
    ]
    return jnp.concatenate(parts, axis=1)


def all_reduce_two_ways(a: jax.Array, w: jax.Array, unroll: bool) -> jax.Array:
    """A[-, Y] @ W[Y, -] both ways round, then every block of columns on every device."""
    left, right = (
        all_gather(reduce_scatter(a, half, way, unroll), way, unroll)
        for half, way in zip(halves(w), (1, -1), strict=True)
    )
    blocks = [x.reshape(a.shape[0], STEPS, -1) for x in (left, right)]
    return jnp.stack(blocks, axis=2).reshape(a.shape[0], -1)


# Program, and what is sharded how: W and the result.
KINDS = {
    "gather": (gather_two_ways, (None, "Y"), P("X", "Y")),
    "reduce_scatter": (reduce_scatter_two_ways, ("Y", None), P("X", "Y")),
    "all_reduce": (all_reduce_two_ways, ("Y", None), P("X", None)),
}


@dataclasses.dataclass(frozen=True)
class Variant:
    """One of them."""

    kind: str
    unroll: bool
    dtype: str
    size: tuple[int, int, int]

    @property
    def name(self) -> str:
        """The name in tests and files."""
        sizes = "x".join(map(str, self.size))
        return f"{self.kind}_{'unrolled' if self.unroll else 'loop'}_{self.dtype}_{sizes}"

    def export(self, folder: pathlib.Path) -> pathlib.Path:
        """Writes it, if it is not there."""
        path = folder / f"{self.name}.pb"
        if path.exists():
            return path
        function, weights, result = KINDS[self.kind]
        rows, depth, columns = self.size
        dtype = DTYPES[self.dtype]
        sharded = jax.shard_map(
            lambda a, w: function(a, w, self.unroll),
            mesh=MESH,
            in_specs=(P("X", "Y"), P(*weights)),
            out_specs=result,
            check_vma=False,
        )
        arguments = (
            array(MESH, (rows, depth), dtype, "X", "Y"),
            array(MESH, (depth, columns), dtype, *weights),
        )
        tpusim.export(jax.jit(sharded), *arguments, path=path, config=SLICE)
        return path


VARIANTS = {
    variant.name: variant
    for variant in (
        Variant(kind, unroll, dtype, size)
        for kind in KINDS
        for unroll in (False, True)
        for dtype in DTYPES
        for size in SIZES
    )
}
