"""Ten models at published sizes: the sharding of their source, and the one that is found.

    python benchmarks/found_models.py --seconds 120 --json found_models.json

Each is exported with the sharding that its source has, on a slice of 16 to 64 chips, and given to
`tpusim shard`. Sizes, batches and meshes are those of the sources that `MODELS` names; where these
leave the sizes of axes open, those with the shortest step. The table is that of
`docs/found-models.md`.
"""

import argparse
import dataclasses
import functools
import json
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[1]
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "tools" / "python")]

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from jax import lax  # noqa: E402

from validation.workloads.decoder import Decoder, Remat  # noqa: E402
from validation.workloads.train_step import train_step  # noqa: E402
from validation.workloads.training import FULLY_SHARDED, present  # noqa: E402
from workloads.examples import (  # noqa: E402
    diffusion,
    encoder_decoder,
    export_all,
    language_model,
    mixture_of_experts,
    recommender,
    resnet,
    vision_transformer,
)
from workloads.examples.example import AnyMesh, Example, Program  # noqa: E402
from workloads.examples.rules import Array, Layout, Rules  # noqa: E402

Cache = tuple[jax.Array, jax.Array]  # Keys and values


@dataclasses.dataclass(frozen=True)
class Entry:
    """One row: a program with its source's sharding, and where sizes and sharding are from."""

    title: str
    config: str
    mesh: dict[str, int]
    build: Callable[[AnyMesh], Program]
    source: str


def decoder(model: Decoder, mesh: AnyMesh) -> Program:
    """A train step of a decoder by the rules of MaxText."""
    return train_step(model, mesh, present(FULLY_SHARDED, mesh))


# MaxText's "16b" and "64b", attention plain in place of its kernel, which has shardings of its own.
of_maxtext = functools.partial(
    Decoder,
    sequence=2048,
    vocabulary=32_000,
    head=128,
    narrow_logits=True,
    narrow_turns=True,
    one_hot_embedding=True,
)
DECODER_16B = of_maxtext(
    layers=32, width=4096, mlp=28672, heads=64, batch=6 * 64, remat=Remat(), query_block=512
)
DECODER_64B = of_maxtext(
    layers=64, width=8192, mlp=28672, heads=64, batch=3 * 64, remat=Remat(products=True)
)

MIXTRAL = mixture_of_experts.Experts(
    vocabulary=32_000,
    width=4096,
    layers=32,
    heads=32,
    kv_heads=8,
    head=128,
    hidden=14336,
    experts=8,
    batch=8 * 64,
    sequence=4096,
)
T5_XL = encoder_decoder.EncoderDecoder(
    vocabulary=32_128,
    width=2048,
    layers=24,
    heads=32,
    head=64,
    hidden=5120,
    buckets=32,
    batch=2048,
    inputs=512,
    targets=114,
)
VIT_LARGE = vision_transformer.VisionTransformer(
    image=224,
    patch=16,
    width=1024,
    layers=24,
    heads=16,
    head=64,
    hidden=4096,
    classes=21_843,
    batch=4096,
)
RESNET_50 = resnet.ResNet(image=224, stages=(3, 4, 6, 3), width=64, classes=1000, batch=8192)
DIT_XL = diffusion.Diffusion(
    side=32, channels=4, patch=2, width=1152, layers=28, heads=16, head=72, classes=1001, batch=256
)
# Rows of the tables of DLRM-DCNv2 in MLPerf Training, large ones rounded up to what 64 chips
# divide; the interaction is that of the first DLRM.
ROWS = (
    *(40_000_000, 39_060, 17_295, 7424, 20_265, 3, 7122, 1543, 63, 40_000_000, 3_067_956),
    *(405_282, 10, 2209, 11_938, 155, 4, 976, 14, 40_000_000, 40_000_000, 40_000_000),
    *(590_152, 12_973, 108, 36),
)
LARGE = 100_000
CRITEO = recommender.Recommender(
    rows=tuple(-(-rows // 64) * 64 if rows > LARGE else rows for rows in ROWS),
    width=128,
    bottom=(512, 256, 128),
    top=(1024, 1024, 512, 256, 1),
    batch=65_536,
    most_whole=LARGE,
)

LLAMA_65B = language_model.Model(
    vocabulary=32_000, width=8192, layers=80, heads=64, head=128, hidden=22_016
)
LLAMA_7B = language_model.Model(
    vocabulary=32_000, width=4096, layers=32, heads=32, head=128, hidden=11_008
)


def blockwise(q: jax.Array, k: jax.Array, v: jax.Array, block: int) -> jax.Array:
    """Causal attention, keys and values by blocks in turn, no more scores than those of one."""
    position = jnp.arange(q.shape[1])
    shape = (q.shape[0], q.shape[2], q.shape[1])
    blocks = [x.reshape(x.shape[0], -1, block, *x.shape[2:]).swapaxes(0, 1) for x in (k, v)]

    def add(carry: tuple[jax.Array, ...], part: tuple[jax.Array, ...]) -> tuple[Any, None]:
        total, weight, highest = carry
        first, keys, values = part
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, keys, preferred_element_type=jnp.float32)
        seen = position[:, None] >= first + jnp.arange(block)
        scores = jnp.where(seen, scores * q.shape[-1] ** -0.5, -1e9)
        most = jnp.maximum(highest, jnp.max(scores, axis=-1))
        shares = jnp.exp(scores - most[..., None])
        kept = jnp.exp(highest - most)
        mixed = jnp.einsum("bhqk,bkhd->bhqd", shares.astype(q.dtype), values)
        total = total * kept[..., None] + mixed.astype(jnp.float32)
        return (total, weight * kept + jnp.sum(shares, axis=-1), most), None

    start = (jnp.zeros((*shape, q.shape[-1])), jnp.zeros(shape), jnp.full(shape, -1e9))
    firsts = jnp.arange(0, k.shape[1], block)
    (total, weight, _), _ = lax.scan(add, start, (firsts, *blocks))
    return (total / weight[..., None]).astype(q.dtype).swapaxes(1, 2)


def over_gathered(layout: Layout, q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    """Attention of each device's part of the queries over all keys and values."""
    every = [layout.constrain(part, "batch", None, "heads", None) for part in (k, v)]
    return blockwise(q, *every, 1024)


def prefill_layer(
    layout: Layout,
    x: jax.Array,
    w: language_model.Weights,
    attend: Callable[..., jax.Array] = over_gathered,
) -> tuple[jax.Array, Cache]:
    """A layer that leaves each device its part of the prompt; `attend` sees to keys and values."""

    def into(x: jax.Array, name: str) -> jax.Array:
        return layout.constrain(x @ w[name].astype(x.dtype), "batch", "sequence", "hidden")

    position = jnp.arange(x.shape[1])
    h = language_model.normalize(x, w["scale_attention"])
    qkv = jnp.einsum("bsw,wnhd->nbshd", h, w["qkv"].astype(h.dtype))
    q, k, v = layout.constrain(qkv, None, "batch", "sequence", "heads", None)
    q, k = language_model.rotate(q, position), language_model.rotate(k, position)
    mixed = layout.constrain(attend(layout, q, k, v), "batch", "sequence", "heads", None)
    out = jnp.einsum("bshd,hdw->bsw", mixed, w["out"].astype(x.dtype))
    x += layout.constrain(out, "batch", "sequence", None)
    h = language_model.normalize(x, w["scale_mlp"])
    hidden = jax.nn.silu(into(h, "gate")) * into(h, "up")
    out = hidden @ w["down"].astype(x.dtype)
    return x + layout.constrain(out, "batch", "sequence", None), (k, v)


def prefill(model: language_model.Model, length: int, rules: Rules, mesh: AnyMesh) -> Program:
    """One long prompt: its keys and values, and the first token after it."""
    layout = Layout(mesh, rules)

    def prefill(weights: language_model.Weights, tokens: jax.Array) -> tuple[Cache, jax.Array]:
        stacked = {name: weights[name] for name in language_model.STACKED}
        x = language_model.embed(layout, weights, tokens)
        x, cache = lax.scan(functools.partial(prefill_layer, layout), x, stacked)
        logits = language_model.logits_of(layout, weights, x[:, -1:])
        return cache, jnp.argmax(logits[:, 0], axis=-1)

    cache = layout.sharding(None, "batch", "sequence", "heads", None)
    step = jax.jit(prefill, out_shardings=((cache, cache), layout.sharding("batch")))
    tokens = layout.shape(Array((1, length), ("batch", "sequence")), jnp.int32)
    return step, (layout.shapes(model.arrays(), jnp.bfloat16), tokens)


def decode(
    model: language_model.Model, batch: int, room: int, rules: Rules, mesh: AnyMesh
) -> Program:
    """One token for each sequence, with a cache that is updated in place."""
    layout = Layout(mesh, rules)

    def decode_step(
        weights: language_model.Weights, cache: Cache, tokens: jax.Array, length: jax.Array
    ) -> tuple[Cache, jax.Array]:
        seen = jnp.arange(room)[None] <= length

        def layer(x: jax.Array, entry: tuple[Any, Cache]) -> tuple[jax.Array, Cache]:
            w, (keys, values) = entry
            q, k, v = language_model.project(layout, w, x, length[None])
            keys = lax.dynamic_update_slice_in_dim(keys, k, length, axis=1)
            values = lax.dynamic_update_slice_in_dim(values, v, length, axis=1)
            mixed = language_model.attend(q, keys, values, seen)
            return language_model.finish(layout, w, x, mixed), (keys, values)

        stacked = {name: weights[name] for name in language_model.STACKED}
        x = language_model.embed(layout, weights, tokens[:, None])
        x, cache = lax.scan(layer, x, (stacked, cache))
        logits = language_model.logits_of(layout, weights, x)
        return cache, jnp.argmax(logits[:, 0], axis=-1)

    heads = (model.layers, batch, room, model.heads, model.head)
    cache = layout.shape(Array(heads, (None, "batch", None, "heads", None)), jnp.bfloat16)
    tokens = layout.shape(Array((batch,), ("batch",)), jnp.int32)
    step = jax.jit(
        decode_step,
        out_shardings=((cache.sharding, cache.sharding), tokens.sharding),
        donate_argnums=1,
    )
    length = jax.ShapeDtypeStruct((), jnp.int32, sharding=layout.sharding())
    return step, (layout.shapes(model.arrays(), jnp.bfloat16), (cache, cache), tokens, length)


_WEIGHTS_BY = dict.fromkeys(("heads", "hidden", "vocabulary"), "model")
MODELS = {
    "decoder_fsdp": Entry(
        "decoder, fully sharded (MaxText 16b)",
        "v5e-8x8",
        {"fsdp": 64, "tensor": 1},
        functools.partial(decoder, DECODER_16B),
        "google/maxtext e64f681, configs/v5e/16b.sh: fully sharded, 6 sequences of 2048 per chip",
    ),
    "decoder_fsdp_tp": Entry(
        "decoder, fully sharded x tensor parallel (MaxText 64b)",
        "v5p-4x4x4",
        {"fsdp": 16, "tensor": 4},
        functools.partial(decoder, DECODER_64B),
        "google/maxtext e64f681, configs/v5p/64b.sh: 16 x 4, 3 sequences of 2048 per chip",
    ),
    "mixture_of_experts": Entry(
        "mixture of experts (Mixtral 8x7B)",
        "v5p-4x4x4",
        {"fsdp": 64, "expert": 1},
        functools.partial(mixture_of_experts.train, MIXTRAL),
        "AI-Hypercomputer/maxtext, maxtext_trillium_model_configs.py, mixtral_8x7b_dropped: fully "
        "sharded, 8 sequences of 4096 per chip, room for 1.25 of the mean",
    ),
    "encoder_decoder": Entry(
        "encoder-decoder (T5 1.1 XL)",
        "v6e-8x8",
        {"data": 32, "model": 2},
        functools.partial(encoder_decoder.train, T5_XL),
        "google-research/t5x, examples/t5/t5_1_1/xl.gin; batch of arXiv 1910.10683, 3.7",
    ),
    "vision_transformer": Entry(
        "vision transformer (ViT-L/16)",
        "v5e-8x8",
        {"data": 64, "model": 1},
        functools.partial(
            vision_transformer.train, VIT_LARGE, vision_transformer.TABLES["data_parallel"]
        ),
        "google-research/big_vision, configs/vit_i21k.py: 4096 images, weights replicated",
    ),
    "resnet": Entry(
        "residual network (ResNet-50)",
        "v5e-4x8",
        {"data": 32, "model": 1},
        functools.partial(resnet.train, RESNET_50),
        "google/flax, examples/imagenet/configs/tpu.py: 256 images per chip, at least 8192",
    ),
    "recommender": Entry(
        "recommender (DLRM, tables of Criteo)",
        "v5e-4x4",
        {"data": 16, "model": 1},
        functools.partial(recommender.train, CRITEO),
        "arXiv 1906.00091; MLPerf Training's rows of tables, MLPs and batch",
    ),
    "long_context": Entry(
        "prompt of 128k tokens (Llama 2 7B sizes)",
        "v6e-4x4",
        {"context": 16, "model": 1},
        functools.partial(prefill, LLAMA_7B, 131_072, {"sequence": "context", **_WEIGHTS_BY}),
        "arXiv 2407.21783, 3.3.2: context parallel by gathered keys and values, x tensor parallel",
    ),
    "diffusion": Entry(
        "diffusion transformer (DiT-XL/2)",
        "v5e-4x4",
        {"data": 1, "fsdp": 16},
        functools.partial(diffusion.train, DIT_XL),
        "arXiv 2212.09748: batch 256; rules of AI-Hypercomputer/maxdiffusion, fully sharded",
    ),
    "decode": Entry(
        "decode step (Llama 65B)",
        "v5p-2x2x4",
        {"data": 1, "model": 16},
        functools.partial(decode, LLAMA_65B, 64, 2048, _WEIGHTS_BY),
        "arXiv 2211.05102: batch 64, weights stationary along one dimension, attention by heads",
    ),
}


def exported(name: str, folder: pathlib.Path) -> pathlib.Path:
    """The program of a row, in a file."""
    entry = MODELS[name]
    file = folder / f"{name}.pb"
    example = Example(name=name, mesh=entry.mesh, config=entry.config, build=entry.build)
    export_all.export(example).save(file)
    return file


def answer_of(binary: str, file: pathlib.Path, seconds: float) -> dict[str, Any]:
    """The answer of `tpusim shard` about a file."""
    command = [binary, "shard", str(file), "--seconds", str(seconds), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{file.stem}: {done.stderr.strip()[-2000:]}")
    (answer,) = json.loads(done.stdout)["slices"]
    return answer


def split_by(decisions: dict[str, list[str]]) -> str:
    """Returns the decisions that are split, with their axes."""
    return "; ".join(f"{what} by {'+'.join(axes)}" for what, axes in decisions.items() if axes)


def row_of(name: str, binary: str, folder: pathlib.Path, seconds: float) -> dict[str, Any]:
    """One model: its own step, the step found, and how sure that is."""
    file = exported(name, folder)
    began = time.monotonic()
    answer = answer_of(binary, file, seconds)
    took = time.monotonic() - began
    entry, own = MODELS[name], answer["as_it_is"]
    best = answer["found"][0] if answer["best"] == "found" else None
    step = best or own
    return {
        "name": name,
        "title": entry.title,
        "config": entry.config,
        "mesh": entry.mesh,
        "source": entry.source,
        "own_ms": own["step_time_ns"] / 1e6,
        "found_ms": step["step_time_ns"] / 1e6,
        "shorter": 1 - step["step_time_ns"] / own["step_time_ns"],
        "own_peak_gib": own["peak_hbm_bytes"] / 2**30,
        "found_peak_gib": step["peak_hbm_bytes"] / 2**30,
        "usable_gib": answer["usable_hbm_bytes"] / 2**30,
        "gap": answer["gap"],
        "choices": answer["choices"],
        "simulated": answer["simulated"],
        "not_looked_at": answer["not_looked_at"],
        "seconds": took,
        "found_mesh": best["mesh"] if best else entry.mesh,
        "found": split_by(best["decisions"]) if best else "as it is",
        "constraints": len(best["constraints"]) if best else 0,
        "options": best["options"] if best else "",
    }


COLUMNS = (
    *("model", "slice", "own ms", "found ms", "shorter", "not ruled out"),
    *("peak GiB", "choices", "simulated", "seconds"),
)


def cells(row: dict[str, Any]) -> tuple[str, ...]:
    """Returns the cells of a row of the table."""
    return (
        row["title"],
        row["config"],
        f"{row['own_ms']:,.2f}",
        f"{row['found_ms']:,.2f}",
        f"{row['shorter']:.1%}",
        f"{row['gap']:.1%}" if row["gap"] else "nothing",
        f"{row['own_peak_gib']:.1f} -> {row['found_peak_gib']:.1f}",
        f"{row['choices']:,}",
        f"{row['simulated']:,}",
        f"{row['seconds']:.0f}",
    )


def main(arguments: list[str] | None = None) -> None:
    """Searches those that are named, or all, and prints a row of Markdown for each."""
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("names", nargs="*", help="; ".join(MODELS))
    p.add_argument("--seconds", type=float, default=300.0, help="of a search (default: 300)")
    p.add_argument("--binary", default=str(ROOT / "build" / "tpusim"))
    p.add_argument("--folder", help="keep the programs here")
    p.add_argument("--json", help="write all figures into this file")
    flags = p.parse_args(arguments)
    unknown = set(flags.names) - set(MODELS)
    if unknown:
        p.error(f"no model {', '.join(sorted(unknown))}; there are {', '.join(MODELS)}")
    rows = []
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(flags.folder or made)
        folder.mkdir(parents=True, exist_ok=True)
        print("|" + "|".join(f" {name} " for name in COLUMNS) + "|")
        print("|" + "---|" * len(COLUMNS))
        for name in flags.names or MODELS:
            rows.append(row_of(name, flags.binary, folder, flags.seconds))
            print("|" + "|".join(f" {cell} " for cell in cells(rows[-1])) + "|", flush=True)
            if flags.json:
                pathlib.Path(flags.json).write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
