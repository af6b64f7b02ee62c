"""Trains until the loss is small; sharded, donated, initialised by a jitted function."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto, AxisType.Auto))
columns = NamedSharding(mesh, P(None, "model"))
optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(1e-3))


def initial(key):
    keys = jax.random.split(key, 2)
    return {"up": jax.random.normal(keys[0], (4096, 32_768)), "down": jnp.zeros((32_768, 4096))}


shapes = jax.eval_shape(initial, jax.random.key(0))
initialise = jax.jit(initial, out_shardings=jax.tree.map(lambda _: columns, shapes))


@functools.partial(jax.jit, donate_argnums=(0, 1))
def train_step(params, state, batch):
    def loss_of(params):
        return jnp.mean((jax.nn.relu(batch @ params["up"]) @ params["down"] - batch) ** 2)

    loss, gradients = jax.value_and_grad(loss_of)(params)
    updates, state = optimizer.update(gradients, state, params)
    return optax.apply_updates(params, updates), state, loss


@jax.jit
def evaluate(params, batch):
    return {"mean": jnp.mean(batch @ params["up"]), "count": jnp.int32(batch.shape[0])}


params = initialise(jax.random.key(0))
state = optimizer.init(params)  # Outside of any jit: two arrays like each parameter.
scale = jax.lax.rsqrt(jnp.float32(16))
batch = jax.device_put(np.ones((64, 4096), np.float32) * scale, NamedSharding(mesh, P("data")))
losses = []
for n in range(1000):
    params, state, loss = train_step(params, state, batch)
    losses.append(loss)
    if loss < 1e-2:
        print("stopped after", n + 1)
        break
print("losses", np.asarray(jnp.stack(losses)), float(jax.lax.reduce_max(jnp.stack(losses), (0,))))
metrics = jax.device_get(evaluate(params, batch))
print({name: value.item() for name, value in metrics.items()})
print("norm", optax.global_norm(params))
