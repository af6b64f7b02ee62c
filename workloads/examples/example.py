"""Examples: sharded JAX programs over a mesh of devices, or over an abstract one.

The same builder serves three readers: over an `AbstractMesh` it is exported, over eight CPU devices
it runs and says what the right answer is, and `python -m tpusim.export` takes it from a shell:

    python -m tpusim.export workloads/examples/matmul.py:matmul_square --config v5e-4x2
"""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec

AnyMesh = Mesh | AbstractMesh
# The function, jitted, and the shapes, types and shardings of its arguments: trees of
# `jax.ShapeDtypeStruct`.
Program = tuple[Callable[..., Any], tuple[Any, ...]]


@dataclasses.dataclass(frozen=True)
class Example:
    """A named program: its mesh, the slice it is meant for, and how to build it.

    `ranges` says from where random values of an argument may be drawn, if not from everywhere:
    {argument or leaf of one: (lowest, below)}. `precision` is the type that decides how exactly
    the results can be known, if another one than their own. `trip_counts` are those of loops that
    depend on data. The axes named in `explicit` carry their shardings in the types of the program.
    """

    name: str
    mesh: dict[str, int]
    config: str
    build: Callable[[AnyMesh], Program]
    ranges: Mapping[str, tuple[float, float]] = dataclasses.field(default_factory=dict)
    precision: str = ""
    trip_counts: Mapping[str, int] = dataclasses.field(default_factory=dict)
    explicit: tuple[str, ...] = ()
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
        return AbstractMesh(tuple(self.mesh.values()), tuple(self.mesh), self._axis_types())

    def concrete_mesh(self, devices: Sequence[Any]) -> Mesh:
        """The mesh over `devices`: partition i is devices[i]."""
        grid = np.array(devices[: self.num_devices]).reshape(tuple(self.mesh.values()))
        return Mesh(grid, tuple(self.mesh), axis_types=self._axis_types())

    def _axis_types(self) -> tuple[AxisType, ...]:
        return tuple(AxisType.Explicit if a in self.explicit else AxisType.Auto for a in self.mesh)


EXAMPLES: dict[str, Example] = {}


def _file(build: Callable[..., Program]) -> str:
    """Returns the file of a builder, possibly a partial one."""
    code: Any = getattr(build, "func", build)
    return code.__code__.co_filename


def example(
    mesh: dict[str, int], config: str, name: str = "", **facts: Any
) -> Callable[[Callable[[AnyMesh], Program]], Example]:
    """Registers a builder as the example of its own name, or of `name`.

    `facts` are the fields of an `Example` that have a default.
    """

    def register(build: Callable[[AnyMesh], Program]) -> Example:
        title = name or getattr(build, "__name__", "")
        entry = Example(title, mesh, config, build, __name__=title, **facts)
        known = EXAMPLES.get(title)
        if known and _file(known.build) != _file(build):
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
