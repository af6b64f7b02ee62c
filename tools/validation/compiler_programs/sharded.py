"""One sharded product each: what becomes a collective, what a loop of permutes (windowed einsum).

Rows of the left operand are split over `data` where nothing else is said.
"""

import functools

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec

from compiler_programs.registry import EIGHT_DEVICES, program
from workloads.examples.example import AnyMesh, Program, array

Spec = tuple[str | tuple[str, ...] | None, ...]

# Shardings of the left operand, the right one and the result.
CASES: dict[str, tuple[Spec, Spec, Spec]] = {
    "gather_contracted": (("data", "model"), (None, "model"), ("data", "model")),
    "gather_rows": ((("data", "model"), None), (None, "model"), ("data", "model")),
    "gather_weight_columns": (("data", None), (None, "data"), ("data", None)),
    "gather_weight_rows": (("data", None), ("data", None), ("data", None)),
    "scatter_columns": (("data", "model"), ("model", None), ("data", "model")),
    "scatter_rows": (("data", "model"), ("model", None), (("data", "model"), None)),
    "scatter_weight_gradient": ((None, "data"), ("data", None), ("data", None)),
    "reduce": (("data", "model"), ("model", None), ("data", None)),
}
SIZES = {
    "small": (2048, 1024, 4096),
    "large": (8192, 4096, 14336),
    "deep": (8192, 14336, 4096),
}


def product(case: str, size: str, mesh: AnyMesh) -> Program:
    """Rows by contracted by columns."""
    rows, contracted, columns = SIZES[size]
    left, right, result = CASES[case]

    def step(x: jax.Array, w: jax.Array) -> jax.Array:
        return x @ w

    jitted = jax.jit(step, out_shardings=NamedSharding(mesh, PartitionSpec(*result)))
    return jitted, (
        array(mesh, (rows, contracted), jnp.bfloat16, *left),
        array(mesh, (contracted, columns), jnp.bfloat16, *right),
    )


for _size in ("small", "large"):
    for _case in CASES:
        _mesh = {"data": 8} if "weight" in _case else {"data": 2, "model": 4}
        program(
            f"sharded_{_case}_{_size}",
            _mesh,
            EIGHT_DEVICES,
            functools.partial(product, _case, _size),
            "sharded",
        )


# On 64 chips: groups of 16 whose members are no neighbours, and groups of 8 where some slices have
# synchronous permutes only.
for _case, _sizes in {
    "gather_contracted": ("small", "large"),
    "scatter_columns": ("large", "deep"),
}.items():
    for _size in _sizes:
        for _members, _slices in {16: ("v5p-4x4x4",), 8: ("v5e-8x8", "v6e-8x8")}.items():
            program(
                f"sharded_{_case}_{_size}_of_{_members}",
                {"model": _members, "data": 64 // _members},
                _slices,
                functools.partial(product, _case, _size),
                "sharded",
            )
