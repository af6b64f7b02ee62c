"""A script that knows nothing of tpusim: it trains on the devices that it finds."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"))


@jax.jit
def initialise(key):
    """Weights of two layers, sharded."""
    up, down = jax.random.split(key)
    params = {
        "up": jax.random.normal(up, (2048, 8192), jnp.bfloat16),
        "down": jax.random.normal(down, (8192, 2048), jnp.bfloat16),
    }
    columns, rows = NamedSharding(mesh, P(None, "model")), NamedSharding(mesh, P("model"))
    return jax.lax.with_sharding_constraint(params, {"up": columns, "down": rows})


@jax.jit
def train_step(params, batch):
    """Gradient descent."""

    def loss_of(params):
        hidden = jax.nn.relu(batch @ params["up"])
        return jnp.mean((hidden @ params["down"] - batch) ** 2, dtype=jnp.float32)

    loss, gradients = jax.value_and_grad(loss_of)(params)
    return jax.tree.map(lambda p, g: p - 0.01 * g, params, gradients), loss


params = initialise(jax.random.key(0))
batch = jax.device_put(jnp.ones((4096, 2048), jnp.bfloat16), NamedSharding(mesh, P("data")))
for step in range(10):
    params, loss = train_step(params, batch)
    print(step, float(loss))
    if not np.isfinite(loss):
        raise SystemExit("diverged")
