"""Published inference steps: which model, on which mesh, and what its source left open.

    python validation/workloads/inference.py [NAME ...]     writes exports, all by default

Sources: Pope et al., arXiv 2211.05102 (V90), and PyTorch's report on LLaMA with pytorch-tpu/llama
(V93, V94). The programs are written anew. What the sources do not say stands with each row of
`validation/measurements.json`.
"""

import dataclasses
import functools
import math
import pathlib
import sys
from collections.abc import Callable

ROOT = pathlib.Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "tools" / "python")]

import jax.numpy as jnp  # noqa: E402

from validation.workloads import parallel_block, tensor_parallel  # noqa: E402
from validation.workloads.decoder import Decoder  # noqa: E402
from validation.workloads.parallel_block import ParallelBlock  # noqa: E402
from validation.workloads.tensor_parallel import Sampling  # noqa: E402
from workloads.examples.example import AnyMesh, Example, Program  # noqa: E402

# PaLM with 48 heads padded to 64, so that 64 chips share them.
palm_540b = functools.partial(
    ParallelBlock,
    layers=118,
    width=18432,
    mlp=73728,
    heads=64,
    head=256,
    vocabulary=256_000,
    room=2048,
)
CUBE = {"x": 4, "y": 4, "z": 4}

llama = functools.partial(
    Decoder,
    vocabulary=32_000,
    batch=1,
    sequence=256,
    unroll=True,
    weights=jnp.bfloat16,
    longest_turn=10_000.0,
    norm_epsilon=1e-5,
)
LLAMA_7B = llama(layers=32, width=4096, mlp=11008, heads=32)
LLAMA_65B = llama(layers=80, width=8192, mlp=22016, heads=64)


DECODED = palm_540b(batch=64, int8=True)
PROMPTS = palm_540b(batch=512)


def model_flops_per_device(model: ParallelBlock, positions: int) -> float:
    """Counts a step like the paper: two for each parameter and position, of the unpadded model."""
    unpadded = dataclasses.replace(model, heads=48)
    return 2 * unpadded.parameters() * model.batch * positions / math.prod(CUBE.values())


# Model FLOPs of V90.
DECODE_FLOPS = model_flops_per_device(DECODED, 1)
PREFILL_FLOPS = model_flops_per_device(PROMPTS, PROMPTS.room)


def on_cube(
    name: str, program: Callable[[ParallelBlock, AnyMesh], Program], model: ParallelBlock
) -> Example:
    """On one cube of 64 chips."""
    return Example(name, CUBE, "v4-4x4x4", functools.partial(program, model))


def llama_decode(name: str, model: Decoder, config: str, chips: int) -> Example:
    """Tensor parallel over all chips."""
    build = functools.partial(tensor_parallel.decode, model, Sampling())
    return Example(name, {tensor_parallel.AXIS: chips}, config, build)


INFERENCE: dict[str, Example] = {
    example.name: example
    for example in (
        on_cube("decode_palm_540b_v4_64", parallel_block.decode, DECODED),
        on_cube("prefill_palm_540b_v4_64", parallel_block.prefill, PROMPTS),
        llama_decode("decode_llama_7b_v4_4", LLAMA_7B, "v4-2x2x1", 4),
        llama_decode("decode_llama_7b_v4_8", LLAMA_7B, "v4-2x2x2", 8),
        llama_decode("decode_llama_65b_v4_16", LLAMA_65B, "v4-2x2x4", 16),
    )
}


def main() -> None:
    """Exports those that are named, or all."""
    from workloads.examples import export_all

    export_all.write(INFERENCE, pathlib.Path(__file__).parent, sys.argv[1:])


if __name__ == "__main__":
    main()
