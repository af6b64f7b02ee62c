"""Sharded JAX programs, small enough to read; `EXAMPLES` has them by name.

Each has a committed export beside it, `<name>.pb`; `export_all.py` writes them anew.
"""

from workloads.examples import (
    all_reduce,
    collective_matmul,
    collectives,
    cross_entropy,
    decode,
    host_memory,
    jit_tutorial,
    language_model_train,
    layers,
    matmul,
    moe,
    overlapped_training,
    per_shard,
    pipeline,
    reduce_scatter_matmul,
    residual_mlp,
    ring_attention,
    transformations,
    transformer_block,
)
from workloads.examples.caches import clear_caches
from workloads.examples.example import EXAMPLES, Example

__all__ = [
    "EXAMPLES",
    "Example",
    "all_reduce",
    "clear_caches",
    "collective_matmul",
    "collectives",
    "cross_entropy",
    "decode",
    "host_memory",
    "jit_tutorial",
    "language_model_train",
    "layers",
    "matmul",
    "moe",
    "overlapped_training",
    "per_shard",
    "pipeline",
    "reduce_scatter_matmul",
    "residual_mlp",
    "ring_attention",
    "transformations",
    "transformer_block",
]
