"""Gradients that a loop accumulates are summed over devices behind it, and are those of JAX."""

import pathlib
import subprocess
from collections.abc import Callable

import jax
import jax.numpy as jnp
import oracle
import pytest
import tpusim
from jax import lax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

Step = Callable[[jax.Array, jax.Array], jax.Array]


def loss(w: jax.Array, x: jax.Array) -> jax.Array:
    return (jnp.tanh(x @ w) ** 2).mean()


def microbatches(w: jax.Array, x: jax.Array) -> jax.Array:
    """From zeros."""
    return lax.scan(lambda g, part: (g + jax.grad(loss)(w, part), None), jnp.zeros_like(w), x)[0]


def from_weights(w: jax.Array, x: jax.Array) -> jax.Array:
    """From a value that is not zero, which no device may add twice."""
    return lax.scan(lambda g, part: (g + jax.grad(loss)(w, part), None), w, x)[0]


def recurrent(w: jax.Array, x: jax.Array) -> jax.Array:
    """Every step of a scan reads the weights."""

    def unrolled(w: jax.Array) -> jax.Array:
        def cell(h: jax.Array, part: jax.Array) -> tuple[jax.Array, jax.Array]:
            h = jnp.tanh(part @ w + h)
            return h, h

        return (lax.scan(cell, jnp.zeros_like(x[0]), x)[1] ** 2).mean()

    return jax.grad(unrolled)(w)


@pytest.mark.parametrize("step", [microbatches, from_weights, recurrent])
def test_one_sum_behind_the_loop(step: Step, binary: str, tmp_path: pathlib.Path):
    mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))

    def of(shape: tuple[int, ...], *spec: str | None) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, P(*spec)))

    jitted = jax.jit(step, out_shardings=NamedSharding(mesh, P()))
    arguments = (of((16, 16)), of((4, 32, 16), None, "data"))
    tpusim.export(jitted, *arguments, path=tmp_path / "w.pb", config="v5e-4x2")
    command = [binary, "compile", str(tmp_path / "w.pb"), "--quiet", "--emit"]
    text = subprocess.run([*command, "optimized"], capture_output=True, text=True, check=True)
    sums = [line for line in text.stdout.splitlines() if " all-reduce(" in line]
    assert len(sums) == 1
    assert sums[0] in text.stdout[text.stdout.index("ENTRY ") :]
    subprocess.run([*command, "executable", "-o", str(tmp_path / "e.pb")], check=True)
    inputs, expected = oracle.reference(jitted, arguments)
    module = oracle.hlo_module((tmp_path / "e.pb").read_bytes())
    oracle.check(oracle.run(module, inputs), expected)
