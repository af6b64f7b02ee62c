"""Shows a program the chip of the config, not a CPU, while it is exported.

Programs choose block sizes by the kind of device, and kernels or attention by the platform. While
the step is traced they get the answers that they would get on the slice:

    jax.devices()[0].device_kind        "TPU v5 lite"
    jax.devices()[0].platform, jax.default_backend(), the platform of a backend       "tpu"
    pltpu.get_tpu_info()                that of the chip

Where the config has several slices, devices have a `slice_index`, which `create_hybrid_device_mesh`
of `jax.experimental.mesh_utils` asks for; CPU devices have none.

So do scripts that are captured, from their first line to their last, functions that only describe
what to export, and blocks under `tpusim.seen_as(config)`. JAX itself always gets true answers.
"""

import contextlib
import json
import pathlib
import sys
from collections.abc import Iterator
from typing import Any

import jax

from tpusim import slices
from tpusim.assumptions import Assumptions, is_users, users_place
from tpusim.errors import Error
from tpusim.jax_internals import devices as jax_devices
from tpusim.slices import devices_of, slices_of

# Names of chips in JAX, and how many TensorCores it sees in a device.
DEVICE_KINDS = {
    "v2": ("TPU v2", 1),
    "v3": ("TPU v3", 1),
    "v4": ("TPU v4", 2),
    "v4i": ("TPU v4 lite", 1),
    "v5e": ("TPU v5 lite", 1),
    "v5p": ("TPU v5", 2),
    "v6e": ("TPU v6 lite", 1),
    "v7x": ("TPU7x", 1),
    "8i": ("TPU8i", 1),
    "8t": ("TPU8t", 1),
}
_MOST_BASES = 16


def chip_of(config: str) -> str:
    """The built-in chip of a slice's name or of a configuration file; "" if there is none."""
    if (named := slices.parse(config)) is not None:
        return named.chip
    path, name = pathlib.Path(), config
    for _ in range(_MOST_BASES):
        if name in DEVICE_KINDS:
            return name
        path = path.parent / name
        try:
            parsed = json.loads(path.read_text())
            name = parsed["base"] if "base" in parsed else parsed["chip"]
        except (OSError, ValueError, KeyError, TypeError):
            return ""
        if not isinstance(name, str):
            return ""
    return ""


class _View:
    """The chip and assumptions that answer a program's questions until the block ends."""

    def __init__(self, config: str, assumptions: Assumptions):
        self.kind, self.cores = DEVICE_KINDS.get(chip_of(config), ("", 0))
        slices, devices = slices_of(config), devices_of(config)
        self.devices_per_slice = devices // slices if devices and slices > 1 else 0
        self.assumptions = assumptions

    def device_kind(self, actual: str) -> str:
        if not self.kind:
            self.assumptions.add(
                f"{users_place()} asked for the kind of a device and saw {actual!r}: where it "
                f"chooses by that, the workload has what it chooses for {actual!r}",
                warn=True,
            )
        return self.kind or actual

    def platform(self, actual: str) -> str:
        return "tpu" if actual == "cpu" else actual


_views: list[_View] = []


@contextlib.contextmanager
def shown(config: str, assumptions: Assumptions) -> Iterator[None]:
    """Shows the chip of `config` inside the block; blocks nest, the inner one counts."""
    view = _View(config, assumptions)
    with contextlib.ExitStack() as stack:
        if not _views:
            stack.enter_context(_installed())
        _views.append(view)
        _forget_tpu_info()
        try:
            yield
        except ValueError as error:
            if view.kind or "Unsupported TPU device kind" not in str(error):
                raise
            raise Error("the program asks for its TPU: config= (--config) names one") from error
        finally:
            _views.pop()
            _forget_tpu_info()


@contextlib.contextmanager
def _installed() -> Iterator[None]:
    """The answers in place of JAX's own."""
    device, client = jax_devices.device_type(), jax_devices.client_type()
    with contextlib.ExitStack() as stack:

        def put(owner: Any, name: str, value: Any) -> None:
            if name in vars(owner):
                stack.callback(setattr, owner, name, vars(owner)[name])
            else:
                stack.callback(delattr, owner, name)
            setattr(owner, name, value)

        def answer(owner: Any, name: str, view: str) -> None:
            actual = vars(owner)[name].__get__

            def get(self: Any) -> str:
                value = actual(self)
                if value != "cpu" or not is_users(sys._getframe(1)):
                    return value
                return getattr(_views[-1], view)(value)

            put(owner, name, property(get))

        def slice_index(self: Any) -> int:
            caller = sys._getframe(1)
            # Not for jax.make_mesh, which refuses several slices: on CPU devices it makes any mesh.
            asks = caller.f_globals.get("__name__") == jax_devices.MESH_LAYOUT_MODULE or is_users(
                caller
            )
            per_slice = _views[-1].devices_per_slice
            if not asks or not per_slice:
                raise AttributeError("slice_index")
            return int(self.id) // per_slice

        actual_cores = vars(device).get("num_cores")

        def num_cores(self: Any) -> int:
            # Kernels over all cores of a device ask for it (pltpu.TensorCoreMesh).
            if _views[-1].cores and self.client.platform == "cpu":
                return _views[-1].cores
            if actual_cores is None:
                raise AttributeError("num_cores")
            return int(actual_cores.__get__(self))

        put(device, "num_cores", property(num_cores))
        if not hasattr(device, "slice_index"):
            put(device, "slice_index", property(slice_index))
        answer(device, "device_kind", "device_kind")
        answer(device, "platform", "platform")
        answer(client, "platform", "platform")
        default_backend = jax.default_backend

        def visible_default_backend() -> str:
            value = default_backend()
            if value != "cpu" or not is_users(sys._getframe(1)):
                return value
            return _views[-1].platform(value)

        put(jax, "default_backend", visible_default_backend)
        tpu_info = jax_devices.tpu_info()
        if tpu_info is not None:
            kind, cores = tpu_info.get_device_kind, tpu_info.get_num_device_cores
            put(tpu_info, "get_device_kind", lambda: _views[-1].kind or kind())
            put(tpu_info, "get_num_device_cores", lambda: _views[-1].cores or cores())
        yield


def _forget_tpu_info() -> None:
    forget = getattr(getattr(jax_devices.tpu_info(), "get_tpu_info", None), "cache_clear", None)
    if forget is not None:
        forget()
