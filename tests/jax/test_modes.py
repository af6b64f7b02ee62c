"""JAX's ways to say shardings - automatic, explicit, manual and mixtures - read as JAX means them.

Every program is exported in both lowerings that JAX still has, Shardy's and the older
partitioner's; what tpusim propagates is compared with what JAX's compiler does with the first.
Programs with regions that leave axes to the compiler are also run, partitioned, by XLA.
"""

import pathlib
import subprocess
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import oracle
import pytest
import tpusim
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from test_propagation import our_results

try:
    from jax.experimental.shard_alike import shard_alike
except ImportError:  # JAX 0.12 has none.
    shard_alike = None


def mesh_of(*types: AxisType) -> Mesh:
    devices = np.array(jax.devices()[:8]).reshape(4, 2)
    return Mesh(devices, ("x", "y"), axis_types=types)


AUTO, EXPLICIT = AxisType.Auto, AxisType.Explicit


def over_x(body: Any, *in_specs: P) -> Any:
    """shard_map over x only; y stays as it is around it."""
    return jax.shard_map(body, in_specs=in_specs, out_specs=P("x"), axis_names={"x"})


def partial_psum(v):
    return over_x(lambda w: jnp.sin(w) * jax.lax.psum(w, "x").sum(), P("x"))(v)


def partial_dot(v, w):
    return over_x(lambda a, b: jnp.tanh(a @ b), P("x"), P())(v, w)


def partial_loop(v):
    def body(w):
        return jax.lax.fori_loop(0, 3, lambda _, u: jnp.sin(u) + jax.lax.pmean(u, "x"), w)

    return over_x(body, P("x"))(v)


def nested(v):
    def outer(w):
        inner = jax.shard_map(
            lambda u: u * (1.0 + jax.lax.axis_index("y")),
            in_specs=P(None, "y"),
            out_specs=P(None, "y"),
            axis_names={"y"},
        )
        return inner(w) + 1

    return over_x(outer, P("x"))(v)


def explicit_contraction(v, w):
    return jnp.einsum("ij,jk->ik", v, w, out_sharding=P("x", None)) * 2


def explicit_reshard(v, w):
    return jax.sharding.reshard(v, P("y", "x")), jnp.sin(w)


def explicit_unreduced(v, w):
    partial = jnp.einsum("ij,jk->ik", v, w, out_sharding=P("x", None, unreduced={"y"}))
    return jax.sharding.reshard(partial, P("x", "y"))


def auto_inside_explicit(v, w):
    inside = jax.sharding.auto_axes(
        lambda u: jnp.sin(u) @ u.T, axes=("x", "y"), out_sharding=P("x", None)
    )
    return inside(v)


def alike(v):
    other = jnp.cos(jnp.arange(256.0).reshape(16, 16))
    v, other = shard_alike(v, other)
    return v * 2, other


def branches(v):
    return jax.lax.cond(v[0, 0] > 0, lambda u: u.T, lambda u: u * 2, v)


def rematerialised(v):
    return jax.grad(lambda u: jax.checkpoint(lambda z: jnp.sin(jnp.sin(z) @ z))(u).sum())(v)


def scanned(v):
    return jax.lax.scan(lambda c, u: (c + u, jnp.sin(c)), jnp.zeros(v.shape[1:]), v)


ONE = (((16, 16), P("x", "y")),)
TWO = (((16, 16), P("x", "y")), ((16, 32), P("y", None)))
FREE = (((16, 16), P("x", "y")), ((16, 32), P(None, "y")))
PROGRAMS: dict[str, tuple[Any, Any, tuple[AxisType, AxisType]]] = {
    program.__name__: (program, arguments, types)
    for program, arguments, types in (
        (partial_psum, ONE, (AUTO, AUTO)),
        (partial_dot, FREE, (AUTO, AUTO)),
        (partial_loop, ONE, (AUTO, AUTO)),
        (nested, ONE, (AUTO, AUTO)),
        (explicit_contraction, TWO, (EXPLICIT, EXPLICIT)),
        (explicit_reshard, TWO, (EXPLICIT, EXPLICIT)),
        (explicit_unreduced, TWO, (EXPLICIT, EXPLICIT)),
        (auto_inside_explicit, TWO, (EXPLICIT, EXPLICIT)),
        *([(alike, ONE, (AUTO, AUTO))] if shard_alike else []),
        (branches, ONE, (AUTO, AUTO)),
        (rematerialised, ONE, (AUTO, AUTO)),
        (scanned, ONE, (AUTO, AUTO)),
    )
}
ONLY_SHARDY = ("explicit_unreduced",)  # JAX itself cannot lower it for the older partitioner.


@pytest.fixture
def shardy(request: pytest.FixtureRequest) -> Iterator[bool]:
    jax.clear_caches()
    yield request.param
    jax.config.update("jax_use_shardy_partitioner", True)
    jax.clear_caches()


def arguments_of(name: str) -> tuple[Mesh, list[jax.ShapeDtypeStruct]]:
    _, arguments, types = PROGRAMS[name]
    mesh = mesh_of(*types)
    return mesh, [
        jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, spec))
        for shape, spec in arguments
    ]


def named_xy(spec: P) -> P:
    """The older lowering has no names: axes are called axis_0, axis_1 in their order."""
    names = {"axis_0": "x", "axis_1": "y"}
    dims = [(d,) if isinstance(d, str) else d for d in spec]
    return P(*(tuple(names.get(a, a) for a in d) if d else None for d in dims))


@pytest.mark.parametrize("shardy", [True, False], indirect=True)
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_sharded_as_by_jax(
    name: str, shardy: bool, binary: str, tmp_path: pathlib.Path
):
    if name in ONLY_SHARDY and not shardy:
        pytest.skip("not lowered by JAX")
    mesh, arguments = arguments_of(name)
    with jax.set_mesh(mesh):
        jitted = jax.jit(PROGRAMS[name][0])
        wanted = jax.tree.leaves(jitted.lower(*arguments).compile().output_shardings)
        results = jax.tree.leaves(jax.eval_shape(jitted, *arguments))
        jax.clear_caches()
        jax.config.update("jax_use_shardy_partitioner", shardy)
        ours, text = our_results(binary, jax.jit(PROGRAMS[name][0]), arguments, tmp_path)
    auto = mesh_of(AUTO, AUTO)
    for number, (spec, want, result) in enumerate(zip(ours, wanted, results, strict=True)):
        got = NamedSharding(auto, named_xy(spec))
        assert got.is_equivalent_to(want, len(result.shape)), f"result {number}: {spec}\n{text}"


@pytest.mark.parametrize("name", ["partial_psum", "partial_dot", "partial_loop", "nested"])
def test_partitioned_regions_compute_what_jax_computes(
    name: str, binary: str, tmp_path: pathlib.Path
):
    mesh, arguments = arguments_of(name)
    file, output = tmp_path / "program.pb", tmp_path / "partitioned.pb"
    with jax.set_mesh(mesh):
        jitted = jax.jit(PROGRAMS[name][0])
        tpusim.export(jitted, *arguments, path=file, config="v5e-4x2")
        command = [binary, "compile", "--config", "v5e-4x2", str(file), "--emit", "partitioned"]
        done = subprocess.run(
            [*command, "-o", str(output)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        inputs, expected = oracle.reference(jitted, arguments)
    oracle.check(oracle.run(oracle.hlo_module(output.read_bytes()), inputs), expected)


def test_jax_asks_for_the_sharding_of_an_ambiguous_contraction(tmp_path: pathlib.Path):
    mesh, arguments = arguments_of("explicit_contraction")
    with (
        jax.set_mesh(mesh),
        pytest.raises(Exception, match="out_sharding"),  # its class has no public name
    ):
        tpusim.export(jax.jit(lambda v, w: v @ w), *arguments, path=tmp_path / "program.pb")
