"""Reinforcement learning: PPO in gymnax, Jumanji rollouts, search of mctx, replay of flashbax."""

from typing import Any

import distrax
import flashbax
import gymnax
import jax
import jax.numpy as jnp
import jumanji
import mctx
import optax
import pgx
import rlax
import shapes
from flax import linen


class ActorCritic(linen.Module):
    """Two towers of two layers, as CleanRL and PureJaxRL have them."""

    actions: int
    width: int = 256

    @linen.compact
    def __call__(self, x: jax.Array) -> Any:
        """Logits and a value."""
        towers = []
        for size in (self.actions, 1):
            hidden = x
            for _ in range(2):
                hidden = linen.tanh(linen.Dense(self.width)(hidden))
            towers.append(linen.Dense(size)(hidden))
        return towers[0], towers[1][..., 0]


def ppo() -> Any:
    """PPO on MinAtar's Breakout, as PureJaxRL: 128 steps of 512 environments per chip, an epoch."""
    over = shapes.mesh(data=8)
    env, env_params = gymnax.make("Breakout-MinAtar")
    network = ActorCritic(env.num_actions)
    optimizer = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(2.5e-4, eps=1e-5))
    environments, steps, minibatches = 8 * 512, 128, 8

    def flat(seen: jax.Array) -> jax.Array:
        return seen.reshape(*seen.shape[:-3], -1)

    def update(params: Any, state: Any, envs: Any, seen: jax.Array, seed: jax.Array) -> Any:
        def act(carried: Any, key: jax.Array) -> Any:
            envs, seen = carried
            logits, value = network.apply(params, flat(seen))
            policy = distrax.Categorical(logits=logits)
            to_act, to_step = jax.random.split(key)
            action = policy.sample(seed=to_act)
            keys = jax.random.split(to_step, environments)
            after, envs, reward, done, *_ = jax.vmap(env.step, in_axes=(0, 0, 0, None))(
                keys, envs, action, env_params
            )
            record = (seen, action, policy.log_prob(action), value, reward, 1.0 - done)
            return (after, envs)[::-1], record

        keys = jax.random.split(jax.random.wrap_key_data(seed), steps)
        (envs, seen), records = jax.lax.scan(act, (envs, seen), keys)
        observations, actions, log_probs, values, rewards, going = records
        last = network.apply(params, flat(seen))[1]
        values = jnp.concatenate([values, last[None]])
        advantages = jax.vmap(
            lambda r, d, v: rlax.truncated_generalized_advantage_estimation(r, 0.99 * d, 0.95, v),
            in_axes=1,
            out_axes=1,
        )(rewards, going, values)
        batch = (observations, actions, log_probs, advantages, advantages + values[:-1])

        def learn(carried: Any, batch: Any) -> Any:
            def loss(params: Any) -> jax.Array:
                observations, actions, log_probs, advantages, targets = batch
                logits, value = network.apply(params, flat(observations))
                policy = distrax.Categorical(logits=logits)
                ratio = jnp.exp(policy.log_prob(actions) - log_probs)
                normed = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
                surrogate = rlax.clipped_surrogate_pg_loss(ratio.ravel(), normed.ravel(), 0.2)
                return (
                    surrogate
                    + 0.5 * jnp.square(value - targets).mean()
                    - 0.01 * (policy.entropy().mean())
                )

            params, state = carried
            updates, state = optimizer.update(jax.grad(loss)(params), state, params)
            return (optax.apply_updates(params, updates), state), None

        parts = jax.tree.map(lambda x: x.reshape(minibatches, -1, *x.shape[1:]), batch)
        (params, state), _ = jax.lax.scan(learn, (params, state), parts)
        return params, state, envs, seen

    keys = jax.ShapeDtypeStruct((environments, 2), jnp.uint32)
    seen, envs = shapes.abstract(jax.vmap(env.reset, in_axes=(0, None)), keys, env_params)
    params = shapes.abstract(lambda x: network.init(shapes.key(), flat(x)), seen)
    state = shapes.replicated(shapes.abstract(optimizer.init, params), over)
    envs, seen = (shapes.batched(tree, over) for tree in (envs, seen))
    seed = shapes.shaped(over, (2,), jnp.uint32)
    step = jax.jit(update, donate_argnums=(0, 1, 2, 3))
    return step, (shapes.replicated(params, over), state, envs, seen, seed)


def bin_packing() -> Any:
    """Jumanji's BinPack, twenty random legal steps, 256 environments per chip."""
    over = shapes.mesh(data=4)
    env = jumanji.make("BinPack-v2")

    def rollout(states: Any, timesteps: Any, seed: jax.Array) -> Any:
        def step(carried: Any, key: jax.Array) -> Any:
            states, timesteps = carried
            legal = timesteps.observation.action_mask
            logits = jnp.where(legal, 0.0, -1e9).reshape(legal.shape[0], -1)
            flat = jax.random.categorical(key, logits)
            action = jnp.stack(jnp.divmod(flat, legal.shape[2]), axis=-1)
            states, timesteps = jax.vmap(env.step)(states, action)
            return (states, timesteps), timesteps.reward

        keys = jax.random.split(jax.random.wrap_key_data(seed), 20)
        return jax.lax.scan(step, (states, timesteps), keys)

    keys = jax.ShapeDtypeStruct((4 * 256, 2), jnp.uint32)
    trees = shapes.abstract(jax.vmap(env.reset), keys)
    seed = shapes.shaped(over, (2,), jnp.uint32)
    return jax.jit(rollout), (*(shapes.batched(tree, over) for tree in trees), seed)


class Residual(linen.Module):
    """The tower of residual blocks of AlphaZero: a policy and a value of a board."""

    actions: int
    width: int = 128
    blocks: int = 6

    @linen.compact
    def __call__(self, x: jax.Array) -> Any:
        """Logits and a value."""
        x = linen.relu(linen.Conv(self.width, (3, 3), dtype=jnp.bfloat16)(x))
        for _ in range(self.blocks):
            y = linen.relu(linen.Conv(self.width, (3, 3), dtype=jnp.bfloat16)(x))
            x = linen.relu(x + linen.Conv(self.width, (3, 3), dtype=jnp.bfloat16)(y))
        flat = x.reshape(x.shape[0], -1)
        logits = linen.Dense(self.actions, dtype=jnp.bfloat16)(flat).astype(jnp.float32)
        value = linen.Dense(1, dtype=jnp.bfloat16)(flat).astype(jnp.float32)
        return logits, jnp.tanh(value[:, 0])


def alpha_zero() -> Any:
    """Gumbel AlphaZero plays Go 9x9 in pgx: a move by 32 simulations of mctx, 128 games a chip."""
    over = shapes.mesh(data=8)
    env = pgx.make("go_9x9")
    network = Residual(env.num_actions)

    def move(params: Any, games: Any, seed: jax.Array) -> Any:
        def recurrent(params: Any, _: jax.Array, action: jax.Array, games: Any) -> Any:
            player = games.current_player
            games = jax.vmap(env.step)(games, action)
            logits, value = network.apply(params, games.observation.astype(jnp.bfloat16))
            logits = jnp.where(games.legal_action_mask, logits, -1e9)
            reward = games.rewards[jnp.arange(player.shape[0]), player]
            discount = jnp.where(games.terminated, 0.0, -1.0)
            output = mctx.RecurrentFnOutput(
                reward=reward, discount=discount, prior_logits=logits, value=value
            )
            return output, games

        logits, value = network.apply(params, games.observation.astype(jnp.bfloat16))
        output = mctx.gumbel_muzero_policy(
            params=params,
            rng_key=jax.random.wrap_key_data(seed),
            root=mctx.RootFnOutput(prior_logits=logits, value=value, embedding=games),
            recurrent_fn=recurrent,
            num_simulations=32,
            invalid_actions=~games.legal_action_mask,
            max_num_considered_actions=16,
        )
        return jax.vmap(env.step)(games, output.action), output.action_weights

    keys = jax.ShapeDtypeStruct((8 * 128, 2), jnp.uint32)
    games = shapes.abstract(jax.vmap(env.init), keys)
    params = shapes.abstract(
        lambda g: network.init(shapes.key(), g.observation.astype(jnp.bfloat16)), games
    )
    seed = shapes.shaped(over, (2,), jnp.uint32)
    return jax.jit(move), (shapes.replicated(params, over), shapes.batched(games, over), seed)


def replay_dqn() -> Any:
    """Double DQN from a prioritised buffer of flashbax on each chip: add, sample, learn."""
    over = shapes.mesh(data=8)
    network = ActorCritic(18, width=512)
    optimizer = optax.adam(1e-4)
    buffer = flashbax.make_prioritised_flat_buffer(
        max_length=65536,
        min_length=64,
        sample_batch_size=1024,
        add_batch_size=256,
        priority_exponent=0.6,
    )
    one = {
        "seen": jnp.zeros(128),
        "action": jnp.zeros((), jnp.int32),
        "reward": jnp.zeros(()),
        "discount": jnp.zeros(()),
    }

    def learn(params: Any, target: Any, state: Any, buffers: Any, fresh: Any, keys: Any) -> Any:
        buffers = jax.vmap(buffer.add)(buffers, fresh)
        sampled = jax.vmap(buffer.sample)(buffers, keys)
        before, after = sampled.experience.first, sampled.experience.second

        def loss(params: Any) -> Any:
            values = network.apply(params, before["seen"])[0]
            choice = network.apply(params, after["seen"])[0]
            following = network.apply(target, after["seen"])[0]
            double = jax.vmap(jax.vmap(rlax.double_q_learning))
            errors = double(
                values, before["action"], before["reward"], before["discount"], following, choice
            )
            weights = 1.0 / sampled.probabilities
            return (weights * rlax.l2_loss(errors)).mean(), errors

        gradients, errors = jax.grad(loss, has_aux=True)(params)
        updates, state = optimizer.update(gradients, state, params)
        params = optax.apply_updates(params, updates)
        target = optax.incremental_update(params, target, 0.005)
        buffers = jax.vmap(buffer.set_priorities)(buffers, sampled.indices, jnp.abs(errors) + 1e-6)
        return params, target, state, buffers

    buffers = shapes.abstract(jax.vmap(lambda _: buffer.init(one)), jnp.zeros(8))
    buffers = shapes.batched(buffers, over)
    params = shapes.abstract(network.init, shapes.key(), jnp.zeros((1, 128)))
    state = shapes.replicated(shapes.abstract(optimizer.init, params), over)
    params = shapes.replicated(params, over)
    fresh = {
        name: shapes.shaped(over, (8, 256, *leaf.shape), leaf.dtype, "data")
        for name, leaf in one.items()
    }
    keys = shapes.shaped(over, (8, 2), jnp.uint32, "data")
    step = jax.jit(learn, donate_argnums=(0, 1, 2, 3))
    return step, (params, params, state, buffers, fresh, keys)


def impala() -> Any:
    """IMPALA's learner: V-trace of rlax over unrolls of 80 steps, an LSTM of Flax, batch first."""
    over = shapes.mesh(data=16)
    optimizer = optax.rmsprop(6e-4, decay=0.99, eps=0.1)

    class Agent(linen.Module):
        @linen.compact
        def __call__(self, frames: jax.Array) -> Any:
            x = frames.astype(jnp.bfloat16) / 255
            for width, size, stride in ((32, 8, 4), (64, 4, 2), (64, 3, 1)):
                conv = linen.Conv(width, (size, size), (stride, stride), dtype=jnp.bfloat16)
                x = linen.relu(conv(x))
            x = linen.relu(linen.Dense(512, dtype=jnp.bfloat16)(x.reshape(*x.shape[:2], -1)))
            x = linen.RNN(linen.OptimizedLSTMCell(256))(x.astype(jnp.float32))
            return linen.Dense(18)(x), linen.Dense(1)(x)[..., 0]

    agent = Agent()

    def loss(params: Any, frames: Any, actions: Any, behaviour: Any, rewards: Any) -> jax.Array:
        logits, values = agent.apply(params, frames)
        log_probs = jax.nn.log_softmax(logits[:, :-1])
        chosen = jnp.take_along_axis(log_probs, actions[..., None], -1)[..., 0]
        rhos = jnp.exp(chosen - behaviour)
        discounts = jnp.full(rewards.shape, 0.99)
        trace = jax.vmap(
            lambda v, w, r, d, rho: rlax.vtrace_td_error_and_advantage(v, w, r, d, rho),
        )(values[:, :-1], values[:, 1:], rewards, discounts, rhos)
        policy = -(jax.lax.stop_gradient(trace.pg_advantage) * chosen).mean()
        entropy = (jnp.exp(log_probs) * log_probs).sum(-1).mean()
        return policy + 0.5 * jnp.square(trace.errors).mean() + 0.01 * entropy

    frames = shapes.shaped(over, (16 * 16, 81, 84, 84, 4), jnp.uint8, "data")
    actions = shapes.shaped(over, (16 * 16, 80), jnp.int32, "data")
    numbers = shapes.shaped(over, (16 * 16, 80), jnp.float32, "data")
    params = shapes.abstract(agent.init, shapes.key(), frames)
    state = shapes.replicated(shapes.abstract(optimizer.init, params), over)
    step = shapes.train_step(loss, optimizer)
    return step, (shapes.replicated(params, over), state, frames, actions, numbers, numbers)
