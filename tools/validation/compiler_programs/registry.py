"""Programs of the comparison: examples with the slices that they are compiled for.

    @kernel(bf16(2048, 1024), bf16(1024, 4096))
    def matmul(x, w):
        return x @ w

registers a program for one device of every chip; `program` registers a builder over a mesh.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from workloads.examples.example import AnyMesh, Example, Program, array

ALONE = {"x": 1}
# One device; a topology of v7x has two of them, of which one is used.
ONE_DEVICE = ("v5e-1x1", "v5p-1x1x1", "v6e-1x1", "v7x-1x1x1")
EIGHT_DEVICES = ("v5e-4x2", "v5e-2x4", "v5p-2x2x2", "v6e-4x2", "v7x-2x2x1")
FOUR_DEVICES = ("v5e-2x2", "v5p-2x2x1", "v6e-2x2")


@dataclasses.dataclass(frozen=True)
class Entry:
    """A program, and the slices that it is compiled for, cheapest first."""

    family: str
    example: Example
    slices: tuple[str, ...]


PROGRAMS: dict[str, Entry] = {}

Spec = tuple[tuple[int, ...], Any]


def bf16(*shape: int) -> Spec:
    """An argument of bfloat16."""
    return shape, jnp.bfloat16


def f32(*shape: int) -> Spec:
    """An argument of float32."""
    return shape, jnp.float32


def s32(*shape: int) -> Spec:
    """An argument of int32."""
    return shape, jnp.int32


def s8(*shape: int) -> Spec:
    """An argument of int8."""
    return shape, jnp.int8


def add(family: str, example: Example, slices: Sequence[str]) -> None:
    """Registers an example under its name."""
    if example.name in PROGRAMS:
        raise ValueError(f"two programs named {example.name}")
    PROGRAMS[example.name] = Entry(family, example, tuple(slices))


def kernel(
    *arguments: Spec, name: str = "", donate: tuple[int, ...] = (), slices: Sequence[str] = ()
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a function of arrays as a program of one device, named as it is or by `name`."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        def build(mesh: AnyMesh) -> Program:
            shapes = tuple(array(mesh, shape, dtype) for shape, dtype in arguments)
            return jax.jit(function, donate_argnums=donate), shapes

        family = function.__module__.rpartition(".")[2]
        title = name or function.__name__
        add(family, Example(title, ALONE, ONE_DEVICE[0], build), slices or ONE_DEVICE)
        return function

    return register


def program(
    name: str,
    mesh: dict[str, int],
    slices: Sequence[str],
    build: Callable[[AnyMesh], Program],
    family: str,
) -> None:
    """Registers a builder over a mesh."""
    add(family, Example(name, mesh, slices[0], build), slices)
