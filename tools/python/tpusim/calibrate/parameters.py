"""The physical parameters that may be fitted, each with its least and largest value.

Everything else of a chip is a fact of its data sheet, or of the TPU compiler.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Parameter:
    """A parameter of a chip file."""

    name: str
    lowest: float
    highest: float
    what: str


PARAMETERS = (
    Parameter("chip.mxu.efficiency", 0.1, 1.0, "what the arrays sustain of their peak"),
    Parameter("chip.hbm.efficiency", 0.1, 1.0, "what HBM sustains of its nominal rate"),
    Parameter("chip.tensor_core.kernel_launch_ns", 10.0, 1e5, "the launch of a kernel"),
    Parameter("ici.wrapped_efficiency", 0.1, 1.0, "what links of an axis that wraps sustain"),
    Parameter("ici.unwrapped_efficiency", 0.1, 1.0, "what links of an axis that ends sustain"),
    Parameter("ici.pair_efficiency", 0.1, 1.0, "what links of an axis of two chips sustain"),
    Parameter("ici.launch_ns", 10.0, 1e6, "the launch of a collective"),
)


@dataclasses.dataclass(frozen=True)
class Fitted:
    """One parameter after the fit."""

    parameter: Parameter
    before: float
    value: float  # `before` if it is not determined
    error: float | None  # standard error, relative; None: nothing depends on it
    refused: str = ""  # why the profile does not determine it
