"""Equinox and Diffrax: a neural ODE, a checked MLP mixer."""

from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import optax
import shapes


def _training(model: Any, loss: Any, optimizer: Any, over: Any, *batch: Any) -> Any:
    """A train step over the arrays of a model whose other leaves are functions and numbers."""
    arrays, static = eqx.partition(model, lambda leaf: hasattr(leaf, "shape"))

    def arrays_loss(arrays: Any, *batch: Any) -> jax.Array:
        return loss(eqx.combine(arrays, static), *batch)

    state = shapes.abstract(optimizer.init, arrays)
    step = shapes.train_step(arrays_loss, optimizer)
    return step, (shapes.replicated(arrays, over), shapes.replicated(state, over), *batch)


def neural_ode() -> Any:
    """Diffrax: an ODE whose field is an MLP, adaptive steps, gradients by checkpoints."""
    over = shapes.mesh(data=8)

    class Field(eqx.Module):
        mlp: eqx.nn.MLP

        def __call__(self, t: Any, y: jax.Array, args: Any) -> jax.Array:
            return self.mlp(y)

    def make() -> Field:
        return Field(eqx.nn.MLP(64, 64, 512, 3, activation=jax.nn.softplus, key=shapes.key()))

    def loss(field: Field, starts: jax.Array, paths: jax.Array) -> jax.Array:
        times = jnp.linspace(0.0, 1.0, paths.shape[1])

        def solve(start: jax.Array) -> jax.Array:
            solution = diffrax.diffeqsolve(
                diffrax.ODETerm(field),
                diffrax.Tsit5(),
                t0=0.0,
                t1=1.0,
                dt0=0.05,
                y0=start,
                saveat=diffrax.SaveAt(ts=times),
                stepsize_controller=diffrax.PIDController(rtol=1e-3, atol=1e-6),
                max_steps=64,
            )
            return solution.ys

        return jnp.square(jax.vmap(solve)(starts) - paths).mean()

    starts = shapes.shaped(over, (8 * 512, 64), jnp.float32, "data")
    paths = shapes.shaped(over, (8 * 512, 16, 64), jnp.float32, "data")
    model = eqx.filter_eval_shape(make)
    return _training(model, loss, optax.adabelief(1e-3), over, starts, paths)


def mixer() -> Any:
    """Equinox: an MLP mixer of twelve blocks that stops (`error_if`) at a loss of NaN."""
    over = shapes.mesh(data=8)
    patches, width = 196, 768

    class Block(eqx.Module):
        tokens: eqx.nn.MLP
        channels: eqx.nn.MLP
        norms: tuple[eqx.nn.LayerNorm, eqx.nn.LayerNorm]

        def __call__(self, x: jax.Array) -> jax.Array:
            x = x + jax.vmap(self.tokens)(jax.vmap(self.norms[0])(x).T).T
            return x + jax.vmap(self.channels)(jax.vmap(self.norms[1])(x))

    class Mixer(eqx.Module):
        embed: eqx.nn.Conv2d
        blocks: list[Block]
        head: eqx.nn.Linear

        def __call__(self, image: jax.Array) -> jax.Array:
            x = self.embed(image).reshape(width, patches).T
            for block in self.blocks:
                x = block(x)
            return self.head(x.mean(0))

    def make() -> Mixer:
        key = shapes.key()

        def block() -> Block:
            norms = (eqx.nn.LayerNorm(width), eqx.nn.LayerNorm(width))
            tokens = eqx.nn.MLP(patches, patches, 384, 1, jax.nn.gelu, key=key)
            return Block(tokens, eqx.nn.MLP(width, width, 3072, 1, jax.nn.gelu, key=key), norms)

        embed = eqx.nn.Conv2d(3, width, 16, 16, key=key)
        return Mixer(embed, [block() for _ in range(12)], eqx.nn.Linear(width, 1000, key=key))

    def loss(model: Mixer, images: jax.Array, labels: jax.Array) -> jax.Array:
        half = jax.tree.map(lambda p: p.astype(jnp.bfloat16), eqx.filter(model, eqx.is_array))
        model = eqx.combine(half, model)
        value = shapes.cross_entropy(jax.vmap(model)(images), labels)
        return eqx.error_if(value, jnp.isnan(value), "the loss is no number")

    images = shapes.shaped(over, (8 * 64, 3, 224, 224), jnp.bfloat16, "data")
    labels = shapes.shaped(over, (8 * 64,), jnp.int32, "data")
    model = eqx.filter_eval_shape(make)
    return _training(model, loss, optax.lion(1e-4), over, images, labels)
