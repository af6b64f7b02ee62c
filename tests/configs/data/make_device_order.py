"""Writes device_order.txt: where JAX's make_mesh puts each position of a mesh.

Needs jax only; the devices are stand-ins with the attributes that its rule
reads. With --check and libtpu installed, the stand-ins are compared with the
devices that the TPU library describes for each slice (it knows all chips but v4i
by the names used here; "v4 lite" is v4i).

device_order_jax0_12.txt has the lines that differ with JAX 0.12.

Usage: python make_device_order.py > device_order.txt
       python make_device_order.py --beside device_order.txt > device_order_jax0_12.txt
       JAX_PLATFORMS=cpu TPU_SKIP_MDS_QUERY=1 python make_device_order.py --check
"""

import math
import pathlib
import sys
import types

import jax
from jax._src import mesh_utils

LITE = [(1, 1), (2, 2), (2, 4), (4, 2), (4, 4), (4, 8), (8, 4), (8, 8), (8, 16), (16, 8), (16, 16)]
CUBES = [(2, 2, 1), (2, 2, 2), (2, 2, 4), (2, 4, 4), (4, 4, 4), (4, 4, 8), (4, 8, 8), (8, 8, 8)]
# Chip: kind, devices per chip, slices, name of the TPU library, its options.
MEGACORE = {"chip_config_name": "megacore"}
CHIPS = {
    "v2": ("TPU v2", 2, [(2, 2), (4, 4), (8, 8), (8, 16), (16, 16)], "v2", {}),
    "v3": ("TPU v3", 2, [(2, 2), (4, 4), (4, 8), (8, 8), (16, 32)], "v3", {}),
    "v4": ("TPU v4", 1, [*CUBES, (4, 4, 12), (12, 12, 24)], "v4", MEGACORE),
    "v4i": ("TPU v4 lite", 1, [(1, 1), (2, 2)], "v4 lite", {}),
    "v5e": ("TPU v5 lite", 1, LITE, "v5e", {}),
    "v5p": ("TPU v5", 1, [*CUBES, (4, 4, 12), (16, 16, 24)], "v5p", {}),
    "v6e": ("TPU v6 lite", 1, LITE, "v6e", {}),
    "v7x": ("TPU7x", 2, [*CUBES, (4, 4, 12), (12, 16, 24)], "tpu7x", {}),
}
# Devices of a larger slice that are asked for a smaller mesh.
PARTS = {
    "v2": {(4, 4): [1, 8, 16]},
    "v4": {(4, 4, 4): [4, 8, 16]},
    "v5e": {(4, 2): [2, 4], (16, 16): [4, 8, 16, 64]},
    "v6e": {(4, 2): [2, 4], (16, 16): [4, 8, 16, 64]},
    "v7x": {(2, 2, 4): [1, 2, 8, 16], (4, 4, 4): [8, 16, 32]},
}
MOST_IN_FULL = 64  # longer orders are written as a hash


def devices(kind, cores, size):
    """Host by host, 2x2 chips each, x minor, cores side by side.

    The id is core + cores * (x + size_x * (y + size_y * z)).
    """
    size_x, size_y, size_z = (*size, 1)[:3]
    result = []
    for z in range(size_z):
        for base_y in range(0, size_y, 2):
            for base_x in range(0, size_x, 2):
                for y in range(base_y, min(base_y + 2, size_y)):
                    for x in range(base_x, min(base_x + 2, size_x)):
                        chip = x + size_x * (y + size_y * z)
                        result += [
                            types.SimpleNamespace(
                                id=core + cores * chip,
                                coords=(x, y, z),
                                core_on_chip=core,
                                device_kind=kind,
                                platform="tpu",
                            )
                            for core in range(cores)
                        ]
    return result


def meshes(count, axes):
    """Meshes of one to `axes` axes; of more than 64 devices only powers of two."""
    if axes == 1:
        yield (count,)
        return
    yield from meshes(count, axes - 1)
    if axes == 3 and count > 64:
        return
    for first in range(1 if axes == 2 else 2, count + 1):
        if count % first == 0 and (count <= 64 or first & (first - 1) == 0):
            yield from (
                (first, *rest)
                for rest in meshes(count // first, axes - 1)
                if len(rest) == axes - 1 and (axes == 2 or min(rest) > 1)
            )


def fnv(ids):
    """64-bit FNV-1a over the ids in decimal, each with a space behind it."""
    value = 0xCBF29CE484222325
    for byte in "".join(f"{i} " for i in ids).encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


def make_mesh(mesh, listed):
    """Returns what jax.make_mesh does with the devices; None where it refuses."""
    first = listed[: math.prod(mesh)]
    splits = first[0].device_kind in (mesh_utils._TPU_V5_LITE, mesh_utils._TPU_V5E)
    try:
        return mesh_utils.create_device_mesh(mesh, first, allow_split_physical_axes=splits)
    except (NotImplementedError, AssertionError):
        return None


def write(known):
    """Prints every line but the known ones."""
    print(f"# make_mesh of jax {jax.__version__}: chip, slice, mesh, device ids (x minor).")
    print(f"# '=' a 64-bit FNV-1a of more than {MOST_IN_FULL} ids; 'refused' as make_mesh does.")
    print("# Made by make_device_order.py.")
    for chip, (kind, cores, sizes, _, _) in CHIPS.items():
        cases = [(size, math.prod(size) * cores) for size in sizes]
        cases += [(size, n) for size, parts in PARTS.get(chip, {}).items() for n in parts]
        for size, count in cases:
            listed = devices(kind, cores, size)
            for mesh in meshes(count, 3):
                order = make_mesh(mesh, listed)
                ids = [] if order is None else [d.id for d in order.flat]
                text = " ".join(map(str, ids)) if len(ids) <= MOST_IN_FULL else f"= {fnv(ids)}"
                name, axes = "x".join(map(str, size)), "x".join(map(str, mesh))
                if (line := f"{chip} {name} {axes} {text or 'refused'}") not in known:
                    print(line)


def check():
    from jax.experimental import topologies

    for chip, (kind, cores, sizes, library, options) in CHIPS.items():
        for size in sizes:
            name = f"{library}:{'x'.join(map(str, size))}"
            if math.prod(size) == 1:
                continue  # needs other options there
            described = topologies.get_topology_desc(
                platform="tpu", topology_name=name, **options
            ).devices
            expected = [
                (d.id, d.coords, d.core_on_chip, d.device_kind) for d in devices(kind, cores, size)
            ]
            found = [(d.id, tuple(d.coords), d.core_on_chip, d.device_kind) for d in described]
            print(f"{chip} {name}: {'agrees' if found == expected else 'DIFFERS'}")


if sys.argv[1:] == ["--check"]:
    check()
else:
    write(set(pathlib.Path(sys.argv[2]).read_text().splitlines()) if sys.argv[2:] else set())
