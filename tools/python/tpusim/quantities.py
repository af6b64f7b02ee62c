"""Figures as people read them: four digits and the unit that fits."""

import math
from collections.abc import Sequence

_TIMES = ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns"))
_BYTES = ((2.0**40, "TiB"), (2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B"))
_COUNTS = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))


def _scaled(value: float, units: tuple[tuple[float, str], ...]) -> str:
    size, unit = next((u for u in units if abs(value) >= u[0]), units[-1])
    return f"{value / size:.4g} {unit}"


def time(ns: float) -> str:
    """Nanoseconds as "309.6 us"."""
    return _scaled(ns, _TIMES)


def size(count: float) -> str:
    """Bytes as "15.75 GiB"."""
    return _scaled(count, _BYTES)


def flops(count: float) -> str:
    """Operations as "4.295 GFLOP"."""
    return f"{_scaled(count, _COUNTS)}FLOP"


def percent(share: float) -> str:
    """A share as "7.0%"."""
    return f"{100 * share:.1f}%"


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Returns the lines of a table, whose columns are as wide as what they hold."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def shares(parts: Sequence[float]) -> list[str]:
    """Parts of a whole as "12.3%", which add up to 100 %: rounded by largest remainders."""
    whole = sum(parts)
    if whole <= 0:
        return [percent(0)] * len(parts)
    exact = [1000 * part / whole for part in parts]
    tenths = [math.floor(value) for value in exact]
    by_remainder = sorted(range(len(parts)), key=lambda i: tenths[i] - exact[i])
    for i in by_remainder[: 1000 - sum(tenths)]:
        tenths[i] += 1
    return [f"{t // 10}.{t % 10}%" for t in tenths]
