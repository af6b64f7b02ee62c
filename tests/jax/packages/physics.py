"""Physics: Brax, MuJoCo MJX, JAX-MD and JAX-CFD rollouts."""

from typing import Any

import jax
import jax.numpy as jnp
import jax_cfd.base as cfd
import mujoco
import numpy as np
import shapes
from brax import envs
from jax_md import energy, simulate, space
from mujoco import mjx

WALKER = """
<mujoco><option timestep="0.005" solver="CG" iterations="4" ls_iterations="4"/>
<worldbody>
  <geom type="plane" size="5 5 .1"/>
  <body pos="0 0 1"><freejoint/><geom name="torso" type="capsule" size=".08 .2"/>
    <body pos="0.1 0 -.2"><joint name="hip" axis="0 1 0" range="-60 60"/>
      <geom type="capsule" fromto="0 0 0 0 0 -.4" size=".05"/>
      <body pos="0 0 -.4"><joint name="knee" axis="0 1 0" range="-90 0"/>
        <geom type="capsule" fromto="0 0 0 0 0 -.4" size=".04"/></body></body>
    <body pos="-.1 0 -.2"><joint name="hip2" axis="0 1 0" range="-60 60"/>
      <geom type="capsule" fromto="0 0 0 0 0 -.4" size=".05"/>
      <body pos="0 0 -.4"><joint name="knee2" axis="0 1 0" range="-90 0"/>
        <geom type="capsule" fromto="0 0 0 0 0 -.4" size=".04"/></body></body></body>
</worldbody>
<actuator><motor joint="hip" gear="40"/><motor joint="knee" gear="40"/>
  <motor joint="hip2" gear="40"/><motor joint="knee2" gear="40"/></actuator></mujoco>
"""


def brax_rollout() -> Any:
    """Twenty steps of Brax's ant under a small policy, 256 environments per device."""
    over = shapes.mesh(data=8)
    env = envs.get_environment("ant", backend="spring")

    def rollout(weights: jax.Array, states: Any) -> Any:
        def step(state: Any, _: Any) -> Any:
            state = jax.vmap(env.step)(state, jnp.tanh(state.obs @ weights))
            return state, state.reward

        return jax.lax.scan(step, states, length=20)

    keys = jax.ShapeDtypeStruct((8 * 256, 2), jnp.uint32)
    states = shapes.abstract(jax.vmap(env.reset), keys)
    weights = shapes.shaped(over, (env.observation_size, env.action_size), jnp.float32)
    return jax.jit(rollout), (weights, shapes.batched(states, over))


def mjx_rollout() -> Any:
    """Ten steps of a walker in MuJoCo MJX, with contacts and constraints, 128 per device."""
    over = shapes.mesh(data=8)
    model = mjx.put_model(mujoco.MjModel.from_xml_string(WALKER))
    one = mjx.make_data(model)

    def rollout(data: Any, controls: jax.Array) -> Any:
        def step(data: Any, control: jax.Array) -> Any:
            data = jax.vmap(mjx.step, in_axes=(None, 0))(model, data.replace(ctrl=control))
            return data, data.qpos

        return jax.lax.scan(step, data, controls)

    data = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (8 * 128, *np.shape(leaf))), one)
    controls = shapes.shaped(over, (10, 8 * 128, model.nu), jnp.float32, None, "data")
    return jax.jit(rollout), (shapes.batched(data, over), controls)


def molecular_dynamics() -> Any:
    """JAX-MD: a soft-sphere gas of 2,048 particles, all pairs, 100 Nose-Hoover steps a device."""
    over = shapes.mesh(data=8)
    displacement, shift = space.periodic(16.0)
    potential = energy.soft_sphere_pair(displacement)
    init, apply = simulate.nvt_nose_hoover(potential, shift, 1e-3, 0.5)

    def run(states: Any) -> Any:
        def steps(state: Any) -> Any:
            return jax.lax.fori_loop(0, 100, lambda _, s: apply(s), state)

        return jax.vmap(steps)(states)

    keys = jax.ShapeDtypeStruct((8, 2), jnp.uint32)
    positions = jax.ShapeDtypeStruct((8, 2048, 3), jnp.float32)
    states = shapes.abstract(jax.vmap(lambda k, r: init(k, r, mass=1.0)), keys, positions)
    return jax.jit(run), (shapes.batched(states, over),)


def fluid() -> Any:
    """JAX-CFD: 2D Navier-Stokes on 2,048 x 2,048 cells, sharded in space, ten steps."""
    over = shapes.mesh(x=4, y=2)
    grid = cfd.grids.Grid((2048, 2048), domain=((0, 2 * np.pi), (0, 2 * np.pi)))
    step = cfd.funcutils.repeated(
        cfd.equations.semi_implicit_navier_stokes(density=1.0, viscosity=1e-3, dt=1e-3, grid=grid),
        steps=10,
    )
    conditions = cfd.boundaries.periodic_boundary_conditions(2)

    def run(u: jax.Array, v: jax.Array) -> Any:
        velocity = tuple(
            cfd.grids.GridVariable(cfd.grids.GridArray(data, offset, grid), conditions)
            for data, offset in zip((u, v), grid.cell_faces, strict=True)
        )
        return tuple(component.data for component in step(velocity))

    component = shapes.shaped(over, (2048, 2048), jnp.float32, "x", "y")
    return jax.jit(run), (component, component)
