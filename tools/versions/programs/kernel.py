"""A product by a Pallas kernel, priced from its grid and body, beside its reduction over a mesh."""

import functools

import jax
import jax.numpy as jnp
import tpusim
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P


def body(x, w, out, total):
    """The kernel's body: a block of the product, summed over the last axis of the grid."""

    @pl.when(pl.program_id(2) == 0)
    def _():
        total[...] = jnp.zeros_like(total)

    total[...] += jnp.dot(x[...], w[...], preferred_element_type=jnp.float32)

    @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
    def _():
        out[...] = total[...].astype(out.dtype)


def product(x, w):
    """Blocks of 256 rows and 512 columns."""
    (rows, depth), columns = x.shape, w.shape[1]
    return pl.pallas_call(
        body,
        out_shape=jax.ShapeDtypeStruct((rows, columns), x.dtype),
        grid=(rows // 256, columns // 512, depth // 512),
        in_specs=[
            pl.BlockSpec((256, 512), lambda i, j, k: (i, k)),
            pl.BlockSpec((512, 512), lambda i, j, k: (k, j)),
        ],
        out_specs=pl.BlockSpec((256, 512), lambda i, j, k: (i, j)),
        scratch_shapes=[pltpu.VMEM((256, 512), jnp.float32)],
        name="product",
    )(x, w)


mesh = AbstractMesh((8,), ("x",), (AxisType.Auto,))


@jax.jit
@functools.partial(
    jax.shard_map, mesh=mesh, in_specs=(P(None, "x"), P("x")), out_specs=P(), check_vma=False
)
def step(x, w):
    """Each device has a part of the depth."""
    return jax.lax.psum(product(x, w), "x")


def array(*shape, spec):
    """An argument."""
    return jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=NamedSharding(mesh, spec))


x, w = array(2048, 8192, spec=P(None, "x")), array(8192, 4096, spec=P("x"))
workload = tpusim.export(step, x, w, path=None, config="v5e-4x2")
assert workload.kernels == ()
report = tpusim.simulate(workload, config="v5e-4x2")
# 2 x 2,048 x 1,024 x 4,096 on each device, of the body that the call carries.
assert report.flops >= 2 * 2048 * 1024 * 4096
print(report.step_time_ns)
