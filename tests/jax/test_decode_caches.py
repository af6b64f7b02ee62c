"""Traffic of the caches of a decoding step, in the forms that programs write them in.

Caches are larger than VMEM and all else is small, so that HBM bytes count how often a cache is read
or written. The TPU compiler's own program of the same forms is `decode_*` in `validation/compiler`:
it cuts a layer's cache out of the stack, updates a row there and puts all of it back.
"""

import functools
import json
import pathlib
import subprocess
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec
from tpusim import export

LAYERS, BATCH, HEADS, GROUP, SEQUENCE, HEAD = 2, 64, 8, 4, 2048, 128
WIDTH = HEADS * GROUP * HEAD
CACHE = BATCH * HEADS * SEQUENCE * HEAD * 2  # 268 MB in bfloat16, VMEM has 134.

Array = jax.Array


def layer(x: Array, w: Array, keys: Array, values: Array, at: Array) -> tuple[Array, ...]:
    """One token: a row of both caches is written, all of them is read."""
    heads = (x @ w).reshape(BATCH, HEADS, GROUP, HEAD)
    keys = jax.lax.dynamic_update_slice_in_dim(keys, heads[:, :, :1], at, axis=2)
    values = jax.lax.dynamic_update_slice_in_dim(values, heads[:, :, 1:2], at, axis=2)
    return attend(heads, keys, values, at), keys, values


def attend(heads: Array, keys: Array, values: Array, at: Array) -> Array:
    """Four queries per key."""
    scores = jnp.einsum("bhgd,bhsd->bhgs", heads, keys, preferred_element_type=jnp.float32)
    scores = jnp.where(jnp.arange(SEQUENCE) <= at, scores, -1e30)
    shares = jax.nn.softmax(scores).astype(values.dtype)
    return jnp.einsum("bhgs,bhsd->bhgd", shares, values).reshape(BATCH, WIDTH)


def scanned(w: Array, keys: Array, values: Array, x: Array, at: Array) -> tuple[Array, ...]:
    """Read and stacked by a scan."""

    def body(x: Array, of: tuple) -> tuple[Array, tuple]:
        x, keys, values = layer(x, *of, at)
        return x, (keys, values)

    x, (keys, values) = jax.lax.scan(body, x, (w, keys, values))
    return x, keys, values


def carried(w: Array, keys: Array, values: Array, x: Array, at: Array) -> tuple[Array, ...]:
    """Carried; a layer takes its caches out and puts them back."""

    def body(n: Array, carry: tuple) -> tuple:
        x, keys, values = carry
        take = functools.partial(jax.lax.dynamic_index_in_dim, index=n, keepdims=False)
        x, k, v = layer(x, take(w), take(keys), take(values), at)
        put = functools.partial(jax.lax.dynamic_update_index_in_dim, index=n, axis=0)
        return x, put(keys, k), put(values, v)

    return jax.lax.fori_loop(0, LAYERS, body, (x, keys, values))


def rows(w: Array, keys: Array, values: Array, x: Array, at: Array) -> tuple[Array, ...]:
    """Carried; a layer writes its row into the stack itself, and reads its part of it."""

    def body(n: Array, carry: tuple) -> tuple:
        x, keys, values = carry
        heads = (x @ jax.lax.dynamic_index_in_dim(w, n, keepdims=False)).reshape(
            BATCH, HEADS, GROUP, HEAD
        )
        keys = jax.lax.dynamic_update_slice(keys, heads[None, :, :, :1], (n, 0, 0, at, 0))
        values = jax.lax.dynamic_update_slice(values, heads[None, :, :, 1:2], (n, 0, 0, at, 0))
        k = jax.lax.dynamic_index_in_dim(keys, n, keepdims=False)
        v = jax.lax.dynamic_index_in_dim(values, n, keepdims=False)
        return attend(heads, k, v, at), keys, values

    return jax.lax.fori_loop(0, LAYERS, body, (x, keys, values))


def unrolled(w: Array, keys: Any, values: Any, x: Array, at: Array) -> tuple:
    """An array per layer."""
    keys, values = list(keys), list(values)
    for n in range(LAYERS):
        x, keys[n], values[n] = layer(x, w[n], keys[n], values[n], at)
    return x, keys, values


# Caches read and written per layer and cache. The attention reads it once, in all forms.
# A slice of a stack is read and written, and so is the layer that goes back: 1 + 2 + 2. What the
# caller keeps is copied before it is overwritten, 2; the stack that a scan makes needs no copy if
# it may stay, and one into the place of a donated one. In `rows`, attention reads the stack.
FORMS: list[tuple[Callable, bool, int]] = [
    (scanned, False, 5),
    (scanned, True, 7),
    (carried, False, 7),
    (carried, True, 5),
    (rows, False, 3),
    (rows, True, 1),
    (unrolled, False, 3),
    (unrolled, True, 1),
]


@pytest.mark.parametrize(("form", "donated", "passes"), FORMS)
def test_how_often_a_cache_moves(
    form: Callable, donated: bool, passes: int, binary: str, tmp_path: pathlib.Path
):
    mesh = AbstractMesh((1,), ("x",), (AxisType.Auto,))

    def array(*shape: int, dtype: Any = jnp.bfloat16) -> jax.ShapeDtypeStruct:
        sharding = NamedSharding(mesh, PartitionSpec())
        return jax.ShapeDtypeStruct(shape, dtype, sharding=sharding)

    one = (BATCH, HEADS, SEQUENCE, HEAD)
    caches: Any = [array(*one)] * LAYERS if form is unrolled else array(LAYERS, *one)
    arguments = (
        array(LAYERS, WIDTH, WIDTH),
        caches,
        caches,
        array(BATCH, WIDTH),
        array(dtype=jnp.int32),
    )
    step = jax.jit(form, donate_argnums=(1, 2) if donated else ())
    path = tmp_path / "step.pb"
    export(step, *arguments, path=path, config="v5e-1x1")
    command = [binary, "run", str(path), "--quiet", "--report", str(tmp_path / "report.json")]
    subprocess.run(command, check=True)
    report = json.loads((tmp_path / "report.json").read_text())
    moved = sum(op["hbm_bytes"] for op in report["ops"])
    # Weights, scores and rows are 1 % of a cache.
    assert moved / (2 * LAYERS * CACHE) == pytest.approx(passes, abs=0.15)
