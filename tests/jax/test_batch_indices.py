"""Lookups by jnp.arange beside other indices: every row stays on its device."""

import pathlib
import subprocess
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

COLLECTIVES = ("all-gather", "all-reduce", "all-to-all", "collective-permute", "reduce-scatter")


def log_probabilities(values: Any, labels: Any) -> Any:
    rows, columns, _ = values.shape
    return values[jnp.arange(rows)[:, None], jnp.arange(columns)[None], labels]


def gradient(values: Any, labels: Any) -> Any:
    return jax.grad(lambda v: (log_probabilities(v, labels) ** 2).sum())(values)


def layers(x: Any, i: Any) -> Any:
    # Every layer marks the same places; the rows are counted before the loop.
    rows = jnp.arange(16)

    def layer(x: Any, scale: Any) -> tuple[Any, None]:
        marks = jnp.zeros_like(x).at[rows, i].set(scale)
        return x + marks, None

    return jax.lax.scan(layer, x, jnp.arange(3.0))[0]


VALUES = ((8, 4, 32), "float32")
LABELS = ((8, 4), "int32")
ROWS = ((16, 32), "float32")
INDICES = ((16,), "int32")
# Function, arguments with their shardings, number of collectives.
PROGRAMS: dict[str, tuple[Any, tuple[Any, ...], int]] = {
    "rows": (lambda x, i: x[jnp.arange(16), i], ((*ROWS, P("y")), (*INDICES, P("y"))), 0),
    "middle": (
        lambda x, i: x[i, :, jnp.arange(16)],
        (((32, 8, 16), "float32", P(None, None, "y")), (*INDICES, P("y"))),
        0,
    ),
    "clipped": (
        lambda x, i: x.at[jnp.arange(16), i].get(mode="clip"),
        ((*ROWS, P("y")), (*INDICES, P("y"))),
        0,
    ),
    "labels": (log_probabilities, ((*VALUES, P("y")), (*LABELS, P("y"))), 0),
    "labels_both": (log_probabilities, ((*VALUES, P("x", "y")), (*LABELS, P("x", "y"))), 0),
    "labels_uneven": (log_probabilities, (((6, 4, 32), "float32", P()), ((6, 4), "int32", P())), 0),
    "vocabulary": (log_probabilities, ((*VALUES, P("x", None, "y")), (*LABELS, P("x"))), 1),
    "gradient": (gradient, ((*VALUES, P("y")), (*LABELS, P("y"))), 0),
    "set": (
        lambda x, i: x.at[jnp.arange(16), i].set(1.0),
        ((*ROWS, P("y")), (*INDICES, P("y"))),
        0,
    ),
    "add": (
        lambda x, i: x.at[jnp.arange(16), i].add(x[:, 0]),
        ((*ROWS, P("y")), (*INDICES, P("y"))),
        0,
    ),
    "layers": (layers, ((*ROWS, P("y")), (*INDICES, P("y"))), 0),
    # Not the position itself, or not along the whole dimension: lookups.
    "next_row": (
        lambda x, i: x[jnp.arange(16) + 1, i],
        (((17, 32), "float32", P()), (*INDICES, P("y"))),
        0,
    ),
    "first_rows": (
        lambda x, i: x[jnp.arange(8), i],
        ((*ROWS, P("y")), ((8,), "int32", P("y"))),
        2,
    ),
    "diagonal": (
        lambda x: x[jnp.arange(16), jnp.arange(16)],
        (((16, 16), "float32", P("y")),),
        0,
    ),
    # Values that nothing constrains are whole, as JAX's compiler leaves them.
    # The updates are split, so the scatter is; its result is gathered, where XLA adds up tables.
    "gradient_whole": (gradient, ((*VALUES, P("y")), (*LABELS, P("y"))), 1),
    "diagonal_whole": (
        lambda x: x[jnp.arange(16), jnp.arange(16)],
        (((16, 16), "float32", P("y")),),
        1,
    ),
}
# Results that programs ask for.
RESULTS = {"gradient": P("y"), "diagonal": P("y")}


@pytest.mark.parametrize("name", PROGRAMS)
def test_rows_stay_where_they_are(name: str, binary: str, tmp_path: pathlib.Path):
    function, described, collectives = PROGRAMS[name]
    mesh = jax.make_mesh((2, 4), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    arguments = [
        jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, spec))
        for shape, dtype, spec in described
    ]
    file, output = tmp_path / "program.pb", tmp_path / "partitioned.pb"
    asked = {"out_shardings": NamedSharding(mesh, RESULTS[name])} if name in RESULTS else {}
    jitted = jax.jit(function, **asked)
    tpusim.export(jitted, *arguments, path=file, config="v5e-4x2")
    command = [binary, "compile", "--config", "v5e-4x2", str(file), "--emit", "partitioned"]
    done = subprocess.run(
        [*command, "-o", str(output)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    made = output.read_bytes()
    sent = [i for _, i, _ in hlo_execution.executed(hlo.Module(made)) if i.opcode in COLLECTIVES]
    assert len(sent) == collectives, [i.opcode for i in sent]
    inputs, expected = oracle.reference(jitted, arguments)
    oracle.check(oracle.run(oracle.hlo_module(made), inputs), expected)
