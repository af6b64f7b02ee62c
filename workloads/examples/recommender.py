"""One train step of a recommender: tables of embeddings, two MLPs, products of all pairs between.

After DLRM, https://arxiv.org/abs/1906.00091. Each feature of a kind has a table of its own, from
which a sample looks up one row; the gradient of a table has a row for each of these, so it is
added to the table where it belongs, and no array of the table's size is made for it.
"""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp

from workloads.examples.example import AnyMesh, Program, example
from workloads.examples.rules import Array, Layout, Rules

SLICE = "v5e-4x2"
RATE = 0.1
Tree = dict[str, Any]

# Section 3 of the paper: MLPs are replicated and see a part of the batch each; tables are divided
# among the devices. There a device has whole tables; here all have some rows of each.
RULES: Rules = {"batch": ("data", "model"), "rows": ("data", "model")}


@dataclasses.dataclass(frozen=True)
class Recommender:
    """Sizes of the model and of its batch."""

    rows: tuple[int, ...] = (1024, 512, 1024, 64)
    width: int = 32  # Of a row
    dense: int = 13  # Features that are numbers
    bottom: tuple[int, ...] = (64, 32)  # The last is that of a row
    top: tuple[int, ...] = (128, 64, 1)
    batch: int = 64
    most_whole: int = 64  # Tables of no more rows are replicated

    def tables(self) -> dict[str, Array]:
        """Returns the tables by name; rows are split if there are many."""
        return {
            f"table_{at}": Array(
                (rows, self.width), ("rows" if rows > self.most_whole else None, None)
            )
            for at, rows in enumerate(self.rows)
        }

    def layers(self) -> dict[str, Array]:
        """Weights and biases of both MLPs."""
        count = len(self.rows) + 1
        found = {}
        for name, first, sizes in (
            ("bottom", self.dense, self.bottom),
            ("top", self.width + count * (count - 1) // 2, self.top),
        ):
            for at, (inputs, outputs) in enumerate(zip((first, *sizes), sizes, strict=False)):
                found[f"{name}_{at}"] = Array((inputs, outputs), (None, None))
                found[f"{name}_bias_{at}"] = Array((outputs,), (None,))
        return found

    def ranges(self) -> dict[str, tuple[float, float]]:
        """From where rows to look up are drawn, and labels."""
        return {f"feature_{at}": (0, rows) for at, rows in enumerate(self.rows)} | {
            "clicks": (0, 2)
        }


def mlp(weights: Tree, name: str, count: int, x: jax.Array) -> jax.Array:
    """Products with a rectifier between; the last of the upper one has none."""
    for at in range(count):
        product = jnp.dot(
            x,
            weights[f"{name}_{at}"].astype(x.dtype),
            preferred_element_type=jnp.float32,
        )
        wide = product + weights[f"{name}_bias_{at}"]
        x = (wide if name == "top" and at == count - 1 else jax.nn.relu(wide)).astype(jnp.bfloat16)
    return x


def logits_of(
    model: Recommender, layout: Layout, weights: Tree, looked_up: Tree, dense: jax.Array
) -> jax.Array:
    """One for each sample: how likely the click is."""
    low = mlp(weights, "bottom", len(model.bottom), dense.astype(jnp.bfloat16))
    rows = [row.astype(low.dtype) for row in looked_up.values()]
    vectors = layout.constrain(jnp.stack([low, *rows], axis=1), "batch", None, None)
    products = jnp.einsum(
        "bid,bjd->bij", vectors, vectors, preferred_element_type=jnp.float32
    ).astype(low.dtype)
    first, second = jnp.tril_indices(vectors.shape[1], -1)
    both = jnp.concatenate([low, products[:, first, second]], axis=1)
    both = layout.constrain(both, "batch", None)
    return mlp(weights, "top", len(model.top), both)[:, 0].astype(jnp.float32)


def train(model: Recommender, mesh: AnyMesh, rules: Rules = RULES) -> Program:
    """The step, its tables and weights, and a batch."""
    layout = Layout(mesh, rules)

    def train_step(
        tables: Tree, weights: Tree, dense: jax.Array, features: Tree, clicks: jax.Array
    ) -> tuple[Tree, Tree, jax.Array]:
        rows = dict(zip(tables, features.values(), strict=True))
        looked_up = {
            name: layout.constrain(jnp.take(table, rows[name], axis=0), "batch", None)
            for name, table in tables.items()
        }

        def loss(weights: Tree, looked_up: Tree) -> jax.Array:
            logits = logits_of(model, layout, weights, looked_up, dense)
            return jnp.mean(jax.nn.softplus(logits) - clicks * logits)

        value, (change, of_rows) = jax.value_and_grad(loss, argnums=(0, 1))(weights, looked_up)
        tables = {
            name: table.at[rows[name]].add(-RATE * of_rows[name]) for name, table in tables.items()
        }
        return tables, jax.tree.map(lambda w, g: w - RATE * g, weights, change), value

    tables = layout.shapes(model.tables(), jnp.float32)
    weights = layout.shapes(model.layers(), jnp.float32)
    of_batch = layout.shape(Array((model.batch,), ("batch",)), jnp.int32)
    kept = jax.tree.map(lambda leaf: leaf.sharding, (tables, weights))
    step = jax.jit(train_step, out_shardings=(*kept, layout.sharding()), donate_argnums=(0, 1))
    return step, (
        tables,
        weights,
        layout.shape(Array((model.batch, model.dense), ("batch", None)), jnp.float32),
        {f"feature_{at}": of_batch for at in range(len(model.rows))},
        layout.shape(Array((model.batch,), ("batch",)), jnp.float32),
    )


MODEL = Recommender()
example(
    {"data": 8, "model": 1},
    SLICE,
    "recommender_train",
    ranges=MODEL.ranges(),
    precision="bfloat16",
)(functools.partial(train, MODEL))
