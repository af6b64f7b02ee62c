"""`with tpusim.capture("workload.pb"):` takes a workload out of a script that already exists.

The first call of a jitted function inside the block is exported with the arguments of that call
instead of being executed, and the block ends there, as if the call had been its last statement:

    with tpusim.capture("step.pb", config="v5e-4x2") as captured:
        train()                     # builds a mesh, shards its arrays, calls train_step(...)
    print(captured.workload.name)

What counts as such a call: see interception.py. With `function="train_step"` every function of
another name runs as usual.
"""

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence

from tpusim.errors import CaptureError
from tpusim.workload import Workload


class Captured:
    """What a capture block found; `workload` is set once the block has ended."""

    workload: Workload | None = None


class _Stop(BaseException):
    """Ends the block. Not an Exception, so a script's `except Exception` lets it through."""


@contextlib.contextmanager
def capture(
    path: str | os.PathLike[str] = "workload.pb",
    *,
    config: str = "",
    name: str = "",
    function: str = "",
    coordinates: Sequence[Sequence[int]] | None = None,
    trip_counts: Mapping[str, int] | None = None,
    kernel_costs: Mapping[str, Mapping[str, int]] | None = None,
) -> Iterator[Captured]:
    """Exports the first jitted call of the block to `path` and leaves the block.

    `function` restricts the capture to jitted functions of that name; the other options are those
    of `tpusim.export`. Raises CaptureError if the block ends without such a call.
    """
    # These import JAX.
    from tpusim import chip_view, exporter, interception
    from tpusim.assumptions import Assumptions

    captured = Captured()
    assumptions = Assumptions()
    stop = _Stop()

    def reached(call: interception.Call) -> None:
        if function and call.name != function:
            return
        restore()
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
        )
        captured.workload.save(path)
        raise stop

    try:
        with (
            interception.intercepted(reached) as restore,
            chip_view.shown(config, assumptions, as_tpu=False),
        ):
            yield captured
    except _Stop as end:
        if end is not stop:
            raise
    if captured.workload is None:
        what = f"of {function!r}" if function else "of a jitted function"
        raise CaptureError(
            f"tpusim.capture: the block ended without a call {what}; wrap the step in jax.jit and "
            "call it inside the block"
        )
