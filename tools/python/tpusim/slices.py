"""Parses names of slices: chip and number of devices."""

import dataclasses
import math
import re

_NAME = re.compile(
    r"(?:(\d+)x\()?([a-z0-9]+)[-:](?:(?:standard|hightpu)-)?"
    r"(\d+(?:x\d+)*)(_twisted|t)?\)?"
)
# Each TensorCore is a device (`devices` in configs/chips/*.json).
_TWO_DEVICES_PER_CHIP = ("8i", "v2", "v3", "v7x")
# A single number is Cloud TPU's: it counts the TensorCores of these, the chips of others.
_CORES_COUNTED = ("v2", "v3", "v4", "v5p", "v7x")
# Other names of chips, and those in types of machines, such as "ct6e-standard-4t": chips.
_SPELLINGS = {"v5litepod": "v5e", "v5lite": "v5e", "tpu7x": "v7x"}
_MACHINES = {"ct4p": "v4", "ct5lp": "v5e", "ct5p": "v5p", "ct6e": "v6e"}


@dataclasses.dataclass(frozen=True)
class SliceName:
    """The parts of a name such as "v5e-4x2", "2x(v5p-4x4x4)", "tpu7x:2x2x1" or "v4-32"."""

    chip: str
    chips: int
    # Extents of one slice, in chips; none if only their number is named.
    extents: tuple[int, ...] = ()
    slices: int = 1
    twisted: bool = False

    @property
    def devices(self) -> int:
        """The number of devices that JAX counts."""
        return self.chips * (2 if self.chip in _TWO_DEVICES_PER_CHIP else 1)


def parse(config: str) -> SliceName | None:
    """None for any other name."""
    match = _NAME.fullmatch(config)
    if match is None:
        return None
    machine = match[4] == "t"
    chip = (_SPELLINGS | _MACHINES).get(match[2], match[2])
    extents = tuple(map(int, match[3].split("x")))
    chips, slices = math.prod(extents), int(match[1] or 1)
    if len(extents) == 1:
        extents = ()
        if chip in _CORES_COUNTED and not machine:
            chips //= 2
    return SliceName(chip, chips * slices, extents, slices, match[4] == "_twisted")


def slices_of(config: str) -> int:
    """Returns the number of slices in a name like "2x(v5p-4x4x4)"; 1 for any other name."""
    match = re.match(r"(\d+)x\(", config)
    return int(match[1]) if match else 1


def devices_of(config: str) -> int | None:
    """Devices of a slice by its name; None for any other name."""
    name = parse(config)
    return None if name is None else name.devices
