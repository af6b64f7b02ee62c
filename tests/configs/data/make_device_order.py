"""Writes v5e_device_order.txt: where JAX's make_mesh puts each position of a mesh.

Needs jax only; the devices are stand-ins with the attributes that its rule reads.
Usage: python make_device_order.py > v5e_device_order.txt
"""

import math
import types

import jax
from jax._src import mesh_utils

SLICES = [(1, 1), (2, 2), (2, 4), (4, 2), (4, 4), (4, 8), (8, 8), (8, 16), (16, 16)]


def devices(size_x, size_y):
    """Host by host, 2x2 chips each, x minor; the id is x + size_x * y."""
    result = []
    for base_y in range(0, size_y, 2):
        for base_x in range(0, size_x, 2):
            for y in range(base_y, min(base_y + 2, size_y)):
                for x in range(base_x, min(base_x + 2, size_x)):
                    result.append(
                        types.SimpleNamespace(
                            id=x + size_x * y,
                            coords=(x, y, 0),
                            core_on_chip=0,
                            device_kind="TPU v5 lite",
                            platform="tpu",
                        )
                    )
    return result


def meshes(count):
    yield (count,)
    for first in range(1, count + 1):
        if count % first == 0:
            yield (first, count // first)


print(f"# make_mesh of jax {jax.__version__} on v5e slices: slice, mesh, chip ids (x minor).")
print("# Made by make_device_order.py. The last two blocks use fewer chips than there are.")
cases = [(s, m) for s in SLICES for m in meshes(s[0] * s[1])]
cases += [((4, 2), m) for n in (2, 4) for m in meshes(n)]
cases += [((16, 16), m) for n in (4, 8, 16, 64) for m in meshes(n)]
for (size_x, size_y), mesh in cases:
    order = mesh_utils.create_device_mesh(
        mesh, devices(size_x, size_y)[: math.prod(mesh)], allow_split_physical_axes=True
    )
    ids = " ".join(str(d.id) for d in order.flat)
    print(f"{size_x}x{size_y} {'x'.join(map(str, mesh))} {ids}")
