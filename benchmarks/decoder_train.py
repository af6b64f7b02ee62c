r"""Exports a train step of a decoder-only language model, of any size, on any mesh.

The command line of `validation/workloads/decoder.py`: root-mean-square norms, causal attention with
rotary positions, plain with a float32 softmax or by JAX's splash kernel, of as many heads for keys
and values as for queries or fewer; a gated MLP, cross-entropy; float32 weights and Adam, bfloat16
compute, the state donated. Layers are one scan over stacked weights, or unrolled, one copy per
layer. Going backward each layer is kept, computed again, or computed again from what the
projections of its attention made, which the host keeps.

    python benchmarks/decoder_train.py --unroll --layers 100 --hidden 1024 --fsdp 4 --tp 4 \
        --config v5e-4x4 -o decoder_100.pb
    python benchmarks/decoder_train.py --layers 32 --hidden 5120 --batch-per-device 8 --fsdp 256 \
        --remat --query-block 512 --config v5e-16x16 -o decoder_fsdp_256.pb

Llama 3 8B on eight chips, once with full rematerialisation, once with --offload in its place:

    python benchmarks/decoder_train.py --layers 32 --hidden 4096 --ffn 14336 --kv-heads 8 \
        --vocab 128256 --seq 8192 --batch-per-device 3 --fsdp 8 --splash --narrow-logits --remat \
        --config v6e-4x2 -o decoder_8b.pb

Weights and norm scales are split over `fsdp` along the model's width, weights also over `tp` along
heads, the hidden width of the MLP and the vocabulary; the batch over `data` and `fsdp`. Nothing is
executed and no device is needed: shapes over an abstract mesh.
"""

import argparse
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "tools" / "python")]

import tpusim  # noqa: E402
from jax.sharding import AbstractMesh  # noqa: E402

from validation.workloads.decoder import Decoder, Remat, Splash  # noqa: E402
from validation.workloads.train_step import train_step  # noqa: E402
from workloads.examples.example import AnyMesh  # noqa: E402
from workloads.examples.rules import Rules  # noqa: E402

EVERYTHING_AGAIN = Remat(barrier=True)
PROJECTIONS_ON_HOST = Remat(offload=("query", "key", "value", "out"), barrier=True)


def rules_of(mesh: AnyMesh) -> Rules:
    """Rules by axis name: `data` and `fsdp` share the batch, `fsdp` and `tp` the weights."""
    names = mesh.axis_names
    return {
        "batch": tuple(name for name in ("data", "fsdp") if name in names),
        **{axis: "fsdp" for axis in ("embed", "mlp_embed", "norm") if "fsdp" in names},
        **{axis: "tp" for axis in ("heads", "mlp", "hidden", "vocabulary") if "tp" in names},
    }


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line; sizes that depend on others are filled in, and checked."""
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--layers", type=int, default=4)
    p.add_argument("--hidden", type=int, default=1024, help="width of the model")
    p.add_argument("--ffn", type=int, help="hidden width of the MLP; default 4 x hidden")
    p.add_argument("--heads", type=int, help="default: hidden / 128")
    p.add_argument("--kv-heads", type=int, help="of keys and values; default: as many as heads")
    p.add_argument("--seq", type=int, default=2048, help="tokens per sequence")
    p.add_argument("--batch-per-device", type=int, default=1, help="sequences on a device")
    p.add_argument("--vocab", type=int, default=32768)
    p.add_argument("--data", type=int, default=1, help="replicas of the split weights")
    p.add_argument("--fsdp", type=int, default=1, help="devices that share weights and batch")
    p.add_argument("--tp", type=int, default=1, help="devices that share heads, ffn, vocabulary")
    form = p.add_mutually_exclusive_group()
    form.add_argument("--scan", action="store_true", help="layers are a loop (the default)")
    form.add_argument("--unroll", action="store_true", help="layers are copies")
    again = p.add_mutually_exclusive_group()
    again.add_argument("--remat", action="store_true", help="recompute each layer going backward")
    again.add_argument(
        "--offload",
        action="store_true",
        help="recompute, but for query, key, value and output projections: the host keeps them",
    )
    kind = p.add_mutually_exclusive_group()
    kind.add_argument("--query-block", type=int, default=0, help="attention by blocks of N queries")
    kind.add_argument("--splash", action="store_true", help="attention by JAX's splash kernel")
    p.add_argument("--narrow-logits", action="store_true", help="bfloat16 logits, float32 loss")
    p.add_argument("--config", required=True, help="slice, such as v5e-4x4")
    p.add_argument("-o", "--output", required=True, help="where the workload is written")
    flags = p.parse_args(arguments)
    flags.ffn = flags.ffn or 4 * flags.hidden
    flags.heads = flags.heads or max(1, flags.hidden // 128)
    flags.kv_heads = flags.kv_heads or flags.heads
    sizes = ("layers", "hidden", "ffn", "heads", "kv_heads", "seq", "batch_per_device", "vocab")
    for name in (*sizes, "data", "fsdp", "tp"):
        if getattr(flags, name) < 1:
            p.error(f"--{name.replace('_', '-')} must be positive")
    for name, over in (
        ("hidden", "heads"),
        ("hidden", "fsdp"),
        ("heads", "kv_heads"),
        ("kv_heads", "tp"),
        ("ffn", "tp"),
        ("vocab", "tp"),
    ):
        if getattr(flags, name) % getattr(flags, over):
            p.error(f"--{name} {getattr(flags, name)} is not a multiple of --{over}")
    if flags.query_block < 0 or (flags.query_block and flags.seq % flags.query_block):
        p.error("--seq is not a multiple of --query-block")
    return flags


def main(arguments: list[str] | None = None) -> None:
    """Exports what the command line says."""
    flags = parse(arguments)
    axes = {name: getattr(flags, name) for name in ("data", "fsdp", "tp")}
    axes = {name: size for name, size in axes.items() if size > 1} or {"fsdp": 1}
    remat = PROJECTIONS_ON_HOST if flags.offload else EVERYTHING_AGAIN if flags.remat else None
    model = Decoder(
        layers=flags.layers,
        width=flags.hidden,
        mlp=flags.ffn,
        heads=flags.heads,
        vocabulary=flags.vocab,
        sequence=flags.seq,
        batch=flags.batch_per_device * flags.data * flags.fsdp,
        kv_heads=flags.kv_heads,
        unroll=flags.unroll,
        remat=remat,
        query_block=flags.query_block,
        splash=Splash() if flags.splash else None,
        narrow_logits=flags.narrow_logits,
    )
    mesh = AbstractMesh(tuple(axes.values()), tuple(axes))
    step, inputs = train_step(model, mesh, rules_of(mesh))
    tpusim.export(
        step,
        *inputs,
        path=flags.output,
        config=flags.config,
        name=pathlib.Path(flags.output).name.split(".")[0],
    )


if __name__ == "__main__":
    main()
