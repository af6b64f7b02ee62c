"""`with tpusim.capture("workload.pb"):` takes a workload out of a script that already exists.

The first call of a jitted function inside the block is exported with the arguments of that call
instead of being executed, and the block ends there, as if the call had been its last statement:

    with tpusim.capture("step.pb", config="v5e-4x2") as captured:
        train()                     # builds a mesh, shards its arrays, calls train_step(...)
    print(captured.workload.name)

Inside the block JAX shows as many CPU devices as the slice has, so that the script can build its
mesh from `jax.devices()`, unless something has asked JAX for devices before.

What counts as such a call: see interception.py. With `function="train_step"` calls of other
functions come before it. None is executed: they return placeholders (placeholders.py), whose
elements are zeros to whoever looks, so that an initialisation of any size costs nothing, nor does
training. `captured.reached` names all functions on the way. `largest=True` takes the step of a
whole script, which steps.py finds. `listed_calls` goes on to the end of the block, and takes none.
"""

import contextlib
import dataclasses
import difflib
import functools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tpusim import arguments as checks
from tpusim import files, scripts
from tpusim.errors import ArgumentValueError, CaptureError
from tpusim.workload import Workload

if TYPE_CHECKING:
    from tpusim import interception
    from tpusim.assumptions import Assumptions
    from tpusim.checkpoints import LeftOut

# Arguments of a call that are listed one by one.
_MOST_ARGUMENTS = 8


@dataclasses.dataclass
class Reached:
    """A jitted function that a script called, always with arguments of these shapes."""

    name: str
    place: str  # file:line of its definition
    leaves: list[Any]  # The first of all arrays, as they were at the first call.
    number: int  # of all
    shapes: str
    calls: int = 1

    @functools.cached_property
    def arguments(self) -> str:
        """Types of all arrays, the first few of many: `f32[8,16]@P('x',), and 30 more`."""
        from tpusim import interception

        return _listed([interception.type_of(leaf) for leaf in self.leaves], self.number)

    def same(self, other: "Reached") -> bool:
        """Whether it is the same function with arguments like these, as far as is known."""
        from tpusim import interception, layouts

        if (self.name, self.place, self.shapes) != (other.name, other.place, other.shapes):
            return False
        return all(
            interception.type_of(mine) == interception.type_of(others)
            for mine, others in zip(self.leaves, other.leaves, strict=True)
            if layouts.is_known(mine) and layouts.is_known(others)
        )

    def __str__(self) -> str:
        return f"{self.name} ({self.place})" if self.place else self.name


class Captured:
    """The call that a capture block found; `workload` is set once the block has ended."""

    def __init__(self) -> None:
        self.workload: Workload | None = None
        self.reached: list[Reached] = []  # in order of their first calls
        self.taken: Reached | None = None  # the one that was captured

    def add(self, call: "interception.Call") -> Reached:
        """Counts a call; returns the function with the number of its calls."""
        new = _reached(call)
        for known in self.reached:
            if known.same(new):
                known.calls += 1
                return known
        self.reached.append(new)
        return new


class _Stop(BaseException):
    """Ends the block. Not an Exception, so a script's `except Exception` lets it through."""


@contextlib.contextmanager
def capture(
    path: str | os.PathLike[str] = "workload.pb",
    *,
    config: str | os.PathLike[str] = "",
    name: str = "",
    function: str = "",
    largest: bool = False,
    coordinates: Sequence[Sequence[int]] | None = None,
    trip_counts: Mapping[str, int] | None = None,
    kernel_costs: Mapping[str, Mapping[str, float]] | None = None,
    compiled: bool = False,
    compiler_options: Mapping[str, Any] | None = None,
) -> Iterator[Captured]:
    """Exports the first jitted call of the block to `path` and leaves the block.

    `function` restricts the capture to jitted functions of that name, or to the one that is defined
    at that "file:line". With `largest` it is the step of the block that is exported: the function
    that computes most, found when it is called again or when the block ends. The other options are
    those of `tpusim.export`. Raises CaptureError if the block ends without such a call.
    """
    # What is wrong is said before the block runs, which may also change the folder.
    target = os.path.abspath(files.check_target(path, "path"))
    config = checks.config(config)
    checks.text("name", name, empty=True)
    checks.text("function", function, empty=True)
    if checks.flag("largest", largest) and function:
        raise ArgumentValueError("largest: only without function=, which says what to take")
    checks.coordinates(coordinates)
    checks.trip_counts(trip_counts)
    checks.kernel_costs(kernel_costs)
    _show_devices(config)
    # These import JAX.
    from tpusim import chip_view, exporter, interception
    from tpusim.assumptions import Assumptions
    from tpusim.jax_internals import versions
    from tpusim.steps import Steps

    versions.check()
    exporter.check_compiled(compiled, config, compiler_options)
    captured = Captured()
    assumptions = Assumptions()
    stop = _Stop()
    steps: Steps[Reached] = Steps()

    def take(found: Reached, call: interception.Call) -> None:
        captured.taken = found
        captured.workload = exporter.workload_of(
            call.jitted,
            call.args,
            call.kwargs,
            config=config,
            name=name,
            coordinates=coordinates,
            trip_counts=trip_counts,
            kernel_costs=kernel_costs,
            assumptions=assumptions,
            compiled=compiled,
            compiler_options=compiler_options,
            programs_options=call.options,
        )
        captured.workload.save(target)

    def reached(call: interception.Call) -> None:
        left_out.look()
        counted = captured.add(call)
        step: tuple[Reached, interception.Call] | None = (counted, call)
        if largest:
            step = steps.step() if steps.is_known(counted, call) else None
        elif function and function not in (call.name, call.place):
            step = None
        if step is not None:
            restore()
            take(*step)
            raise stop

    try:
        with (
            _told(assumptions) as left_out,
            interception.intercepted(reached) as restore,
            chip_view.shown(config, assumptions),
        ):
            yield captured
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        # A script may clean up by raising something else, or by leaving.
        ended = isinstance(error, SystemExit) and error.code in (None, 0)
        if not _comes_of(error, stop) and not (ended and steps.step()):
            if isinstance(error, SystemExit):
                raise CaptureError(
                    f"tpusim.capture: {scripts.exit_of(error)} came before a call "
                    + _missed(function, captured)
                ) from error
            if isinstance(error, Exception):
                _explain_zeros(error)
            if isinstance(error, Exception) and (note := too_few_devices(config)):
                error.add_note(note)
            if isinstance(error, Exception) and steps.step():
                called = ", ".join(dict.fromkeys(map(str, captured.reached)))
                error.add_note(
                    f"tpusim.capture: called before: {called}; function= (--function) names one of "
                    "these to take it at its first call"
                )
            raise
    if captured.workload is None and (step := steps.step()) is not None:
        take(*step)
    if captured.workload is None:
        raise CaptureError(
            f"tpusim.capture: the block ended without a call {_missed(function, captured)}; wrap "
            "the step in jax.jit and call it inside the block"
        )


def _comes_of(error: BaseException | None, stop: _Stop) -> bool:
    """Whether it is the end of the block, or was raised on the way out."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if error is stop:
            return True
        seen.add(id(error))
        error = error.__context__
    return False


def _missed(function: str, captured: Captured) -> str:
    """Returns a sentence on the function that was not called, and on those that were."""
    what = f"of {function!r}" if function else "of a jitted function"
    called = ", ".join(dict.fromkeys(map(str, captured.reached)))
    names = [name for reached in captured.reached for name in (reached.name, reached.place)]
    nearest = difflib.get_close_matches(function, filter(None, names), n=1) if function else []
    hint = f" (did you mean {nearest[0]!r}?)" if nearest else ""
    return what + (f"{hint}, but of {called}" if called else "")


def _show_devices(config: str) -> None:
    """Makes JAX show as many CPU devices as the slice has, unless it has looked for devices."""
    from tpusim.cpu_devices import at_least_cpu_devices
    from tpusim.slices import devices_of

    if (count := devices_of(config)) is not None:
        at_least_cpu_devices(count)


def too_few_devices(config: str) -> str:
    """Returns advice for a script that may have failed for lack of devices; "" if it has enough."""
    import jax

    from tpusim.cpu_devices import CPU_DEVICES
    from tpusim.slices import devices_of

    wanted, found = devices_of(config) or 0, jax.device_count()
    if found >= wanted:
        return ""
    return (
        f"tpusim.capture: JAX shows {found} device{'s' * (found != 1)}, {config} has {wanted}: JAX "
        "was asked for devices before the block; enter the block before that, or start Python "
        f"with XLA_FLAGS={CPU_DEVICES}={wanted} JAX_PLATFORMS=cpu"
    )


@contextlib.contextmanager
def listed_calls(
    *, config: str = "", found: Callable[[Reached], None] = lambda _: None
) -> Iterator[list[Reached]]:
    """Lists the jitted functions that the block calls, and with which arguments, to its end.

    `found` is told of each when it is called for the first time.
    """
    config = checks.config(config)
    from tpusim import chip_view, interception
    from tpusim.assumptions import Assumptions
    from tpusim.jax_internals import versions

    versions.check()
    captured = Captured()
    assumptions = Assumptions()

    def reached(call: interception.Call) -> None:
        left_out.look()
        if (counted := captured.add(call)).calls == 1:
            found(counted)

    with (
        _told(assumptions) as left_out,
        interception.intercepted(reached),
        chip_view.shown(config, assumptions),
    ):
        try:
            yield captured.reached
        except Exception as error:
            _explain_zeros(error)
            raise


@contextlib.contextmanager
def _told(assumptions: "Assumptions") -> Iterator["LeftOut"]:
    """Says where the block takes a branch by a value that is not computed, or saves such values."""
    from tpusim.checkpoints import LeftOut
    from tpusim.placeholders import looks

    def decided(place: str, value: bool) -> None:
        assumptions.add(
            f"{place} decides by a value that a jitted function computes; it is not executed, and "
            f"the script sees {value}, as if its results were zeros",
            warn=True,
        )

    def replaced(array: str) -> None:
        assumptions.add(
            f"the function closes over an array that a jitted function computes ({array}); it is "
            "not executed, and the workload has a constant of other values",
            warn=True,
        )

    before = looks.decided, looks.replaced
    looks.first, looks.decided, looks.replaced = "", decided, replaced
    looks.blocks += 1
    try:
        with contextlib.ExitStack() as stack:
            yield LeftOut(assumptions, stack)
    finally:
        looks.blocks -= 1
        looks.decided, looks.replaced = before


def _explain_zeros(error: Exception) -> None:
    """Adds why the script may have failed, if it has read elements that are not computed."""
    from tpusim.placeholders import looks

    if looks.first:
        error.add_note(
            "tpusim.capture: jitted functions are not executed here; what they return is zeros to "
            f"whoever looks, first at {looks.first}"
        )


def _reached(call: "interception.Call") -> Reached:
    import jax

    from tpusim import interception

    leaves = jax.tree.leaves((call.args, call.kwargs))
    first = leaves[:_MOST_ARGUMENTS]
    shapes = _listed([interception.shape_of(leaf) for leaf in leaves], len(leaves))
    return Reached(call.name, call.place, first, len(leaves), shapes)


def _listed(texts: Sequence[str], number: int) -> str:
    """`f32[8,16], bf16[16], and 30 more`."""
    more = [f"and {number - len(texts)} more"] if number > len(texts) else []
    return ", ".join([*texts, *more])
