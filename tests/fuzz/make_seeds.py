"""Writes the seeds of the fuzzers: a tiny program for each family of operations, as HLO text.

Run from the root of the repository with jax 0.10.2, after a build:
    python tests/fuzz/make_seeds.py
`NAME.hlo` is what JAX lowers for TPU, `NAME_scheduled.hlo` the program of a device that tpusim
makes of it (fusions, starts and dones, memory spaces).
`NAME.mosaic` is the body of a Pallas kernel, as its call carries it; `NAME_text.mosaic` is
written by hand, in the text in which the TPU compiler adds kernels of its own.
Small programs are what fuzzers need: hundreds of executions a second, and a mutation that
hits something.
"""

import base64
import os
import pathlib
import re
import subprocess
from collections.abc import Callable, Sequence

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

MESH = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto, AxisType.Auto))
HERE = pathlib.Path(__file__).parent / "seeds"
BINARY = os.environ.get("TPUSIM_BINARY", "build/tpusim")
# Metadata take most of a text and tell no stage anything.
METADATA = re.compile(r", metadata=\{[^}]*\}")


def aval(
    shape: Sequence[int], spec: P | None = None, dtype: jnp.dtype = jnp.float32
) -> jax.ShapeDtypeStruct:
    sharding = None if spec is None else NamedSharding(MESH, spec)
    return jax.ShapeDtypeStruct(shape, dtype, sharding=sharding)


def mapped(function: Callable, in_specs: P, out_specs: P) -> Callable:
    return jax.shard_map(
        function, mesh=MESH, in_specs=in_specs, out_specs=out_specs, check_vma=False
    )


def constrained(value: jax.Array, *spec: str | None) -> jax.Array:
    return lax.with_sharding_constraint(value, NamedSharding(MESH, P(*spec)))


def gated(x: jax.Array, w: jax.Array, v: jax.Array) -> jax.Array:
    return (jax.nn.silu(x @ w) * (x @ v)).sum(axis=0)


def attention(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    scores = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k), axis=-1)
    return jnp.einsum("bhqk,bkhd->bqhd", scores, v)


def scan(w: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    return lax.scan(lambda h, layer: (jnp.tanh(h @ layer), h[0]), x, w)


def update(cache: jax.Array, row: jax.Array, at: jax.Array) -> jax.Array:
    return lax.dynamic_update_slice(cache, row, (at, 0)) + 1


def convolution(a: jax.Array, b: jax.Array) -> jax.Array:
    return lax.conv_general_dilated(
        a, b, (2, 1), "SAME", rhs_dilation=(1, 2), feature_group_count=2
    )


def pool(a: jax.Array) -> jax.Array:
    return lax.reduce_window(a, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "SAME")


def exchanged(a: jax.Array) -> tuple[jax.Array, ...]:
    return (
        lax.all_gather(a, "y", tiled=True),
        lax.psum_scatter(a, "x", tiled=True),
        lax.all_to_all(a, "x", 0, 1, tiled=True),
    )


def ragged_exchange(a: jax.Array, out: jax.Array, sizes: jax.Array) -> jax.Array:
    return lax.ragged_all_to_all(a, out, sizes, sizes, sizes, sizes, axis_name="x")


MATRIX = (64, 32)
I32 = jnp.int32
BF16 = jnp.bfloat16

# name: (function, arguments)
PROGRAMS = {
    # Sharded by annotation: propagation and the partitioner have something to do.
    "matmul": (lambda a, b: a @ b, [aval(MATRIX, P("x", "y")), aval((32, 16), P("y"), BF16)]),
    "gated": (gated, [aval(MATRIX, P("x")), aval((32, 64), P(None, "y")), aval((32, 64))]),
    "gradient": (
        jax.grad(lambda w, x: jnp.square(jnp.tanh(x @ w)).mean()),
        [aval((32, 16), P(None, "y")), aval(MATRIX, P("x"))],
    ),
    "attention": (attention, [aval((4, 16, 2, 8), P("x", None, "y"), BF16)] * 3),
    "constraint": (
        lambda a: constrained(constrained(a * 2, "x").T, None, ("y", "x")),
        [aval(MATRIX, P("x", "y"))],
    ),
    "reduce": (lambda a: (a.sum(0), a.max(1), a.argmax(0)), [aval(MATRIX, P("x", "y"))]),
    "batch_norm": (
        lambda a: (a - a.mean(0)) * lax.rsqrt(a.var(0) + 1e-5),
        [aval(MATRIX, P(("x", "y")))],
    ),
    "reshape": (
        lambda a: a.reshape(8, 8, 4, 8).transpose(2, 0, 3, 1).reshape(32, 64),
        [aval(MATRIX, P("x", "y"))],
    ),
    "pad_slice": (
        lambda a: jnp.pad(a, ((1, 2), (0, 3)))[2:40:3, ::-1],
        [aval(MATRIX, P("x"))],
    ),
    "concatenate": (
        lambda a, b: jnp.concatenate([jnp.roll(a, 3, 0), b, a[:8]], axis=0),
        [aval(MATRIX, P("x")), aval(MATRIX, P(None, "y"))],
    ),
    "gather": (lambda t, i: t[i] * 2, [aval((128, 16), P("x")), aval((8, 4), P("y"), I32)]),
    "scatter": (
        lambda t, i, u: t.at[i].add(u),
        [aval((128, 16), P("x")), aval((8,), None, I32), aval((8, 16), P("y"))],
    ),
    "one_hot": (
        lambda i, t: jax.nn.one_hot(i, 128, dtype=BF16) @ t,
        [aval((16,), P("x"), I32), aval((128, 16), P("y"), BF16)],
    ),
    "sort": (lambda a: lax.sort((a, -a), dimension=1), [aval(MATRIX, P("x"))]),
    "top_k": (lambda a: lax.top_k(a, 4), [aval(MATRIX, P("x"))]),
    "cumulative": (lambda a: lax.cumsum(a, axis=1), [aval((8, 16), P("y"))]),
    "convolution": (convolution, [aval((8, 16, 8, 8), P("x")), aval((32, 8, 3, 3))]),
    "pool": (pool, [aval((8, 8, 8, 4), P("x"))]),
    "pool_gradient": (jax.grad(lambda a: pool(a).sum()), [aval((4, 8, 8, 2))]),
    "update": (update, [aval((64, 32), P("x")), aval((1, 32)), aval((), None, I32)]),
    "dynamic_slice": (
        lambda a, i: lax.dynamic_slice(a, (i, 0), (8, 16)),
        [aval(MATRIX, P(None, "y")), aval((), None, I32)],
    ),
    "scan": (scan, [aval((4, 16, 16), P(None, None, "y"), BF16), aval((8, 16), P("x"), BF16)]),
    "loop": (
        lambda a: lax.fori_loop(3, 9, lambda i, b: b * 2 + i, a),
        [aval((16,), P("x"))],
    ),
    "loop_on_data": (
        lambda a: lax.while_loop(lambda c: c.sum() < 100, lambda c: c * 2, a),
        [aval((8, 8), P("x"))],
    ),
    "branches": (
        lambda a, i: lax.switch(i, [jnp.sin, lambda x: -x, lambda x: x + 1], a),
        [aval((8, 8), P("x")), aval((), None, I32)],
    ),
    "random": (
        lambda k: lax.rng_bit_generator(k, (16, 8))[1],
        [aval((4,), None, jnp.uint32)],
    ),
    "fft": (lambda a: jnp.abs(jnp.fft.fft(a)), [aval((8, 16), P("x"))]),
    "complex": (lambda a: (a * lax.complex(a.real, a.real)).imag, [aval((8, 8), P("y"))]),
    "solve": (
        lambda a, b: lax.linalg.triangular_solve(lax.linalg.cholesky(a), b, left_side=True),
        [aval((2, 8, 8), P("y")), aval((2, 8, 4))],
    ),
    "eigh": (jnp.linalg.eigvalsh, [aval((8, 8))]),
    "bits": (
        lambda a: lax.population_count(lax.bitcast_convert_type(a, jnp.int32) >> 3) & 7,
        [aval((8, 8), P("x"))],
    ),
    "convert": (
        lambda a, b: a.astype(BF16) @ b.astype(BF16),
        [aval((16, 32), P("x"), jnp.int4), aval((32, 16), None, jnp.float8_e4m3fn)],
    ),
    "ragged_dot": (
        lax.ragged_dot,
        [aval((64, 16), P("x"), BF16), aval((4, 16, 8), None, BF16), aval((4,), None, I32)],
    ),
    "remat": (
        jax.grad(lambda w, x: jax.checkpoint(lambda h: jnp.tanh(h @ w) @ w)(x).sum()),
        [aval((16, 16), P("y")), aval((8, 16), P("x"))],
    ),
    # Collectives in the program.
    "all_reduce": (
        mapped(lambda a: lax.psum(a, "x"), P("x", "y"), P(None, "y")),
        [aval(MATRIX, P("x", "y"))],
    ),
    "exchange": (
        mapped(exchanged, P("x", "y"), (P("x"), P("x", "y"), P(None, ("x", "y")))),
        [aval((64, 64), P("x", "y"))],
    ),
    "permute": (
        mapped(
            lambda a: lax.ppermute(a, "x", [(0, 1), (1, 2), (2, 0)]) + lax.axis_index("y"),
            P("x", "y"),
            P("x", "y"),
        ),
        [aval(MATRIX, P("x", "y"))],
    ),
    "ragged_exchange": (
        mapped(ragged_exchange, (P("x"), P("x"), P("x")), P("x")),
        [aval((64, 8), P("x")), aval((64, 8), P("x")), aval((16,), P("x"), I32)],
    ),
    "collective_matmul": (
        mapped(
            lambda a, b: lax.all_gather(a, "x", tiled=True) @ b,
            (P("x"), P(None, "x")),
            P(None, "x"),
        ),
        [aval((128, 128), P("x"), BF16), aval((128, 128), P(None, "x"), BF16)],
    ),
}


def matmul_kernel(x, w, out, total):
    @pl.when(pl.program_id(2) == 0)
    def _():
        total[...] = jnp.zeros_like(total)

    total[...] += jnp.dot(x[...], w[...], preferred_element_type=jnp.float32)

    @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
    def _():
        out[...] = jnp.exp(total[...]).astype(out.dtype)


def table_kernel(table, x, out):
    @pl.when(table[pl.program_id(0)] > 0)
    def _():
        out[...] = jnp.sum(x[...], axis=1, keepdims=True) * x[...]


def copy_kernel(lengths, source, out, buffer, semaphore):
    def body(n, _):
        size = jnp.minimum(lengths[n], 16)
        copy = pltpu.make_async_copy(
            source.at[pl.ds(0, size)], buffer.at[pl.ds(0, size)], semaphore
        )
        copy.start()
        copy.wait()

    lax.fori_loop(0, lengths[0], body, None)
    out[...] = buffer[...]


# The kernels, with the function that calls them and its arguments.
KERNELS: dict[str, tuple[Callable, list[jax.ShapeDtypeStruct]]] = {
    "matmul": (
        pl.pallas_call(
            matmul_kernel,
            grid=(4, 2, 8),
            in_specs=[
                pl.BlockSpec((128, 128), lambda i, j, k: (i, k)),
                pl.BlockSpec((128, 256), lambda i, j, k: (k, j)),
            ],
            out_specs=pl.BlockSpec((128, 256), lambda i, j, k: (i, j)),
            out_shape=aval((512, 512), dtype=BF16),
            scratch_shapes=[pltpu.VMEM((128, 256), jnp.float32)],
            name="matmul",
        ),
        [aval((512, 1024), dtype=BF16), aval((1024, 512), dtype=BF16)],
    ),
    "table": (
        pl.pallas_call(
            table_kernel,
            grid_spec=pltpu.PrefetchScalarGridSpec(
                num_scalar_prefetch=1,
                grid=(4,),
                in_specs=[pl.BlockSpec((8, 128), lambda i, table: (table[i], 0))],
                out_specs=pl.BlockSpec((8, 128), lambda i, table: (i, 0)),
            ),
            out_shape=aval((32, 128)),
            name="table",
        ),
        [aval((4,), dtype=I32), aval((32, 128))],
    ),
    "copies": (
        pl.pallas_call(
            copy_kernel,
            in_specs=[
                pl.BlockSpec(memory_space=pltpu.SMEM),
                pl.BlockSpec(memory_space=pl.ANY),
            ],
            out_shape=aval((32, 128)),
            scratch_shapes=[pltpu.VMEM((32, 128), jnp.float32), pltpu.SemaphoreType.DMA],
            name="copies",
        ),
        [aval((8,), dtype=I32), aval((64, 128))],
    ),
}
BODY = re.compile(r"body\\22: \\22([A-Za-z0-9+/=]+)")

SCHEDULED = ["branches", "exchange", "gated", "sort", "update"]


def scheduled(path: pathlib.Path) -> str:
    """The text of --emit schedule, with the number of partitions that its groups are for."""
    command = [BINARY, "compile", "--config", "v5e-4x2", "--emit", "schedule", str(path)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return text.replace(", is_scheduled=true", ", is_scheduled=true, num_partitions=8", 1)


def main() -> None:
    HERE.mkdir(exist_ok=True)
    for name, (function, arguments) in PROGRAMS.items():
        lowered = jax.jit(function).trace(*arguments).lower(lowering_platforms=("tpu",))
        text = METADATA.sub("", lowered.compiler_ir("hlo").as_hlo_text())
        (HERE / f"{name}.hlo").write_text(text.rstrip() + "\n")
    jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")
    for name, (function, arguments) in KERNELS.items():
        lowered = jax.jit(function).trace(*arguments).lower(lowering_platforms=("tpu",))
        found = BODY.search(lowered.as_text())
        assert found is not None, name
        (HERE / f"{name}.mosaic").write_bytes(base64.b64decode(found.group(1)))
    for name in SCHEDULED:
        (HERE / f"{name}_scheduled.hlo").write_text(scheduled(HERE / f"{name}.hlo"))


if __name__ == "__main__":
    main()
