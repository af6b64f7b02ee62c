"""What an example is: a sharded JAX program that does not care what its mesh is made of.

The same builder serves three readers: over an `AbstractMesh` it is exported, over eight CPU devices
it runs and says what the right answer is, and `python -m tpusim.export` takes it from a shell:

    python -m tpusim.export workloads/examples/matmul.py:matmul_square --config v5e-4x2
"""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import AbstractMesh, Mesh, NamedSharding, PartitionSpec

AnyMesh = Mesh | AbstractMesh
# The function, jitted, and the shapes, types and shardings of its arguments.
Program = tuple[Callable[..., Any], tuple[jax.ShapeDtypeStruct, ...]]


@dataclasses.dataclass(frozen=True)
class Example:
    """A named program: its mesh, the slice it is meant for, and how to build it."""

    name: str
    mesh: dict[str, int]
    config: str
    build: Callable[[AnyMesh], Program]
    __name__: str = ""

    def __call__(self, mesh: AnyMesh | None = None) -> Program:
        """The program over `mesh`, by default over an abstract one."""
        return self.build(self.abstract_mesh() if mesh is None else mesh)

    @property
    def num_devices(self) -> int:
        """Devices in the mesh."""
        return math.prod(self.mesh.values())

    def abstract_mesh(self) -> AbstractMesh:
        """The mesh without devices."""
        return AbstractMesh(tuple(self.mesh.values()), tuple(self.mesh))

    def concrete_mesh(self, devices: Sequence[Any]) -> Mesh:
        """The mesh over `devices`: partition i is devices[i]."""
        grid = np.array(devices[: self.num_devices]).reshape(tuple(self.mesh.values()))
        return Mesh(grid, tuple(self.mesh))


EXAMPLES: dict[str, Example] = {}


def example(
    mesh: dict[str, int], config: str, name: str = ""
) -> Callable[[Callable[[AnyMesh], Program]], Example]:
    """Registers a builder as the example of its own name."""

    def register(build: Callable[[AnyMesh], Program]) -> Example:
        title = name or build.__name__
        entry = Example(title, mesh, config, build, title)
        known = EXAMPLES.get(title)
        if known and known.build.__code__.co_filename != build.__code__.co_filename:
            raise ValueError(f"two examples named {title}")
        EXAMPLES[title] = entry
        return entry

    return register


def array(
    mesh: AnyMesh, shape: tuple[int, ...], dtype: Any, *spec: str | tuple[str, ...] | None
) -> jax.ShapeDtypeStruct:
    """An argument of the given shape and type, sharded by PartitionSpec(*spec)."""
    sharding = NamedSharding(mesh, PartitionSpec(*spec))
    return jax.ShapeDtypeStruct(shape, dtype, sharding=sharding)
