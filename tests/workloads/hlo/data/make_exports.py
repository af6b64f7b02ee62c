"""Writes the HLO modules beside this file: one small program per family of ops.

Run from the root of the repository with jax 0.10.2:
    python tests/workloads/hlo/data/make_exports.py
`NAME.pb` is what JAX lowers for TPU, `NAME_compiled.pb` what XLA's CPU compiler
makes of it (fusions, schedules, known trip counts).
"""

import os
import pathlib
import re

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

# Source lines relative to the root of the repository.
jax.config.update("jax_hlo_source_file_canonicalization_regex", re.escape(os.getcwd() + "/"))

MESH = jax.make_mesh((4, 2), ("x", "y"))
HERE = pathlib.Path(__file__).parent


def aval(shape, dtype=jnp.float32, spec=None):
    sharding = None if spec is None else NamedSharding(MESH, spec)
    return jax.ShapeDtypeStruct(shape, dtype, sharding=sharding)


def convolution(a, b):
    return lax.conv_general_dilated(
        a, b, (2, 1), "SAME", rhs_dilation=(1, 2), feature_group_count=2
    )


def max_pool(a):
    return lax.reduce_window(a, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID").sum()


def branches(a, i):
    picked = lax.switch(i, [lambda x: x, lambda x: -x, lambda x: x + 1], a)
    return lax.cond(i > 0, jnp.sin, lambda x: x * 2, a) + picked


def embedding(table, ids):
    return (table[ids] ** 2).sum()


def remat(w, x):
    return jnp.sum(jax.checkpoint(lambda h: jnp.tanh(jnp.tanh(h @ w) @ w))(x))


def nested_loops(a):
    def inner(b):
        return lax.fori_loop(0, 7, lambda j, c: c * 2 + j, b)

    return lax.fori_loop(3, 8, lambda i, b: inner(b) + i, a)


def data_loop(a):
    return lax.while_loop(lambda c: jnp.sum(c) < 100, lambda c: c * 2, a)


def scan_gradient(w, x):
    return lax.scan(lambda h, layer: (jnp.tanh(h @ layer), None), x, w)[0].sum()


def collectives(a):
    return (
        lax.psum(a, "x"),
        lax.all_gather(a, "y"),
        lax.psum_scatter(a, ("x", "y"), tiled=True),
        lax.all_to_all(a, "x", 0, 1, tiled=True),
        lax.ppermute(a, "x", [(0, 1), (1, 2)]),
        lax.pmean(a.astype(jnp.int32), "y"),
    )


MAPPED = jax.shard_map(
    collectives, mesh=MESH, in_specs=P("x", "y"), out_specs=(P(),) * 6, check_vma=False
)

# name: (function, arguments, compile too)
PROGRAMS = {
    "convolution": (convolution, [aval((8, 16, 32, 32)), aval((32, 8, 3, 3))], False),
    "max_pool_gradient": (jax.grad(max_pool), [aval((8, 32, 32, 4))], False),
    "branches": (branches, [aval((8, 8)), aval((), jnp.int32)], False),
    "embedding_gradient": (
        jax.grad(embedding),
        [aval((1000, 64)), aval((8, 16), jnp.int32)],
        False,
    ),
    "sort_topk": (
        lambda a: (jnp.argsort(a, axis=1), lax.top_k(a, 8), jnp.cumsum(a, 1)),
        [aval((64, 128))],
        False,
    ),
    "random": (lambda k: jax.random.normal(k, (64, 64)), [aval((2,), jnp.uint32)], False),
    "fft": (lambda a: jnp.abs(jnp.fft.fft2(a)), [aval((8, 16, 32))], False),
    "remat": (jax.grad(remat), [aval((64, 64)), aval((8, 64))], False),
    "nested_loops": (nested_loops, [aval((16,))], False),
    "data_loop": (data_loop, [aval((8, 8))], False),
    "scan_gradient": (jax.grad(scan_gradient), [aval((8, 16, 16)), aval((4, 16))], True),
    "ragged_dot": (
        lax.ragged_dot,
        [aval((128, 64), jnp.bfloat16), aval((4, 64, 32), jnp.bfloat16), aval((4,), jnp.int32)],
        False,
    ),
    "int4_matmul": (
        lambda a, b: a.astype(jnp.bfloat16) @ b,
        [aval((64, 64), jnp.int4), aval((64, 64), jnp.bfloat16)],
        True,
    ),
    "collectives": (MAPPED, [aval((64, 64), spec=P("x", "y"))], True),
}


def main():
    for name, (function, arguments, compile_too) in PROGRAMS.items():
        jitted = jax.jit(function)
        lowered = jitted.trace(*arguments).lower(lowering_platforms=("tpu",))
        module = lowered.compiler_ir("hlo").as_serialized_hlo_module_proto()
        (HERE / f"{name}.pb").write_bytes(module)
        if compile_too:
            compiled = jitted.lower(*arguments).compile()
            module = compiled.runtime_executable().hlo_modules()[0]
            (HERE / f"{name}_compiled.pb").write_bytes(module.as_serialized_hlo_module_proto())


if __name__ == "__main__":
    main()
