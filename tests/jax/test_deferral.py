"""What a captured script calls before its step: evaluated as shapes, executed if it looks."""

import functools
import pathlib
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tpusim
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from tpusim.capturing import listed_calls
from tpusim.placeholders import Placeholder as Deferred


@jax.jit
def step(p: dict[str, jax.Array], x: jax.Array) -> jax.Array:
    """The function that is captured."""
    return x @ p["w"]


@jax.jit
def double(x: jax.Array) -> jax.Array:
    """A function on the way."""
    return x * 2


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "workload.pb"


@pytest.fixture
def mesh() -> jax.sharding.Mesh:
    return jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)


def test_an_initialisation_of_any_size_costs_nothing(path: pathlib.Path, mesh):
    rows, columns = 1 << 26, 1 << 16

    @jax.jit
    def initialise(scale):
        w = jnp.full((rows, columns), scale)
        return {"w": jax.lax.with_sharding_constraint(w, NamedSharding(mesh, P("data", "model")))}

    with tpusim.capture(path, function="step") as captured:
        # 16 TiB.
        parameters = initialise(1.0)
        assert isinstance(parameters["w"], jax.Array)
        assert parameters["w"].nbytes == rows * columns * 4
        # As XLA lays it out; the step is sharded by it.
        assert parameters["w"].sharding.spec == P("data", "model")
        step(parameters, jnp.ones((8, rows), jnp.bfloat16))
    assert captured.workload.num_partitions == 8
    assert [r.name for r in captured.reached] == ["initialise", "step"]
    assert captured.reached[-1].arguments.startswith(
        f"float32[{rows},{columns}]@P('data', 'model')"
    ), captured.reached


def test_the_module_is_the_one_of_executed_arguments(path: pathlib.Path, mesh):
    def initialise():
        w = jnp.ones((64, 32))
        return {"w": jax.lax.with_sharding_constraint(w, NamedSharding(mesh, P(None, "model")))}

    x = jax.device_put(jnp.ones((8, 64)), NamedSharding(mesh, P("data")))
    expected = tpusim.export(step, jax.jit(initialise)(), x, path=None)
    with tpusim.capture(path, function="step") as captured:
        step(jax.jit(initialise)(), x)
    assert captured.workload.num_partitions == expected.num_partitions == 8
    assert captured.workload.mesh == expected.mesh
    assert len(captured.workload.hlo_module) == len(expected.hlo_module)


def test_arguments_of_one_device_stay_uncommitted(path: pathlib.Path, mesh):
    sharded = jax.device_put(jnp.ones((8, 64)), NamedSharding(mesh, P("data")))
    with tpusim.capture(path, function="step") as captured:
        # An array that is on the first device by default goes where the other is.
        step({"w": double(jnp.ones((64, 32)))}, sharded)
    assert captured.workload.num_partitions == 8


def test_values_are_there_when_looked_at(path: pathlib.Path):
    with tpusim.capture(path, function="step"):
        y = double(double(jnp.arange(4.0)))
        assert isinstance(y, Deferred)
        assert y.tolist() == [0, 4, 8, 12]
        assert str(y) == str(np.asarray(y)) == "[ 0.  4.  8. 12.]"
        assert list(map(float, y)) == [0, 4, 8, 12]
        assert float(y[1]) == 4
        assert (y + 1)[0] == 1
        assert (1 - y).sum() == -20
        assert jnp.concatenate([y, double(y)]).shape == (8,)
        assert int(double(3)) == 6
        assert f"{double(1.5):.1f}" == "3.0"
        assert bool(double(1))
        assert jax.device_put(y, jax.devices()[1]).devices() == {jax.devices()[1]}
        step({"w": jnp.ones((4, 4))}, y[None])


def test_long_chains_are_no_recursion(path: pathlib.Path):
    with tpusim.capture(path, function="step"):
        x = jnp.ones(1)
        for _ in range(3000):
            x = double(x) if isinstance(x, Deferred) and x.size > 1 else step_of_chain(x)
        assert float(x[0]) == 3001
        step({"w": jnp.ones((1, 1))}, x[None])


@jax.jit
def step_of_chain(x: jax.Array) -> jax.Array:
    """One of many."""
    return x + 1


def test_a_buffer_that_is_filled_again(path: pathlib.Path):
    with tpusim.capture(path, function="step"):
        buffer = np.ones(2, np.float32)
        first = double(buffer)
        buffer[:] = 5
        assert first.tolist() == [2, 2]
        step({"w": jnp.ones((2, 2))}, first[None])


def test_a_donated_buffer_is_there_for_calls_that_are_executed_later(path: pathlib.Path):
    @functools.partial(jax.jit, donate_argnums=0)
    def update(x):
        return x + 1

    with tpusim.capture(path, function="step"):
        before = jnp.arange(4.0)
        doubled, after = double(before), update(before)
        assert isinstance(doubled, Deferred)
        assert isinstance(after, Deferred)
        # `update` is executed first, though the script calls it last.
        np.testing.assert_array_equal(np.asarray(after), [1.0, 2.0, 3.0, 4.0])
        np.testing.assert_array_equal(np.asarray(doubled), [0.0, 2.0, 4.0, 6.0])
        step({"w": after.reshape(4, 1)}, jnp.ones((8, 4)))


def test_threads_that_look_at_once(path: pathlib.Path):
    with tpusim.capture(path, function="step"):
        value = double(jnp.ones((256, 256)))
        assert isinstance(value, Deferred)
        execute, runs, sums = value._pending._execute, [], []

        def counting(values):
            runs.append(1)
            time.sleep(0.05)
            return execute(values)

        def look():
            sums.append(float(np.asarray(value).sum()))

        value._pending._execute = counting
        threads = [threading.Thread(target=look) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        step({"w": value}, jnp.ones((8, 256)))
    # 256 * 256 twos.
    assert sums == [131072.0] * 4
    assert len(runs) == 1


def test_effects_happen_when_they_are_called(path: pathlib.Path):
    seen = []

    @jax.jit
    def tells(x):
        jax.debug.callback(lambda v: seen.append(int(v)), x)
        return x

    with tpusim.capture(path, function="step"):
        tells(3)
        jax.effects_barrier()
        assert seen == [3]
        step({"w": jnp.ones((2, 2))}, jnp.ones((2, 2)))


def test_random_keys_and_closures(path: pathlib.Path):
    @jax.jit
    def split(key):
        return jax.random.split(key)

    with tpusim.capture(path, function="step") as captured:
        keys = split(jax.random.key(0))
        table = double(jnp.ones((2, 2)))
        looked_up = jax.jit(lambda i: table[i])(1)
        assert looked_up.tolist() == [2, 2]
        step({"w": table}, jax.random.normal(keys[0], (2, 2)))
    assert captured.workload is not None


def test_values_outlive_the_block(path: pathlib.Path):
    with tpusim.capture(path, function="step"):
        y = double(jnp.ones(2))
        step({"w": jnp.ones((2, 2))}, jnp.ones((2, 2)))
    assert double(y).tolist() == [4, 4]


def test_functions_can_be_chosen_by_place(path: pathlib.Path):
    with tpusim.capture(path) as first:
        double(1.0)
    with tpusim.capture(path, function=first.reached[0].place) as captured:
        step_of_chain(jnp.ones(1))
        double(1.0)
    assert captured.workload.name == "double"
    assert first.reached[0].place.startswith("tests/jax/test_deferral.py:")


def test_an_error_names_what_was_called(path: pathlib.Path):
    with (
        pytest.raises(tpusim.CaptureError, match=r"of 'other', but of double \(tests/jax/"),
        tpusim.capture(path, function="other"),
    ):
        double(1.0)


def test_listing_goes_on_to_the_end():
    with listed_calls() as calls:
        for size in (2, 2, 3):
            double(jnp.ones(size))
        step({"w": jnp.ones((2, 2))}, jnp.ones((1, 2)))
    assert [(c.name, c.arguments, c.calls) for c in calls] == [
        ("double", "float32[2]", 2),
        ("double", "float32[3]", 1),
        ("step", "float32[2,2], float32[1,2]", 1),
    ]
