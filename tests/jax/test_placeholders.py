"""Calls of a captured script before its step: nothing is executed, and everything continues."""

import contextlib
import functools
import pathlib
import warnings
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tpusim
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from tpusim.assumptions import ExportWarning
from tpusim.capturing import listed_calls
from tpusim.placeholders import Placeholder

EXECUTED: list[str] = []


def executed(name: str) -> None:
    """Called by functions that should not be."""
    EXECUTED.append(name)


@jax.jit
def step(p: dict[str, jax.Array], x: jax.Array) -> jax.Array:
    """The function that is captured."""
    return x @ p["w"]


@jax.jit
def double(x: jax.Array) -> jax.Array:
    """A function on the way, which tells when it is executed."""
    jax.debug.callback(executed, "double")
    return x * 2


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "workload.pb"


@pytest.fixture
def mesh() -> jax.sharding.Mesh:
    return jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)


@pytest.fixture(autouse=True)
def nothing_is_executed() -> Iterator[None]:
    EXECUTED.clear()
    yield
    jax.effects_barrier()
    assert EXECUTED == []


@contextlib.contextmanager
def captured(path: pathlib.Path) -> Iterator[tpusim.capturing.Captured]:
    """A block that ends with a call of `step`, without a word of decisions."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExportWarning)
        with tpusim.capture(path, function="step") as found:
            yield found
            step({"w": jnp.ones((2, 2))}, jnp.ones((2, 2)))


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


def test_eager_initialisation_costs_nothing(path: pathlib.Path, mesh):
    rows, columns = 1 << 20, 1 << 16  # 256 GiB each.
    sharding = NamedSharding(mesh, P("data", "model"))
    with tpusim.capture(path, function="step") as captured:
        normal = jax.random.normal(jax.random.key(0), (rows, columns)) * 0.02
        w = jax.device_put(normal, sharding)
        moments = jax.tree.map(jnp.zeros_like, {"m": w, "v": w})
        assert moments["m"].sharding == sharding
        ones = jnp.ones((rows, columns), jnp.bfloat16)
        assert (ones.dtype, ones.sharding.num_devices) == (jnp.bfloat16, 1)
        assert w.addressable_shards[3].data.shape == (rows // 4, columns // 2)
        step({"w": w + moments["m"].T.T}, jnp.ones((8, rows), jnp.bfloat16))
    assert captured.workload.num_partitions == 8


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


@pytest.mark.parametrize("kind", ["matmul", "grad", "scan", "explicit", "stated", "one device"])
def test_shardings_are_those_of_the_compiler(kind: str, path: pathlib.Path, mesh):
    w = np.ones((64, 32), np.float32)
    x = np.ones((8, 64), np.float32)
    if kind == "explicit":
        mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Explicit,) * 2)
    if kind != "one device":
        w = jax.device_put(w, NamedSharding(mesh, P(None, "model")))
        x = jax.device_put(x, NamedSharding(mesh, P("data")))

    def of(w, x):
        if kind == "grad":
            return jax.grad(lambda w: ((x @ w) ** 2).mean())(w), x.sum()
        if kind == "scan":
            return jax.lax.scan(lambda c, _: (c * 2, c.sum(0)), x @ w, None, length=3)
        return x @ w, jnp.ones((16, 16)), x.T

    out = NamedSharding(mesh, P()) if kind == "stated" else None
    jitted = jax.jit(of, out_shardings=out)
    compiled = [leaf.sharding for leaf in jax.tree.leaves(jitted(w, x))]
    with captured(path):
        leaves = jax.tree.leaves(jitted(w, x))
        assert all(isinstance(leaf, Placeholder) for leaf in leaves)
        for leaf, sharding in zip(leaves, compiled, strict=True):
            assert leaf.sharding.is_equivalent_to(sharding, leaf.ndim), (leaf.sharding, sharding)


def test_arguments_of_one_device_stay_uncommitted(path: pathlib.Path, mesh):
    sharded = jax.device_put(jnp.ones((8, 64)), NamedSharding(mesh, P("data")))
    with tpusim.capture(path, function="step") as captured:
        # An array that is on the first device by default goes where the other is.
        step({"w": double(jnp.ones((64, 32)))}, sharded)
    assert captured.workload.num_partitions == 8


def test_zeros_to_whoever_looks(path: pathlib.Path):
    with captured(path):
        y = double(jnp.arange(4.0))
        assert isinstance(y, Placeholder)
        assert y.tolist() == [0, 0, 0, 0]
        assert (str(y), repr(y)) == ("[0. 0. 0. 0.]", "Array([0., 0., 0., 0.], dtype=float32)")
        assert list(map(float, y)) == [0, 0, 0, 0]
        assert len(y) == 4
        assert f"{double(1.5):.1f}" == "0.0"
        assert (int(double(3)), double(3).item(), bool(double(1))) == (0, 0, False)
        assert range(3)[double(3)] == 0
        assert np.asarray(y).dtype == np.float32
        assert not np.asarray(y).flags.writeable
        assert np.array(y).flags.writeable
        assert jax.device_get({"y": y})["y"].tolist() == [0, 0, 0, 0]
        assert jax.block_until_ready([y, y])[0] is y
        assert np.mean(y) == 0
        assert jax.device_put(y, jax.devices()[1]).devices() == {jax.devices()[1]}
        with pytest.raises(TypeError, match="Only scalar arrays"):
            float(y)
        with pytest.raises(TypeError, match="iteration over a 0-d array"):
            list(double(1.0))


def test_what_follows_from_zeros(path: pathlib.Path):
    """Operations outside of any jit give placeholders, and their values are what follows."""
    with captured(path):
        loss = double(jnp.float32(3))
        assert isinstance(loss + 1, Placeholder)
        assert (float(loss + 1), float(jnp.exp(loss)), float(3 - loss)) == (1, 1, 3)
        assert loss < 0.1
        assert not loss > 0.1
        assert jnp.isfinite(loss)
        y = double(jnp.arange(4.0))
        assert jnp.concatenate([y, y + 2]).tolist() == [0, 0, 0, 0, 2, 2, 2, 2]
        assert (y[1:3].shape, y[None].shape, y[0].shape, y.at[0].set(7)[0].item()) == (
            (2,),
            (1, 4),
            (),
            7,
        )
        assert jnp.argmax(y.at[2].set(7)).item() == 2
        first, *_ = y
        assert first.shape == ()
        total, squares = jax.lax.scan(lambda c, v: (c + v + 1, v * v), loss, y)
        assert (float(total), squares.tolist()) == (4, [0, 0, 0, 0])
        gradient = jax.grad(lambda v: (v**3 + 2 * v).sum())(y)
        assert gradient.tolist() == [2, 2, 2, 2]
        assert jax.vmap(lambda v: v + 1)(y).tolist() == [1, 1, 1, 1]
        assert jax.lax.cond(loss > 1, lambda: 1, lambda: 2) == 2
        assert jax.nn.relu(y).shape == (4,)
        assert jax.tree.map(jnp.shape, {"a": y, "b": [loss]}) == {"a": (4,), "b": [()]}


def test_what_is_known_is_computed(path: pathlib.Path):
    """Arrays that a script makes without a jitted function, of whatever size."""
    with captured(path):
        table = jnp.arange(1 << 20)  # 4 MiB, a placeholder.
        assert isinstance(table, Placeholder)
        assert int(table[-1]) == (1 << 20) - 1
        assert not isinstance(jnp.arange(4), Placeholder)


def test_a_table_that_the_function_closes_over(path: pathlib.Path):
    """A table is in the module, as it would be; elements that are not known are not zero there."""
    # 2^19 numbers. Those below 128 take a byte in the module, others two: 128 of 1000, and 127 of
    # the 251 that stand for what is not known.
    for of, size in ((lambda t: t, 981_466), (double, 783_000)):
        told = pytest.warns(ExportWarning, match=r"closes over .* \(int32\[524288\]\); it is not")
        told = told if of is double else contextlib.nullcontext()
        with told, tpusim.capture(path, function="looked_up") as found:
            table = of(jnp.arange(1 << 19) % 1000)

            @jax.jit
            def looked_up(i, table=table):
                return table[i]

            looked_up(1)
        assert size < len(found.workload.hlo_module) < size + 5_000

    def captured_with(size):
        with tpusim.capture(path, function="<lambda>"):
            huge = jnp.zeros(size)
            jax.jit(lambda i: huge[i])(1)

    with pytest.raises(tpusim.CaptureError, match=r"closes over an array of 4294967296 bytes"):
        captured_with(1 << 30)


def test_chains_of_any_length(path: pathlib.Path):
    with captured(path):
        x = jnp.ones(1)
        for _ in range(3000):
            x = double(x)
        assert float(x[0]) == 0
        assert x.sharding.num_devices == 1
        # No call holds what it came from.
        assert x.origin.arguments == []


def test_a_buffer_that_is_filled_again(path: pathlib.Path):
    with captured(path):
        buffer = np.ones(1 << 20, np.float32)
        first = jax.device_put(buffer)
        assert isinstance(first, Placeholder)
        buffer[:] = 5
        assert float(first[0]) == 1


def test_donated_buffers_are_still_there(path: pathlib.Path):
    @functools.partial(jax.jit, donate_argnums=0)
    def update(x):
        return x + 1

    with captured(path):
        before = jnp.arange(4.0)
        after = update(update(before))
        assert not before.is_deleted()
        assert before.tolist() == [0, 1, 2, 3]
        assert after.shape == (4,)


def test_prints_of_the_script_and_prints_of_functions(path: pathlib.Path, capsys):
    with captured(path):
        y = double(jnp.ones(2))
        jax.debug.print("eager {}", y + 1)
        jax.effects_barrier()
    assert capsys.readouterr().out == "eager [1. 1.]\n"


def test_questions_for_the_sharding(path: pathlib.Path, mesh, capsys):
    place = NamedSharding(mesh, P("data", "model"))
    initialise = jax.jit(lambda: jnp.zeros((1024, 512)), out_shardings=place)
    shown = []
    with captured(path):
        weights = initialise()
        jax.debug.inspect_array_sharding(weights, callback=shown.append)
        jax.debug.visualize_array_sharding(weights)
        assert place.is_equivalent_to(weights.sharding, 2)
        parts = [shard.data for shard in weights.addressable_shards]
        again = jax.make_array_from_single_device_arrays(weights.shape, place, parts)
        assert isinstance(again, Placeholder)
        assert again.sharding == place
    assert shown == [place]
    assert "CPU 7" in capsys.readouterr().out


def test_a_traced_program_is_called(path: pathlib.Path):
    with captured(path) as found:
        w = jax.jit(lambda: jnp.zeros((1024, 1024)))()
        assert isinstance(double.trace(w)(w), Placeholder)
        assert [call.name for call in found.reached][-1] == "double"


def test_random_keys(path: pathlib.Path):
    @jax.jit
    def split(key):
        return jax.random.split(key)

    with captured(path):
        keys = split(jax.random.key(0))
        assert jnp.issubdtype(keys.dtype, jax.dtypes.prng_key)
        assert (keys.shape, keys[0].shape) == ((2,), ())
        assert jax.random.normal(keys[0], (2, 2)).shape == (2, 2)
        assert jax.random.key_data(keys).shape == (2, 2)
        assert [k.shape for k in jax.random.split(keys[1], 3)] == [()] * 3
        assert split(keys[1]).shape == (2,)


def test_questions_for_shapes_are_no_calls(path: pathlib.Path):
    with tpusim.capture(path) as captured:
        shapes = jax.eval_shape(lambda: {"w": jnp.ones((2, 2))})
        assert jax.eval_shape(double, jnp.ones(3)).shape == (3,)
        assert len(jax.make_jaxpr(lambda x: x + 1)(1.0).eqns) == 1
        step(shapes, jnp.ones((2, 2)))
    assert [r.name for r in captured.reached] == ["step"]


def test_compiled_ahead_of_time(path: pathlib.Path):
    with captured(path) as found:
        compiled = double.lower(jnp.ones(4)).compile()
        y = compiled(jnp.ones(4))
        assert (y.shape, y.tolist(), y.sharding.num_devices) == ((4,), [0, 0, 0, 0], 1)
        assert compiled.memory_analysis().temp_size_in_bytes == 0
        assert compiled.cost_analysis()["flops"] > 0
        assert "HloModule" in compiled.as_text()
    assert [r.name for r in found.reached] == ["double", "step"]


def test_pmap_and_shard_map(path: pathlib.Path):
    mesh = jax.make_mesh((8,), ("d",), axis_types=(AxisType.Auto,))
    halved = jax.shard_map(lambda x: x / 2, mesh=mesh, in_specs=P("d"), out_specs=P("d"))
    with captured(path) as found:
        y = double(jnp.ones((8, 4)))
        twice = jax.pmap(lambda x: x * 2)
        doubled = twice(twice(y))
        assert isinstance(doubled, Placeholder)
        assert doubled.sharding.num_devices == 8
        half = halved(doubled)
        assert (half.shape, half.sharding.spec) == ((8, 4), P("d"))
    assert [r.name for r in found.reached] == ["double", "<lambda>", "<lambda>", "step"]


def test_placeholders_have_no_elements_outside_of_the_block(path: pathlib.Path):
    with tpusim.capture(path, function="step"):
        y = double(jnp.ones((2, 2)))
        step({"w": y}, jnp.ones((2, 2)))
    for look in (np.asarray, lambda y: jax.jit(jnp.sin)(y), lambda y: float(y[0, 0])):
        with pytest.raises(tpusim.CaptureError, match="it has no elements: make it again outside"):
            look(y)
    # Their types are enough for an export.
    assert tpusim.export(step, {"w": y}, y, path=None).name == "step"


def test_decisions_are_told(path: pathlib.Path):
    def capture() -> tpusim.Workload:
        with tpusim.capture(path, function="step") as captured:
            if double(jnp.float32(1)) < 0.5:
                step({"w": jnp.ones((2, 2))}, jnp.ones((2, 2)))
        return captured.workload

    with pytest.warns(ExportWarning) as warned:
        workload = capture()
    (told,) = (str(w.message) for w in warned)
    assert told.startswith("tests/jax/test_placeholders.py:")
    assert "decides by a value that a jitted function computes" in told
    assert told.endswith("the script sees True, as if its results were zeros")
    assert workload.assumptions == (told,)


def test_errors_of_scripts_say_what_was_zero(path: pathlib.Path):
    with pytest.raises(ZeroDivisionError) as error, tpusim.capture(path, function="step"):
        _ = 1 / float(double(1.0))
    assert "what they return is zeros to whoever looks, first at tests/jax/test_p" in str(
        error.value.__notes__
    )


def test_functions_can_be_chosen_by_place(path: pathlib.Path):
    with tpusim.capture(path) as first:
        step({"w": jnp.ones((2, 2))}, jnp.ones((2, 2)))
    with tpusim.capture(path, function=first.reached[0].place) as captured:
        double(1.0)
        step({"w": jnp.ones((2, 2))}, jnp.ones((2, 2)))
    assert captured.workload.name == "step"
    assert first.reached[0].place.startswith("tests/jax/test_placeholders.py:")


def test_an_error_names_what_was_called_and_the_nearest(path: pathlib.Path):
    with (
        pytest.raises(
            tpusim.CaptureError,
            match=r"of 'duoble' \(did you mean 'double'\?\), but of double \(tests/jax/",
        ),
        tpusim.capture(path, function="duoble"),
    ):
        double(1.0)


def test_listing_goes_on_to_the_end():
    found = []
    with listed_calls(found=lambda reached: found.append(str(reached))) as calls:
        for size in (2, 2, 3):
            double(jnp.ones(size))
            assert len(found) == len(calls)
        step({"w": jnp.ones((2, 2))}, jnp.ones((1, 2)))
    assert [(c.name, c.arguments, c.calls) for c in calls] == [
        ("double", "float32[2]", 2),
        ("double", "float32[3]", 1),
        ("step", "float32[2,2], float32[1,2]", 1),
    ]
