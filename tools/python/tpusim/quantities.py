"""Figures as people read them: four digits and the unit that fits."""

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
