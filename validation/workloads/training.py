"""Published train steps: which model, on which mesh, and what its source left open.

    python validation/workloads/training.py [NAME ...]     writes exports, all by default

Sources: the shell scripts and defaults of google/maxtext e64f681 (V40-V58) and the recipes of
AI-Hypercomputer/tpu-recipes c8cfe2f (V62-V71) with the commits of MaxText that they name. The
models are written anew; sizes, axis rules, rematerialization, block sizes and optimizer follow the
sources. What they do not say stands with each row of `validation/measurements.json`.
"""

import dataclasses
import functools
import math
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "tools" / "python")]

import jax.numpy as jnp  # noqa: E402

from validation.workloads.decoder import Decoder, Remat, Splash  # noqa: E402
from validation.workloads.train_step import Step, train_step  # noqa: E402
from workloads.examples.example import AnyMesh, Example, Program  # noqa: E402
from workloads.examples.rules import Rules  # noqa: E402


@dataclasses.dataclass(frozen=True)
class Model:
    """Sizes of a published model."""

    width: int
    heads: int
    mlp: int
    layers: int
    vocabulary: int = 32_000
    kv_heads: int = 0
    head: int = 128
    gated: bool = True
    longest_turn: float = 10_000.0
    query_key_norms: bool = False


# MaxText pyconfig.get_individual_scales, and its files of models.
MODELS = {
    "16b": Model(4096, 64, 28672, 32),
    "22b": Model(6144, 24, 24576, 48, head=256, gated=False),
    "64b": Model(8192, 64, 28672, 64),
    "128b": Model(8192, 128, 57344, 64),
    "256b": Model(16384, 128, 57344, 64),
    "512b": Model(16384, 128, 57344, 128),
    "1024b": Model(16384, 256, 114688, 128),
    "mistral_7b": Model(4096, 32, 14336, 32, kv_heads=8, longest_turn=1_000_000.0),
    "llama2_70b": Model(8192, 64, 28672, 80, kv_heads=8),
    "llama3_70b": Model(8192, 64, 28672, 80, 128_256, kv_heads=8, longest_turn=500_000.0),
    "qwen3_8b": Model(
        4096, 32, 12288, 36, 151_936, kv_heads=8, longest_turn=1_000_000.0, query_key_norms=True
    ),
    "decoder_2048_3": Model(2048, 8, 8192, 3),
    "decoder_2048_8": Model(2048, 8, 8192, 8),
    "decoder_512": Model(512, 8, 1024, 4),
    "llama3_405b": Model(16384, 128, 53248, 126, 128_256, kv_heads=8, longest_turn=500_000.0),
}

# Mesh axes that shard each axis of the model. TRANSPOSED: weights of the MLP are shared along its
# hidden width and not along the model's.
FULLY_SHARDED: Rules = {
    "batch": ("data", "fsdp"),
    "embed": "fsdp",
    "mlp_embed": "fsdp",
    **dict.fromkeys(("heads", "mlp", "hidden", "vocabulary", "width", "norm"), "tensor"),
}
TRANSPOSED: Rules = {"batch": ("data", "fsdp"), "embed": "fsdp", "mlp": "fsdp"}


def present(rules: Rules, mesh: AnyMesh) -> Rules:
    """The rules without axes that the mesh has not."""
    kept: dict[str, str | tuple[str, ...]] = {}
    for name, axes in rules.items():
        names = (axes,) if isinstance(axes, str) else axes
        there = tuple(axis for axis in names if axis in mesh.axis_names)
        if there:
            kept[name] = there
    return kept


@dataclasses.dataclass(frozen=True)
class Run:
    """One published run. The batch is per device, as the sources count it."""

    model: str
    config: str
    mesh: dict[str, int]
    batch: int
    remat: Remat
    sequence: int = 2048
    splash: Splash = Splash()  # noqa: RUF009
    rules: Rules = dataclasses.field(default_factory=lambda: FULLY_SHARDED)
    weights: str = "float32"
    fused_projections: bool = False
    vocabulary_tiles: int = 1
    causal_flops: bool = False  # The source counts half of attention
    layers_axis: int = 1  # Where the stacked weights count layers
    one_hot_embedding: bool = True

    def decoder(self) -> Decoder:
        """The model at this run's batch."""
        sizes = MODELS[self.model]
        return Decoder(
            layers=sizes.layers,
            width=sizes.width,
            mlp=sizes.mlp,
            heads=sizes.heads,
            kv_heads=sizes.kv_heads,
            head=sizes.head,
            gated=sizes.gated,
            vocabulary=sizes.vocabulary,
            longest_turn=sizes.longest_turn,
            query_key_norms=sizes.query_key_norms,
            sequence=self.sequence,
            batch=self.batch * math.prod(self.mesh.values()),
            fused_projections=self.fused_projections,
            layers_axis=self.layers_axis,
            weights=jnp.dtype(self.weights),
            remat=self.remat,
            splash=self.splash,
            one_hot_embedding=self.one_hot_embedding,
            narrow_logits=True,
            narrow_turns=True,
            norm_epsilon=1e-5,
        )

    def model_flops_per_device(self) -> float:
        """Model FLOPs of one step and device, as the sources count them."""
        flops = self.decoder().model_flops(causal=self.causal_flops)
        return flops / math.prod(self.mesh.values())

    def build(self, mesh: AnyMesh) -> Program:
        """The step and its arguments."""
        step = Step(clip=1.0, decay=0.1, norms=True, vocabulary_tiles=self.vocabulary_tiles)
        return train_step(self.decoder(), mesh, present(self.rules, mesh), step)


FULL = Remat()
PRODUCTS = Remat(products=True)
PROJECTIONS_ON_HOST = Remat(offload=("query", "key", "value"))
INPUT_AND_PROJECTIONS_ON_HOST = Remat(offload=("layer_input", "query", "key", "value"))
WIDE_SPLASH = Splash(2048, 2048, 2048, fused=True)

llama3_70b = functools.partial(
    Run,
    "llama3_70b",
    remat=INPUT_AND_PROJECTIONS_ON_HOST,
    sequence=8192,
    splash=WIDE_SPLASH,
)

RUNS = {
    "train_16b_v5e_256": Run("16b", "v5e-16x16", {"fsdp": 256}, 6, FULL),
    "train_64b_v5e_256": Run("64b", "v5e-16x16", {"fsdp": 256}, 2, FULL),
    "train_128b_v5e_256": Run(
        "128b",
        "v5e-16x16",
        {"fsdp": 16, "tensor": 16},
        1,
        PROJECTIONS_ON_HOST,
        fused_projections=True,
    ),
    "train_64b_v5p_64": Run("64b", "v5p-4x4x4", {"fsdp": 16, "tensor": 4}, 3, PRODUCTS),
    "train_128b_v5p_128": Run("128b", "v5p-4x4x8", {"fsdp": 16, "tensor": 8}, 1, PRODUCTS),
    "train_128b_v5p_256": Run("128b", "v5p-4x8x8", {"fsdp": 32, "tensor": 8}, 1, PRODUCTS),
    "train_256b_v5p_512": Run("256b", "v5p-8x8x8", {"fsdp": 64, "tensor": 8}, 1, PRODUCTS),
    "train_512b_v5p_512": Run("512b", "v5p-8x8x8", {"fsdp": 64, "tensor": 8}, 2, FULL),
    "train_1024b_v5p_1024": Run("1024b", "v5p-8x8x16", {"fsdp": 64, "tensor": 16}, 2, FULL),
    "train_1024b_v5p_2048": Run("1024b", "v5p-8x16x16", {"fsdp": 128, "tensor": 16}, 2, FULL),
    **{
        f"train_22b_{slices}_v4_64": Run(
            "22b",
            "v4-4x4x4" if slices == 1 else f"{slices}x(v4-4x4x4)",
            {"fsdp": 64} if slices == 1 else {"data": slices, "fsdp": 64},
            13,
            FULL,
        )
        for slices in (1, 2, 4, 8)
    },
    "train_llama3_70b_v6e_32": llama3_70b(
        config="v6e-4x8", mesh={"fsdp": 32}, batch=2, weights="bfloat16"
    ),
    "train_llama3_70b_v6e_64": llama3_70b(config="v6e-8x8", mesh={"fsdp": 64}, batch=2),
    "train_llama3_70b_v6e_128": llama3_70b(config="v6e-8x16", mesh={"fsdp": 128}, batch=4),
    "train_llama3_70b_v6e_256": llama3_70b(config="v6e-16x16", mesh={"fsdp": 256}, batch=5),
    "train_llama2_70b_v6e_256": Run(
        "llama2_70b",
        "v6e-16x16",
        {"fsdp": 256},
        2,
        PROJECTIONS_ON_HOST,
        sequence=4096,
        splash=Splash(1024, 2048, 2048),
        rules=TRANSPOSED,
    ),
    "train_mistral_7b_v6e_8": Run(
        "mistral_7b",
        "v6e-4x2",
        {"fsdp": 8},
        6,
        Remat(offload=("layer_input", "query", "key", "value", "out")),
        sequence=8192,
        splash=WIDE_SPLASH,
    ),
    "train_qwen3_8b_v6e_8": Run(
        "qwen3_8b",
        "v6e-2x4",
        {"fsdp": 8},
        3,
        Remat(offload=("layer_input", "query", "key", "value", "out")),
        sequence=8192,
        splash=WIDE_SPLASH,
        weights="bfloat16",
    ),
    "train_llama3_405b_v5p_512": Run(
        "llama3_405b",
        "v5p-8x8x8",
        {"fsdp": 512},
        2,
        Remat(save=("layer_input",), offload=("context", "down")),
        sequence=8192,
        splash=Splash(2048, 2048, 2048),
        vocabulary_tiles=4,
        causal_flops=True,
    ),
}

TRAINING: dict[str, Example] = {
    name: Example(name=name, mesh=run.mesh, config=run.config, build=run.build)
    for name, run in RUNS.items()
}


def main() -> None:
    """Exports those that are named, or all."""
    from workloads.examples import export_all

    export_all.write(TRAINING, pathlib.Path(__file__).parent, sys.argv[1:])


if __name__ == "__main__":
    main()
