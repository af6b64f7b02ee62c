"""Steps that tests search over: small, so that exporting one takes a fraction of a second."""

import os
import pathlib
import time
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec
from tpusim import Candidate

CONFIG = "v5e-4x2"
MESHES = [(8, 1), (4, 2), (2, 4), (1, 8)]
RULES = {"x": ("x", None), "y": (None, "y"), "both": ("x", "y"), "none": (None, None)}


def matmul(candidate: Candidate) -> tuple[Any, ...]:
    """[batch, 2048] x [2048, 8192] over a mesh; `rules` shard the weights."""
    mesh = AbstractMesh(candidate.mesh, ("x", "y"), (AxisType.Auto,) * 2)

    def array(shape: tuple[int, ...], *axes: str | None) -> jax.ShapeDtypeStruct:
        sharding = NamedSharding(mesh, PartitionSpec(*axes))
        return jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=sharding)

    def step(a: jax.Array, w: jax.Array) -> jax.Array:
        result = NamedSharding(mesh, PartitionSpec("x", candidate.rules[1]))
        return jax.lax.with_sharding_constraint(a @ w, result)

    batch = candidate.get("batch", 1024)
    return step, (array((batch, 2048), "x", None), array((2048, 8192), *candidate.rules))


def fails_at_2x4(candidate: Candidate) -> tuple[Any, ...]:
    """Makes `matmul`, but fails on one mesh."""
    if candidate.mesh == (2, 4):
        raise ValueError("this mesh is not for it")
    return matmul(candidate)


def dies_at_2x4(candidate: Candidate) -> tuple[Any, ...]:
    """Takes the process along."""
    if candidate.mesh == (2, 4):
        os.abort()
    return matmul(candidate)


def _mlp(params: dict[str, jax.Array], x: jax.Array) -> jax.Array:
    return jnp.maximum(x @ params["up"], 0) @ params["down"]


def mlp(candidate: Candidate) -> tuple[Any, ...]:
    """Two layers; rows of the batch over `data`, the width over `model`."""
    mesh = AbstractMesh(candidate.mesh, ("data", "model"), (AxisType.Auto,) * 2)

    def array(shape: tuple[int, ...], *axes: str | None) -> jax.ShapeDtypeStruct:
        sharding = NamedSharding(mesh, PartitionSpec(*axes))
        return jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=sharding)

    up = array((512, candidate.width), None, "model")
    down = array((candidate.width, 512), "model", None)
    return _mlp, ({"up": up, "down": down}, array((1024, 512), "data", None))


def unsharded_mlp(candidate: Candidate) -> tuple[Any, ...]:
    """Makes an MLP for one device."""
    up, down, x = (
        jax.ShapeDtypeStruct(shape, jnp.bfloat16)
        for shape in ((512, candidate.width), (candidate.width, 512), (1024, 512))
    )
    return _mlp, ({"up": up, "down": down}, x)


def marked(candidate: Candidate) -> tuple[Any, ...]:
    """Makes `matmul`, and marks in the folder `candidate.folder` who works on it.

    From the third on it waits as long as the folder has a hidden file `.held`.
    """
    mesh = "x".join(map(str, candidate.mesh))
    rules = candidate.labels["rules"]
    folder = pathlib.Path(candidate.folder)
    (folder / f"{mesh}.{rules}.{os.getpid()}").touch()
    while (folder / ".held").exists() and len(marks_in(folder)) >= 3:
        time.sleep(0.01)
    return matmul(candidate)


def marks_in(folder: pathlib.Path) -> list[pathlib.Path]:
    """Returns the marks that `marked` left, in order."""
    return sorted(folder.glob("[!.]*"), key=lambda path: path.stat().st_mtime_ns)


def forever_at_2x4(candidate: Candidate) -> tuple[Any, ...]:
    """Makes `marked`, but takes ten minutes on one mesh."""
    built = marked(candidate)
    if candidate.mesh == (2, 4):
        time.sleep(600)
    return built
