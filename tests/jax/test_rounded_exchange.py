"""Float32 operands of products cross devices as bfloat16, with the results of a TPU.

Numbers that bfloat16 holds come out as JAX has them; others as if JAX had rounded the operands.
"""

import pathlib
import subprocess

import jax
import jax.numpy as jnp
import numpy as np
import oracle
import tpusim
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

MESH = AbstractMesh((8,), ("x",), axis_types=(AxisType.Auto,))
CONFIG = "v5e-4x2"


def program(weights: jax.Array, x: jax.Array) -> jax.Array:
    """Weights in shares, gathered for the product."""
    return x @ jax.lax.with_sharding_constraint(weights, NamedSharding(MESH, P()))


def compiled(binary: str, folder: pathlib.Path) -> bytes:
    """After all passes."""

    def of(*spec: str | None) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct((64, 64), jnp.float32, sharding=NamedSharding(MESH, P(*spec)))

    step = jax.jit(program, out_shardings=NamedSharding(MESH, P("x")))
    tpusim.export(step, of("x"), of("x"), path=folder / "w.pb", config=CONFIG)
    command = [binary, "compile", str(folder / "w.pb"), "--quiet", "--emit"]
    text = subprocess.run([*command, "optimized"], capture_output=True, text=True, check=True)
    assert "bf16[64,64]" in text.stdout
    assert "f32[64,64]{1,0} all-gather" not in text.stdout
    subprocess.run([*command, "executable", "-o", str(folder / "e.pb")], check=True)
    return oracle.hlo_module((folder / "e.pb").read_bytes())


def test_as_a_tpu_computes(binary: str, tmp_path: pathlib.Path):
    module = compiled(binary, tmp_path)
    random = np.random.default_rng(0)
    whole = [random.integers(-128, 128, (64, 64)).astype(np.float32) for _ in range(2)]
    real = [random.standard_normal((64, 64)).astype(np.float32) for _ in range(2)]
    for weights, x in (whole, real):
        parts = [[a[8 * n : 8 * n + 8] for n in range(8)] for a in (weights, x)]
        rounded = np.asarray(weights.astype(jnp.bfloat16), np.float32)
        expected = [[(x @ rounded)[8 * n : 8 * n + 8] for n in range(8)]]
        oracle.check(oracle.run(module, parts), expected)
