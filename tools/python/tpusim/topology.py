"""Slices as the TPU compiler knows them: topologies that libtpu describes, without a TPU.

The public `libtpu` wheel has the TPU compiler. It is proprietary and no dependency of tpusim: what
needs it says so where it is missing.

Which device runs which partition is up to `jax.make_mesh`, asked on the devices of the topology, as
a program on that slice would; several slices are laid out as by `create_hybrid_device_mesh`, the
leading axes over the slices.
"""

import contextlib
import dataclasses
import functools
import importlib.util
import json
import math
import os
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

from tpusim import arguments as checks
from tpusim import runner, slices
from tpusim.errors import ArgumentValueError, Error
from tpusim.jax_internals.tested import TESTED
from tpusim.workload import DeviceCoordinates

# Names of chips in libtpu.
_NAMES = {chip: chip for chip in ("v2", "v3", "v4", "v5e", "v5p", "v6e")} | {"v7x": "tpu7x"}
# Two TensorCores are one device of JAX, which is an option there.
_MEGACORE = {"v4": "megacore"}
# Chips of a host, which has fewer where a slice is smaller.
_HOST = (2, 2, 1)
# Read by libtpu when it is loaded: it is to ask no metadata server what machine this is, nor to
# mind another process that has it, nor to complain that it stands on no TPU.
_WITHOUT_TPU = {
    "TPU_SKIP_MDS_QUERY": "1",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_ACCELERATOR_TYPE": "v5litepod-1",
}


@dataclasses.dataclass(frozen=True)
class Topology:
    """A slice, or several alike, that libtpu can describe."""

    chip: str
    extents: tuple[int, ...]
    slices: int = 1

    @property
    def name(self) -> str:
        """The name that libtpu has for it, "v5e:4x2"."""
        return f"{_NAMES[self.chip]}:{'x'.join(map(str, self.extents))}"

    def options(self) -> dict[str, Any]:
        """Options of libtpu that the name does not imply."""
        options: dict[str, Any] = {}
        extents = (*self.extents, 1, 1)[:3]
        if any(extent % host for extent, host in zip(extents, _HOST, strict=True)):
            options["chips_per_host_bounds"] = list(map(math.gcd, extents, _HOST))
        if self.slices > 1:
            options["num_slices"] = self.slices
        if self.chip in _MEGACORE:
            options["chip_config_name"] = _MEGACORE[self.chip]
        return options


def require_libtpu() -> str:
    """The version of the wheel; an error that says how to get it if there is none."""
    if importlib.util.find_spec("libtpu") is None:
        # Its version goes with that of JAX.
        jax = importlib.import_module("jax")
        known = TESTED.get(jax.__version__)
        wheel = f"libtpu=={known.libtpu}.*" if known else "libtpu"
        raise Error(
            "compiled=True needs the TPU compiler, which is in the libtpu wheel (proprietary, 0.8 "
            "GB, x86-64 Linux; no TPU is needed, and tpusim does not depend on it): pip install "
            f"'{wheel}'"
        )
    return str(importlib.import_module("libtpu").__version__)


def topology_of(config: str) -> Topology:
    """Returns the topology of a slice by its name, or by a configuration file."""
    if not config:
        expected = 'the slice to compile for, such as "v5e-4x2"'
        raise ArgumentValueError(checks.wrong("config", config, f"{expected}, as compiled=True"))
    named = slices.parse(_name_in_file(config))
    if named is None:
        raise Error(f"{config}: names no slice that a program could be compiled for")
    if named.chip not in _NAMES:
        known = ", ".join(_NAMES)
        raise Error(f"{config}: the TPU compiler does not describe {named.chip}, but {known}")
    if named.twisted:
        raise Error(f"{config}: the TPU compiler does not describe twisted tori")
    chips = named.chips // named.slices
    return Topology(named.chip, named.extents or _most_compact(named.chip, chips), named.slices)


def _name_in_file(config: str) -> str:
    """The slice that a configuration file names; what is no such file is a name itself."""
    if slices.parse(config) is not None:
        return config
    path = pathlib.Path(config)
    try:
        parsed = json.loads(path.read_text())
        chip, extents, count = str(parsed["chip"]), parsed["slice"], parsed.get("slices", 1)
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    if chip not in _NAMES:
        # A chip file: what it is based on has the compiler.
        from tpusim.chip_view import chip_of

        chip = chip_of(str(path.parent / chip))
    name = f"{chip}-{extents}"
    return name if count == 1 else f"{count}x({name})"


def _most_compact(chip: str, chips: int) -> tuple[int, ...]:
    """Returns the extents that Cloud TPU's names mean for so many chips (cloud_names.h)."""
    listed = json.loads(runner.execute(["configs", chip, "--json"]))["chips"][0]["slices"]
    shapes = [tuple(map(int, shape.split("x"))) for shape in listed if shape[0].isdecimal()]
    fitting = [shape for shape in shapes if math.prod(shape) == chips]
    if not fitting:
        raise Error(f"{chip} has no slice of {chips} chips")
    return min(fitting, key=max)


@contextlib.contextmanager
def _without_tpu() -> Iterator[None]:
    """Only while libtpu is loaded: a program of this process may use real TPUs afterwards."""
    added = {name: value for name, value in _WITHOUT_TPU.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]


@functools.cache
def devices_of(topology: Topology) -> tuple[Any, ...]:
    """Its devices, as JAX lists them."""
    require_libtpu()
    from jax.experimental import topologies

    with _without_tpu():
        try:
            described = topologies.get_topology_desc(
                platform="tpu", topology_name=topology.name, **topology.options()
            )
        except Exception as error:  # Of several types: libtpu does not describe it.
            raise Error(
                f"the TPU compiler does not describe {topology.name}: {error}".splitlines()[0]
            ) from error
    return tuple(described.devices)


def coordinates_of(device: Any) -> DeviceCoordinates:
    """Returns coordinates of a device, which in a topology of one slice may have no slice index."""
    index = getattr(device, "slice_index", 0) or 0
    return DeviceCoordinates(*device.coords[:3], device.core_on_chip, index)


def placed(
    topology: Topology,
    mesh: Sequence[int],
    partitions: int,
    places: Sequence[DeviceCoordinates] = (),
) -> list[Any]:
    """The device of each partition of a program over a mesh of these sizes.

    `places` says where they are, if that is stated.
    """
    devices = devices_of(topology)
    if partitions > len(devices):
        raise Error(
            f"the program has {partitions} partitions, but {topology.name} has only {len(devices)} "
            "devices; choose a larger slice or a smaller mesh"
        )
    if places:
        by_place = {coordinates_of(device): device for device in devices}
        if missing := [place for place in places if place not in by_place]:
            raise Error(f"coordinates: {missing[0]} is not on {topology.name}")
        return [by_place[place] for place in places]
    sizes = tuple(mesh) if math.prod(mesh) == partitions else (partitions,)
    in_slice = len(devices) // topology.slices
    if topology.slices == 1 or partitions <= in_slice:
        return _in_slice(topology, sizes, devices[:in_slice])
    return _over_slices(sizes, topology, devices)


def _in_slice(topology: Topology, sizes: Sequence[int], devices: Sequence[Any]) -> list[Any]:
    import jax

    if math.prod(sizes) == 1:
        return [devices[0]]
    names = tuple(f"axis{i}" for i in range(len(sizes)))
    try:
        return list(jax.make_mesh(tuple(sizes), names, devices=devices).devices.flat)
    except (NotImplementedError, ValueError) as error:
        shown = "x".join(map(str, sizes))
        raise Error(
            f"jax.make_mesh has no order of {topology.name} for the mesh {shown}: state where "
            "partitions are with coordinates="
        ) from error


def _over_slices(sizes: tuple[int, ...], topology: Topology, devices: Sequence[Any]) -> list[Any]:
    """Each axis first over the slices, as far as it divides them, then inside of each."""
    import numpy as np

    over, left = [], topology.slices
    for size in sizes:
        over.append(math.gcd(size, left))
        left //= over[-1]
    if left > 1:
        shown = "x".join(map(str, sizes))
        raise Error(f"the axes of mesh {shown} cannot be divided among {topology.slices} slices")
    inside = tuple(size // by for size, by in zip(sizes, over, strict=True))
    of_slices: dict[int, list[Any]] = {}
    for device in devices:
        of_slices.setdefault(device.slice_index, []).append(device)
    grids = [_in_slice(topology, inside, of_slices[index]) for index in sorted(of_slices)]
    found = []
    for index in np.ndindex(*sizes):
        which = tuple(i // n for i, n in zip(index, inside, strict=True))
        at = tuple(i % n for i, n in zip(index, inside, strict=True))
        found.append(
            grids[int(np.ravel_multi_index(which, over))][int(np.ravel_multi_index(at, inside))]
        )
    return found
