"""Trains a decoder of about 1 B parameters for ten steps, and prints losses."""

import jax
import optax
from flax import nnx

LAYERS, WIDTH, HIDDEN, VOCABULARY = 18, 2048, 8192, 32_000


class Block(nnx.Module):
    """Attention and a feed-forward network."""

    def __init__(self, rngs):
        self.norm1 = nnx.RMSNorm(WIDTH, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(16, WIDTH, decode=False, rngs=rngs)
        self.norm2 = nnx.RMSNorm(WIDTH, rngs=rngs)
        self.up = nnx.Linear(WIDTH, HIDDEN, rngs=rngs)
        self.down = nnx.Linear(HIDDEN, WIDTH, rngs=rngs)
        self.dropout = nnx.Dropout(0.1, rngs=rngs)

    def __call__(self, x):
        """Residual."""
        x = x + self.attention(self.norm1(x))
        return x + self.dropout(self.down(jax.nn.gelu(self.up(self.norm2(x)))))


class Model(nnx.Module):
    """A decoder."""

    def __init__(self, rngs):
        self.embed = nnx.Embed(VOCABULARY, WIDTH, rngs=rngs)
        self.blocks = nnx.List([Block(rngs) for _ in range(LAYERS)])
        self.norm = nnx.RMSNorm(WIDTH, rngs=rngs)

    def __call__(self, tokens):
        """Logits."""
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.embed.attend(self.norm(x))


@nnx.jit
def train_step(model, optimizer, batch):
    def loss_fn(model):
        logits = model(batch[:, :-1])
        return optax.softmax_cross_entropy_with_integer_labels(logits, batch[:, 1:]).mean()

    loss, grads = nnx.value_and_grad(loss_fn)(model)
    optimizer.update(model, grads)
    return loss


@nnx.jit
def evaluate(model, batch):
    return model(batch).mean()


model = Model(nnx.Rngs(0))
print(sum(x.size for x in jax.tree.leaves(nnx.state(model, nnx.Param))), "parameters")
optimizer = nnx.Optimizer(model, optax.adamw(1e-3), wrt=nnx.Param)
batch = jax.random.randint(jax.random.key(1), (8, 1025), 0, VOCABULARY)
for n in range(10):
    print(f"loss of step {n}: {train_step(model, optimizer, batch):.3f}")
print("evaluated", evaluate(model, batch).item())
