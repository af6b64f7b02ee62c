"""35 sharded train steps on 64 to 12,288 chips, for `pod_sweep.py`.

`ROWS` says of each its kind, slice and mesh; `KINDS` how a kind is built. What is left open, sizes
of the model and of the batch, is drawn by a seed among those of published models that the mesh
divides and that fit. Nothing is executed: shapes over abstract meshes.

    python benchmarks/sweep_programs.py --programs build/pod_sweep --only 'moe*' --seed 0
"""

import argparse
import dataclasses
import fnmatch
import functools
import math
import pathlib
import random
import sys
from collections.abc import Callable
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[1]
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "tools" / "python")]

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from jax import lax  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

from benchmarks.decoder_train import EVERYTHING_AGAIN, rules_of  # noqa: E402
from benchmarks.found_models import over_gathered, prefill_layer  # noqa: E402
from benchmarks.sweep_table import ROWS, Row  # noqa: E402
from validation.workloads.decoder import Decoder, Splash  # noqa: E402
from validation.workloads.train_step import train_step  # noqa: E402
from workloads.examples import adam, language_model, mixture_of_experts  # noqa: E402
from workloads.examples.example import AnyMesh, Example, Program  # noqa: E402
from workloads.examples.export_all import export  # noqa: E402
from workloads.examples.ring_attention import add_part  # noqa: E402
from workloads.examples.rules import Array, Layout, spec  # noqa: E402


@dataclasses.dataclass(frozen=True)
class Sizes:
    """The sizes of a published decoder."""

    layers: int
    width: int
    mlp: int
    heads: int
    kv_heads: int

    def state_bytes(self, experts: int) -> float:
        """Weights and both moments, but for the vocabulary's."""
        attention = 2 * self.width * (self.heads + self.kv_heads) * HEAD
        return 12.0 * self.layers * (attention + 3 * self.width * self.mlp * experts)

    def saved_bytes(self, tokens: int) -> float:
        """Bytes that layers leave for the backward pass: their inputs, in bfloat16."""
        return 2.0 * self.layers * self.width * tokens


HEAD = 128
FINER = 4  # An expert is so much narrower than the MLP
VOCABULARY = 32_768
PUBLISHED = (
    Sizes(32, 4096, 11_008, 32, 32),  # Llama 2 7B
    Sizes(32, 4096, 14_336, 32, 8),  # Llama 3 8B
    Sizes(36, 4096, 12_288, 32, 8),  # Qwen3 8B
    Sizes(40, 5120, 13_824, 40, 40),  # Llama 2 13B
    Sizes(40, 5120, 17_408, 40, 8),  # Qwen3 14B
    Sizes(80, 8192, 28_672, 64, 8),  # Llama 3 70B
    Sizes(80, 8192, 22_016, 64, 64),  # Llama 65B
)
MOST_STATE, MOST_SAVED = 4e9, 3e9  # Bytes on a device, whose HBM is 16 GiB or more
# Tokens of a sequence, and sequences per share of the batch. Attention that has all scores in
# memory at once takes the first.
TOKENS = ((2048, 1), (2048, 2), (2048, 4), (4096, 1), (4096, 2), (8192, 1))
QUERY_BLOCK = 512


@dataclasses.dataclass(frozen=True)
class Drawn:
    """The choices that the seed makes about a program."""

    sizes: Sizes
    sequence: int
    batch: int
    attention: dict[str, Any]  # Of a Decoder: by blocks of queries, or by JAX's kernel
    layers: int  # Of an unrolled program
    experts: int


def drawn(row: Row, seed: int) -> Drawn:
    """Draws the same choices for the same row and seed."""
    mesh, choose = row.mesh, random.Random(f"{seed} {row.name}")
    experts = mesh.get("expert", 1) * choose.choice((1, 2))
    tensor, holders = mesh.get("tp", 1), row.chips // mesh.get("data", 1)
    # A stage passes over its share of the layers three times as often as there are stages.
    passes = 3 if "stage" in mesh else 1
    fitting = [
        (sizes, tokens)
        for sizes in PUBLISHED
        for tokens in (TOKENS if KINDS[row.kind] is decoder else TOKENS[:1])
        if sizes.width % (mesh.get("fsdp", 1) * mesh.get("sp", 1)) == 0
        and math.gcd(sizes.kv_heads, sizes.mlp, tensor) == tensor
        and sizes.layers % mesh.get("stage", 1) == 0
        and sizes.state_bytes(max(1, experts // FINER)) / holders <= MOST_STATE
        and sizes.saved_bytes(passes * math.prod(tokens)) <= MOST_SAVED
    ]
    if not fitting:
        raise ValueError(f"{row.name}: no published model fits mesh {mesh}; see PUBLISHED")
    sizes, (sequence, sequences) = choose.choice(fitting)
    return Drawn(
        sizes=sizes,
        sequence=sequence,
        batch=sequences * math.prod(mesh.get(axis, 1) for axis in ("data", "fsdp", "expert")),
        attention=choose.choice(({"query_block": QUERY_BLOCK}, {"splash": Splash()})),
        layers=choose.randrange(16, 33, 4),
        experts=experts,
    )


def decoder(row: Row, draw: Drawn, mesh: AnyMesh) -> Program:
    """A decoder, split by the names of the mesh's axes: fully sharded, tensor parallel, or both."""
    sizes = dataclasses.asdict(draw.sizes)
    if row.kind == "unrolled":
        sizes["layers"] = draw.layers
    model = Decoder(
        **sizes,
        head=HEAD,
        vocabulary=VOCABULARY,
        sequence=draw.sequence,
        batch=draw.batch,
        unroll=row.kind == "unrolled",
        remat=EVERYTHING_AGAIN,
        narrow_logits=True,
        **draw.attention,
    )
    return train_step(model, mesh, rules_of(mesh))


def experts(_: Row, draw: Drawn, mesh: AnyMesh) -> Program:
    """Experts over an axis of their own, tokens sent to them and back."""
    sizes = draw.sizes
    model = mixture_of_experts.Experts(
        vocabulary=VOCABULARY,
        width=sizes.width,
        layers=sizes.layers,
        heads=sizes.heads,
        kv_heads=sizes.kv_heads,
        head=HEAD,
        hidden=sizes.mlp // FINER,
        experts=draw.experts,
        batch=draw.batch,
        sequence=draw.sequence,
    )
    return mixture_of_experts.train(model, mesh)


def trained(
    layout: Layout, sizes: Sizes, batch: int, sequence: int, logits: Callable[..., jax.Array]
) -> Program:
    """A step of Adam for logits of (weights of `language_model`, tokens)."""
    model = language_model.Model(
        vocabulary=VOCABULARY,
        width=sizes.width,
        layers=sizes.layers,
        heads=sizes.heads,
        head=HEAD,
        hidden=sizes.mlp,
    )

    def step(
        state: adam.TrainState, tokens: jax.Array, targets: jax.Array
    ) -> tuple[adam.TrainState, jax.Array]:
        def loss(weights: language_model.Weights) -> jax.Array:
            made = logits(weights, tokens)
            wanted = jax.nn.one_hot(targets, VOCABULARY, dtype=made.dtype)
            chosen = jnp.sum(made * wanted, axis=-1)
            return jnp.mean(jax.nn.logsumexp(made, axis=-1) - chosen)

        value, gradients = jax.value_and_grad(loss)(state.weights)
        return adam.update(state, gradients), value

    arrays = {
        name: dataclasses.replace(array, axes=("layers", *array.axes[1:]))
        if name in language_model.STACKED
        else array
        for name, array in model.arrays().items()
    }
    state = adam.state_like(layout.shapes(arrays, jnp.float32), layout.sharding())
    tokens = layout.shape(Array((batch, sequence), ("batch", None)), jnp.int32)
    results = (adam.shardings(state), layout.sharding())
    return jax.jit(step, out_shardings=results, donate_argnums=0), (state, tokens, tokens)


def gathered_blocks(_: Row, draw: Drawn, mesh: AnyMesh) -> Program:
    """Sequences split over the tensor axis between blocks, whole inside of them."""
    layout = Layout(mesh, {**rules_of(mesh), "sequence": "tp"})
    logits = functools.partial(language_model.forward, layout)
    return trained(layout, draw.sizes, draw.batch, draw.sequence, logits)


def split_sequences(
    attend: Callable[..., jax.Array], _: Row, draw: Drawn, mesh: AnyMesh
) -> Program:
    """Sequences split over an axis of their own from the first layer to the last."""
    layout = Layout(mesh, {**rules_of(mesh), "embed": ("fsdp", "sp"), "sequence": "sp"})

    def logits(weights: language_model.Weights, tokens: jax.Array) -> jax.Array:
        @jax.checkpoint
        def layer(x: jax.Array, w: language_model.Weights) -> tuple[jax.Array, None]:
            return prefill_layer(layout, x, w, attend)[0], None

        stacked = {name: weights[name] for name in language_model.STACKED}
        x, _ = lax.scan(layer, language_model.embed(layout, weights, tokens), stacked)
        x = language_model.normalize(x, weights["scale_final"])
        table = weights["unembedding"].astype(x.dtype)
        return layout.constrain(x @ table, "batch", "sequence", "vocabulary").astype(jnp.float32)

    parts = mesh.shape["sp"]
    return trained(layout, draw.sizes, draw.batch, draw.sequence * parts, logits)


def around_the_ring(layout: Layout, q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    """Attention whose keys and values go round the devices that share a sequence."""
    parts = layout.mesh.shape["sp"]
    to_next = [(part, (part + 1) % parts) for part in range(parts)]
    axes = spec(layout.rules, ("batch", "sequence", "heads", None))

    def local(query: jax.Array, key: jax.Array, value: jax.Array) -> jax.Array:
        query = query * query.shape[-1] ** -0.5

        @jax.checkpoint
        def step(carry: tuple, _: None) -> tuple[tuple, None]:
            sums, key, value = carry
            passed = (lax.ppermute(key, "sp", to_next), lax.ppermute(value, "sp", to_next))
            return (add_part(sums, query, key, value), *passed), None

        batch, length, heads, head = query.shape
        nothing = (
            jnp.zeros((batch, heads, length, head), jnp.float32),
            jnp.zeros((batch, heads, length), jnp.float32),
            jnp.full((batch, heads, length), -jnp.inf, jnp.float32),
        )
        (sums, key, value), _ = lax.scan(step, (nothing, key, value), length=parts - 1)
        values, weights, _ = add_part(sums, query, key, value)
        return (values / weights[..., None]).swapaxes(1, 2).astype(query.dtype)

    return jax.shard_map(
        local, mesh=layout.mesh, in_specs=(axes, axes, axes), out_specs=axes, check_vma=False
    )(q, k, v)


def gathered(part: jax.Array, axes: tuple[str | None, ...]) -> jax.Array:
    """The weights of a layer, in bfloat16, of all devices that share its dimension `fsdp`."""
    if "fsdp" not in axes:
        return part
    narrow = part.astype(jnp.bfloat16)
    return lax.all_gather(narrow, "fsdp", axis=axes.index("fsdp"), tiled=True)


class Local(Layout):
    """The layout of what one device holds: nothing is left to constrain."""

    def constrain(self, x: jax.Array, *axes: str | None) -> jax.Array:
        """`x` as it is."""
        del axes
        return x


def pipelined(_: Row, draw: Drawn, mesh: AnyMesh) -> Program:
    """Microbatches pass through stages of layers; a stage gathers the weights of each layer."""
    layout = Layout(mesh, {"batch": "fsdp", "embed": "fsdp", "layers": "stage"})
    local = Local(mesh, {})
    stages, microbatches = mesh.shape["stage"], 2 * mesh.shape["stage"]
    to_next = [(stage, stage + 1) for stage in range(stages - 1)]
    arrays = language_model.Model().arrays()
    specs = {
        name: spec(layout.rules, ("layers", *arrays[name].axes[1:]))
        for name in language_model.STACKED
    }

    @jax.checkpoint
    def layer(x: jax.Array, w: language_model.Weights) -> tuple[jax.Array, None]:
        position = jnp.arange(x.shape[1])
        whole = {name: gathered(part, specs[name][1:]) for name, part in w.items()}
        q, k, v = language_model.project(local, whole, x, position)
        mixed = language_model.attend(q, k, v, position[:, None] >= position)
        return language_model.finish(local, whole, x, mixed), None

    def run(weights: language_model.Weights, x: jax.Array) -> jax.Array:
        first = lax.axis_index("stage") == 0

        def tick(made: jax.Array, new: jax.Array) -> tuple[jax.Array, jax.Array]:
            arrived = lax.ppermute(made, "stage", to_next)
            made, _ = lax.scan(layer, jnp.where(first, new, arrived), weights)
            return made, made

        nothing = jnp.zeros((stages - 1, *x.shape[1:]), x.dtype)
        _, made = lax.scan(tick, nothing[0], jnp.concatenate([x, nothing]))
        return made[None, stages - 1 :]

    def logits(weights: language_model.Weights, tokens: jax.Array) -> jax.Array:
        x = language_model.embed(layout, weights, tokens)
        shape = x.shape
        x = x.reshape(-1, microbatches, *shape[1:]).swapaxes(0, 1)
        made = jax.shard_map(
            run,
            mesh=mesh,
            in_specs=(specs, P(None, "fsdp")),
            out_specs=P("stage", None, "fsdp"),
            check_vma=False,
        )({name: weights[name] for name in specs}, x)
        return language_model.logits_of(layout, weights, made[-1].swapaxes(0, 1).reshape(shape))

    batch = microbatches * mesh.shape["fsdp"]
    return trained(layout, draw.sizes, batch, draw.sequence, logits)


KINDS: dict[str, Callable[[Row, Drawn, AnyMesh], Program]] = {
    "fully_sharded": decoder,
    "tensor_parallel": decoder,
    "slices": decoder,
    "three_axes": decoder,
    "unrolled": decoder,
    "experts": experts,
    "gathered_blocks": gathered_blocks,
    "split_sequences": functools.partial(split_sequences, over_gathered),
    "ring_attention": functools.partial(split_sequences, around_the_ring),
    "pipeline": pipelined,
}


def write(row: Row, seed: int, file: pathlib.Path) -> None:
    """Exports a program; the file is whole or absent."""
    build = functools.partial(KINDS[row.kind], row, drawn(row, seed))
    workload = export(Example(name=row.name, mesh=row.mesh, config=row.config, build=build))
    file.parent.mkdir(parents=True, exist_ok=True)
    workload.save(file)


def main(arguments: list[str] | None = None) -> None:
    """Exports those that are not there yet."""
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--programs", type=pathlib.Path, default=ROOT / "build" / "pod_sweep")
    p.add_argument("--only", default="*", help="names of programs, as a glob")
    p.add_argument("--seed", type=int, default=0)
    flags = p.parse_args(arguments)
    for row in ROWS:
        file = row.file(flags.programs, flags.seed)
        if fnmatch.fnmatch(row.name, flags.only) and not file.exists():
            write(row, flags.seed, file)
            print(f"{file}: {file.stat().st_size} bytes", flush=True)


if __name__ == "__main__":
    main()
