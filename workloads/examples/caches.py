"""Clears JAX's caches, so that an export depends on nothing that was traced before."""

import sys

import jax

# Keeps the last masks that it has processed, of whatever program.
_MASKS = "jax.experimental.pallas.ops.tpu.splash_attention.splash_attention_mask_info"


def clear_caches() -> None:
    """JAX's own caches and that of the masks of its splash attention."""
    jax.clear_caches()
    if _MASKS in sys.modules:
        sys.modules[_MASKS]._process_mask.cache_clear()
