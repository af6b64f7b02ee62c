"""Logical axes: arrays name what their dimensions mean, a table says which mesh axes share them.

    RULES = {"batch": "data", "hidden": "model"}
    spec(RULES, ("batch", "sequence", "hidden"))      # PartitionSpec("data", None, "model")

The same model then runs under every parallelism there is a table for.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec

from workloads.examples.example import AnyMesh

# Logical axis -> mesh axis, or several, major to minor. Axes without an entry are not sharded.
Rules = Mapping[str, str | tuple[str, ...]]


@dataclasses.dataclass(frozen=True)
class Array:
    """Shape of an array, with a logical name (or None) per dimension."""

    shape: tuple[int, ...]
    axes: tuple[str | None, ...]


def spec(rules: Rules, axes: tuple[str | None, ...]) -> PartitionSpec:
    """The axes as mesh axes."""
    return PartitionSpec(*(rules.get(axis) if axis else None for axis in axes))


@dataclasses.dataclass(frozen=True)
class Layout:
    """A mesh and a table: all that turns logical axes into shardings."""

    mesh: AnyMesh
    rules: Rules

    def sharding(self, *axes: str | None) -> NamedSharding:
        """The sharding of an array whose dimensions are `axes`."""
        return NamedSharding(self.mesh, spec(self.rules, axes))

    def constrain(self, x: jax.Array, *axes: str | None) -> jax.Array:
        """`x`, sharded by its axes from here on."""
        return lax.with_sharding_constraint(x, self.sharding(*axes))

    def shape(self, array: Array, dtype: Any) -> jax.ShapeDtypeStruct:
        """The array as an argument."""
        return jax.ShapeDtypeStruct(array.shape, dtype, sharding=self.sharding(*array.axes))

    def shapes(self, arrays: Mapping[str, Array], dtype: Any) -> dict[str, jax.ShapeDtypeStruct]:
        """A dict of arrays, such as all weights of a model, as arguments."""
        return {name: self.shape(array, dtype) for name, array in arrays.items()}
