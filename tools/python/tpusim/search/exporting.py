"""From a candidate to its program: runs in a worker, which imports JAX once."""

import dataclasses
import gzip
import json
import pickle
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from tpusim import arguments as checks
from tpusim.errors import Error
from tpusim.quantities import size
from tpusim.runner import Simulation
from tpusim.search import cpu, payload
from tpusim.search.candidate import Candidate
from tpusim.search.failures import text_of
from tpusim.search.keys import digest_of
from tpusim.search.problem import OF_COMPILER, OF_EXPORT, OF_MACHINE, Problem, check_options
from tpusim.search.row import Row, Status
from tpusim.simulation import words_of

# JAX is made to see the chip of a candidate, by all threads: one after the other.
_exporting = threading.Lock()
# JAX remembers everything it traced; a long search need not.
_FORGET_AFTER = 64
_exported = 0


@dataclasses.dataclass(frozen=True)
class Exported:
    """The row so far; if its status is EXPORTED, the program and the options it runs with."""

    row: Row
    program: bytes = b""  # a workload, compressed
    words: tuple[str, ...] = ()


def export(problem_bytes: bytes, candidate_bytes: bytes) -> Exported:
    """Exports a candidate and asks for its lower bounds; its errors become rows."""
    start = cpu.seconds()
    problem: Problem = payload.loads_shared(problem_bytes)
    candidate: Candidate = pickle.loads(candidate_bytes)
    try:
        with _exporting:
            exported = _export(problem, candidate)
    except Exception as error:
        exported = Exported(Row(Status.ERROR, why=text_of(error)))
    row = dataclasses.replace(exported.row, export_cpu_s=cpu.seconds() - start)
    return dataclasses.replace(exported, row=row)


def _export(problem: Problem, candidate: Candidate) -> Exported:
    if "jax" not in sys.modules:
        from tpusim.cpu_devices import force_cpu_devices

        force_cpu_devices(problem.devices)
    from tpusim import exporter
    from tpusim.seeing import seen_as

    _forget_now_and_then()
    with seen_as(candidate.config):
        built = problem.build(candidate)
    step, arguments, options = _checked(built, problem.options)
    workload = exporter.workload_of(
        exporter.traceable(step),
        tuple(arguments),
        options.get("keyword_arguments") or {},
        config=candidate.config,
        **{k: v for k, v in options.items() if k in OF_EXPORT - {"keyword_arguments"}},
    )
    of_compiler = {k: v for k, v in options.items() if k in OF_COMPILER}
    of_machine = {k: v for k, v in options.items() if k in OF_MACHINE - {"options"}}
    raw = tuple(checks.options(options.get("options", ())))
    words = (*words_of(config=candidate.config, **of_compiler, **of_machine), *raw)
    data = workload.to_bytes()
    row = Row(Status.EXPORTED, program=digest_of(data, words))
    # Options that are not understood here may change anything; a compiled module has no bounds
    # by matmuls; shardings that are to be found divide the work differently.
    if not raw and workload.compilation is None and problem.find is None:
        row = _bounded(row, data, words_of(config=candidate.config, **of_compiler))
    # Fast, and the same bytes whenever it is done.
    return Exported(row, gzip.compress(data, 1, mtime=0), words)


def _forget_now_and_then() -> None:
    global _exported
    _exported += 1
    if _exported % _FORGET_AFTER == 0:
        import jax

        jax.clear_caches()


def _checked(built: Any, common: Mapping[str, Any]) -> tuple[Any, Sequence[Any], dict[str, Any]]:
    if (
        not isinstance(built, tuple)
        or len(built) not in (2, 3)
        or not callable(built[0])
        or not isinstance(built[1], tuple | list)
        or not isinstance(built[2] if len(built) == 3 else {}, Mapping)
    ):
        raise Error(
            "build must return (step, arguments) or (step, arguments, options), not "
            f"{type(built).__name__}"
        )
    step, arguments, own = (*built, {})[:3]
    options = {**common, **own}
    check_options(options)
    return step, arguments, options


def _bounded(row: Row, data: bytes, words: Sequence[str]) -> Row:
    """The row with the lower bounds of its program, if the binary has any.

    `words` are options of `tpusim compile`.
    """
    try:
        bounds = json.loads(Simulation(data, words).bounds())
    except Error:
        return row  # The simulation will say what is wrong.
    row = dataclasses.replace(
        row,
        schedule_bound_ns=bounds["schedule_ns"],
        hbm_bound_ns=bounds["reads_ns"],
        argument_bytes=bounds["argument_bytes"],
        chips=bounds["chips"],
        usable_hbm_bytes=bounds["usable_hbm_bytes"],
    )
    needed, usable = bounds["argument_bytes"], bounds["usable_hbm_bytes"]
    if needed <= usable:
        return row
    why = f"the arguments alone take {size(needed)} of {size(usable)}"
    return dataclasses.replace(row, status=Status.DOES_NOT_FIT, why=why)
