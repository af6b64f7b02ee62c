"""Science: weather, optimal transport, Gaussian processes, equivariant networks, solvers."""

from typing import Any

import e3nn_jax as e3nn
import jax
import jax.numpy as jnp
import jaxopt
import lineax
import optax
import shapes
import tinygp
from dinosaur import (
    coordinate_systems,
    held_suarez,
    primitive_equations,
    primitive_equations_states,
    scales,
    sigma_coordinates,
    spherical_harmonic,
    time_integration,
)
from dynamax.hidden_markov_model import parallel_inference
from flax import linen
from jax.sharding import AxisType
from ott.geometry import pointcloud
from ott.solvers import linear


def weather() -> Any:
    """Dinosaur: ten steps of the Held-Suarez test, T170, 32 levels, over levels and space."""
    over = jax.make_mesh((2, 2, 2), ("z", "x", "y"), axis_types=(AxisType.Auto,) * 3)
    coordinates = coordinate_systems.CoordinateSystem(
        spherical_harmonic.Grid.T170(
            spherical_harmonics_impl=spherical_harmonic.FastSphericalHarmonics
        ),
        sigma_coordinates.SigmaCoordinates.equidistant(32),
        spmd_mesh=over,
    )
    specs = primitive_equations.PrimitiveEquationsSpecs.from_si()
    make, features = primitive_equations_states.isothermal_rest_atmosphere(coordinates, specs)
    reference = features["ref_temperatures"]
    orography = primitive_equations.truncated_modal_orography(features["orography"], coordinates)
    equations = time_integration.compose_equations(
        [
            primitive_equations.PrimitiveEquations(reference, orography, coordinates, specs),
            held_suarez.HeldSuarezForcing(coordinates, specs, reference),
        ]
    )
    step = time_integration.imex_rk_sil3(equations, specs.nondimensionalize(300 * scales.units.s))
    state = shapes.abstract(lambda: make(jax.random.PRNGKey(0)))

    def place(leaf: Any) -> Any:
        # The pressure at the surface has one level.
        axes = ("z" if leaf.shape[0] > 1 else None, "x", "y") if leaf.ndim == 3 else ()
        return shapes.shaped(over, leaf.shape, leaf.dtype, *axes)

    state = jax.tree.map(place, state)
    return jax.jit(time_integration.repeated(step, 10)), (state,)


def sinkhorn() -> Any:
    """OTT: Sinkhorn between 16,384 points, online cost matrices, a hundred iterations, and grad."""
    over = shapes.mesh(x=16)

    def cost(x: jax.Array, y: jax.Array) -> jax.Array:
        geometry = pointcloud.PointCloud(x, y, epsilon=0.05)
        out = linear.solve(geometry, min_iterations=100, max_iterations=100)
        return out.reg_ot_cost

    points = shapes.shaped(over, (16384, 64), jnp.float32, "x")
    targets = shapes.shaped(over, (16384, 64), jnp.float32)
    return jax.jit(jax.value_and_grad(cost)), (points, targets)


def marginal_likelihood() -> Any:
    """tinygp: the marginal likelihood of 4,096 points by a Cholesky factor, for 64 kernels."""
    over = shapes.mesh(kernels=8)

    def negative(theta: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
        amplitude, scale, noise = jnp.exp(theta)
        kernel = amplitude * tinygp.kernels.Matern52(scale)
        return -tinygp.GaussianProcess(kernel, x, diag=noise).log_probability(y)

    step = jax.vmap(jax.value_and_grad(negative), in_axes=(0, None, None))
    theta = shapes.shaped(over, (16, 3), jnp.float32, "kernels")
    x = shapes.shaped(over, (2048,), jnp.float32)
    return jax.jit(step), (theta, x, x)


def equivariant() -> Any:
    """e3nn: three rounds of tensor products on batches of atoms, forces and their training."""
    over = shapes.mesh(data=8)
    atoms, pairs, channels = 1024, 16384, 32
    optimizer = optax.adam(1e-3)

    class Potential(linen.Module):
        @linen.compact
        def __call__(self, positions: jax.Array, kinds: jax.Array, pairs: jax.Array) -> jax.Array:
            senders, receivers = pairs
            vectors = e3nn.IrrepsArray("1o", positions[receivers] - positions[senders])
            harmonics = e3nn.spherical_harmonics([0, 1, 2], vectors, True)
            lengths = e3nn.norm(vectors).array
            radial = e3nn.bessel(lengths[:, 0], 8) * e3nn.poly_envelope(6, 2)(lengths)
            x = e3nn.IrrepsArray(f"{channels}x0e", linen.Embed(8, channels)(kinds))
            for _ in range(3):
                messages = e3nn.flax.Linear(x.irreps)(x)[senders]
                keep = [ir for _, ir in e3nn.Irreps("0e + 1o + 2e")]
                mixed = e3nn.tensor_product(messages, harmonics, filter_ir_out=keep)
                weights = e3nn.flax.MultiLayerPerceptron(
                    (64, mixed.irreps.num_irreps), jax.nn.silu, output_activation=False
                )(radial)
                sums = e3nn.scatter_sum(mixed * weights, dst=receivers, output_size=atoms) / 16.0
                hidden = e3nn.Irreps(f"{3 * channels}x0e + {channels}x1o + {channels}x2e")
                x = e3nn.gate(e3nn.flax.Linear(hidden)(sums))
            return e3nn.flax.Linear("0e")(x).array.sum()

    model = Potential()

    def loss(params: Any, positions: Any, kinds: Any, pairs: Any, forces: Any) -> jax.Array:
        def one(positions: jax.Array, kinds: jax.Array, pairs: jax.Array) -> jax.Array:
            return -jax.grad(lambda r: model.apply(params, r, kinds, pairs))(positions)

        return jnp.square(jax.vmap(one)(positions, kinds, pairs) - forces).mean()

    positions = shapes.shaped(over, (8 * 4, atoms, 3), jnp.float32, "data")
    kinds = shapes.shaped(over, (8 * 4, atoms), jnp.int32, "data")
    edges = shapes.shaped(over, (8 * 4, 2, pairs), jnp.int32, "data")
    one = (jax.ShapeDtypeStruct(x.shape[1:], x.dtype) for x in (positions, kinds, edges))
    params = shapes.abstract(model.init, shapes.key(), *one)
    state = shapes.replicated(shapes.abstract(optimizer.init, params), over)
    step = shapes.train_step(loss, optimizer)
    return step, (shapes.replicated(params, over), state, positions, kinds, edges, positions)


def hidden_markov_model() -> Any:
    """Dynamax: the smoother of a chain of 64 states by associative scans over 65,536 steps."""
    over = shapes.mesh(batch=4)
    smooth = jax.vmap(parallel_inference.hmm_smoother, in_axes=(None, None, 0))
    initial = shapes.shaped(over, (32,), jnp.float32)
    transition = shapes.shaped(over, (32, 32), jnp.float32)
    likelihoods = shapes.shaped(over, (4 * 2, 8192, 32), jnp.float32, "batch")
    return jax.jit(smooth), (initial, transition, likelihoods)


def conjugate_gradients() -> Any:
    """Lineax: conjugate gradients on a Poisson equation of 4,096 x 4,096 cells, split in rows."""
    over = shapes.mesh(x=8)

    def laplace(u: jax.Array) -> jax.Array:
        padded = jnp.pad(u, 1)
        sides = padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:]
        return 4 * u - sides

    def solve(b: jax.Array) -> jax.Array:
        operator = lineax.FunctionLinearOperator(
            laplace, jax.eval_shape(lambda: b), lineax.positive_semidefinite_tag
        )
        solver = lineax.CG(rtol=1e-5, atol=1e-5, max_steps=200)
        return lineax.linear_solve(operator, b, solver, throw=False).value

    return jax.jit(solve), (shapes.shaped(over, (4096, 4096), jnp.float32, "x"),)


def lbfgs() -> Any:
    """JAXopt: L-BFGS with a zoom line search on a multinomial regression, data parallel."""
    over = shapes.mesh(data=16)
    solver = jaxopt.LBFGS(
        jaxopt.objective.multiclass_logreg, maxiter=10, linesearch="zoom", implicit_diff=False
    )
    weights = shapes.shaped(over, (2048, 128), jnp.float32)
    x = shapes.shaped(over, (16 * 8192, 2048), jnp.float32, "data")
    y = shapes.shaped(over, (16 * 8192,), jnp.int32, "data")

    def fit(weights: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
        return solver.run(weights, data=(x, y)).params

    return jax.jit(fit), (weights, x, y)
