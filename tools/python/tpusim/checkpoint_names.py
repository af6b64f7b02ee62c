"""Names of values in an export: `jax.ad_checkpoint.checkpoint_name(x, "attention")`.

To JAX a name tells a rematerialisation policy what to save; lowered, it is gone. An export keeps
it, so that `tpusim run --remat attention=saved` can try a policy on a program that was exported
with another. A named value is what it was in a form of no effect, with the name as an attribute:
floats rounded to their own precision (XLA takes that away), others behind an optimization barrier
of their own. tpusim takes the form away before anything else, so names cost nothing.
"""

import contextlib
import contextvars
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental.xla_metadata import set_xla_metadata

from tpusim.jax_internals import names

# Equal to the string in workloads/hlo/transforms/checkpoint_names.h.
ATTRIBUTE = "tpusim.checkpoint_name"

_kept: contextvars.ContextVar[bool] = contextvars.ContextVar("names are kept", default=False)


@contextlib.contextmanager
def kept() -> Iterator[None]:
    """Keeps names of `checkpoint_name` in what is traced and lowered for TPU in the block."""
    names.lower_names_for_tpu(_named, _kept.get)
    token = _kept.set(True)
    try:
        yield
    finally:
        _kept.reset(token)


def _named(x: Any, name: str) -> Any:
    if jnp.issubdtype(x.dtype, jax.dtypes.extended):
        return x  # A key: what is behind it has another shape.
    with set_xla_metadata(**{ATTRIBUTE: name}):
        if not jnp.issubdtype(x.dtype, jnp.floating):
            return lax.optimization_barrier(x)
        kind = jnp.finfo(x.dtype)
        return lax.reduce_precision(x, exponent_bits=kind.nexp, mantissa_bits=kind.nmant)
