"""Flags of the TPU compiler that a program is to run with: the default of `tpusim run --xla-flags`.

A program gets them from LIBTPU_INIT_ARGS, to which it may add some itself, from what it adds to
XLA_FLAGS, from `compiler_options` of `jax.jit`, and from those of `f.lower(...).compile(...)`.
"""

import os
from collections.abc import Mapping
from typing import Any

# Flags that Python was started with: they are for the devices of this machine.
_of_this_machine = frozenset(os.environ.get("XLA_FLAGS", "").split())
_OTHERS = ("--xla_force_host_", "--xla_cpu_", "--xla_gpu_", "--xla_dump_")


def of_program(options: Mapping[str, Any]) -> str:
    """Returns the flags now in the environment, and behind them options of the program."""
    added = [w for w in os.environ.get("XLA_FLAGS", "").split() if w not in _of_this_machine]
    words = [*added, *init_args().split()]
    flags = [w for w in words if w.startswith("--xla") and not w.startswith(_OTHERS)]
    flags += [f"--{name}={text_of(value)}" for name, value in options.items()]
    return " ".join(flags)


def init_args() -> str:
    """Returns the flags that libtpu reads from the environment."""
    return os.environ.get("LIBTPU_INIT_ARGS", "")


def text_of(value: Any) -> str:
    """Returns the value of a flag as the compiler reads it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
