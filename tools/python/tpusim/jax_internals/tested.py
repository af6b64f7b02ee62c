"""The versions of JAX that are tested: the one table. It imports nothing of JAX."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Tested:
    """Versions of packages that go with a version of JAX."""

    flax: str  # A version that fits it.
    libtpu: str  # The version of the TPU compiler that JAX names for it.
    # Whether the partitioner's propagation can be had by itself (lowering.py). That of 0.9 ends the
    # process, those before leave results of inner calls without shardings.
    propagates: bool


# Versions that `tools/jax-versions` installs and runs.
TESTED = {
    "0.7.2": Tested("0.12.0", "0.0.23", propagates=False),
    "0.8.3": Tested("0.12.6", "0.0.32", propagates=False),
    "0.9.2": Tested("0.12.6", "0.0.37", propagates=False),
    "0.10.0": Tested("0.12.8", "0.0.40", propagates=True),
    "0.10.1": Tested("0.12.8", "0.0.41", propagates=True),
    "0.10.2": Tested("0.12.8", "0.0.42", propagates=True),
}

# The versions of Python; all of JAX are tested with the first, the newest with each.
PYTHONS = ("3.11", "3.12", "3.13")
