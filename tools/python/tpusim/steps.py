"""Tells the step of a script from the functions that prepare, evaluate and save.

The step is the jitted function that computes most over all of its calls. It is known before the
script ends, as a training loop may be endless: once a function is called again that computes more
per call than all others, takes at least as many bytes as any call returns, and returns little but
arguments anew. What makes weights is no step by that, even if it is called for every layer: it
takes a key. An evaluation before the first step is none, either: it returns no state.
"""

import collections
import dataclasses
from typing import Any, Generic, Protocol, TypeVar

from tpusim.interception import Call
from tpusim.jax_internals import jaxprs
from tpusim.placeholders import bytes_of


class Counted(Protocol):
    """A function with the number of its calls."""

    calls: int


R = TypeVar("R", bound=Counted)

# Calls of one function after which the largest so far is taken.
_MANY_CALLS = 100


@dataclasses.dataclass
class _Found(Generic[R]):
    """A function, its latest call, and the operations and bytes of one call."""

    reached: R
    call: Call
    work: float
    taken: int
    has_state: bool  # Most of what it returns has the type of an argument.


class Steps(Generic[R]):
    """The functions that a script has called so far."""

    def __init__(self) -> None:
        self._found: list[_Found[R]] = []
        self._returned = 0

    def is_known(self, reached: R, call: Call) -> bool:
        """Counts a call, and returns whether the step is known now."""
        known = next((f for f in self._found if f.reached is reached), None)
        if known is None:
            program = call.program()
            work = jaxprs.work(program.jaxpr)
            given, results = program.in_avals, program.out_avals
            taken, returned = (sum(map(bytes_of, avals)) for avals in (given, results))
            has_state = 2 * _renewed(given, results) > returned
            self._returned = max(self._returned, returned)
            self._found.append(_Found(reached, call, work, taken, has_state))
            return False
        known.call = call
        largest = max(self._found, key=lambda found: found.work)
        is_step = known is largest and known.has_state and known.taken >= self._returned
        return is_step or reached.calls >= _MANY_CALLS

    def step(self) -> tuple[R, Call] | None:
        """Returns the step, by the calls so far, and its latest call; None if there were none."""
        found = max(self._found, key=lambda f: f.work * f.reached.calls, default=None)
        return None if found is None else (found.reached, found.call)


def _renewed(given: list[Any], results: list[Any]) -> int:
    """Returns the bytes of arguments that have a result of their type, each its own."""
    kinds = [collections.Counter((a.shape, a.dtype) for a in avals) for avals in (given, results)]
    both = kinds[0] & kinds[1]
    size = {(a.shape, a.dtype): bytes_of(a) for a in given}
    return sum(size[kind] * count for kind, count in both.items())
