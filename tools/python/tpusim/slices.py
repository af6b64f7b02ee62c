"""How many devices a slice has, by its name."""

import re

_TWO_DEVICES_PER_CHIP = ("v2", "v3", "v7x")


def slices_of(config: str) -> int:
    """How many slices a name like "2x(v5p-4x4x4)" has; 1 for any other name."""
    match = re.match(r"(\d+)x\(", config)
    return int(match[1]) if match else 1


def devices_of(config: str) -> int | None:
    """Devices of a slice named like "v5e-4x2" or "2x(v5p-4x4x4)"; None for any other name."""
    match = re.fullmatch(r"(?:(\d+)x\()?([a-z0-9]+)-(\d+(?:x\d+)*)\)?", config)
    if match is None:
        return None
    count = int(match[1] or 1) * (2 if match[2] in _TWO_DEVICES_PER_CHIP else 1)
    for size in match[3].split("x"):
        count *= int(size)
    return count
