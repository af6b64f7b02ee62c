"""The examples of the project, on slices with as many devices as their meshes have."""

from compiler_programs.registry import EIGHT_DEVICES, FOUR_DEVICES, ONE_DEVICE, add
from workloads.examples import EXAMPLES

_SLICES = {1: ONE_DEVICE, 4: FOUR_DEVICES, 8: EIGHT_DEVICES}

for _example in EXAMPLES.values():
    # The slice that it is meant for comes first.
    _others = _SLICES.get(_example.num_devices, ())
    add("examples", _example, dict.fromkeys((_example.config, *_others)))
