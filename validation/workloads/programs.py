"""The programs behind the published measurements; their exports are committed beside this file.

    python validation/workloads/programs.py     writes all exports anew

A program does what was measured and nothing else. `validation/measurements.json` says which
measurement each belongs to; measurements of programs in `workloads/examples` use those.
"""

import functools
import pathlib
import sys
from collections.abc import Callable
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "tools" / "python")]

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402
from jax.experimental import pallas as pl  # noqa: E402
from jax.experimental.pallas import tpu as pltpu  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

from validation.workloads.operations import OPERATIONS  # noqa: E402
from workloads.examples.example import AnyMesh, Example, Program, array  # noqa: E402

PROGRAMS: dict[str, Example] = {}
Ref = Any  # a block in VMEM


def program(
    name: str, mesh: dict[str, int], config: str
) -> Callable[[Callable[[AnyMesh], Program]], Callable[[AnyMesh], Program]]:
    """Registers a builder as the program of that name."""

    def register(build: Callable[[AnyMesh], Program]) -> Callable[[AnyMesh], Program]:
        PROGRAMS[name] = Example(name=name, mesh=mesh, config=config, build=build)
        return build

    return register


ALONE = {"X": 1}


def matmul(size: int, mesh: AnyMesh) -> Program:
    """`jnp.matmul` of two square matrices in bf16."""
    shape = (size, size)
    arguments = (array(mesh, shape, jnp.bfloat16), array(mesh, shape, jnp.bfloat16))
    return jax.jit(jnp.matmul), arguments


for _size in (1024, 4096, 8192):
    program(f"matmul_{_size}", ALONE, "v5e-1x1")(functools.partial(matmul, _size))


@program("query_projection", ALONE, "v2-1x1")
def query_projection(mesh: AnyMesh) -> Program:
    """Activations by the query weights, heads before the sequence in the result."""

    def project(x: jax.Array, w: jax.Array) -> jax.Array:
        return jnp.einsum("bsd,dhk->bhsk", x, w)

    return jax.jit(project), (
        array(mesh, (8, 1024, 8192), jnp.bfloat16),
        array(mesh, (8192, 8, 256), jnp.bfloat16),
    )


def copy(size: int, mesh: AnyMesh) -> Program:
    """Reads an array of `size` bytes and writes it elsewhere."""
    return jax.jit(jnp.copy), (array(mesh, (size // 4096, 1024), jnp.float32),)


for _size in (*(1 << n for n in range(21, 31)), 1 << 33):
    program(f"copy_{_size}", ALONE, "v7x-1x1x1")(functools.partial(copy, _size))


@program("take_rows", ALONE, "v7x-1x1x1")
def take_rows(mesh: AnyMesh) -> Program:
    """Four million rows of 512 bytes out of a table of 4096."""

    def take(table: jax.Array, rows: jax.Array) -> jax.Array:
        return jnp.take(table, rows, axis=0, mode="clip")

    return jax.jit(take), (
        array(mesh, (4096, 128), jnp.int32),
        array(mesh, (4194304,), jnp.int32),
    )


def add(size: int, mesh: AnyMesh) -> Program:
    """The sum of two square matrices in f16."""
    shape = (size, size)
    arguments = (array(mesh, shape, jnp.float16), array(mesh, shape, jnp.float16))
    return jax.jit(jnp.add), arguments


for _size in (64, 128, 256, 512, 1024):
    program(f"add_{_size}", ALONE, "v4-1x1x1")(functools.partial(add, _size))


def layer_norm(shape: tuple[int, int, int], mesh: AnyMesh) -> Program:
    """Normalisation of the last dimension with scale and offset, in f16."""

    def normalise(x: jax.Array, scale: jax.Array, offset: jax.Array) -> jax.Array:
        mean = x.mean(axis=-1, keepdims=True)
        variance = x.var(axis=-1, keepdims=True)
        return (x - mean) * lax.rsqrt(variance + 1e-5) * scale + offset

    vector = array(mesh, shape[-1:], jnp.float16)
    return jax.jit(normalise), (array(mesh, shape, jnp.float16), vector, vector)


for _shape in ((2, 128, 512), (2, 1024, 1536), (8, 1024, 512), (12, 1024, 3584)):
    program("layer_norm_" + "x".join(map(str, _shape)), ALONE, "v4-1x1x1")(
        functools.partial(layer_norm, _shape)
    )


def all_gather(axis: str, bytes_per_device: int, mesh: AnyMesh) -> Program:
    """Every group along `axis` gathers f32 shards."""
    rows = bytes_per_device // 4096

    def gather(x: jax.Array) -> jax.Array:
        return lax.all_gather(x, axis, tiled=True)

    others = tuple(a for a in mesh.axis_names if a != axis)
    sharded = jax.shard_map(
        gather,
        mesh=mesh,
        in_specs=P((*others, axis), None),
        out_specs=P(others or None, None),
        check_vma=False,
    )
    return jax.jit(sharded), (
        array(mesh, (mesh.size * rows, 1024), jnp.float32, (*others, axis), None),
    )


for _total in (1 << 19, 1 << 32):
    program(f"all_gather_ring_{_total}", {"X": 8, "Y": 16}, "v5e-8x16")(
        functools.partial(all_gather, "Y", _total // 16)
    )
for _shard in (1 << n for n in (18, 20, 22, 24, 26)):
    program(f"all_gather_chips_{_shard}", {"chip": 4, "core": 2}, "v7x-2x2x1")(
        functools.partial(all_gather, "chip", _shard)
    )


def all_reduce(bytes_per_device: int, mesh: AnyMesh) -> Program:
    """Every group along X adds up arrays of this size."""
    rows = bytes_per_device // (1 << 16)

    def add_up(x: jax.Array) -> jax.Array:
        return lax.psum(x, "X")

    sharded = jax.shard_map(
        add_up, mesh=mesh, in_specs=P(("Y", "Z", "X"), None), out_specs=P(("Y", "Z"), None)
    )
    shape = (mesh.size * rows, 1 << 15)
    return jax.jit(sharded), (array(mesh, shape, jnp.bfloat16, ("Y", "Z", "X"), None),)


for _size in (1 << n for n in (22, 24, 27, 30, 33, 35)):
    program(f"all_reduce_axis_{_size}", {"X": 4, "Y": 4, "Z": 4}, "v5p-4x4x4")(
        functools.partial(all_reduce, _size)
    )


@program("all_reduce_slices", {"dcn": 2, "ici": 256}, "2x(v6e-16x16)")
def all_reduce_slices(mesh: AnyMesh) -> Program:
    """A matrix split between two slices is added up, by all chips of both."""

    def add_up(x: jax.Array) -> jax.Array:
        return lax.psum(x, "dcn")

    sharded = jax.shard_map(add_up, mesh=mesh, in_specs=P("dcn", None), out_specs=P(None, None))
    return jax.jit(sharded), (array(mesh, (17408, 17408), jnp.bfloat16, "dcn", None),)


def pallas_matmul(size: int, blocks: tuple[int, int, int], mesh: AnyMesh) -> Program:
    """A product in blocks that pass through VMEM, added up in the result's block."""
    rows, columns, depth = blocks

    def kernel(x: Ref, y: Ref, out: Ref) -> None:
        @pl.when(pl.program_id(2) == 0)
        def _() -> None:
            out[...] = jnp.zeros_like(out)

        out[...] += jnp.dot(x[...], y[...], preferred_element_type=jnp.float32).astype(out.dtype)

    def multiply(x: jax.Array, y: jax.Array) -> jax.Array:
        return pl.pallas_call(
            kernel,
            grid=(size // rows, size // columns, size // depth),
            in_specs=[
                pl.BlockSpec((rows, depth), lambda i, j, k: (i, k)),
                pl.BlockSpec((depth, columns), lambda i, j, k: (k, j)),
            ],
            out_specs=pl.BlockSpec((rows, columns), lambda i, j, k: (i, j)),
            out_shape=jax.ShapeDtypeStruct((size, size), x.dtype),
        )(x, y)

    shape = (size, size)
    arguments = (array(mesh, shape, jnp.bfloat16), array(mesh, shape, jnp.bfloat16))
    return jax.jit(multiply), arguments


program("pallas_matmul_1024_large_blocks", ALONE, "v5e-1x1")(
    functools.partial(pallas_matmul, 1024, (512, 1024, 1024))
)
for _size in (1024, 4096, 8192):
    program(f"pallas_matmul_{_size}", ALONE, "v5e-1x1")(
        functools.partial(pallas_matmul, _size, (128, 128, 128))
    )


@program("pallas_block_sparse_matmul", ALONE, "v5e-1x1")
def pallas_block_sparse_matmul(mesh: AnyMesh) -> Program:
    """A product with a matrix of which a tenth of the blocks is there, row by row of blocks.

    The blocks are those of the source's random numbers, as JAX made them in 2024.
    """
    size, block = 16384, 512
    with jax.threefry_partitionable(False):
        which, _ = jax.random.split(jax.random.key(0))
        present = jax.random.bernoulli(which, p=0.1, shape=(size // block, size // block))
    rows, depths = (indices.astype(np.int32) for indices in np.nonzero(np.asarray(present)))
    last = len(rows) - 1

    def kernel(rows: Ref, depths: Ref, x: Ref, y: Ref, zeros: Ref, out: Ref, total: Ref) -> None:
        here = pl.program_id(1)
        before, after = rows[jnp.maximum(here - 1, 0)], rows[jnp.minimum(here + 1, last)]

        @pl.when((here == 0) | (rows[here] != before))
        def _() -> None:
            total[...] = jnp.zeros_like(total)

        total[...] += jnp.dot(x[0], y[...], preferred_element_type=jnp.float32)

        @pl.when((here == last) | (rows[here] != after))
        def _() -> None:
            out[...] = total[...].astype(out.dtype)

    def result_block(column: Any, here: Any, rows: Ref, depths: Ref) -> tuple[Any, Any]:
        return rows[here], column

    def multiply(x: jax.Array, y: jax.Array, zeros: jax.Array) -> jax.Array:
        whole = pl.BlockSpec((block, block), result_block)
        return pl.pallas_call(
            kernel,
            grid_spec=pltpu.PrefetchScalarGridSpec(
                num_scalar_prefetch=2,
                grid=(size // block, len(rows)),
                in_specs=[
                    pl.BlockSpec((1, block, block), lambda column, here, *_: (here, 0, 0)),
                    pl.BlockSpec(
                        (block, block), lambda column, here, rows, depths: (depths[here], column)
                    ),
                    whole,
                ],
                out_specs=whole,
                scratch_shapes=[pltpu.VMEM((block, block), jnp.float32)],
            ),
            out_shape=jax.ShapeDtypeStruct((size, size), x.dtype),
            # Rows without a block stay zero.
            input_output_aliases={4: 0},
        )(rows, depths, x, y, zeros)

    shapes = ((len(rows), block, block), (size, size), (size, size))
    return jax.jit(multiply), tuple(array(mesh, shape, jnp.bfloat16) for shape in shapes)


def activation(size: int, mesh: AnyMesh) -> Program:
    """The hyperbolic tangent of a vector in f16."""
    return jax.jit(jnp.tanh), (array(mesh, (size,), jnp.float16),)


program("tanh_8192", ALONE, "v4-1x1x1")(functools.partial(activation, 8192))


def product(size: int, mesh: AnyMesh) -> Program:
    """A product of square bf16 matrices, added up in f32 and stored in bf16."""

    def multiply(x: jax.Array, y: jax.Array) -> jax.Array:
        sums = jnp.einsum("ij,jk->ik", x, y, preferred_element_type=jnp.float32)
        return sums.astype(jnp.bfloat16)

    shape = (size, size)
    arguments = (array(mesh, shape, jnp.bfloat16), array(mesh, shape, jnp.bfloat16))
    return jax.jit(multiply), arguments


for _size in (128, 256, 512, 1024, 2048, 4096, 16384, 32768):
    program(f"product_{_size}", ALONE, "v7x-1x1x1")(functools.partial(product, _size))


program("product_8192", ALONE, "v6e-1x1")(functools.partial(product, 8192))


@program("all_reduce_slice", {"ici": 256}, "v6e-16x16")
def all_reduce_slice(mesh: AnyMesh) -> Program:
    """Adds up a matrix that each chip of a slice has."""

    def add_up(x: jax.Array) -> jax.Array:
        return lax.psum(x, "ici")

    sharded = jax.shard_map(
        add_up, mesh=mesh, in_specs=P(None, None), out_specs=P(None, None), check_vma=False
    )
    return jax.jit(sharded), (array(mesh, (17408, 17408), jnp.bfloat16, None, None),)


@program("reduce_scatter_pair", {"data": 4, "model": 2}, "v2-2x2")
def reduce_scatter_pair(mesh: AnyMesh) -> Program:
    """Pairs of cores add up activations and keep half of the model dimension each."""

    def add_up(x: jax.Array) -> jax.Array:
        return lax.psum_scatter(x, "model", scatter_dimension=2, tiled=True)

    sharded = jax.shard_map(
        add_up,
        mesh=mesh,
        in_specs=P("data", None, None),
        out_specs=P("data", None, "model"),
        check_vma=False,
    )
    return jax.jit(sharded), (array(mesh, (32, 1024, 8192), jnp.bfloat16, "data", None, None),)


# Programs as the TPU compiler leaves them: places are given in layouts, as in a dump of its own.
# S(3) is CMEM. JAX has no other way to ask for it.
COMPILED: dict[str, str] = {}


def copy_to_cmem(size: int) -> str:
    """A prefetch and nothing else."""
    array = f"f16[{size // 2048},1024]{{1,0:T(8,128)(2,1)"
    there = f"{array}S(3)}}"
    return f"""HloModule copy_to_cmem, is_scheduled=true

ENTRY main {{
  x = {array}}} parameter(0)
  copy-start = ({there}, {array}}}, u32[]{{:S(2)}}) copy-start(x)
  ROOT copy-done = {there} copy-done(copy-start)
}}
"""


def matmul_in_cmem(size: int) -> str:
    """A product whose operands have been brought to CMEM before; the result goes to HBM."""
    array = f"f16[{size},{size}]{{1,0:T(8,128)(2,1)"
    dims = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    return f"""HloModule matmul_in_cmem, is_scheduled=true

ENTRY main {{
  x = {array}S(3)}} parameter(0)
  y = {array}S(3)}} parameter(1)
  ROOT dot = {array}}} dot(x, y), {dims}
}}
"""


for _size in (
    1 << 19,
    *(1 << n for n in range(20, 24)),
    *(3 << n for n in (22, 23)),
    1 << 24,
    1 << 25,
):
    COMPILED[f"copy_to_cmem_{_size}"] = copy_to_cmem(_size)
for _size in (128, 256, 384, 512, 640, 768, 896, 1024, 1536, 2048, 2560, 3072, 3584, 4096):
    COMPILED[f"matmul_in_cmem_{_size}"] = matmul_in_cmem(_size)


# Modules that the compiler could have written, each with its slice.
MODULES = {name: (text, "v4-1x1x1") for name, text in COMPILED.items()} | {
    name: (text, "v5p-1x1x1") for name, text in OPERATIONS.items()
}


def parse(name: str) -> Any:
    """One of MODULES as a workload."""
    text, config = MODULES[name]
    import tpusim
    from jaxlib import _hlo
    from tpusim import wire

    data = _hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()
    # Field 5 counts the modules of the process.
    module = wire.serialize(field for field in wire.parse(data) if field[0] != 5)
    return tpusim.Workload(hlo_module=module, name=name, config=config)


def on_one_host(kind: str, shapes: tuple[tuple[int, ...], ...], mesh: AnyMesh) -> Program:
    """A collective over the four chips of a host of v5p, of arrays of these shapes in bf16.

    A gather's is the result; sums are of one whole array per chip.
    """

    def collect(*operands: jax.Array) -> Any:
        if kind == "all_gather":
            return tuple(lax.all_gather(x, "X", tiled=True) for x in operands)
        if kind == "reduce_scatter":
            return tuple(lax.psum_scatter(x, "X", tiled=True) for x in operands)
        return lax.psum(operands, "X")

    gathers = kind == "all_gather"
    sharded = jax.shard_map(
        collect,
        mesh=mesh,
        in_specs=P("X"),
        out_specs=P("X") if kind == "reduce_scatter" else P(),
        check_vma=not gathers,
    )
    operands = [
        array(
            mesh,
            (shape[0] * (1 if gathers else mesh.size), *shape[1:]),
            jnp.bfloat16,
            "X",
            *(None,) * (len(shape) - 1),
        )
        for shape in shapes
    ]
    return jax.jit(sharded), tuple(operands)


# One all-reduce of so many operands; only the bytes of all together are known.
for _name, _shapes in {
    "all_gather_4096": ((4, 512),),
    "all_gather_1048576": ((512, 8, 128),),
    "all_gather_268435456": ((262144, 512),),
    "reduce_scatter_1048576": ((512, 8, 128),),
    "reduce_scatter_32768000": ((512, 32000),),
    "all_reduce_1048576": ((512, 8, 128),),
    "all_reduce_32768000": ((512, 32000),),
    "all_reduce_155582464": ((512, 151936),),
    "all_reduce_of_4": ((512, 512),) * 4,
    "all_reduce_of_7": ((720, 512),) * 7,
    "all_reduce_of_33": ((248, 512),) * 33,
    "all_reduce_of_45": ((456, 512),) * 45,
}.items():
    program(f"{_name}_v5p_host", {"X": 4}, "v5p-2x2x1")(
        functools.partial(on_one_host, _name.partition("_of_")[0].rstrip("_0123456789"), _shapes)
    )


def main() -> None:
    """Exports all of PROGRAMS and MODULES."""
    from workloads.examples import export_all

    folder = pathlib.Path(__file__).parent
    export_all.write(PROGRAMS, folder)
    for name in MODULES:
        parse(name).save(folder / f"{name}.pb.gz")


if __name__ == "__main__":
    main()
