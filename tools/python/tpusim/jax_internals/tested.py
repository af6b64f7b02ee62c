"""The versions of JAX that are tested: the one table. It imports nothing of JAX."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Tested:
    """What goes with a version of JAX."""

    flax: str  # A version that fits it.
    # Whether the partitioner's propagation can be had by itself (lowering.py). That of 0.9 ends the
    # process, those before leave results of inner calls without shardings.
    propagates: bool


# What `tools/jax-versions` installs and runs.
TESTED = {
    "0.7.2": Tested("0.12.0", propagates=False),
    "0.8.3": Tested("0.12.6", propagates=False),
    "0.9.2": Tested("0.12.6", propagates=False),
    "0.10.0": Tested("0.12.8", propagates=True),
    "0.10.1": Tested("0.12.8", propagates=True),
    "0.10.2": Tested("0.12.8", propagates=True),
}

# The versions of Python; all of JAX are tested with the first, the newest with each.
PYTHONS = ("3.11", "3.12", "3.13")
