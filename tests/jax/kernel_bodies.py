"""Reads what the simulator finds in the bodies of Pallas kernels: `tpusim kernel --body`."""

import base64
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import tempfile
from collections.abc import Mapping
from typing import Any

import tpusim


@dataclasses.dataclass(frozen=True)
class Product:
    """`count` products [m,k] x [k,n]."""

    m: int
    k: int
    n: int
    number_format: str
    count: int


@dataclasses.dataclass(frozen=True)
class Block:
    """A window of an operand or result, and the axes of the grid that move it."""

    bytes: int
    output: bool
    moves_with: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Stage:
    """Operations that may run side by side."""

    flops: int
    transcendentals: int
    spilled_bytes: int
    products: tuple[Product, ...]
    # Operations of the vector units, on a register each.
    valu: float
    eup: float
    xlu: float


@dataclasses.dataclass(frozen=True)
class Loop:
    """A loop on data, and what one pass does."""

    name: str
    source: str
    at_most: int | None
    once: "Body"


@dataclasses.dataclass(frozen=True)
class Body:
    """The work of one call on one device, less what its loops add."""

    flops: int
    transcendentals: int
    bytes_accessed: int
    remote_bytes: int
    products: tuple[Product, ...]
    stages: tuple[Stage, ...]
    loops: tuple[Loop, ...]
    # The whole kernel.
    name: str = ""
    unpriced: str = ""
    grid: tuple[int, ...] = ()
    blocks: tuple[Block, ...] = ()
    assumed: tuple[str, ...] = ()


def bodies(
    workload: tpusim.Workload | pathlib.Path, name: str = "*", options: tuple[str, ...] = ()
) -> tuple[Body, ...]:
    """Returns the bodies of the Pallas calls of a program; on v5e if it names no slice."""
    with tempfile.TemporaryDirectory() as folder:
        if isinstance(workload, tpusim.Workload):
            path = pathlib.Path(folder) / "w.pb"
            path.write_bytes(workload.to_bytes())
        else:
            path, workload = workload, tpusim.Workload.load(workload)
        slices = () if workload.config else ("--config", "v5e-16x16")
        command = [os.environ["TPUSIM_BINARY"], "kernel", str(path), name, "--body", "--json"]
        done = subprocess.run(
            [*command, *slices, *options], capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, done.stderr
    return tuple(_body(kernel) for kernel in json.loads(done.stdout)["kernels"])


def exported(function: Any, *arguments: Any, **options: Any) -> tuple[Body, ...]:
    """Returns the bodies of a function of JAX."""
    workload = tpusim.export(function, *arguments, **{"path": None, **options})
    assert workload.kernels == (), "the exporter states nothing by itself"
    return bodies(workload)


def with_another_operation(workload: tpusim.Workload, name: str, another: str) -> tpusim.Workload:
    """Renames an operation as another dialect's future might: to a name that is as long."""

    def renamed(call: re.Match[bytes]) -> bytes:
        body = base64.b64decode(call[2])
        # MLIR's bytecode has names as strings that end with a zero.
        changed = body.replace(f"\0{name}\0".encode(), f"\0{another}\0".encode())
        assert changed != body
        assert len(changed) == len(body)
        return call[1] + base64.b64encode(changed) + b'"'

    module = re.sub(rb'("body": ?")([A-Za-z0-9+/=]+)"', renamed, workload.hlo_module)
    assert len(module) == len(workload.hlo_module), "lengths of fields stay"
    return dataclasses.replace(workload, hlo_module=module)


def _products(of: Mapping[str, Any]) -> tuple[Product, ...]:
    return tuple(Product(p["m"], p["k"], p["n"], p["format"], p["count"]) for p in of["products"])


def _body(of: Mapping[str, Any]) -> Body:
    stages = (
        Stage(
            s["flops"],
            s["transcendentals"],
            s["spilled_bytes"],
            _products(s),
            s["valu"],
            s["eup"],
            s["xlu"],
        )
        for s in of["stages"]
    )
    loops = (
        Loop(loop["name"], loop["source"], loop["at_most"], _body(loop["pass"]))
        for loop in of["loops"]
    )
    blocks = (
        Block(b["bytes"], b["kind"] == "out", tuple(b["moves_with"])) for b in of.get("blocks", ())
    )
    return Body(
        of["flops"],
        of["transcendentals"],
        of["bytes"],
        of["remote_bytes"],
        _products(of),
        tuple(stages),
        tuple(loops),
        of.get("name", ""),
        of.get("unpriced", ""),
        tuple(of.get("grid", ())),
        tuple(blocks),
        tuple(of.get("assumed", ())),
    )
