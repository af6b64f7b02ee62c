"""A pipeline of microbatches: every device has a stage of the model and passes activations on.

Each tick of the loop, a device passes on what it made in the tick before while it works on what
came in then. So a microbatch moves a stage every other tick, and the transfers hide behind compute.
Gradients go through the same loop backwards.
"""

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from workloads.examples.example import AnyMesh, Program, array, example


def pipeline(rows: int, width: int, microbatches: int, mesh: AnyMesh) -> Program:
    """The gradients of all stages and the loss; a stage is a residual MLP four times as wide."""
    stages = mesh.shape["stage"]
    delay = 2 * (stages - 1)
    to_next = [(stage, stage + 1) for stage in range(stages - 1)]

    def run(up: jax.Array, down: jax.Array, x: jax.Array) -> jax.Array:
        first = lax.axis_index("stage") == 0

        def tick(carry: tuple[jax.Array, jax.Array], new: jax.Array) -> tuple[tuple, jax.Array]:
            arrived, made = carry
            passed = lax.ppermute(made, "stage", to_next)
            stage_input = jnp.where(first, new, arrived)
            stage_output = stage_input + jax.nn.relu(stage_input @ up[0]) @ down[0]
            return (passed, stage_output), stage_output

        nothing = lax.pcast(jnp.zeros_like(x[0]), "stage", to="varying")
        fed = jnp.concatenate([x, jnp.zeros((delay, *x.shape[1:]), x.dtype)])
        _, made = lax.scan(tick, (nothing, nothing), fed)
        return made[None, delay:]

    specs = (P("stage"), P("stage"), P())
    sharded = jax.shard_map(run, mesh=mesh, in_specs=specs, out_specs=P("stage"))

    def gradients(up: jax.Array, down: jax.Array, x: jax.Array) -> tuple:
        def loss(up: jax.Array, down: jax.Array) -> jax.Array:
            return jnp.mean(jnp.square(sharded(up, down, x)[-1].astype(jnp.float32)))

        return jax.value_and_grad(loss, argnums=(0, 1))(up, down)

    return jax.jit(gradients), (
        array(mesh, (stages, width, 4 * width), jnp.bfloat16, "stage"),
        array(mesh, (stages, 4 * width, width), jnp.bfloat16, "stage"),
        array(mesh, (microbatches, rows, width), jnp.bfloat16),
    )


example({"stage": 8}, "v5e-4x2", "pipeline", precision="bfloat16")(
    functools.partial(pipeline, 32, 128, 4)
)
example({"stage": 4}, "v5e-2x2", "pipeline_large")(functools.partial(pipeline, 2048, 2048, 8))
