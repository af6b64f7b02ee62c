"""Probabilistic programs: NumPyro's variational inference, BlackJAX's samplers."""

from typing import Any

import blackjax
import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
import optax
import shapes
from numpyro.infer import SVI, Trace_ELBO
from numpyro.infer.autoguide import AutoNormal


def variational_inference() -> Any:
    """NumPyro: a Bayesian network of two layers with a mean-field guide, data parallel."""
    over = shapes.mesh(data=8)
    rows, width, hidden = 8 * 8192, 256, 1024

    def model(x: jax.Array, y: jax.Array) -> None:
        first = numpyro.sample("first", dist.Normal(0, 1).expand([width, hidden]).to_event(2))
        second = numpyro.sample("second", dist.Normal(0, 1).expand([hidden, 1]).to_event(2))
        noise = numpyro.sample("noise", dist.HalfNormal(1.0))
        mean = (jnp.tanh(x @ first) @ second)[:, 0]
        with numpyro.plate("rows", rows):
            numpyro.sample("y", dist.Normal(mean, noise), obs=y)

    inference = SVI(model, AutoNormal(model), optax.adam(1e-3), Trace_ELBO())
    x = shapes.shaped(over, (rows, width), jnp.float32, "data")
    y = shapes.shaped(over, (rows,), jnp.float32, "data")
    state = shapes.abstract(lambda x, y: inference.init(jax.random.PRNGKey(0), x, y), x, y)
    step = jax.jit(inference.update, donate_argnums=0)
    return step, (shapes.replicated(state, over), x, y)


def _logistic_regression(over: Any) -> Any:
    """Log density over weights of 64 features, and the data that it is given."""
    x = shapes.shaped(over, (16384, 64), jnp.float32)
    y = shapes.shaped(over, (16384,), jnp.float32)

    def density(weights: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
        logits = x @ weights
        likelihood = jnp.sum(y * logits - jax.nn.softplus(logits))
        return likelihood - 0.5 * jnp.vdot(weights, weights)

    return density, x, y


def hamiltonian_monte_carlo() -> Any:
    """BlackJAX: ten steps of HMC, 128 chains per device."""
    over = shapes.mesh(chains=8)
    density, x, y = _logistic_regression(over)

    def sample(weights: jax.Array, seeds: jax.Array, x: jax.Array, y: jax.Array) -> Any:
        kernel = blackjax.hmc(
            lambda w: density(w, x, y),
            step_size=1e-2,
            inverse_mass_matrix=jnp.ones(64),
            num_integration_steps=16,
        )

        def chain(weights: jax.Array, seed: jax.Array) -> Any:
            def step(state: Any, key: jax.Array) -> Any:
                state, info = kernel.step(key, state)
                return state, (state.position, info.acceptance_rate)

            keys = jax.random.split(jax.random.wrap_key_data(seed), 10)
            return jax.lax.scan(step, kernel.init(weights), keys)[1]

        return jax.vmap(chain)(weights, seeds)

    weights = shapes.shaped(over, (8 * 128, 64), jnp.float32, "chains")
    seeds = shapes.shaped(over, (8 * 128, 2), jnp.uint32, "chains")
    return jax.jit(sample), (weights, seeds, x, y)


def no_u_turn_sampler() -> Any:
    """BlackJAX: one NUTS transition, 64 chains per device; its tree grows as data says."""
    over = shapes.mesh(chains=8)
    density, x, y = _logistic_regression(over)

    def sample(weights: jax.Array, seeds: jax.Array, x: jax.Array, y: jax.Array) -> Any:
        kernel = blackjax.nuts(
            lambda w: density(w, x, y), step_size=1e-2, inverse_mass_matrix=jnp.ones(64)
        )

        def chain(weights: jax.Array, seed: jax.Array) -> Any:
            key = jax.random.wrap_key_data(seed)
            return kernel.step(key, kernel.init(weights))[0].position

        return jax.vmap(chain)(weights, seeds)

    weights = shapes.shaped(over, (8 * 64, 64), jnp.float32, "chains")
    seeds = shapes.shaped(over, (8 * 64, 2), jnp.uint32, "chains")
    return jax.jit(sample), (weights, seeds, x, y)
