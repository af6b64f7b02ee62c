"""Programs at the scale of a pod, for pod_benchmark and the guards of its event counts.

`python benchmarks/pod_programs/export.py [FOLDER]` writes their exports beside this file. They are
committed so that the benchmark and the tests need no JAX.
"""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "tools" / "python")]

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from jax import lax  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

from workloads.examples import Example  # noqa: E402
from workloads.examples.example import AnyMesh, Program, array  # noqa: E402
from workloads.examples.export_all import write  # noqa: E402

# f32[4096, 4096] is 64 MiB.
SIDE = 4096

# The perceptron: layers, widths, and rows of the batch per device.
LAYERS, MODEL, HIDDEN, ROWS = 8, 2048, 8192, 128


def all_reduce(mesh: AnyMesh) -> Program:
    """64 MiB per device, summed over all devices."""
    axes = mesh.axis_names

    def sums(x: jax.Array) -> jax.Array:
        return lax.psum(x, axes)

    program = jax.shard_map(sums, mesh=mesh, in_specs=P(axes), out_specs=P())
    return jax.jit(program), (array(mesh, (mesh.size * SIDE, SIDE), jnp.float32, axes, None),)


def all_reduce_beside_kernel(mesh: AnyMesh) -> Program:
    """An all-reduce while each device streams 256 MiB through its vector unit."""
    axes = mesh.axis_names

    def sums_beside(x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
        return lax.psum(x, axes), 2 * y + 1

    program = jax.shard_map(
        sums_beside, mesh=mesh, in_specs=(P(axes), P(axes)), out_specs=(P(), P(axes))
    )
    rows = mesh.size * SIDE
    return jax.jit(program), (
        array(mesh, (rows, SIDE), jnp.float32, axes, None),
        array(mesh, (4 * rows, SIDE), jnp.float32, axes, None),
    )


def mlp_train(mesh: AnyMesh) -> Program:
    """A training step of a residual perceptron, weights split over `fsdp`, the batch over both."""

    def loss(weights: list[dict[str, jax.Array]], x: jax.Array, y: jax.Array) -> jax.Array:
        for layer in weights:
            x = x + jax.nn.relu(x @ layer["up"]) @ layer["down"]
        return ((x - y) ** 2).mean()

    def step(
        weights: list[dict[str, jax.Array]], x: jax.Array, y: jax.Array
    ) -> tuple[jax.Array, list[dict[str, jax.Array]]]:
        value, gradients = jax.value_and_grad(loss)(weights, x, y)
        return value, jax.tree.map(lambda w, g: w - 0.01 * g, weights, gradients)

    layer = {
        "up": array(mesh, (MODEL, HIDDEN), jnp.bfloat16, "fsdp", None),
        "down": array(mesh, (HIDDEN, MODEL), jnp.bfloat16, None, "fsdp"),
    }
    batch = array(mesh, (ROWS * mesh.size, MODEL), jnp.bfloat16, ("data", "fsdp"))
    return jax.jit(step, donate_argnums=0), ([layer] * LAYERS, batch, batch)


PROGRAMS = (
    Example("all_reduce_4096", {"X": 16, "Y": 16, "Z": 16}, "v5p-16x16x16", all_reduce),
    Example("all_reduce_beside_kernel_64", {"X": 8, "Y": 8}, "v5e-8x8", all_reduce_beside_kernel),
    Example("mlp_train_256", {"data": 16, "fsdp": 16}, "v5e-16x16", mlp_train),
    Example("mlp_train_64", {"data": 4, "fsdp": 32}, "v7x-4x4x4", mlp_train),
    Example("mlp_train_9216", {"data": 576, "fsdp": 32}, "v7x-16x24x24", mlp_train),
)


def main() -> None:
    """Exports all of PROGRAMS."""
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent
    write({program.name: program for program in PROGRAMS}, folder)


if __name__ == "__main__":
    main()
