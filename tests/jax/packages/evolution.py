"""Evolution strategies of evosax whose populations are sharded."""

from typing import Any

import jax
import jax.numpy as jnp
import shapes
from evosax.algorithms import CMA_ES, PGPE, Sep_CMA_ES


def _generation(strategy: Any, fitness: Any, over: Any, *data: Any) -> Any:
    """One generation: ask, evaluate every member where it is, tell."""
    params = strategy.default_params
    split = jax.sharding.NamedSharding(over, jax.sharding.PartitionSpec("population"))

    def step(state: Any, seed: jax.Array, *data: Any) -> Any:
        asked, told = jax.random.split(jax.random.wrap_key_data(seed))
        population, state = strategy.ask(asked, state, params)
        population = jax.lax.with_sharding_constraint(population, split)
        values = jax.vmap(lambda member: fitness(member, *data))(population)
        state, metrics = strategy.tell(told, population, values, state, params)
        return state, metrics["best_fitness"]

    def start(key: jax.Array, mean: jax.Array) -> Any:
        return strategy.init(key, mean, params)

    mean = jnp.zeros(strategy.num_dims)
    state = shapes.replicated(shapes.abstract(start, jax.random.PRNGKey(0), mean), over)
    seed = shapes.shaped(over, (2,), jnp.uint32)
    return jax.jit(step, donate_argnums=0), (state, seed, *data)


def cma_es() -> Any:
    """CMA-ES over 512 parameters of a controller, 4,096 members, a pole to be balanced."""
    over = shapes.mesh(population=16)
    width = 512

    def fitness(member: jax.Array) -> jax.Array:
        weights = member[:320].reshape(5, 64), member[320:448].reshape(64, 2)

        def step(state: jax.Array, _: Any) -> Any:
            position, speed, angle, spin = state
            inputs = jnp.array([position, speed, jnp.sin(angle), jnp.cos(angle), spin])
            force = jnp.tanh(jnp.tanh(inputs @ weights[0]) @ weights[1])[0]
            spin = spin + 0.02 * (9.8 * jnp.sin(angle) - force * jnp.cos(angle))
            speed = speed + 0.02 * force
            state = jnp.array([position + 0.02 * speed, speed, angle + 0.02 * spin, spin])
            return state, jnp.square(angle) + 0.1 * jnp.square(position)

        _, costs = jax.lax.scan(step, jnp.array([0.0, 0.0, 0.1, 0.0]), length=200)
        return costs.sum()

    strategy = CMA_ES(population_size=4096, solution=jnp.zeros(width))
    return _generation(strategy, fitness, over)


def _network(width: int, hidden: int, classes: int) -> Any:
    """A loss of two layers of a batch, and how many parameters it has."""

    def loss(member: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
        first = member[: width * hidden].reshape(width, hidden)
        second = member[width * hidden :].reshape(hidden, classes)
        return shapes.cross_entropy(jax.nn.relu(x @ first) @ second, y)

    return loss, width * hidden + hidden * classes


def separable_cma_es() -> Any:
    """Separable CMA-ES over a classifier of 102,400 parameters, 2,048 members."""
    over = shapes.mesh(population=8)
    loss, parameters = _network(784, 128, 16)
    strategy = Sep_CMA_ES(population_size=2048, solution=jnp.zeros(parameters))
    x = shapes.shaped(over, (1024, 784))
    y = shapes.shaped(over, (1024,), jnp.int32)
    return _generation(strategy, loss, over, x, y)


def policy_gradients() -> Any:
    """PGPE with Adam over a classifier of 407,040 parameters, 1,024 members on 64 chips."""
    over = shapes.mesh(population=64)
    loss, parameters = _network(784, 512, 11)
    strategy = PGPE(population_size=1024, solution=jnp.zeros(parameters))
    x = shapes.shaped(over, (4096, 784))
    y = shapes.shaped(over, (4096,), jnp.int32)
    return _generation(strategy, loss, over, x, y)
