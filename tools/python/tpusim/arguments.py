"""Checks of what users give to functions of this package, before anything is done with it.

A complaint is one line that names the parameter, what was given and what is expected: a TypeError
for a value of a wrong type, a ValueError for any other, each a tpusim.Error, too. What passes is
plain: a number of NumPy or an array of numbers becomes one of Python, a whole float an int.
"""

import argparse
import math
import numbers
import operator
import os
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from tpusim.errors import ArgumentTypeError, ArgumentValueError

_MOST_SHOWN = 60
# The largest number the simulator counts to.
_MOST = 2**63 - 1
# Sizes of groups are written with so many digits at most.
_SHARE_DIGITS = 15
_MOST_SIZE_LENGTH = 18
# Shares of a third each may add up to a little more than all.
_MOST_SHARES = 1.001

_DAY = 86400 * 10**12  # in picoseconds

# Figures that may be stated of a kernel, per call and device.
KERNEL_FIGURES = ("flops", "transcendentals", "bytes_accessed", "remote_bytes")


def wrong(parameter: str, value: Any, expected: str) -> str:
    """The one line."""
    shown = repr(value)
    if len(shown) > _MOST_SHOWN:
        shown = f"{shown[: _MOST_SHOWN - 3]}..."
    return f"{parameter}: {' '.join(shown.split())}: expected {expected}"


def text(parameter: str, value: Any, expected: str = "text", *, empty: bool = False) -> str:
    """Text that a command line can carry."""
    if not isinstance(value, str):
        raise ArgumentTypeError(wrong(parameter, value, expected))
    try:
        valid = b"\0" not in os.fsencode(value)
    except UnicodeEncodeError:
        valid = False
    if not valid or not (value or empty):
        raise ArgumentValueError(wrong(parameter, value, expected))
    return value


def whole(
    parameter: str,
    value: Any,
    expected: str = "a whole number, 0 or more",
    *,
    least: int = 0,
    most: int = _MOST,
) -> int:
    """A whole number, be it of NumPy or a float."""
    plain = _plain(value)
    if not _is_number(plain):
        raise ArgumentTypeError(wrong(parameter, value, expected))
    if not _is_finite(plain) or plain != int(plain) or not least <= plain <= most:
        raise ArgumentValueError(wrong(parameter, value, expected))
    return int(plain)


def count(text: str) -> int:
    """A whole number of a command line, at least 1, as a `type` of argparse."""
    if not (text.isascii() and text.isdecimal() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number, at least 1")
    return int(text)


def number(
    parameter: str,
    value: Any,
    expected: str = "a number",
    *,
    least: float = -math.inf,
    above: float = -math.inf,
    most: float = math.inf,
) -> int | float:
    """A finite number."""
    plain = _plain(value)
    if not _is_number(plain):
        raise ArgumentTypeError(wrong(parameter, value, expected))
    if not _is_finite(plain) or not least <= plain <= most or plain <= above:
        raise ArgumentValueError(wrong(parameter, value, expected))
    return plain


def mapping(parameter: str, value: Any, expected: str) -> dict[str, Any]:
    """A mapping whose keys are text; None is an empty one."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ArgumentTypeError(wrong(parameter, value, expected))
    return {text(f"{parameter}: the name", key): of for key, of in value.items()}


def several(parameter: str, value: Any, expected: str) -> list[Any]:
    """The elements of a list, a tuple, a range, an array."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise ArgumentTypeError(wrong(parameter, value, expected))
    return list(value)


def words(parameter: str, value: Any, expected: str) -> list[str]:
    """One text, or several."""
    if isinstance(value, str):
        return [text(parameter, value, expected)] if value else []
    return [text(parameter, word, expected) for word in several(parameter, value, expected)]


def axes(value: Any) -> list[str]:
    """Names of axes of a mesh; None is none."""
    expected = 'names, each once and without "," and "=", such as ["data", "model"]'
    found = [] if value is None else words("axes", value, expected)
    if len(set(found)) < len(found) or any("," in name or "=" in name for name in found):
        raise ArgumentValueError(wrong("axes", value, expected))
    return found


def options(value: Any) -> list[str]:
    """Words of a command line; paths among them may be such objects."""
    expected = 'a list of words, such as ["--detail", "tile"]'
    found = several("options", value, expected)
    plain = [os.fspath(word) if isinstance(word, os.PathLike) else word for word in found]
    return [text("options", word, expected, empty=True) for word in plain]


def config(value: Any) -> str:
    """A slice or a configuration file; "" is none."""
    expected = 'the name of a slice, such as "v5e-4x2", or the path of a configuration file'
    plain = os.fspath(value) if isinstance(value, os.PathLike) else value
    return text("config", plain, expected, empty=True)


def settings(value: Any) -> list[str]:
    """NAME=VALUE of parameters of the chip."""
    expected = '{parameter: value}, such as {"chip.hbm.bytes_per_second": 1.6e12}'
    found = mapping("settings", value, expected)
    for name in found:
        if "=" in name:
            raise ArgumentValueError(wrong("settings: the name", name, "a parameter, without '='"))
    return [f"{name}={_setting(name, of)}" for name, of in found.items()]


def _setting(name: str, value: Any) -> str:
    place, expected = f"settings: {name}", 'a finite number, or text such as "2x" or "1.6e12"'
    if isinstance(value, str):
        return text(place, value, expected)
    if isinstance(value, bool) and name.startswith("compiler."):
        return str(value).lower()
    return str(number(place, value, expected))


def trip_counts(value: Any) -> dict[str, int]:
    """Checks trip counts: {name or glob of a loop: how often it runs}."""
    found = mapping("trip_counts", value, '{loop: count}, such as {"while.3": 10}')
    return {loop: whole(f"trip_counts: {loop}", count) for loop, count in found.items()}


def kernel_costs(value: Any) -> dict[str, dict[str, int]]:
    """Checks costs by kernel name or glob; "seconds" becomes "picoseconds" in the result."""
    figures = f"whole numbers of {', '.join(KERNEL_FIGURES)}, or seconds"
    expected = '{kernel: {"flops": 2000, "bytes_accessed": 1000}} or {kernel: {"seconds": 2e-6}}'
    costs = {}
    for kernel, cost in mapping("kernel_costs", value, expected).items():
        place = f"kernel_costs: {kernel}"
        if not isinstance(cost, Mapping):
            raise ArgumentTypeError(wrong(place, cost, f"a dict with {figures}"))
        costs[kernel] = {}
        for figure, of in cost.items():
            if figure == "seconds":
                costs[kernel]["picoseconds"] = picoseconds(f"{place}: seconds", of)
            elif figure in KERNEL_FIGURES:
                costs[kernel][figure] = whole(f"{place}: {figure}", of)
            else:
                raise ArgumentValueError(wrong(place, figure, figures))
    return costs


def flag(parameter: str, value: Any) -> bool:
    """True or False, and nothing that merely is as good."""
    if not isinstance(value, bool):
        raise ArgumentTypeError(wrong(parameter, value, "True or False"))
    return value


def compiler_options(value: Any) -> dict[str, bool | int | float | str]:
    """Checks options of the TPU compiler, as `Lowered.compile` takes them."""
    expected = '{option: value}, such as {"xla_tpu_scoped_vmem_limit_kib": 65536}'
    options: dict[str, bool | int | float | str] = {}
    for name, of in mapping("compiler_options", value, expected).items():
        place = f"compiler_options: {name}"
        if name.startswith("-") or "=" in name or " " in name:
            named = "a name without dashes, such as xla_tpu_scoped_vmem_limit_kib"
            raise ArgumentValueError(wrong("compiler_options", name, named))
        if isinstance(of, bool | str):
            options[name] = of
        else:
            options[name] = number(place, of, "True, False, a number or text")
    return options


def picoseconds(parameter: str, seconds: Any) -> int:
    """Converts a duration in seconds to whole picoseconds."""
    expected = "a time in seconds, from 1e-12 to a day"
    found = round(number(parameter, seconds, expected) * 1e12)
    if not 1 <= found < _DAY:
        raise ArgumentValueError(wrong(parameter, seconds, expected))
    return found


def branches(value: Any) -> list[str]:
    """NAME=INDEX of conditionals."""
    expected = 'the index of a branch, 0 or more, or "longest"'
    found = mapping("branches", value, '{conditional: index or "longest"}')
    listed = []
    for name, of in found.items():
        place = f"branches: {name}"
        if isinstance(of, str) and of != "longest" and not (of.isascii() and of.isdecimal()):
            raise ArgumentValueError(wrong(place, of, expected))
        listed.append(f"{name}={of if isinstance(of, str) else whole(place, of, expected)}")
    return listed


def ragged(value: Any) -> list[str]:
    """NAME=SIZES of operations whose groups are data."""
    found = mapping("ragged", value, '{operation: sizes}, such as {"*": [0.5, 0.25, 0.25]}')
    return [f"{name}={_sizes(f'ragged: {name}', of)}" for name, of in found.items()]


def routing(value: Any) -> str:
    """Returns `--routing` of a value, how often experts are asked for; "" where it is not given."""
    plain = os.fspath(value) if isinstance(value, os.PathLike) else value
    expected = '"uniform", "zipf:1.1" or the path of a JSON file'
    return text("routing", plain, expected, empty=True)


def mesh(value: Any) -> str:
    """NAME=SIZE,... of the axes of a mesh."""
    expected = "the size of an axis, 1 or more"
    found = mapping("mesh", value, '{axis: size}, such as {"data": 4, "model": 2}')
    for name, of in found.items():
        if whole(f"mesh: {name}", of, expected) < 1:
            raise ArgumentValueError(wrong(f"mesh: {name}", of, expected))
    return ",".join(f"{name}={of}" for name, of in found.items())


def specs(argument: str, value: Any, of_what: str) -> list[str]:
    """NAME=SHARDING of what `argument` shards."""
    expected = "a PartitionSpec, or its text, \"P('x', None)\""
    found = mapping(argument, value, f"{{{of_what}: PartitionSpec}}")
    listed = []
    for name, of in found.items():
        text = of if isinstance(of, str) else _spec_text(of)
        if text is None:
            raise ArgumentTypeError(wrong(f"{argument}: {name}", of, expected))
        listed.append(f"{name}={text}")
    return listed


def policies(argument: str, value: Any) -> list[str]:
    """NAME=POLICY of values that the program has named."""
    known = ("saved", "offloaded", "recomputed")
    expected = '"saved", "offloaded" or "recomputed"'
    listed = []
    for name, of in mapping(argument, value, f"{{name: {expected}}}").items():
        place = f"{argument}: {name}"
        if text(place, of, expected) not in known:
            raise ArgumentValueError(wrong(place, of, expected))
        listed.append(f"{name}={of}")
    return listed


def open_specs(parameter: str, value: Any) -> list[str]:
    """NAME=SHARDING of arguments, in which ? leaves a dimension open."""
    expected = "{argument: PartitionSpec}, or texts such as \"params/*/up=P(?, 'model')\""
    if not isinstance(value, Mapping):
        return [] if value is None else words(parameter, value, expected)
    of_one = "a PartitionSpec, or its text, \"P(?, 'model')\""
    listed = []
    for name, of in mapping(parameter, value, expected).items():
        place = f"{parameter}: {name}"
        said = text(place, of, of_one) if isinstance(of, str) else _spec_text(of, "?")
        if said is None:
            raise ArgumentTypeError(wrong(place, of, of_one))
        listed.append(f"{name}={said}")
    return listed


def _spec_text(spec: Any, unconstrained: str | None = None) -> str | None:
    """P('x', None) of a PartitionSpec; who has one has loaded JAX.

    `unconstrained` stands for `PartitionSpec.UNCONSTRAINED`, if that may be in it.
    """
    jax = sys.modules.get("jax")
    if jax is None or not isinstance(spec, jax.sharding.PartitionSpec):
        return None
    entries = []
    for entry in spec:
        if entry is spec.UNCONSTRAINED:
            if unconstrained is None:
                return None
            entries.append(unconstrained)
            continue
        names = (entry,) if isinstance(entry, str) else entry
        if names is not None and not all(isinstance(name, str) for name in names):
            return None
        axes = [f"'{name}'" for name in names or ()]
        entries.append(f"({', '.join(axes)},)" if len(axes) > 1 else axes[0] if axes else "None")
    return f"P({', '.join(entries)})"


def _sizes(place: str, value: Any) -> str:
    """Whole numbers are rows, others shares; numbers with a fraction are shares for the binary."""
    expected = 'rows, such as [128, 64], shares, at most 1 in all, or "uniform"'
    if isinstance(value, str):
        return text(place, value, expected)
    sizes = [number(place, size, expected) for size in several(place, value, expected)]
    if not sizes or min(sizes) < 0:
        raise ArgumentValueError(wrong(place, value, expected))
    shares = any(isinstance(size, float) for size in sizes)
    if shares and sum(sizes) > _MOST_SHARES:
        if any(size != int(size) for size in sizes):
            raise ArgumentValueError(wrong(place, value, expected))
        shares = False
    return ",".join(_share(size) if shares else str(int(size)) for size in sizes)


def _share(size: float) -> str:
    shown = repr(float(size))
    plain = "e" not in shown and len(shown) <= _MOST_SIZE_LENGTH
    return shown if plain else f"{size:.{_SHARE_DIGITS}f}"


def device_order(value: Any) -> str:
    """Checks which device runs which partition; returns the words of --device-order, or ""."""
    expected = '"ids", or the number of the device of each partition, such as [0, 1, 3, 2]'
    if isinstance(value, str):
        return text("device_order", value, expected, empty=True)
    devices = several("device_order", value, expected)
    if not devices:
        raise ArgumentValueError(wrong("device_order", value, expected))
    return ",".join(str(whole("device_order", device, expected)) for device in devices)


def coordinates(value: Any) -> list[tuple[int, ...]] | None:
    """Checks the chip coordinates of partitions."""
    if value is None:
        return None
    expected = "(x, y[, z[, core[, slice]]]) for each partition, such as [(0, 0), (1, 0)]"
    places = []
    for place in several("coordinates", value, expected):
        position = several("coordinates", place, expected)
        if not 1 <= len(position) <= 5:
            raise ArgumentValueError(wrong("coordinates", place, expected))
        places.append(tuple(whole("coordinates", n, expected) for n in position))
    return places


def fold(value: Any) -> str:
    """Checks the value of --fold; "" leaves it out."""
    expected = '"auto", "on", "off" or "approximate"'
    if text("fold", value, expected, empty=True) not in ("", "auto", "on", "off", "approximate"):
        raise ArgumentValueError(wrong("fold", value, expected))
    return value


def chip(value: Any) -> int:
    """The number of a chip."""
    return whole("chip", value, "the number of a chip, 0 or more")


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _is_finite(value: Any) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        return False  # A number of hundreds of digits.


def _plain(value: Any) -> Any:
    """A scalar of NumPy or JAX as a number of Python; other values as they are."""
    if isinstance(value, bool | int | float):
        return value
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        return value.item()
    try:
        return operator.index(value)
    except TypeError:
        pass
    # Fractions, and what else there may be of real numbers.
    return float(value) if isinstance(value, numbers.Real) and _is_finite(value) else value
