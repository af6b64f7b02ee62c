"""Published steps of serving engines: decoding with a paged cache, and a chunk of prompts.

    python validation/workloads/serving.py [NAME ...]     writes exports, all by default

Sources: sgl-project/sglang-jax, the timing of pull request 1484 (S01, told in its issues 293 and
1500) and the cookbook's page of Qwen3 (S03-S05); marin-community/marin issue 6229, whose engine is
Levanter (S02). The programs are written anew in JAX, with sizes of the published models. Everything
is bfloat16. Heads, the MLP's width and the vocabulary are shared over one mesh axis, `tensor`.

Layers are copies, as in both engines. SGLang-JAX keeps the weights of each layer as arrays of their
own, [in, out]; Levanter keeps one array of all layers, [layers, out, in], and slices it. Each layer
has its own pages of keys and values, donated: a kernel copies what is new into them, then JAX's
ragged paged attention reads them. The engines' kernels do both at once and copy only pages that a
sequence has, where JAX's copies whole blocks of pages; so there are as many blocks here as there
(16 pages each, in SGLang-JAX's table for v6e), as even as pages allow. That table has one query per
block to decode, and 128 for prompts. Of prompts Levanter makes the logits of every token, then
takes those of the last ones.

What the sources do not say stands with each row of `validation/measurements.json`.
"""

import dataclasses
import functools
import pathlib
import sys
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "tools" / "python")]

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from jax import lax  # noqa: E402
from jax.experimental import pallas as pl  # noqa: E402
from jax.experimental.pallas import tpu as pltpu  # noqa: E402
from jax.experimental.pallas.ops.tpu import ragged_paged_attention as ragged  # noqa: E402
from jax.sharding import NamedSharding, PartitionSpec  # noqa: E402

from validation.workloads.decoder import normalize, turned  # noqa: E402
from workloads.examples.example import AnyMesh, Example, Program, array  # noqa: E402

AXIS = "tensor"
HEAD, KEY_HEADS, VOCABULARY = 128, 8, 151_936
LONGEST_TURN, EPSILON = 1e6, 1e-6
PAGE = 128  # Tokens
MOST_PAGES = 16  # Of a block of keys and values
PROMPT_QUERIES = 128  # Of a block, of prompts

Weights = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Model:
    """A size of Qwen3; a head has 128 columns, and 8 heads have keys."""

    layers: int
    width: int
    heads: int
    mlp: int

    def projections(self) -> dict[str, tuple[int, int]]:
        """Inputs and outputs of a layer's products."""
        wide, narrow = self.heads * HEAD, KEY_HEADS * HEAD
        return {
            "query": (self.width, wide),
            "key": (self.width, narrow),
            "value": (self.width, narrow),
            "out": (wide, self.width),
            "gate": (self.width, self.mlp),
            "up": (self.width, self.mlp),
            "down": (self.mlp, self.width),
        }

    def scales(self) -> dict[str, int]:
        """Sizes of a layer's norms."""
        return {
            "scale_attention": self.width,
            "scale_mlp": self.width,
            "scale_query": HEAD,
            "scale_key": HEAD,
        }


QWEN3_8B = Model(layers=36, width=4096, heads=32, mlp=12288)
QWEN3_32B = Model(layers=64, width=5120, heads=64, mlp=25600)


@dataclasses.dataclass(frozen=True)
class Serving:
    """One published step.

    `sequences` each add `new` tokens to a cache that then has `context` tokens of them, and has
    room for `pages` pages of all of them. `stacked`: weights as Levanter keeps them. `sampled`: the
    likeliest token comes next; else the step ends with the logits.
    """

    model: Model
    chips: int
    sequences: int
    context: int
    pages: int
    new: int = 1
    stacked: bool = False
    sampled: bool = True

    def pages_of_one(self) -> int:
        """Pages of a sequence."""
        return -(-self.context // PAGE)

    def blocks(self) -> int:
        """Into how many blocks attention cuts the pages of a sequence."""
        return -(-self.pages_of_one() // MOST_PAGES)

    def trip_counts(self) -> dict[str, int]:
        """Trip counts of attention's loops: sequences of a block of queries, and blocks."""
        kernel = "ragged_paged_attention_kernel"
        return {f"{kernel}/loop.0": 1, f"{kernel}/loop.1": self.blocks()}

    def build(self, mesh: AnyMesh) -> Program:
        """The step and its arguments."""
        return serving_step(self, mesh)


@dataclasses.dataclass(frozen=True)
class Batch:
    """Arrays that say what a step has to do."""

    tokens: Any
    positions: Any
    lengths: Any  # Of sequences in the cache, new tokens included
    page_indices: Any
    starts: Any  # Where the queries of each sequence start, and where the last ones end
    count: Any  # Of sequences
    page_of: Any  # Which page each run of new tokens goes to
    slot_of: Any  # And where in it


jax.tree_util.register_dataclass(Batch)


def batch_of(run: Serving, mesh: AnyMesh) -> Batch:
    """Returns the batch as arguments."""

    def whole(*shape: int) -> jax.ShapeDtypeStruct:
        return array(mesh, shape, jnp.int32)

    tokens, runs = run.sequences * run.new, run.sequences * -(-run.new // PAGE)
    return Batch(
        tokens=whole(tokens),
        positions=whole(tokens),
        lengths=whole(run.sequences),
        page_indices=whole(run.sequences, run.pages_of_one()),
        starts=whole(run.sequences + 1),
        count=whole(1),
        page_of=whole(runs),
        slot_of=whole(runs),
    )


def weights_of(run: Serving, mesh: AnyMesh) -> Weights:
    """Returns the weights as arguments."""
    model = run.model
    split_inputs = ("out", "down")

    def product(name: str, inputs: int, outputs: int) -> jax.ShapeDtypeStruct:
        axes = (AXIS, None) if name in split_inputs else (None, AXIS)
        if run.stacked:
            shape = (model.layers, outputs, inputs)
            return array(mesh, shape, jnp.bfloat16, None, *reversed(axes))
        return array(mesh, (inputs, outputs), jnp.bfloat16, *axes)

    def scale(size: int) -> jax.ShapeDtypeStruct:
        return array(mesh, (model.layers, size) if run.stacked else (size,), jnp.bfloat16)

    layer = {name: product(name, *sizes) for name, sizes in model.projections().items()}
    layer |= {name: scale(size) for name, size in model.scales().items()}
    table = array(mesh, (VOCABULARY, model.width), jnp.bfloat16, AXIS)
    return {
        "layers": layer if run.stacked else [layer] * model.layers,
        "embedding": table,
        "head": table,
        "scale_final": array(mesh, (model.width,), jnp.bfloat16),
    }


def copy_rows(page_of: Any, slot_of: Any, new: Any, pages: Any, out: Any, done: Any) -> None:
    """The kernel of `update`: starts every copy, then waits for all of them."""
    del pages  # Is `out`
    runs, rows = page_of.shape[0], new.shape[0] // page_of.shape[0]

    def copy(run: jax.Array) -> Any:
        place = out.at[page_of[run], pl.ds(slot_of[run], rows)]
        return pltpu.make_async_copy(new.at[pl.ds(run * rows, rows)], place, done)

    def start(run: jax.Array, carry: None) -> None:
        copy(run).start()

    def wait(run: jax.Array, carry: None) -> None:
        copy(run).wait()

    lax.fori_loop(0, runs, start, None)
    lax.fori_loop(0, runs, wait, None)


def update(batch: Batch, new: jax.Array, pages: jax.Array) -> jax.Array:
    """The pages with new keys and values, in the same place."""
    anywhere = pl.BlockSpec(memory_space=pl.ANY)
    return pl.pallas_call(
        copy_rows,
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=2,
            grid=(1,),
            in_specs=[anywhere, anywhere],
            out_specs=anywhere,
            scratch_shapes=[pltpu.SemaphoreType.DMA],
        ),
        out_shape=jax.ShapeDtypeStruct(pages.shape, pages.dtype),
        input_output_aliases={3: 0},
        name="update_pages",
    )(batch.page_of, batch.slot_of, new, pages)


def attend(
    run: Serving,
    batch: Batch,
    query: jax.Array,
    key: jax.Array,
    value: jax.Array,
    pages: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """Attention of a device's heads, [token, head, column], and the pages it leaves."""
    tokens, heads = key.shape[:2]
    both = jnp.stack([key, value], axis=2).reshape(tokens, 2 * heads, HEAD)
    pages = update(batch, both, pages)
    context = ragged.ragged_paged_attention(
        query,
        pages,
        batch.lengths,
        batch.page_indices,
        batch.starts,
        batch.count,
        sm_scale=HEAD**-0.5,
        num_kv_pages_per_block=-(-run.pages_of_one() // run.blocks()),
        num_queries_per_block=min(run.new, PROMPT_QUERIES),
    )
    return context, pages


@functools.partial(jax.jit, static_argnums=(0, 1))
def layer_output(
    run: Serving, mesh: AnyMesh, batch: Batch, x: jax.Array, w: Weights, pages: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Attention, then the gated MLP, each added to what came in; and the layer's pages.

    Jitted so that an export has it once, and a call for each layer.
    """

    def times(x: jax.Array, name: str) -> jax.Array:
        return x @ (w[name].T if run.stacked else w[name])

    def whole(x: jax.Array) -> jax.Array:
        return lax.with_sharding_constraint(x, NamedSharding(mesh, PartitionSpec()))

    def heads(name: str) -> jax.Array:
        return times(normal, name).reshape(x.shape[0], -1, HEAD)

    def placed(heads: jax.Array, scale: jax.Array) -> jax.Array:
        positions = batch.positions.astype(jnp.float32)
        return turned(normalize(heads, scale, EPSILON), positions, LONGEST_TURN, jnp.float32)

    normal = normalize(x, w["scale_attention"], EPSILON)
    query = placed(heads("query"), w["scale_query"])
    key = placed(heads("key"), w["scale_key"])
    split, paged = PartitionSpec(None, AXIS), PartitionSpec(None, None, AXIS)
    context, pages = jax.shard_map(
        functools.partial(attend, run),
        mesh=mesh,
        in_specs=(PartitionSpec(), split, split, split, paged),
        out_specs=(split, paged),
        check_vma=False,
    )(batch, query, key, heads("value"), pages)
    x += whole(times(context.reshape(x.shape[0], -1), "out"))
    normal = normalize(x, w["scale_mlp"], EPSILON)
    wide = jax.nn.silu(times(normal, "gate")) * times(normal, "up")
    return x + whole(times(wide, "down")), pages


def serving_step(run: Serving, mesh: AnyMesh) -> Program:
    """The step, jitted, and its arguments: pages of all layers, the weights, what there is to do.

    It gives back the pages and the next token of each sequence, or the logits.
    """

    def layer(weights: Weights, at: int) -> Weights:
        if run.stacked:
            return {name: stack[at] for name, stack in weights["layers"].items()}
        return weights["layers"][at]

    def step(cache: list[jax.Array], weights: Weights, batch: Batch) -> Any:
        x = weights["embedding"][batch.tokens]
        left = []
        for at, pages in enumerate(cache):
            x, pages = layer_output(run, mesh, batch, x, layer(weights, at), pages)
            left.append(pages)
        x = normalize(x, weights["scale_final"], EPSILON)
        logits = x @ weights["head"].T
        if run.new > 1:
            logits = logits[batch.starts[1:] - 1]
        if not run.sampled:
            return left, logits
        return left, jnp.argmax(logits, axis=-1).astype(jnp.int32)

    shape = (run.pages, PAGE, 2 * KEY_HEADS, HEAD)
    cache = [array(mesh, shape, jnp.bfloat16, None, None, AXIS)] * run.model.layers
    kept = [pages.sharding for pages in cache]
    last = PartitionSpec() if run.sampled else PartitionSpec(None, AXIS)
    jitted = jax.jit(step, out_shardings=(kept, NamedSharding(mesh, last)), donate_argnums=0)
    return jitted, (cache, weights_of(run, mesh), batch_of(run, mesh))


def room(sequences: int, tokens: int) -> int:
    """Pages of sequences when they are done."""
    return sequences * -(-tokens // PAGE)


# Runs by row of `validation/measurements.json`. A sequence that is decoded is in the middle of its
# output.
RUNS = {
    "decode_qwen3_8b_v6e_4_16": Serving(
        QWEN3_8B, 4, 16, 1024 + 1024 // 2, room(16, 2048), sampled=False
    ),
    "prefill_qwen3_8b_v6e_8": Serving(QWEN3_8B, 8, 2, 2048, 512, new=2048, stacked=True),
    "decode_qwen3_8b_v6e_8": Serving(QWEN3_8B, 8, 8, 2048 + 128 // 2, 512, stacked=True),
    "decode_qwen3_8b_v6e_4_64": Serving(QWEN3_8B, 4, 64, 1024 + 1024 // 2, room(64, 2048)),
    "decode_qwen3_8b_v6e_4_64_long": Serving(QWEN3_8B, 4, 64, 8192 + 1024 // 2, room(64, 9216)),
    "decode_qwen3_32b_v6e_4_16": Serving(QWEN3_32B, 4, 16, 1024 + 1024 // 2, room(16, 2048)),
}
CONFIGS = {4: "v6e-2x2", 8: "v6e-4x2"}

SERVING: dict[str, Example] = {
    name: Example(
        name=name,
        mesh={AXIS: run.chips},
        config=CONFIGS[run.chips],
        build=run.build,
        trip_counts=run.trip_counts(),
    )
    for name, run in RUNS.items()
}


def main() -> None:
    """Exports those that are named, or all."""
    from workloads.examples import export_all

    export_all.write(SERVING, pathlib.Path(__file__).parent, sys.argv[1:])


if __name__ == "__main__":
    main()
