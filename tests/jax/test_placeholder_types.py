"""The type of each placeholder is that which JAX gives the real array, whatever made it.

In explicit meshes a type has the sharding, and programs are written by it; in others it has the
mesh, and the memory.
"""

import contextlib
import dataclasses
import functools
import itertools
import math
import pathlib
import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tpusim
from flax import nnx
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from tpusim.assumptions import ExportWarning
from tpusim.jax_internals import array_types
from tpusim.placeholders import Placeholder, placeholder_of

from workloads.examples import EXAMPLES

# Large enough that nothing is executed for it.
SHAPE = (1024, 1024)


@dataclasses.dataclass(frozen=True)
class Given:
    """The inputs of which arrays are made."""

    mesh: Mesh

    def sharding(self, *spec: Any) -> NamedSharding:
        """On the mesh."""
        return NamedSharding(self.mesh, P(*spec))

    @functools.cached_property
    def ones(self) -> jax.Array:
        """Nothing says where they are."""
        return jnp.ones(SHAPE)

    @functools.cached_property
    def x(self) -> jax.Array:
        """Split both ways."""
        return jax.device_put(self.ones, self.sharding("x", "y"))

    @functools.cached_property
    def host(self) -> NamedSharding:
        """This sharding in memory of the host."""
        return self.sharding("x", "y").with_memory_kind("pinned_host")

    def keys(self, *spec: Any) -> jax.Array:
        """Random keys, split if that is given."""
        stated = self.sharding(*spec) if spec else None
        return jax.jit(lambda: jax.random.split(jax.random.key(0), 16), out_shardings=stated)()


def halved(given: Given, **more: Any) -> Callable[[jax.Array], jax.Array]:
    """A function by shards."""
    return jax.shard_map(
        lambda x: x / 2, mesh=given.mesh, in_specs=P("x"), out_specs=P("x"), **more
    )


def layer(given: Given) -> Any:
    """The state of a Flax NNX model, made on the mesh."""

    @nnx.jit
    def make() -> Any:
        state = nnx.state(nnx.Linear(64, 32, rngs=nnx.Rngs(0)))
        return jax.tree.map(lambda a: a * 1, state)

    return make()


# Makers by name: functions that return an array, or several.
MAKERS: dict[str, Callable[[Given], Any]] = {
    "ones": lambda g: g.ones,
    "arange": lambda g: jnp.arange(1 << 19),
    "asarray": lambda g: jnp.asarray(np.ones(SHAPE, np.float32)),
    "full_like": lambda g: jnp.full_like(g.x, 3),
    "zeros, device": lambda g: jnp.zeros(SHAPE, device=g.sharding("x")),
    "zeros, out_sharding": lambda g: jnp.zeros(SHAPE, out_sharding=P("x")),
    "zeros_like": lambda g: jnp.zeros_like(g.x),
    "random": lambda g: jax.random.normal(jax.random.key(0), SHAPE),
    "random, out_sharding": lambda g: jax.random.normal(
        jax.random.key(0), SHAPE, out_sharding=g.sharding("x")
    ),
    "device_put": lambda g: g.x,
    "device_put of NumPy": lambda g: jax.device_put(np.ones(SHAPE, np.float32), g.sharding("y")),
    "device_put by spec": lambda g: jax.device_put(g.ones, P("x")),
    "device_put to a device": lambda g: jax.device_put(g.x, jax.devices()[1]),
    "device_put to the host": lambda g: jax.device_put(g.x, g.host),
    "device_put to its memory": lambda g: jax.device_put(g.x, jax.memory.Space.Host),
    "device_put in jit": lambda g: jax.jit(lambda x: jax.device_put(x, g.host))(g.x),
    "operation on the host": lambda g: jax.device_put(g.x, g.host).T,
    "from callback": lambda g: jax.make_array_from_callback(
        SHAPE, g.sharding("x"), lambda at: np.ones(SHAPE, np.float32)[at], dtype=np.float32
    ),
    "from process": lambda g: jax.make_array_from_process_local_data(
        g.sharding("x"), np.ones(SHAPE, np.float32)
    ),
    "from shards": lambda g: jax.make_array_from_single_device_arrays(
        SHAPE, g.x.sharding, [shard.data for shard in g.x.addressable_shards]
    ),
    "shard": lambda g: g.x.addressable_shards[3].data,
    "shard on the host": lambda g: jax.device_put(g.x, g.host).addressable_shards[0].data,
    "elementwise": lambda g: g.x * 2 + g.x,
    "transposed": lambda g: g.x.T,
    "reshaped": lambda g: g.x.reshape(1024, 8, 128),
    "cast": lambda g: g.x.astype(jnp.bfloat16),
    "sums": lambda g: (g.x.sum(), g.x.sum(0), g.x.mean()),
    "product": lambda g: g.x @ jax.device_put(g.ones, g.sharding()),
    "einsum": lambda g: jnp.einsum("ij,kj->ik", g.x, jax.device_put(g.ones, g.sharding())),
    "concatenated": lambda g: jnp.concatenate([g.x, g.x]),
    "cond": lambda g: jax.lax.cond(True, lambda x: x * 2, lambda x: x, g.x),
    "vmap": lambda g: jax.vmap(lambda x: x * 2)(g.x),
    "grad": lambda g: jax.grad(lambda x: (x * x).sum())(g.x),
    "grad of jit": lambda g: jax.grad(jax.jit(lambda x: (x * x).sum()))(g.x),
    "jit": lambda g: jax.jit(lambda x: (x * 2, x.sum(0), jnp.zeros(4), x.T))(g.x),
    "jit of jit": lambda g: jax.jit(lambda x: x + 1)(jax.jit(lambda x: x * 2)(g.x)),
    "jit, unused": lambda g: jax.jit(lambda x: jnp.ones((16, 16)))(g.x),
    "jit of nothing": lambda g: jax.jit(lambda: (jnp.ones((8, 8)), 2.0))(),
    "jit of one device": lambda g: jax.jit(lambda x: x * 2)(g.ones),
    "jit, out_shardings": lambda g: jax.jit(lambda x: x * 2, out_shardings=g.sharding(None, "y"))(
        g.x
    ),
    "jit of nothing, out_shardings": lambda g: jax.jit(
        lambda: (jnp.ones((8, 8)), jnp.ones(8)), out_shardings=(g.sharding(None, "y"), None)
    )(),
    "jit, out spec": lambda g: jax.jit(lambda x: x * 2, out_shardings=P(None, "y"))(g.x),
    "jit, in_shardings": lambda g: jax.jit(lambda x: x * 2, in_shardings=g.sharding(None, "y"))(
        np.ones(SHAPE, np.float32)
    ),
    "jit after out_shardings": lambda g: jax.jit(lambda x: x + 1)(
        jax.jit(lambda: jnp.ones((8, 8)), out_shardings=g.sharding(None, "y"))()
    ),
    "compiled": lambda g: jax.jit(lambda x: x * 2).lower(g.x).compile()(g.x),
    "eval_shape": lambda g: jax.tree.map(
        lambda a: jax.device_put(jnp.zeros(a.shape, a.dtype), g.sharding("x")),
        jax.eval_shape(lambda: {"w": jnp.ones(SHAPE), "b": jnp.ones(8)}),
    ),
    "constraint": lambda g: jax.lax.with_sharding_constraint(g.x, g.sharding("y")),
    "constraint in jit": lambda g: jax.jit(
        lambda: jax.lax.with_sharding_constraint(jnp.ones((8, 8)), g.sharding("x"))
    )(),
    "reshard": lambda g: jax.sharding.reshard(g.x, g.sharding("y")),
    "reshard of one device": lambda g: jax.sharding.reshard(g.ones, g.sharding("x")),
    "reshard by spec": lambda g: jax.sharding.reshard(g.x, P("y")),
    "reshard in jit": lambda g: jax.jit(lambda x: jax.sharding.reshard(x, P("y")))(g.x),
    "unreduced": lambda g: jax.jit(
        lambda a, b: jnp.einsum("ij,jk->ik", a, b, out_sharding=P("x", None, unreduced={"y"}))
    )(g.x, jax.device_put(g.ones, g.sharding("y"))),
    "auto_axes": lambda g: jax.sharding.auto_axes(
        lambda x: x * 2, out_sharding=P("x"), axes=("x", "y")
    )(g.x),
    "explicit_axes": lambda g: jax.sharding.explicit_axes(
        lambda x: x * 2, in_sharding=P("x"), axes=("x", "y")
    )(g.x),
    "shard_map": lambda g: halved(g)(g.ones),
    "shard_map in jit": lambda g: jax.jit(halved(g))(g.ones),
    "shard_map over an axis": lambda g: halved(g, axis_names={"x"})(g.x),
    "pmap": lambda g: jax.pmap(lambda x: x / 2)(jnp.ones((8, 1 << 17))),
    "keys": lambda g: g.keys(),
    "keys, out_shardings": lambda g: g.keys("x"),
    "keys in jit": lambda g: jax.jit(lambda x: (jax.random.split(jax.random.key(0), 16), x))(g.x),
    "keys, device_put": lambda g: jax.device_put(g.keys(), g.sharding("x")),
    "Flax NNX": layer,
}
TYPES = {
    "auto": (AxisType.Auto,) * 2,
    "explicit": (AxisType.Explicit,) * 2,
    "mixed": (AxisType.Explicit, AxisType.Auto),
}
CONTEXTS: dict[str, Callable[[Mesh], contextlib.AbstractContextManager[Any]]] = {
    "without a context": lambda mesh: contextlib.nullcontext(),
    "set_mesh": jax.set_mesh,
}


def types(value: Any) -> list[tuple[Any, str]]:
    """Returns types of every array: as JAX compares them, and as it prints them."""
    avals = [jax.typeof(leaf) for leaf in jax.tree.leaves(value)]
    return [(aval, aval.str_short(True, True)) for aval in avals]


def made(mesh: Mesh, context: str, looked_at: Callable[[Any], Any]) -> dict[str, Any]:
    """Returns what is seen of each maker's array; the type of an error where JAX allows none."""
    found = {}
    for name, make in MAKERS.items():
        with CONTEXTS[context](mesh):
            try:
                value = make(Given(mesh))
            except Exception as error:
                found[name] = type(error).__name__
                continue
        # Outside of the context, which was that of the call.
        try:
            found[name] = looked_at(value)
        except Exception as error:
            found[name] = type(error).__name__
    return found


@contextlib.contextmanager
def captured(path: pathlib.Path):
    """A block in which nothing is executed."""

    @jax.jit
    def step(x: jax.Array) -> jax.Array:
        return x

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExportWarning)
        with tpusim.capture(path / "w.pb", function="step"):
            yield
            step(1.0)


CASES = [
    *itertools.product(("auto", "explicit"), [(4, 2)], CONTEXTS),
    ("mixed", (4, 2), "set_mesh"),
    ("explicit", (1, 1), "set_mesh"),
]
LONG = [
    ("mixed", (4, 2), "without a context"),
    *itertools.product(("auto", "explicit"), [(1, 1)], ["without a context"]),
    *itertools.product(("auto", "mixed"), [(1, 1)], ["set_mesh"]),
]
# On one device of a mesh of both kinds JAX forgets the memory of results.
FORGOTTEN = (
    *("device_put in jit", "device_put to its memory"),
    *("operation on the host", "shard on the host"),
)


@pytest.mark.parametrize(
    ("kind", "shape", "context"),
    [*CASES, *(pytest.param(*case, marks=pytest.mark.long) for case in LONG)],
)
def test_types_are_those_of_arrays(
    kind: str, shape: tuple[int, int], context: str, tmp_path: pathlib.Path
):
    devices = jax.devices()[: math.prod(shape)]
    mesh = jax.make_mesh(shape, ("x", "y"), axis_types=TYPES[kind], devices=devices)
    expected = made(mesh, context, types)
    placeholders = 0

    def look(value: Any) -> list[tuple[Any, str]]:
        nonlocal placeholders
        placeholders += sum(placeholder_of(a) is not None for a in jax.tree.leaves(value))
        return types(value)

    with captured(tmp_path):
        found = made(mesh, context, look)
    if kind == "mixed" and len(devices) == 1:
        expected = {name: seen for name, seen in expected.items() if name not in FORGOTTEN}
    wrong = {
        name: (found[name], seen)
        for name, seen in expected.items()
        # A call that JAX refuses may be allowed here.
        if found[name] != seen and not isinstance(seen, str)
    }
    assert wrong == {}
    assert placeholders >= 50


def all_examples() -> list[Any]:
    """Returns the examples for the devices there are; most types have nothing but the mesh."""
    return [
        name if example.explicit else pytest.param(name, marks=pytest.mark.long)
        for name, example in EXAMPLES.items()
        if example.num_devices <= 8
    ]


@pytest.mark.parametrize("name", all_examples())
def test_types_of_examples(name: str, tmp_path: pathlib.Path):
    """Types of arguments and results equal those of JAX."""
    example = EXAMPLES[name]
    function, described = example(example.concrete_mesh(jax.devices()))
    traced = function.trace(*described)
    places = jax.tree.leaves(traced.lower().compile().output_shardings)
    expected = [
        array_types.typed(aval, place)
        for aval, place in zip(traced.jaxpr.out_avals, places, strict=True)
    ]
    with captured(tmp_path):
        arguments = jax.tree.map(
            lambda a: jax.device_put(jnp.zeros(a.shape, a.dtype), a.sharding), described
        )
        results = jax.tree.leaves(function(*arguments))
        assert all(placeholder_of(result) is not None for result in results)
        assert list(map(jax.typeof, results)) == expected
        for argument, struct in zip(*map(jax.tree.leaves, (arguments, described)), strict=True):
            assert jax.typeof(argument) == jax.typeof(struct)


def test_a_step_reshards_by_the_type_of_its_state(binary: str, tmp_path: pathlib.Path):
    """Nothing is gathered where the update of a cache is split as the cache is."""
    mesh = jax.make_mesh((8,), ("y",), axis_types=(AxisType.Explicit,))
    place = NamedSharding(mesh, P(None, "y"))
    initialise = jax.jit(lambda: jnp.zeros((16, 8, 2048, 128), jnp.bfloat16), out_shardings=place)

    @jax.jit
    def step(cache, new, at):
        new = jax.sharding.reshard(new, jax.typeof(cache).sharding.spec)
        return jax.lax.dynamic_update_slice_in_dim(cache, new, at, axis=2)

    with (
        jax.set_mesh(mesh),
        tpusim.capture(tmp_path / "w.pb", config="v5e-4x2", function="step") as found,
    ):
        cache = initialise()
        assert isinstance(cache, Placeholder)
        assert str(jax.typeof(cache)) == "bfloat16[16,8@y,2048,128]"
        step(cache, jnp.ones((16, 8, 1, 128), jnp.bfloat16), jnp.int32(3))
    assert found.reached[-1].arguments.startswith("bfloat16[16,8,2048,128]@P(None, 'y')"), (
        found.reached[-1]
    )
    assert not tpusim.simulate(found.workload).collective_records
