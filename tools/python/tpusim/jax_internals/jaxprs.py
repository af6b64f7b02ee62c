"""The programs inside of a program."""

from collections.abc import Iterator, Mapping
from typing import Any

from jax.extend import core


def inside(params: Mapping[str, Any]) -> Iterator[Any]:
    """The jaxprs, not closed, among the parameters of an equation; branches are in tuples."""
    for value in params.values():
        for part in value if isinstance(value, tuple | list) else (value,):
            if isinstance(part, core.Jaxpr):
                yield part
            elif isinstance(part, core.ClosedJaxpr):
                yield part.jaxpr
