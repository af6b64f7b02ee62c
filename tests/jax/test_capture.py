"""`tpusim.capture`: the first jitted call of a block becomes a workload and ends the block."""

import os
import pathlib
import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest
import tpusim
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from tpusim import wire


def step(w: jax.Array, x: jax.Array) -> jax.Array:
    """The function that is to be captured."""
    return jnp.where(x > 0, x, 0) @ w


jitted_step = jax.jit(step)


def sharded_arguments() -> tuple[jax.Array, jax.Array]:
    """Arrays on the eight CPU devices; making them calls jitted helpers of JAX."""
    mesh = jax.make_mesh((4, 2), ("data", "model"))
    x = jax.random.normal(jax.random.key(0), (8, 16))
    w = jnp.where(jnp.arange(16 * 32).reshape(16, 32) % 2 == 0, 1.0, 2.0)
    return (
        jax.device_put(w, NamedSharding(mesh, P(None, "model"))),
        jax.device_put(x, NamedSharding(mesh, P("data"))),
    )


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "workload.pb"


def test_first_call_is_exported_and_ends_the_block(path: pathlib.Path):
    reached = []
    with tpusim.capture(path, config="v5e-4x2") as captured:
        arguments = sharded_arguments()
        reached.append("before")
        jitted_step(*arguments)
        reached.append("after")
    assert reached == ["before"]
    assert captured.workload == tpusim.Workload.load(path)
    assert captured.workload.name == "step"
    assert captured.workload.config == "v5e-4x2"
    assert captured.workload.num_partitions == 8
    assert captured.workload.mesh == (tpusim.MeshAxis("data", 4), tpusim.MeshAxis("model", 2))


def test_same_module_as_export_with_the_same_arguments(path: pathlib.Path):
    arguments = sharded_arguments()
    with tpusim.capture(path) as captured:
        jitted_step(*arguments)
    exported = tpusim.export(jitted_step, *arguments, path=None)
    assert captured.workload.mesh == exported.mesh
    assert len(captured.workload.hlo_module) == len(exported.hlo_module)


def test_functions_that_ran_before_are_captured(path: pathlib.Path):
    arguments = sharded_arguments()
    expected = jitted_step(*arguments)
    jitted_step(*arguments)  # now dispatched from the C++ cache
    with tpusim.capture(path) as captured:
        jitted_step(*arguments)
        pytest.fail("the call was not intercepted")
    assert captured.workload.name == "step"
    # Afterwards everything works as before.
    assert jnp.array_equal(jitted_step(*arguments), expected)


def test_function_by_name(path: pathlib.Path):
    @jax.jit
    def warm_up(x):
        return x * 2

    arguments = sharded_arguments()
    with tpusim.capture(path, function="step") as captured:
        assert warm_up(3) == 0  # It is not executed.
        jitted_step(*arguments)
    assert captured.workload.name == "step"


def test_outer_jit_wins(path: pathlib.Path):
    @jax.jit
    def outer(w, x):
        return jitted_step(w, x) + 1

    with tpusim.capture(path) as captured:
        outer(*sharded_arguments())
    assert captured.workload.name == "outer"


def test_arguments_named_like_our_options(path: pathlib.Path):
    @jax.jit
    def configured(x, *, config, name):
        return x + config + name

    with tpusim.capture(path) as captured:
        configured(1.0, config=2.0, name=3.0)
    assert captured.workload.name == "configured"


def test_static_arguments_and_donation(path: pathlib.Path):
    def power(x, n):
        return x**n

    power_n = jax.jit(power, static_argnums=1, donate_argnums=0)
    with tpusim.capture(path) as captured:
        power_n(jnp.ones(4), 3)
    assert captured.workload.name == "power"


def test_ahead_of_time_lowering_counts_as_a_call(path: pathlib.Path):
    with tpusim.capture(path) as captured:
        jitted_step.lower(*sharded_arguments()).compile()
        pytest.fail("the lowering was not intercepted")
    assert captured.workload.name == "step"


def test_scripts_cannot_swallow_the_end(path: pathlib.Path):
    arguments = sharded_arguments()
    with tpusim.capture(path) as captured:
        try:
            jitted_step(*arguments)
        except Exception:
            pytest.fail("the end of the block is not an error of the script")
    assert captured.workload is not None


def test_mesh_context_inside_the_block(path: pathlib.Path):
    mesh = jax.make_mesh((8,), ("x",))

    @jax.jit
    def resharded(x):
        return jax.sharding.reshard(x * 2, P("x"))

    with tpusim.capture(path) as captured, jax.set_mesh(mesh):
        resharded(jnp.ones(16))
    assert captured.workload.mesh == (tpusim.MeshAxis("x", 8),)


def test_block_without_a_jitted_call(path: pathlib.Path):
    message = "without a call of a jitted function"
    with pytest.raises(tpusim.CaptureError, match=message), tpusim.capture(path):
        jnp.where(jnp.ones(3) > 0, 1, 2).sum()
    assert not path.exists()


def test_block_without_the_named_call(path: pathlib.Path):
    with (
        pytest.raises(tpusim.CaptureError, match="without a call of 'other'"),
        tpusim.capture(path, function="other"),
    ):
        jitted_step(*sharded_arguments())
    assert not path.exists()


def test_errors_of_the_block_come_through(path: pathlib.Path):
    arguments = sharded_arguments()
    with pytest.raises(ZeroDivisionError), tpusim.capture(path):
        _ = 1 / 0
    assert not path.exists()
    assert jitted_step(*arguments).shape == (8, 32)


def test_pjit_with_explicit_shardings(path: pathlib.Path):
    mesh = jax.make_mesh((4, 2), ("data", "model"))
    rows, columns = NamedSharding(mesh, P("data")), NamedSharding(mesh, P(None, "model"))
    sharded = jax.jit(step, in_shardings=(columns, rows), out_shardings=rows)
    with tpusim.capture(path) as captured:
        sharded(jnp.ones((16, 32)), jnp.ones((8, 16)))
    assert captured.workload.name == "step"
    # No argument says so, but the function does.
    assert captured.workload.num_partitions == 8
    assert captured.workload.mesh == (tpusim.MeshAxis("data", 4), tpusim.MeshAxis("model", 2))


def replica_step(x: jax.Array) -> jax.Array:
    """Computes the step of each device."""
    return jax.lax.pmean(x * 2, "replica")


def test_pmap(path: pathlib.Path):
    parallel = jax.pmap(replica_step, axis_name="replica", donate_argnums=0)
    expected = parallel(jnp.ones((8, 4)))
    with tpusim.capture(path, function="replica_step") as captured:
        parallel(jnp.ones((8, 4)))
        pytest.fail("the call was not intercepted")
    assert captured.workload.name == "replica_step"
    assert captured.workload.mesh == (tpusim.MeshAxis("replica", 8),)
    exported = tpusim.export(parallel, jnp.ones((8, 4)), path=None)
    assert exported.num_partitions == 8
    assert b"all-reduce" in exported.hlo_module
    assert b"all-reduce" in captured.workload.hlo_module
    assert jnp.array_equal(parallel(jnp.ones((8, 4))), expected)


@pytest.mark.parametrize("jitted", [False, True])
def test_shard_map(jitted: bool, path: pathlib.Path):
    mesh = jax.make_mesh((8,), ("replica",))
    sharded = jax.shard_map(replica_step, mesh=mesh, in_specs=P("replica"), out_specs=P())
    call = jax.jit(sharded) if jitted else sharded
    with tpusim.capture(path, function="replica_step") as captured:
        call(jax.device_put(jnp.ones((8, 4)), NamedSharding(mesh, P("replica"))))
        pytest.fail("the call was not intercepted")
    assert captured.workload.num_partitions == 8
    assert b"all-reduce" in captured.workload.hlo_module


def test_donation_is_in_the_module(path: pathlib.Path):
    donating = jax.jit(step, donate_argnums=1, out_shardings=None)
    w, x = jnp.ones((16, 16)), jnp.ones((16, 16))
    for function, fields in ((donating, 1), (jitted_step, 0)):
        with tpusim.capture(path) as captured:
            function(w, x)
        module = wire.parse(captured.workload.hlo_module)
        # input_output_alias and buffer_donor: one entry, in one of them.
        entries = [wire.all_bytes(wire.parse(wire.last_bytes(module, n)), 1) for n in (8, 18)]
        assert sum(map(len, entries)) == fields


DEVICES = """
import sys
import jax, jax.numpy as jnp, numpy as np, tpusim
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

if sys.argv[1] == "late":
    jax.devices()
with tpusim.capture("c.pb", config="v5e-4x2") as captured:
    mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("x", "y"))
    a = jax.device_put(jnp.ones((16, 16)), NamedSharding(mesh, P("x", "y")))
    jax.jit(lambda a: a @ a)(a)
print(captured.workload.num_partitions)
"""


@pytest.mark.parametrize("when", ["in time", "late"])
def test_a_script_sees_the_devices_of_the_slice(tmp_path: pathlib.Path, when: str):
    """Also where JAX would show one; unless it was asked before the block."""
    root = pathlib.Path(tpusim.__file__).parents[1]
    environment = {k: v for k, v in os.environ.items() if k not in ("XLA_FLAGS", "JAX_PLATFORMS")}
    done = subprocess.run(
        [sys.executable, "-c", DEVICES, when],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**environment, "PYTHONPATH": str(root), "JAX_PLATFORMS": "cpu"},
    )
    if when == "in time":
        assert done.stdout == "8\n", done.stderr
    else:
        assert done.returncode == 1
        last = done.stderr.splitlines()[-1]
        assert last.startswith("tpusim.capture: JAX shows 1 device, v5e-4x2 has 8")
        assert "--xla_force_host_platform_device_count=8" in last
