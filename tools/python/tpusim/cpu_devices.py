"""CPU devices in place of TPUs: how many JAX shows is settled when it first looks for them."""

import os

# The flag in XLA_FLAGS.
CPU_DEVICES = "--xla_force_host_platform_device_count"
# They are cheap up to about here; larger meshes want an AbstractMesh.
MOST_FORCED_DEVICES = 1024


def force_cpu_devices(count: int) -> None:
    """Makes JAX, once imported, show `count` CPU devices; other XLA flags are kept."""
    _set_cpu_devices(count)
    os.environ["JAX_PLATFORMS"] = "cpu"


def at_least_cpu_devices(count: int) -> None:
    """Makes JAX show so many CPU devices where CPUs are its platform, or more if XLA_FLAGS does."""
    flags = os.environ.get("XLA_FLAGS", "").split()
    asked = [f.partition("=")[2] for f in flags if f.startswith(f"{CPU_DEVICES}=")]
    # What is no number JAX itself refuses.
    known = [int(number) for number in asked if number.isdecimal()]
    if count <= MOST_FORCED_DEVICES and max([1, *known]) < count:
        _set_cpu_devices(count)


def _set_cpu_devices(count: int) -> None:
    flags = [f for f in os.environ.get("XLA_FLAGS", "").split() if not f.startswith(CPU_DEVICES)]
    os.environ["XLA_FLAGS"] = " ".join([*flags, f"{CPU_DEVICES}={count}"])
