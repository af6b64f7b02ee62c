"""Products whose collectives become loops of permutes compute what they computed.

On a chip whose compiler makes every product windowed that can be.
"""

import json
import pathlib
import subprocess
from collections.abc import Callable
from typing import Any

import hlo_execution
import jax
import jax.numpy as jnp
import oracle
import pytest
import tpusim
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from tpusim import hlo

Specs = tuple[Any, ...]
Case = tuple[dict[str, int], Callable[[Any, Any], Any], Specs, Specs, int]

EIGHT = {"a": 8}
ROWS, COLUMNS = {"a": 4, "b": 2}, {"b": 2, "a": 4}
MATRICES = ((16, 32), (32, 64))


def product(x: jax.Array, y: jax.Array) -> jax.Array:
    return x @ y


def weight_gradient(x: jax.Array, y: jax.Array) -> jax.Array:
    return x.T @ y


def turned(x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.einsum("ij,jk->ki", x, y)


def batched(x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.einsum("bij,bjk->bik", x, y)


def heads(x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.einsum("bsw,wgd->bsgd", x, y)


BATCHES = ((2, 16, 32), (2, 32, 16))
HEADS = ((8, 4, 16), (16, 8, 4))

# Mesh, function, shapes, shardings of both operands and the result, permutes.
CASES: dict[str, Case] = {
    "gather_contracted_right": (EIGHT, product, MATRICES, (P("a"), P("a"), P("a")), 9),
    "gather_contracted_left": (
        EIGHT,
        product,
        MATRICES,
        (P(None, "a"), P(None, "a"), P(None, "a")),
        9,
    ),
    "gather_free_right": (EIGHT, product, MATRICES, (P("a"), P(None, "a"), P("a")), 9),
    "gather_free_left": (EIGHT, product, MATRICES, (P("a"), P(None, "a"), P(None, "a")), 9),
    "scatter_rows": (EIGHT, product, MATRICES, (P(None, "a"), P("a"), P("a")), 9),
    "scatter_columns": (EIGHT, product, MATRICES, (P(None, "a"), P("a"), P(None, "a")), 9),
    "gather_four": (ROWS, product, MATRICES, (P("a"), P("a", "b"), P("a", "b")), 3),
    "gather_four_of_columns": (COLUMNS, product, MATRICES, (P("a"), P("a", "b"), P("a", "b")), 3),
    "gather_free_four": (
        ROWS,
        product,
        MATRICES,
        (P("a"), P(None, "a"), P("a", None)),
        3,
    ),
    # The sum over b is all-reduced.
    "gather_free_of_a_sum": (ROWS, product, MATRICES, (P("a"), P("b", "a"), P("a", None)), 0),
    "scatter_four": (ROWS, product, MATRICES, (P("b", "a"), P("a"), P(("b", "a"))), 3),
    "scatter_four_of_columns": (
        COLUMNS,
        product,
        MATRICES,
        (P("b", "a"), P("a"), P("b", "a")),
        3,
    ),
    "weight_gradient": (EIGHT, weight_gradient, ((32, 16), (32, 64)), (P("a"), P("a"), P("a")), 9),
    "turned": (EIGHT, turned, MATRICES, (P("a"), P("a"), P(None, "a")), 9),
    "batched_gather": (
        ROWS,
        batched,
        BATCHES,
        (P("b", "a"), P("b", "a"), P("b", "a")),
        3,
    ),
    "batched_scatter": (
        ROWS,
        batched,
        BATCHES,
        (P("b", None, "a"), P("b", "a"), P("b", None, "a")),
        3,
    ),
    "heads": (EIGHT, heads, HEADS, (P("a"), P("a"), P("a")), 9),
}


def compiled(
    case: str, dtype: Any, stage: str, binary: str, folder: pathlib.Path
) -> tuple[Any, Any, bytes]:
    """The function, its arguments and the module at a stage."""
    sizes, function, shapes, specs, _ = CASES[case]
    axis_types = (AxisType.Auto,) * len(sizes)
    mesh = jax.make_mesh(tuple(sizes.values()), tuple(sizes), axis_types=axis_types)
    places = [NamedSharding(mesh, spec) for spec in specs]
    arguments = [
        jax.ShapeDtypeStruct(shape, dtype, sharding=place)
        for shape, place in zip(shapes, places[:2], strict=True)
    ]
    step = jax.jit(function, out_shardings=places[2])
    (folder / "eager.json").write_text(
        json.dumps({"base": "v5e", "name": "eager", "compiler": {"windowed_flops_per_byte": 1}})
    )
    config = folder / "config.json"
    config.write_text(json.dumps({"chip": "eager.json", "slice": "4x2"}))
    file, output = folder / "program.pb", folder / "module.pb"
    tpusim.export(step, *arguments, path=file, name=case, config="v5e-4x2")
    command = [binary, "compile", "--config", str(config), str(file), "--emit", stage]
    if stage == "executable":
        command += ["--passes", oracle.EXACT_PASSES]
    subprocess.run([*command, "-o", str(output)], check=True)
    return step, arguments, output.read_bytes()


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.int32], ids=["f32", "s32"])
@pytest.mark.parametrize("case", CASES)
def test_windowed_equals_jax(case: str, dtype: Any, binary: str, tmp_path: pathlib.Path):
    step, arguments, module = compiled(case, dtype, "executable", binary, tmp_path)
    permutes = sum(
        times
        for _, instruction, times in hlo_execution.executed(hlo.Module(module))
        if instruction.opcode == "collective-permute"
    )
    assert permutes == CASES[case][4]
    inputs, expected = oracle.reference(step, arguments)
    oracle.check(oracle.run(oracle.hlo_module(module), inputs), expected)
