"""The programs that are compiled with the TPU compiler and with tpusim; `PROGRAMS` has them all.

Kernels of one device, one family per file; train steps over meshes; the examples of the project.
"""

from compiler_programs import (
    attention,
    convolutions,
    decoder,
    decoding,
    elementwise,
    examples,
    experts,
    lookups,
    movement,
    networks,
    normalization,
    products,
    reductions,
    sharded,
    transformers,
)
from compiler_programs.registry import PROGRAMS

__all__ = [
    "PROGRAMS",
    "attention",
    "convolutions",
    "decoder",
    "decoding",
    "elementwise",
    "examples",
    "experts",
    "lookups",
    "movement",
    "networks",
    "normalization",
    "products",
    "reductions",
    "sharded",
    "transformers",
]
