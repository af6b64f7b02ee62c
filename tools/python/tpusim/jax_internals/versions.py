"""Whether this version of JAX is tested, and how a private name of it is asked for."""

import importlib
import warnings
from typing import Any

import jax

from tpusim.assumptions import ExportWarning
from tpusim.errors import Error
from tpusim.jax_internals.tested import TESTED

OLDEST = next(iter(TESTED))

_NONE = object()
_warned = False


class MissingInternalError(Error):
    """This version of JAX lacks something that tpusim cannot do without."""


def tested() -> str:
    """The tested versions as a sentence has them."""
    *others, last = TESTED
    return f"{', '.join(others)} and {last}"


def propagates() -> bool:
    """Whether this version is known to propagate shardings without compiling."""
    return jax.__version__ in TESTED and TESTED[jax.__version__].propagates


def check() -> None:
    """Warns, once per process, of a version that is not tested; refuses one that is too old."""
    global _warned
    if _numbers(jax.__version__) < _numbers(OLDEST)[:2]:
        raise MissingInternalError(
            f"JAX {jax.__version__} is too old: tpusim is tested with {tested()}"
        )
    if jax.__version__ not in TESTED and not _warned:
        _warned = True
        warnings.warn(
            f"tpusim has not been tested with JAX {jax.__version__} (tested: {tested()})",
            ExportWarning,
            stacklevel=3,
        )


def internal(module: str, name: str, purpose: str) -> Any:
    """`name` (dots for attributes of it) of a module of JAX; an error if this JAX has none."""
    found = optional(module, name, _NONE)
    if found is _NONE:
        raise missing(f"{module}.{name}", purpose)
    return found


def optional(module: str, name: str, default: Any = None) -> Any:
    """Imports like `internal`, and returns `default` where the name is missing."""
    try:
        found = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError):
        return default
    return found


def missing(what: str, purpose: str) -> MissingInternalError:
    """The error for something that this version of JAX does not have."""
    return MissingInternalError(
        f"JAX {jax.__version__} lacks {what}, which tpusim needs to {purpose}; "
        f"tested are {tested()}"
    )


def _numbers(version: str) -> tuple[int, ...]:
    """Returns the leading numbers of a version such as `0.9.0.1` or `0.11.0.dev20260101`."""
    numbers = []
    for part in version.split("."):
        if not part.isdecimal():
            break
        numbers.append(int(part))
    return tuple(numbers)
