"""Values that a program leaves unreduced: linear ops work on the parts, which are added up once."""

import pathlib
import subprocess
from typing import Any

import hlo_execution
import jax
import jax.numpy as jnp
import oracle
import pytest
import tpusim
from jax.sharding import AxisType, NamedSharding, reshard
from jax.sharding import PartitionSpec as P
from tpusim import hlo

ARGUMENTS = (((16, 16), P("x", "y")), ((16, 32), P("y", None)))
COLLECTIVES = ("all-gather", "all-reduce", "all-to-all", "collective-permute", "reduce-scatter")


def whole(beside: Any) -> Any:
    """Numbers that every device along y has, as JAX asks for beside an unreduced value."""
    reduced = jax.typeof(beside).sharding.spec.unreduced
    return reshard(jnp.arange(512.0).reshape(16, 32), P("x", None, reduced=reduced))


def begun(value: Any, beside: Any) -> Any:
    """A whole value as a sum of parts, as `beside` is one."""
    return reshard(value, P("x", None, unreduced=jax.typeof(beside).sharding.spec.unreduced))


# Functions of an unreduced f32[16,32] split over x, and the collective that adds up the result.
LINEAR: dict[str, tuple[Any, str]] = {
    "sum_with_itself": (lambda y: y + y, "all-reduce (8, 32)"),
    "product_with_a_whole_value": (lambda y: y * whole(y), "all-reduce (8, 32)"),
    "transpose": (lambda y: y.T, "all-reduce (32, 8)"),
    "reshape": (lambda y: y.reshape(16, 4, 8), "all-reduce (8, 4, 8)"),
    "slice": (lambda y: y[:, :8], "all-reduce (8, 8)"),
    "reduction": (lambda y: y.sum(1), "all-reduce (8,)"),
    "broadcast": (lambda y: jnp.broadcast_to(y[None], (3, 16, 32)), "all-reduce (3, 8, 32)"),
    "stack": (lambda y: jnp.stack([y, y]), "all-reduce (2, 8, 32)"),
    "roll": (lambda y: jnp.concatenate([y, y], 1), "all-reduce (8, 64)"),
    "padding": (lambda y: jnp.pad(y, ((0, 0), (1, 2))), "all-reduce (8, 35)"),
    "choice": (lambda y: jnp.where(whole(y) > 9, y, y + y), "all-reduce (8, 32)"),
    "update": (
        lambda y: jax.lax.dynamic_update_slice(y, y[:, :8], (0, 4)),
        "all-reduce (8, 32)",
    ),
    "convert": (lambda y: y.astype(jnp.bfloat16), "all-reduce (8, 32)"),
    "loop": (lambda y: jax.lax.fori_loop(0, 3, lambda i, c: c + y, y), "all-reduce (8, 32)"),
    "sum_from_zeros": (
        lambda y: jax.lax.fori_loop(0, 3, lambda i, c: c + y, begun(jnp.zeros((16, 32)), y)),
        "all-reduce (8, 32)",
    ),
    "sum_from_a_value": (
        lambda y: y + begun(jnp.arange(512.0).reshape(16, 32), y),
        "all-reduce (8, 32)",
    ),
    "branches": (
        lambda y: jax.lax.cond(True, lambda u: u + u, lambda u: u, y),
        "all-reduce (8, 32)",
    ),
}


def product(v: Any, w: Any, **parts: Any) -> Any:
    return jnp.einsum("ij,jk->ik", v, w, out_sharding=P("x", None, **parts))


def check_partitioned(
    binary: str, file: pathlib.Path, wanted: str, inputs: Any, expected: Any
) -> None:
    """Partitions a program: it has the one collective, and computes what JAX does."""
    output = file.with_name("partitioned.pb")
    command = [binary, "compile", "--config", "v5e-4x2", str(file), "--emit", "partitioned"]
    done = subprocess.run(
        [*command, "-o", str(output)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    made = output.read_bytes()
    sent = [
        f"{instruction.opcode} {tuple(instruction.shape.dims)}"
        for _, instruction, _ in hlo_execution.executed(hlo.Module(made))
        if instruction.opcode in COLLECTIVES
    ]
    assert sent == [wanted]
    oracle.check(oracle.run(oracle.hlo_module(made), inputs), expected)


@pytest.mark.parametrize("name", LINEAR)
def test_parts_are_added_up_once(name: str, binary: str, tmp_path: pathlib.Path):
    function, wanted = LINEAR[name]
    mesh = jax.make_mesh((2, 4), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
    arguments = [
        jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, spec))
        for shape, spec in ARGUMENTS
    ]
    file = tmp_path / "program.pb"

    def program(v: Any, w: Any) -> Any:
        result = function(product(v, w, unreduced={"y"}))
        return reshard(result, P(*jax.typeof(result).sharding.spec.partitions))

    with jax.set_mesh(mesh):
        tpusim.export(jax.jit(program), *arguments, path=file, config="v5e-4x2")
        # The same of whole values: XLA on CPUs adds up broadcasts and loops more than once.
        inputs, expected = oracle.reference(
            jax.jit(lambda v, w: function(product(v, w))), arguments
        )
    check_partitioned(binary, file, wanted, inputs, expected)


# Functions of an f32[16,32] of which each device along y has the largest values of its part, and
# the collective that takes the largest of all: what JAX lets work on such parts.
MOVING: dict[str, tuple[Any, str]] = {
    "itself": (lambda y: y, "all-reduce (8, 32)"),
    "transpose": (lambda y: y.T, "all-reduce (32, 8)"),
    "reshape": (lambda y: y.reshape(16, 4, 8), "all-reduce (8, 4, 8)"),
    "slice": (lambda y: y[:, :8], "all-reduce (8, 8)"),
    "concatenation": (lambda y: jnp.concatenate([y, y[:, :8]], 1), "all-reduce (8, 40)"),
    "loop": (
        lambda y: jax.lax.fori_loop(0, 3, lambda i, c: c.reshape(16, 4, 8).reshape(16, 32), y),
        "all-reduce (8, 32)",
    ),
}


@pytest.mark.skipif(
    not hasattr(jax.sharding, "UnreducedKind"), reason="JAX leaves only sums unreduced"
)
@pytest.mark.parametrize("name", MOVING)
@pytest.mark.parametrize("kind", ["max", "min"])
def test_the_largest_and_least_of_parts(name: str, kind: str, binary: str, tmp_path: pathlib.Path):
    function, wanted = MOVING[name]
    mesh = jax.make_mesh((2, 4), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
    sharding = NamedSharding(mesh, P("x", "y", None))
    argument = jax.ShapeDtypeStruct((16, 8, 32), jnp.float32, sharding=sharding)
    reduce = jax.lax.reduce_max if kind == "max" else jax.lax.reduce_min
    parts = P("x", None, unreduced={"y"}, unreduced_kind=jax.sharding.UnreducedKind[kind])
    file = tmp_path / "program.pb"

    def program(v: Any) -> Any:
        result = function(reduce(v, axes=(1,), out_sharding=parts))
        return reshard(result, P(*jax.typeof(result).sharding.spec.partitions))

    with jax.set_mesh(mesh):
        tpusim.export(jax.jit(program), argument, path=file, config="v5e-4x2")
        inputs, expected = oracle.reference(jax.jit(program), [argument])
    check_partitioned(binary, file, wanted, inputs, expected)
