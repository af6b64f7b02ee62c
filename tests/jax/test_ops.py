"""Every family of operations over split dimensions: the right numbers, by the right collectives.

A case is a function, its arguments with their shardings, and the sharding of its results. JAX runs
it unsharded, XLA runs what tpusim made of it, and the module must hold exactly the collectives that
the case names: what could be had from a neighbour must not be gathered.
"""

import dataclasses
import pathlib
import subprocess
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import oracle
import pytest
import tpusim
from jax import lax
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from tpusim import wire

CONFIG = "v5e-4x2"
MESH = {"x": 4, "y": 2}
NONE, REDUCE, GATHER, PERMUTE, EXCHANGE, SCATTER = (
    frozenset(),
    frozenset({"all-reduce"}),
    frozenset({"all-gather"}),
    frozenset({"collective-permute"}),
    frozenset({"all-to-all"}),
    frozenset({"reduce-scatter"}),
)
KINDS = REDUCE | GATHER | PERMUTE | EXCHANGE | SCATTER

f32, bf16, s32, u32 = jnp.float32, jnp.bfloat16, jnp.int32, jnp.uint32


@dataclasses.dataclass(frozen=True)
class Case:
    """One program. `function` takes a function that constrains a value, then the arguments."""

    name: str
    function: Callable[..., Any]
    arguments: list[tuple[Any, ...]]  # shape, type, spec; integers: limits [low, high)
    results: tuple[P, ...]
    collectives: frozenset[str]


CASES: list[Case] = []


def case(name, function, arguments, results, collectives):
    results = results if isinstance(results, tuple) and not isinstance(results, P) else (results,)
    CASES.append(Case(name, function, arguments, results, collectives))


def index(high, *spec, shape=(), low=0):
    return (shape, s32, P(*spec), low, high)


# fmt: off
# ---- elementwise, created, broadcast, reshape, transpose ---------------------------------------
X, XY, Y = P("x"), P("x", "y"), P(None, "y")
case("select", lambda c, p, a, b: jnp.where(p > 0, a, b),
     [((16, 8), f32, XY)] * 3, XY, NONE)
case("map_of_scalars", lambda c, a: jnp.clip(a, -1, 1) * 3, [((16, 8), f32, XY)], XY, NONE)
case("iota_uneven", lambda c, a: a + c(lax.iota(s32, 10) * 3, X).sum(), [((), s32, P())], P(),
     REDUCE)
case("iota_minor", lambda c, a: a + lax.broadcasted_iota(s32, (8, 8), 1), [((8, 8), s32, XY)], XY,
     NONE)
case("constant", lambda c, a: a + jnp.arange(32, dtype=f32).reshape(8, 4) ** 2,
     [((8, 4), f32, XY)], XY, NONE)
case("threefry", lambda c, a: a + c(jax.random.normal(jax.random.key(3), (16, 8)), XY),
     [((16, 8), f32, XY)], XY, NONE)
case("random_bits", lambda c, a: a + c(jax.random.bits(jax.random.key(3, impl="rbg"), (16, 8)), XY),
     [((16, 8), u32, XY)], XY, NONE)
case("bitcast_narrow", lambda c, a: lax.bitcast_convert_type(a, jnp.uint16),
     [((8, 8), u32, XY)], P("x", "y"), NONE)
case("bitcast_wide", lambda c, a: lax.bitcast_convert_type(a, u32),
     [((8, 8, 2), jnp.uint16, XY)], P("x", "y"), NONE)
case("reshape_merge", lambda c, a: a.reshape(128), [((8, 16), f32, X)], X, NONE)
case("reshape_split", lambda c, a: a.reshape(8, 16), [((128,), f32, X)], X, NONE)
case("reshape_uneven", lambda c, a: c(c(a, P("x")).reshape(6, 2, 5), P("x")).sum((1, 2)),
     [((6, 10), s32, P(None, "y"))], P(), GATHER)
case("transpose", lambda c, a: a.transpose(1, 2, 0), [((8, 16, 4), f32, XY)], P("y", None, "x"),
     NONE)
# ---- dot ---------------------------------------------------------------------------------------
case("dot_contracting", lambda c, a, b: a @ b, [((8, 16), f32, P(None, "x")), ((16, 6), f32, X)],
     P(), REDUCE)
case("dot_scattered", lambda c, a, b: a @ b, [((8, 16), f32, P(None, "x")), ((16, 6), f32, X)], X,
     SCATTER)
case("dot_batch", lambda c, a, b: jnp.einsum("bik,bkj->bij", a, b),
     [((8, 6, 4), f32, P("x")), ((8, 4, 10), f32, P("x", None, "y"))], P("x", None, "y"), NONE)
case("dot_two_contracted", lambda c, a, b: jnp.einsum("iab,abj->ij", a, b),
     [((4, 8, 6), f32, P(None, "x", "y")), ((8, 6, 4), f32, XY)], P(), REDUCE)
case("dot_uneven", lambda c, a, b: c(a, P(None, "x")) @ c(b, X),
     [((8, 10), s32, P()), ((10, 6), s32, P())], P(), REDUCE)
# ---- reduce ------------------------------------------------------------------------------------
case("sum", lambda c, a: a.sum(0), [((16, 8), f32, XY)], P("y"), REDUCE)
case("sum_complex", lambda c, a: jnp.abs(lax.complex(a, a * 2).sum(0)), [((16, 8), f32, XY)],
     P("y"), REDUCE)
case("product_complex_uneven", lambda c, a: jnp.real(c(lax.complex(a, a + 1), X).prod(0)),
     [((10, 8), f32, P())], P(), REDUCE)
case("max_uneven", lambda c, a: c(a, X).max(0) - 3, [((10, 8), f32, P())], P(), REDUCE)
case("mean_uneven", lambda c, a: c(a, XY).mean(), [((10, 7), f32, P())], P(), REDUCE)
case("argmax", lambda c, a: jnp.argmax(a, 0), [((16, 8), f32, XY)], P("y"), GATHER)
case("argmin_uneven", lambda c, a: jnp.argmin(c(a, X) * 3, 0), [((13, 8), s32, P())], P(), GATHER)
case("any", lambda c, a: (a > 2).any(1), [((16, 8), f32, XY)], X, REDUCE)
# ---- slice, pad, reverse, concatenate, roll ----------------------------------------------------
case("slice_kept", lambda c, a: a[:, 1:5], [((16, 8), f32, X)], X, NONE)
case("slice_moved", lambda c, a: a[4:28], [((32, 3), f32, X)], X, PERMUTE)
case("slice_shifted", lambda c, a: a[1:] - a[:-1], [((33, 3), f32, P(None))], P(), NONE)
case("slice_uneven", lambda c, a: c(a[1:], X) - c(a[:-1], X), [((32, 3), s32, X)], P(),
     PERMUTE | GATHER)
case("slice_strided", lambda c, a: a[1::2], [((32, 3), f32, X)], X, NONE)
case("slice_strided_3", lambda c, a: a[2:26:3], [((32, 3), f32, X)], X, PERMUTE)
case("slice_halves", lambda c, a: a[:16] + a[16:] * 2, [((32, 3), f32, X)], X, PERMUTE)
case("slice_one", lambda c, a: a[5], [((16, 6), f32, X)], P(), REDUCE)
case("slice_one_bool", lambda c, a: (a > 0)[5], [((16, 6), f32, X)], P(), REDUCE)
case("pad_edges", lambda c, a: lax.pad(a, jnp.float32(2), [(3, 5, 0), (0, 0, 0)]),
     [((16, 8), f32, XY)], XY, PERMUTE)
case("pad_negative", lambda c, a: lax.pad(a, jnp.float32(2), [(-3, 3, 0), (1, -1, 0)]),
     [((16, 8), f32, XY)], XY, PERMUTE)
case("pad_interior", lambda c, a: lax.pad(a, 7, [(1, 0, 1), (0, 0, 0)]), [((16, 8), s32, X)], X,
     NONE)
case("pad_interior_shifted", lambda c, a: lax.pad(a, 7, [(-1, 6, 2), (0, 0, 0)]),
     [((17, 8), s32, P())], P(), NONE)
case("pad_one", lambda c, a: lax.pad(a, 7, [(3, 4, 0), (0, 0, 0)]), [((1, 8), s32, P())], X, NONE)
case("pad_uneven", lambda c, a: c(lax.pad(c(a, X) + 1, 7, [(2, 1, 0)]), X)[:12],
     [((10,), s32, P())], X, PERMUTE)
case("reverse", lambda c, a: a[::-1], [((16, 8), f32, X)], X, PERMUTE)
case("reverse_uneven", lambda c, a: c((c(a, X) + 1)[::-1], X)[:8],
     [((10, 8), s32, P())], X, PERMUTE)
case("reverse_both", lambda c, a: a[::-1, ::-1], [((16, 8), f32, XY)], XY, PERMUTE)
case("concatenate_kept", lambda c, a, b: jnp.concatenate([a, b], 1), [((16, 8), f32, X)] * 2, X,
     NONE)
case("concatenate_long", lambda c, a, b: jnp.concatenate([a, b]),
     [((32, 8), f32, X), ((4, 8), f32, X)], X, PERMUTE)
case("concatenate_halves", lambda c, a, b: jnp.concatenate([a, b]), [((32, 8), f32, XY)] * 2, XY,
     PERMUTE)
case("concatenate_rows", lambda c, a, b: jnp.concatenate([a[:1], b, a[1:2]]),
     [((4, 8), f32, P()), ((30, 8), f32, P())], X, NONE)
case("stack", lambda c, a, b: jnp.stack([a, b]), [((16,), f32, X)] * 2, P(None, "x"), NONE)
case("roll", lambda c, a: jnp.roll(a, 1, 0), [((16, 8), f32, XY)], XY, PERMUTE)
case("roll_back", lambda c, a: jnp.roll(a, -3, 0), [((32, 8), f32, XY)], XY, PERMUTE)
case("roll_far", lambda c, a: jnp.roll(a, 21, 0), [((32, 8), f32, XY)], XY, PERMUTE)
case("roll_both", lambda c, a: jnp.roll(a, (2, 5), (0, 1)), [((16, 8), f32, XY)], XY, PERMUTE)
case("roll_uneven", lambda c, a: jnp.roll(c(a, X) + 1, 2, 0), [((14, 8), s32, P())], P(), GATHER)
case("roll_whole", lambda c, a: jnp.roll(a, 3, 1), [((16, 8), f32, X)], X, NONE)
case("pad_wrapped", lambda c, a: jnp.pad(a, ((2, 2), (0, 0)), mode="wrap"), [((28, 4), s32, X)], X,
     PERMUTE)
case("diff_of_shards", lambda c, a: jnp.pad(c(a[1:] - a[:-1], X), ((1, 0), (0, 0))),
     [((32, 4), f32, X)], X, PERMUTE)
# ---- dynamic slices ----------------------------------------------------------------------------
case("dynamic_slice_kept", lambda c, a, i: lax.dynamic_slice(a, (0, i), (16, 2)),
     [((16, 8), f32, X), index(8)], X, NONE)
case("dynamic_slice_one", lambda c, a, i: lax.dynamic_index_in_dim(a, i, 0, False),
     [((16, 8), f32, XY), index(16)], P("y"), GATHER)
case("dynamic_slice_clamped", lambda c, a, i: lax.dynamic_slice(a, (i, 0), (6, 8)),
     [((16, 8), s32, XY), index(40, low=-20)], P(None, "y"), GATHER)
case("dynamic_slice_two", lambda c, a, i: lax.dynamic_slice(a, (i, i), (3, 1)),
     [((16, 8), s32, XY), index(8)], P(), GATHER)
case("dynamic_slice_uneven", lambda c, a, i: lax.dynamic_slice(c(a, X) + 1, (i, 0), (5, 8)),
     [((14, 8), s32, P()), index(14)], P(), GATHER)
case("cache_one", lambda c, a, u, i: lax.dynamic_update_slice(a, u, (0, i, 0)),
     [((4, 16, 8), f32, P(None, "x", "y")), ((4, 1, 8), f32, P(None, None, "y")), index(16)],
     P(None, "x", "y"), NONE)
case("cache_many", lambda c, a, u, i: lax.dynamic_update_slice(a, u, (0, i, 0)),
     [((4, 16, 8), f32, P(None, "x")), ((4, 6, 8), f32, P()), index(40, low=-20)], P(None, "x"),
     GATHER)
case("cache_uneven", lambda c, a, u, i: lax.dynamic_update_slice(c(a, X), u, (i,)) * 2,
     [((14,), s32, P()), ((9,), s32, P()), index(14)], P(), NONE)
case("update_two", lambda c, a, u, i: lax.dynamic_update_slice(a, u, (i, i)),
     [((16, 8), f32, XY), ((3, 1), f32, P()), index(8)], XY, GATHER)
# ---- gather and scatter ------------------------------------------------------------------------
IDS = ((4, 6), s32, P(), -9, 300)
case("embedding_rows", lambda c, t, i: jnp.take(t, i, 0, mode="clip"),
     [((256, 8), f32, X), IDS], P(), REDUCE)
case("embedding_scattered", lambda c, t, i: jnp.take(t, i, 0, mode="clip"),
     [((256, 8), f32, X), IDS], X, GATHER | SCATTER)
case("embedding_columns", lambda c, t, i: t[i],
     [((32, 8), f32, Y), ((4, 6), s32, X, 0, 32)], P("x", None, "y"), NONE)
case("embedding_both", lambda c, t, i: t[i],
     [((32, 8), f32, P("y")), ((4, 6), s32, X, 0, 32)], X, REDUCE)
case("embedding_uneven", lambda c, t, i: (c(t, X) + 1)[i],
     [((30, 8), s32, P()), ((5,), s32, P(), 0, 30)],
     P(), REDUCE)
case("embedding_filled", lambda c, t, i: jnp.take(t, i, 0, mode="fill", fill_value=9),
     [((256, 8), s32, X), IDS], P(), REDUCE)
case("gather_two", lambda c, t, i, j: t[i, j],
     [((32, 8), f32, XY), ((5,), s32, P(), 0, 32), ((5,), s32, P(), 0, 8)], P(), REDUCE)
case("take_along", lambda c, t, i: jnp.take_along_axis(t, i, 1),
     [((16, 8), f32, X), ((16, 3), s32, X, 0, 8)], X, NONE)
case("cross_entropy_pick", lambda c, t, i: jnp.take_along_axis(t, i, 1),
     [((16, 8), f32, XY), ((16, 1), s32, X, 0, 8)], X, REDUCE)
case("scatter_rows", lambda c, a, i, u: a.at[i].add(u),
     [((32, 8), f32, X), ((6,), s32, P(), -3, 40), ((6, 8), f32, P())], X, NONE)
case("scatter_set", lambda c, a, i, u: a.at[i].set(u, unique_indices=True),
     [((32, 8), s32, XY), ((1,), s32, P(), 0, 32), ((1, 8), s32, Y)], XY, NONE)
case("scatter_updates", lambda c, a, i, u: a.at[i].add(u),
     [((32, 8), s32, P()), ((96,), s32, X, 0, 32), ((96, 8), s32, X)], P(), REDUCE)
case("scatter_updates_max", lambda c, a, i, u: a.at[i].max(u),
     [((32, 8), s32, P()), ((96,), s32, X, 0, 32), ((96, 8), s32, X)], P(), REDUCE)
case("scatter_updates_uneven", lambda c, a, i, u: a.at[c(i, X)].add(c(u * u, X)),
     [((6, 8), s32, P()), ((94,), s32, P(), 0, 6), ((94, 8), s32, P())], P(), REDUCE)
case("scatter_both", lambda c, a, i, u: a.at[i].add(u),
     [((32, 8), s32, X), ((16,), s32, P("y"), 0, 32), ((16, 8), s32, P("y"))], X, REDUCE)
case("embedding_gradient",
     lambda c, t, i, g: jax.vjp(lambda t: jnp.take(t, i, 0, mode="clip"), t)[1](g)[0],
     [((32, 8), f32, X), ((4, 6), s32, P("y"), 0, 32), ((4, 6, 8), f32, P("y"))], X, REDUCE)
case("scatter_batched", lambda c, a, i, u: jax.vmap(lambda a, i, u: a.at[i].add(u))(a, i, u),
     [((8, 6), s32, X), ((8, 3), s32, X, 0, 6), ((8, 3), s32, X)], X, NONE)
case("one_hot_dispatch", lambda c, i: jax.nn.one_hot(i, 8, dtype=s32).cumsum(0),
     [((16,), s32, X, 0, 8)], X, GATHER)


# ---- convolutions and windows ------------------------------------------------------------------
def conv(stride=(1, 1), padding="SAME", groups=1, batch_groups=1, lhs=None, rhs=None):
    return lambda c, a, k: lax.conv_general_dilated(
        a, k, stride, padding, lhs_dilation=lhs, rhs_dilation=rhs,
        dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=groups,
        batch_group_count=batch_groups)  # fmt: skip


IMAGE, KERNEL = (8, 16, 12, 4), (3, 3, 4, 8)
case("conv_batch", conv(), [(IMAGE, f32, X), (KERNEL, f32, P())], X, NONE)
case("conv_features", conv(), [(IMAGE, f32, X), (KERNEL, f32, P(None, None, None, "y"))],
     P("x", None, None, "y"), NONE)
case("conv_input_features", conv(),
     [(IMAGE, f32, P(None, None, None, "x")), ((3, 3, 4, 1), f32, P(None, None, "x"))], P(), REDUCE)
case("conv_rows", conv(), [(IMAGE, f32, P(None, "x")), (KERNEL, f32, P())], P(None, "x"), PERMUTE)
case("conv_rows_columns", conv(), [(IMAGE, f32, P(None, "x", "y")), (KERNEL, f32, P())],
     P(None, "x", "y"), PERMUTE)
case("conv_strided", conv((2, 2)), [(IMAGE, f32, P(None, "x")), (KERNEL, f32, P())],
     P(None, "x"), PERMUTE)
case("conv_patches", conv((2, 2), "VALID"), [(IMAGE, f32, P(None, "x")), ((2, 2, 4, 8), f32, P())],
     P(None, "x"), NONE)
case("conv_valid", conv(padding="VALID"), [((8, 18, 12, 4), s32, P()), (KERNEL, s32, P())],
     P(None, "x"), NONE)
case("conv_dilated", conv(rhs=(2, 2)), [(IMAGE, f32, P(None, "x")), (KERNEL, f32, P())],
     P(None, "x"), PERMUTE)
case("conv_transposed", conv(padding=((1, 2), (1, 2)), lhs=(2, 2)),
     [(IMAGE, f32, P(None, "x")), (KERNEL, f32, P())], P(None, "x"), PERMUTE)
case("conv_uneven", lambda c, a, k: c(conv()(c, c(a, P(None, "x")) + 1, k), P(None, "x"))[:, :12],
     [((2, 14, 6, 4), s32, P()), (KERNEL, s32, P())], P(None, "x"), PERMUTE)
case("conv_grouped", conv(groups=4),
     [((8, 16, 12, 8), f32, P(None, None, None, "x")),
      ((3, 3, 2, 16), f32, P(None, None, None, "x"))],
     P(None, None, None, "x"), NONE)
case("conv_depthwise", conv(groups=8),
     [((8, 16, 12, 8), f32, P(None, "x", None, "y")),
      ((3, 3, 1, 8), f32, P(None, None, None, "y"))],
     P(None, "x", None, "y"), PERMUTE)
case("conv_gradients",
     lambda c, a, k, g: jax.vjp(lambda a, k: conv()(c, a, k), a, k)[1](g),
     [(IMAGE, f32, X), (KERNEL, f32, P()), ((8, 16, 12, 8), f32, X)], (X, P()), REDUCE)
case("conv_gradients_rows",
     lambda c, a, k, g: jax.vjp(lambda a, k: conv()(c, a, k), a, k)[1](g),
     [(IMAGE, f32, P(None, "x")), (KERNEL, f32, P()), ((8, 16, 12, 8), f32, P(None, "x"))],
     (P(None, "x"), P()), REDUCE | PERMUTE)
case("conv_gradients_strided",
     lambda c, a, k, g: jax.vjp(lambda a, k: conv((2, 2))(c, a, k), a, k)[1](g),
     [(IMAGE, f32, X), (KERNEL, f32, P()), ((8, 8, 6, 8), f32, X)], (X, P()), REDUCE)


def pool(window, stride, padding="VALID", function=lax.max, init=-jnp.inf):
    return lambda c, a: lax.reduce_window(
        a, init, function, (1, window, window, 1), (1, stride, stride, 1), padding
    )


case("pool_apart", pool(2, 2), [(IMAGE, f32, P("y", "x"))], P("y", "x"), NONE)
case("pool_overlapping", pool(3, 2, "SAME"), [(IMAGE, f32, P("y", "x"))], P("y", "x"), PERMUTE)
case("pool_average", pool(3, 1, "SAME", lax.add, 0.0), [(IMAGE, f32, P(None, "x", "y"))],
     P(None, "x", "y"), PERMUTE)
case("pool_gradient", lambda c, a, g: jax.vjp(lambda a: pool(2, 2)(c, a), a)[1](g)[0],
     [(IMAGE, f32, P("y", "x")), ((8, 8, 6, 4), f32, P("y", "x"))], P("y", "x"), NONE)
case("pool_gradient_overlapping",
     lambda c, a, g: jax.vjp(lambda a: pool(3, 2, "SAME")(c, a), a)[1](g)[0],
     [(IMAGE, f32, P("y", "x")), ((8, 8, 6, 4), f32, P("y", "x"))], P("y", "x"), PERMUTE)
case("cumsum", lambda c, a: jnp.cumsum(a, 0), [((32, 4), f32, X)], X, GATHER)
case("cumsum_uneven", lambda c, a: c(jnp.cumsum(c(a, X) + 1, 0), X),
     [((30, 4), s32, P())], P(), GATHER)
case("cummax_reverse", lambda c, a: lax.cummax(a, 0, reverse=True), [((32, 4), f32, XY)], XY,
     GATHER)
case("cumsum_other", lambda c, a: jnp.cumsum(a, 1), [((32, 4), f32, X)], X, NONE)
case("associative_scan", lambda c, a: lax.associative_scan(jnp.multiply, a, axis=1),
     [((8, 16), f32, X)], X, NONE)
# ---- sort, top-k, factorisations, fft ----------------------------------------------------------
case("sort_rows", lambda c, a: jnp.sort(a, 1), [((16, 8), f32, X)], X, NONE)
case("sort_pairs", lambda c, a, b: lax.sort((a, b), dimension=1, num_keys=1),
     [((16, 8), f32, X), ((16, 8), s32, X)], (X, X), NONE)
case("argsort", lambda c, a: jnp.argsort(a, 1), [((16, 8), f32, X)], X, NONE)
case("sort_split", lambda c, a: jnp.sort(a, 0), [((16, 8), f32, X)], X, EXCHANGE)
case("top_k_rows", lambda c, a: tuple(lax.top_k(a, 3)), [((16, 8), f32, X)], (X, X), NONE)
case("top_k_split", lambda c, a: tuple(lax.top_k(a, 3)), [((16, 64), f32, P(None, "x"))],
     (P(), P()), GATHER)
case("top_k_uneven", lambda c, a: tuple(lax.top_k(c(a, P(None, "x")) + 1, 3)),
     [((16, 30), s32, P())],
     (P(), P()), GATHER)
case("fft", lambda c, a: jnp.abs(jnp.fft.fft(a)), [((16, 8), f32, X)], X, NONE)
case("rfft", lambda c, a: jnp.abs(jnp.fft.rfft(a)), [((16, 8), f32, X)], X, NONE)
case("cholesky", lambda c, a: lax.linalg.cholesky(jnp.eye(4) * 9 + a @ a.transpose(0, 2, 1)),
     [((8, 4, 4), f32, X)], X, NONE)
case("triangular_solve",
     lambda c, a, b: lax.linalg.triangular_solve(jnp.tril(a) / 9 + jnp.eye(4), b, left_side=True,
                                                 lower=True),
     [((8, 4, 4), f32, X), ((8, 4, 6), f32, P("x", None, "y"))], P("x", None, "y"), NONE)
# ---- ragged dots, placement --------------------------------------------------------------------
SIZES = ((4,), s32, P(), 1, 8)
case("ragged_rows", lambda c, a, b, n: lax.ragged_dot(a, b, n),
     [((32, 8), f32, X), ((4, 8, 6), f32, P()), SIZES], X, NONE)
case("ragged_columns", lambda c, a, b, n: lax.ragged_dot(a, b, n),
     [((32, 8), f32, X), ((4, 8, 6), f32, P(None, None, "y")), SIZES], XY, NONE)
case("ragged_contracting", lambda c, a, b, n: lax.ragged_dot(a, b, n),
     [((32, 8), f32, P("x", "y")), ((4, 8, 6), f32, P(None, "y")), SIZES], X, REDUCE)
case("ragged_groups", lambda c, a, b, n: lax.ragged_dot(a, b, n),
     [((32, 64), f32, P()), ((4, 64, 64), f32, X), SIZES], X, SCATTER)
case("ragged_gradients",
     lambda c, a, b, n, g: jax.vjp(lambda a, b: lax.ragged_dot(a, b, n), a, b)[1](g),
     [((32, 8), f32, X), ((4, 8, 6), f32, P()), SIZES, ((32, 6), f32, X)], (X, P()), REDUCE)
# fmt: on


def build(case: Case, mesh: Mesh | AbstractMesh):
    def constrain(value, spec):
        return lax.with_sharding_constraint(value, NamedSharding(mesh, spec))

    def function(*arguments):
        result = case.function(constrain, *arguments)
        return tuple(result) if isinstance(result, (tuple, list)) else (result,)

    structs = [
        jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, spec))
        for shape, dtype, spec, *_ in case.arguments
    ]
    results = tuple(NamedSharding(mesh, spec) for spec in case.results)
    return jax.jit(function, out_shardings=results), structs


def collectives_of(module: bytes) -> frozenset[str]:
    kinds = set()
    for computation in wire.all_bytes(wire.parse(module), 3):
        for instruction in wire.all_bytes(wire.parse(computation), 2):
            kinds.add(wire.text(wire.parse(instruction), 2))
    return KINDS & kinds


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_operation(case: Case, binary: str, tmp_path: pathlib.Path):
    function, structs = build(
        case, AbstractMesh(tuple(MESH.values()), tuple(MESH), (AxisType.Auto,) * len(MESH))
    )
    source, target = tmp_path / "program.pb", tmp_path / "partitioned.pb"
    tpusim.export(function, *structs, path=source, config=CONFIG)
    done = subprocess.run(
        [binary, "compile", source, "--config", CONFIG, "--emit", "partitioned", "-o", target],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    module = oracle.hlo_module(target.read_bytes())

    random = np.random.default_rng(0)
    arguments = []
    for struct, (shape, dtype, _, *limits) in zip(structs, case.arguments, strict=True):
        arguments.append(
            random.integers(*limits, shape, dtype)
            if limits
            else oracle.random_array(random, struct, is_weight=False)
        )
    whole = jax.jit(lambda *a: case.function(lambda value, spec: value, *a))(*arguments)
    whole = tuple(whole) if isinstance(whole, (tuple, list)) else (whole,)
    mesh = Mesh(np.array(jax.devices()).reshape(tuple(MESH.values())), tuple(MESH))

    def split(value, spec):
        return oracle.shards_of(jax.device_put(value, NamedSharding(mesh, spec)))

    inputs = [split(a, spec) for a, (_, _, spec, *_) in zip(arguments, case.arguments, strict=True)]
    real, real_structs = build(case, mesh)
    kept = sorted(real.lower(*real_structs)._lowering.compile_args["kept_var_idx"])
    expected = [split(np.asarray(v), spec) for v, spec in zip(whole, case.results, strict=True)]
    oracle.check(oracle.run(module, [inputs[k] for k in kept]), expected, {"float32": 1e-4})
    assert collectives_of(module) == case.collectives, done.stderr
