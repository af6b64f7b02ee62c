"""What Pallas writes into the parameters of its calls."""

from typing import Any


def blocked_array(block: Any) -> Any:
    """Shape and dtype of the whole array of a block spec."""
    # The second name is that of JAX 0.7.
    found = getattr(block, "array_aval", None)
    return block.array_shape_dtype if found is None else found
