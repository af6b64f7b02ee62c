"""Branches of Pallas kernels on data: of opposite conditions one is counted."""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from tests.jax.kernel_bodies import Body, exported

BLOCK = 8 * 128
GRID = 4


def price(body: Callable, *, scalars: int = 4, grid: int = GRID) -> Body:
    """Prices a kernel with scalars that are data, a block of x, and a block of the result.

    The body gets the scalars, a function that makes a branch with so many exponentials of a block,
    and two scalars of scratch memory.
    """

    def kernel_body(n, x, out, scratch):
        body(n, lambda count: functools.partial(exponentials, x, out, count), scratch)

    def call(numbers, x):
        return pl.pallas_call(
            kernel_body,
            grid=(grid,),
            in_specs=[
                pl.BlockSpec(memory_space=pltpu.SMEM),
                pl.BlockSpec((8, 128), lambda i: (i, 0)),
            ],
            out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
            out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
            scratch_shapes=[pltpu.SMEM((2,), jnp.int32)],
        )(numbers, x)

    numbers = jax.ShapeDtypeStruct((scalars,), jnp.int32)
    x = jax.ShapeDtypeStruct((8 * grid, 128), jnp.float32)
    (kernel,) = exported(call, numbers, x)
    assert kernel.unpriced == ""
    return kernel


def exponentials(x, out, count: int) -> None:
    """So many of a block."""
    total = x[...]
    for _ in range(count):
        total = jnp.exp(total)
    out[...] = total


def two_branches(first: Callable, second: Callable) -> int:
    """Exponentials per point of one branch with 2 and one with 3, on conditions of the scalars."""

    def body(n, run, _):
        pl.when(first(n))(run(2))
        pl.when(second(n))(run(3))

    transcendentals = price(body).transcendentals
    assert transcendentals % (GRID * BLOCK) == 0
    return transcendentals // (GRID * BLOCK)


@jax.jit
def is_short(n):
    return n < 5


EXCLUSIVE = {
    "logical_not": (lambda n: n[0] > 3, lambda n: jnp.logical_not(n[0] > 3)),
    "invert": (lambda n: n[pl.program_id(0)] != 1, lambda n: ~(n[pl.program_id(0)] != 1)),
    "eq and ne": (lambda n: n[0] == 0, lambda n: n[0] != 0),
    "lt and ge": (lambda n: n[0] < n[1], lambda n: n[0] >= n[1]),
    "turned round": (lambda n: n[0] < n[1], lambda n: n[1] <= n[0]),
    "computed twice": (lambda n: n[0] * 2 + 1 < n[1], lambda n: 1 + 2 * n[0] >= n[1]),
    "with a constant moved": (lambda n: n[0] + 1 == n[1], lambda n: n[0] != n[1] - 1),
    "through jit": (lambda n: is_short(n[0]), lambda n: ~is_short(n[0])),
    "through jit or not": (lambda n: is_short(n[0]), lambda n: n[0] >= 5),
    "of integers": (lambda n: n[0], lambda n: n[0] == 0),
    "of several": (
        lambda n: (n[0] > 0) & (n[1] > 0),
        lambda n: jnp.logical_not((n[0] > 0) & (n[1] > 0)),
    ),
}
INDEPENDENT = {
    "two scalars": (lambda n: n[0] > 3, lambda n: n[1] <= 3),
    "overlap": (lambda n: n[0] > 3, lambda n: n[0] > 4),
    "other place": (lambda n: n[pl.program_id(0)] == 1, lambda n: n[0] != 1),
    "or": (lambda n: (n[0] > 0) | (n[1] > 0), lambda n: (n[0] > 0) | (n[1] <= 0)),
    # Neither equal nor opposite, so they are taken to be independent.
    "two values": (lambda n: n[0] == 1, lambda n: n[0] == 2),
    "and": (lambda n: (n[0] > 0) & (n[1] > 0), lambda n: (n[0] > 0) & (n[1] <= 0)),
}


@pytest.mark.parametrize("name", EXCLUSIVE)
def test_branches_that_exclude_each_other_count_once(name):
    # The dearer one: 3 exponentials per element.
    assert two_branches(*EXCLUSIVE[name]) == 3


@pytest.mark.parametrize("name", INDEPENDENT)
def test_branches_that_can_run_together_add_up(name):
    assert two_branches(*INDEPENDENT[name]) == 2 + 3


def test_both_branches_of_a_conditional_and_one_more():
    def body(n, run, _):
        few, many = run(1), run(6)
        lax.cond(n[0] > 0, few, many)
        # Runs with the cheap branch: 1 + 4 is less than 6.
        pl.when(n[0] > 0)(run(4))
        lax.switch(n[1], [few, many, few])

    assert price(body).transcendentals == GRID * (6 + 6) * BLOCK


def test_nested_branches():
    def body(n, run, _):
        @pl.when(n[0] > 0)
        def _():
            pl.when(n[1] == 0)(run(1))

            @pl.when(n[1] != 0)
            def _():
                run(2)()
                # Never: it is inside of the opposite.
                pl.when(n[0] <= 0)(run(100))

        @pl.when(n[0] <= 0)
        def _():
            pl.when(n[1] == 0)(run(5))
            pl.when(n[2] == 0)(run(1))

    # max(1, 2) or 5 + 1
    assert price(body).transcendentals == GRID * 6 * BLOCK


def test_the_grid_decides_at_each_point():
    def body(n, run, _):
        # The first point has its own branch; at the others the data choose.
        @pl.when(n[0] > 0)
        def _():
            pl.when(pl.program_id(0) == 0)(run(7))
            pl.when(pl.program_id(0) != 0)(run(1))

        pl.when(n[0] <= 0)(run(2))

    # max(7, 2) at one point, max(1, 2) at three
    assert price(body).transcendentals == (7 + 3 * 2) * BLOCK


def test_a_conjunction_with_the_grid_is_impossible_at_some_points():
    def body(n, run, _):
        pl.when((pl.program_id(0) == 0) & (n[0] > 0))(run(7))

    assert price(body).transcendentals == 7 * BLOCK


def test_known_and_unknown_branches_meet():
    def body(n, run, _):
        @pl.when(pl.program_id(0) < 2)
        def _():
            pl.when(n[0] > 0)(run(3))

        pl.when(n[0] <= 0)(run(2))

    # max(3, 2) at two points, 2 at the other two
    assert price(body).transcendentals == (2 * 3 + 2 * 2) * BLOCK


def test_what_is_written_in_between_is_another_value():
    def body(n, run, scratch):
        scratch[0] = n[0]
        pl.when(scratch[0] > 0)(run(2))
        scratch[0] = n[1]
        pl.when(scratch[0] <= 0)(run(3))
        # Nothing is written between these two.
        pl.when(scratch[0] > 0)(run(1))

    assert price(body).transcendentals == GRID * (2 + 3) * BLOCK


def test_loops():
    def body(n, run, _):
        def turn(i, _):
            # The same in all passes, and with what follows the loop.
            pl.when(n[0] > 0)(run(1))
            # Another in each pass: of these two one counts each time.
            pl.when(n[i] == 0)(run(2))
            pl.when(n[i] != 0)(run(3))

        lax.fori_loop(0, 4, turn, None)
        pl.when(n[0] <= 0)(run(5))

    # 4 * 3 for the pairs; 4 * 1 or 5
    assert price(body).transcendentals == GRID * (4 * 3 + 5) * BLOCK


def test_passes_of_a_loop_are_told_apart():
    def body(n, run, _):
        def turn(i, _):
            pl.when(i == 0)(run(1))
            pl.when(i < pl.program_id(0))(run(2))
            pl.when((i == 4) & (n[0] > 0))(run(3))

        lax.fori_loop(0, 5, turn, None)

    # At each of the 4 points the first pass and the last one; 0 + 1 + 2 + 3 passes below the
    # number of the point.
    assert price(body).transcendentals == (4 * 1 + 4 * 3 + 6 * 2) * BLOCK


def test_loops_on_data():
    def body(n, run, _):
        @pl.loop(0, n[0])
        def _(i):
            del i
            pl.when(n[1] > 0)(run(2))
            pl.when(n[1] <= 0)(run(3))

        # Exponentials elsewhere are compared with those of one pass.
        pl.when(n[1] <= 0)(run(1))

    kernel = price(body, grid=1)
    (loop,) = kernel.loops
    assert loop.once.transcendentals == 3 * BLOCK
    assert kernel.transcendentals == BLOCK


def test_the_dearest_branch_is_that_which_takes_longest():
    def body(n, x, y, out, semaphore):
        @pl.when(n[0] > 0)
        def _():  # 8 MiB of HBM at 819 GB/s take 10 us.
            pltpu.make_async_copy(x, x, semaphore).start()

        @pl.when(n[0] <= 0)
        def _():  # 1024 exponentials take nanoseconds.
            out[...] = jnp.exp(y[...])

    def call(n, x, y):
        return pl.pallas_call(
            body,
            in_specs=[
                pl.BlockSpec(memory_space=pltpu.SMEM),
                pl.BlockSpec(memory_space=pl.ANY),
                pl.BlockSpec((8, 128), lambda: (0, 0)),
            ],
            out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
            scratch_shapes=[pltpu.SemaphoreType.DMA],
        )(n, x, y)

    arguments = (
        jax.ShapeDtypeStruct((1,), jnp.int32),
        jax.ShapeDtypeStruct((1024, 1024), jnp.float32),
        jax.ShapeDtypeStruct((8, 128), jnp.float32),
    )
    (kernel,) = exported(call, *arguments)
    assert kernel.transcendentals == 0
    # There and back; the block in and the block out, and the scalar.
    assert kernel.bytes_accessed == 2 * 4 * 1024 * 1024 + 2 * 4 * BLOCK + 4


def test_many_conditions_that_hang_together():
    def body(n, run, _):
        for k in range(30):  # A chain: each excludes the one before.

            @pl.when(n[k] > 0)
            def _(k=k):
                pl.when(n[k + 1] <= 0)(run(1))

    # 15 of 30 at most. That many ways are not compared one by one: it may be more, never less.
    total = price(body, scalars=31, grid=1).transcendentals // BLOCK
    assert 15 <= total <= 30
