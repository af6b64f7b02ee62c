"""Matrix products in automatic mode: jit gets shardings, the compiler finds the collectives."""

from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from workloads.examples.example import AnyMesh, Program, array, example

SLICE = "v5e-4x2"
ROWS_ALONG_X = {"X": 2, "Y": 4}


@example(mesh={"X": 4, "Y": 2}, config=SLICE)
def matmul_square(mesh: AnyMesh) -> Program:
    """In[X, Y] @ W[Y, -] -> Out[X, -]: partial products over Y, summed by an all-reduce."""

    def matmul_square(x: jax.Array, w: jax.Array) -> jax.Array:
        return x @ w

    step = jax.jit(matmul_square, out_shardings=NamedSharding(mesh, P("X", None)))
    return step, (
        array(mesh, (8, 2048), jnp.bfloat16, "X", "Y"),
        array(mesh, (2048, 8192), jnp.bfloat16, "Y", None),
    )


def sharded_matmul(mesh: AnyMesh, dtype: Any, contraction: str | None) -> Program:
    """A[X, contraction] @ W[-, Y] -> [X, Y] with A [1024, 2048] and W [2048, 8192]."""

    def sharded_matmul(a: jax.Array, w: jax.Array) -> jax.Array:
        return a @ w

    step = jax.jit(sharded_matmul, out_shardings=NamedSharding(mesh, P("X", "Y")))
    return step, (
        array(mesh, (1024, 2048), dtype, "X", contraction),
        array(mesh, (2048, 8192), dtype, None, "Y"),
    )


@example(mesh=ROWS_ALONG_X, config=SLICE)
def allgather_matmul_int32(mesh: AnyMesh) -> Program:
    """The contraction is sharded in A only: all-gather A over Y, then multiply."""
    return sharded_matmul(mesh, jnp.int32, "Y")


@example(mesh=ROWS_ALONG_X, config=SLICE)
def allgather_matmul_bf16(mesh: AnyMesh) -> Program:
    """The all-gather and matmul in bfloat16."""
    return sharded_matmul(mesh, jnp.bfloat16, "Y")


@example(mesh=ROWS_ALONG_X, config=SLICE)
def local_matmul_int32(mesh: AnyMesh) -> Program:
    """The contraction is not sharded: the same product without communication."""
    return sharded_matmul(mesh, jnp.int32, None)


@example(mesh=ROWS_ALONG_X, config=SLICE)
def local_matmul_bf16(mesh: AnyMesh) -> Program:
    """The local matmul in bfloat16."""
    return sharded_matmul(mesh, jnp.bfloat16, None)
