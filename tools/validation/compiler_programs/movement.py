"""Transposes, slices, padding, and arrays with dimensions far below 128."""

import jax
import jax.numpy as jnp
from jax import lax

from compiler_programs.registry import bf16, f32, kernel, s32

Array = jax.Array


@kernel(f32(4096, 2048))
def transpose(x: Array) -> Array:
    """The transpose of a matrix."""
    return x.T


@kernel(bf16(8, 1024, 8, 128))
def transpose_heads(x: Array) -> Array:
    """The sequence behind the heads."""
    return x.transpose(0, 2, 1, 3)


@kernel(bf16(32, 56, 56, 64))
def transpose_channels(x: Array) -> Array:
    """Channels to the front."""
    return x.transpose(0, 3, 1, 2)


@kernel(f32(8, 64, 64, 64), f32(8, 64, 64, 64))
def concatenate(x: Array, y: Array) -> Array:
    """Along lanes."""
    return jnp.concatenate([x, y], -1)


@kernel(f32(4096, 2048))
def pad(x: Array) -> Array:
    """Pads by an odd number all round."""
    return jnp.pad(x, ((3, 5), (1, 7)))


@kernel(f32(4096, 2048))
def roll(x: Array) -> Array:
    """Rolls by one row and one lane."""
    return jnp.roll(x, (1, 1), (0, 1))


@kernel(f32(16, 1024, 1024), s32(), s32(), donate=(0,))
def update_slice(x: Array, place: Array, row: Array) -> Array:
    """One row of a large array, in place."""
    return lax.dynamic_update_slice(x, jnp.ones((1, 1, 1024)), (place, row, 0))


@kernel(bf16(4096, 64, 24))
def reshape_to_lanes(x: Array) -> Array:
    """Two small dimensions to one."""
    return x.reshape(4096, 1536) * 2


@kernel(f32(4096, 9, 3), f32(4096, 9, 3))
def small_extents_elementwise(x: Array, v: Array) -> Array:
    """Nine points of three coordinates each."""
    return x + 0.01 * v - 0.5 * x * jnp.abs(v)


@kernel(f32(4096, 9, 3))
def small_extents_distances(x: Array) -> Array:
    """Between all points of a cloud."""
    apart = x[:, :, None] - x[:, None]
    return jnp.sqrt(jnp.sum(apart**2, -1) + 1e-9)


@kernel(f32(65536, 3, 3), f32(65536, 3))
def small_matrices_by_vectors(a: Array, x: Array) -> Array:
    """Many products of 3 x 3."""
    return jnp.einsum("nij,nj->ni", a, x)


@kernel(f32(16384, 3, 3), f32(16384, 3, 3))
def small_matrices(a: Array, b: Array) -> Array:
    """Many products of 3 x 3 by 3 x 3."""
    return a @ b


@kernel(f32(1024, 8))
def physics_step(state: Array) -> Array:
    """Eight bodies in a line, 100 steps of a scan, each among its neighbours."""

    def step(x: Array, _: None) -> tuple[Array, None]:
        force = jnp.roll(x, 1, -1) + jnp.roll(x, -1, -1) - 2 * x
        return x + 0.01 * jnp.sin(force), None

    return lax.scan(step, state, None, length=100)[0]


@kernel(f32(2048, 3), f32(2048), f32(256, 3))
def gaussian_process(x: Array, y: Array, at: Array) -> Array:
    """A squared-exponential kernel over 3 features; solved by Cholesky."""

    def cross(a: Array, b: Array) -> Array:
        return jnp.exp(-0.5 * jnp.sum((a[:, None] - b[None]) ** 2, -1))

    gram = cross(x, x) + 0.1 * jnp.eye(2048)
    factor = jnp.linalg.cholesky(gram)
    alpha = jax.scipy.linalg.cho_solve((factor, True), y)
    return cross(at, x) @ alpha


@kernel(f32(2048, 3), f32(3))
def gaussian_process_gram(x: Array, scale: Array) -> tuple[Array, Array]:
    """The matrix alone, and the gradient of the scales of its features."""

    def gram(scale: Array) -> Array:
        z = x * scale
        return jnp.exp(-0.5 * jnp.sum((z[:, None] - z[None]) ** 2, -1))

    matrix, back = jax.vjp(gram, scale)
    return matrix, back(matrix)[0]
