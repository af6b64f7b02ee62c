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
    python: str = "3.11"  # The oldest Python that it is made for.


# Versions that `tools/jax-versions` installs and runs.
TESTED = {
    "0.7.2": Tested("0.12.0", "0.0.23", propagates=False),
    "0.8.3": Tested("0.12.6", "0.0.32", propagates=False),
    "0.9.2": Tested("0.12.6", "0.0.37", propagates=False),
    "0.10.0": Tested("0.12.8", "0.0.40", propagates=True),
    "0.10.1": Tested("0.12.8", "0.0.41", propagates=True),
    "0.10.2": Tested("0.12.8", "0.0.42", propagates=True),
    "0.11.2": Tested("0.12.12", "0.0.48", propagates=True, python="3.12"),
    "0.12.0.1": Tested("0.12.12", "0.0.50", propagates=True, python="3.12"),
}

# The versions of Python. Each JAX is tested with the oldest that it is made for, the newest of all
# with each.
PYTHONS = ("3.11", "3.12", "3.13", "3.14")


def newest(python: str) -> str:
    """Returns the newest JAX for a version of Python, "3.11"."""
    return [jax for jax, goes_with in TESTED.items() if goes_with.python <= python][-1]
