"""The train step of a Flax NNX model, captured from a program that initialises and calls it."""

import jax
import jax.numpy as jnp
import optax
import tpusim
from flax import nnx


class Model(nnx.Module):
    """Two layers with a norm and dropout."""

    def __init__(self, rngs):
        self.norm = nnx.LayerNorm(1024, rngs=rngs)
        self.up = nnx.Linear(1024, 4096, rngs=rngs)
        self.dropout = nnx.Dropout(0.1, rngs=rngs)
        self.down = nnx.Linear(4096, 1024, rngs=rngs)

    def __call__(self, x):
        """The second layer."""
        return self.down(self.dropout(jax.nn.gelu(self.up(self.norm(x)))))


@nnx.jit
def warm_up(model, batch):
    """A call on the way."""
    return model(batch).mean()


@nnx.jit
def train_step(model, optimizer, batch):
    """The step that is captured."""
    loss, gradients = nnx.value_and_grad(lambda m: jnp.mean((m(batch) - batch) ** 2))(model)
    optimizer.update(model, gradients)
    return loss


with tpusim.capture("flax.pb", config="v5e-1x1", function="train_step") as captured:
    model = Model(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)
    batch = jnp.ones((512, 1024))
    assert f"{warm_up(model, batch):.2f}" == "0.00"
    train_step(model, optimizer, batch)
assert [reached.name for reached in captured.reached] == ["warm_up", "train_step"]
report = tpusim.simulate("flax.pb")
print(report.step_time_ns)
