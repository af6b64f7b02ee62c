"""Sharded JAX programs, small enough to read; `EXAMPLES` has them by name.

Each has a committed export beside it, `<name>.pb`; `export_all.py` writes them anew.
"""

from workloads.examples import all_reduce, collective_matmul, collectives, layers, matmul
from workloads.examples.example import EXAMPLES, Example

__all__ = [
    "EXAMPLES",
    "Example",
    "all_reduce",
    "collective_matmul",
    "collectives",
    "layers",
    "matmul",
]
