"""Arrays that live in the host's memory and visit the chip: over PCIe, beside the computation."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from workloads.examples.example import AnyMesh, Program, example

SLICE = "v5e-4x2"
MESH = {"data": 4, "model": 2}
BATCH, WIDTH, LAYERS = 128, 256, 4


def host(mesh: AnyMesh, *spec: str | None) -> NamedSharding:
    """A sharding in the memory of the hosts."""
    return NamedSharding(mesh, P(*spec), memory_kind="pinned_host")


def device(mesh: AnyMesh, *spec: str | None) -> NamedSharding:
    """A sharding in the memory of the chips."""
    return NamedSharding(mesh, P(*spec), memory_kind="device")


@example(mesh=MESH, config=SLICE)
def host_to_device(mesh: AnyMesh) -> Program:
    """An array comes in from the host and is used."""

    def host_to_device(x: jax.Array) -> jax.Array:
        return jax.device_put(x, device(mesh, "data", "model")) * 2

    x = jax.ShapeDtypeStruct((BATCH, WIDTH), jnp.float32, sharding=host(mesh, "data", "model"))
    return jax.jit(host_to_device, out_shardings=device(mesh, "data", "model")), (x,)


@example(mesh=MESH, config=SLICE)
def device_to_host(mesh: AnyMesh) -> Program:
    """A result goes out to the host."""

    def device_to_host(x: jax.Array) -> jax.Array:
        return x * 2

    x = jax.ShapeDtypeStruct((BATCH, WIDTH), jnp.float32, sharding=device(mesh, "data", "model"))
    return jax.jit(device_to_host, out_shardings=host(mesh, "data", "model")), (x,)


@example(mesh=MESH, config=SLICE)
def weights_from_host(mesh: AnyMesh) -> Program:
    """A loop over layers fetches each layer's weights when it gets there."""

    def weights_from_host(x: jax.Array, weights: jax.Array) -> jax.Array:
        def layer(x: jax.Array, w: jax.Array) -> tuple[jax.Array, None]:
            w = jax.device_put(w, device(mesh, None, "model"))
            x = jnp.tanh(lax.with_sharding_constraint(x @ w, device(mesh, "data", None)))
            return x, None

        return lax.scan(layer, x, weights)[0]

    return jax.jit(weights_from_host, out_shardings=device(mesh, "data", None)), (
        jax.ShapeDtypeStruct((BATCH, WIDTH), jnp.float32, sharding=device(mesh, "data", None)),
        jax.ShapeDtypeStruct(
            (LAYERS, WIDTH, WIDTH), jnp.float32, sharding=host(mesh, None, None, "model")
        ),
    )


@example(mesh=MESH, config=SLICE)
def moments_on_host(mesh: AnyMesh) -> Program:
    """Momentum stays with the host: fetched, updated and put back in every step."""

    def loss(w: jax.Array, x: jax.Array) -> jax.Array:
        return jnp.mean(jnp.square(jnp.tanh(x @ w)))

    def moments_on_host(
        w: jax.Array, momentum: jax.Array, x: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        momentum = jax.device_put(momentum, device(mesh, None, "model"))
        momentum = 0.9 * momentum + jax.grad(loss)(w, x)
        return w - 0.01 * momentum, jax.device_put(momentum, host(mesh, None, "model"))

    weights = jax.ShapeDtypeStruct(
        (WIDTH, WIDTH), jnp.float32, sharding=device(mesh, None, "model")
    )
    step = jax.jit(
        moments_on_host,
        out_shardings=(device(mesh, None, "model"), host(mesh, None, "model")),
        donate_argnums=(0, 1),
    )
    return step, (
        weights,
        jax.ShapeDtypeStruct(weights.shape, jnp.float32, sharding=host(mesh, None, "model")),
        jax.ShapeDtypeStruct((BATCH, WIDTH), jnp.float32, sharding=device(mesh, "data", None)),
    )
