"""From a program to the figures of its row: runs in a worker, without JAX."""

import dataclasses
import gzip
import re

from tpusim.errors import Error
from tpusim.report import Report
from tpusim.runner import Simulation
from tpusim.search import cpu, payload
from tpusim.search.failures import does_not_fit, text_of
from tpusim.search.problem import Problem
from tpusim.search.row import Row, Status
from tpusim.sharding import FoundShardings, brief

# The message of a search for shardings that finds none that fits.
_NOTHING_FITS = re.compile(r"nothing fits: the least that was seen needs (.+?) of (.+?) usable HBM")


def simulate(problem_bytes: bytes, program: bytes, words: tuple[str, ...], found: str = "") -> Row:
    """Errors of the program are rows; `found` is what an earlier search has found for it."""
    start = cpu.seconds()
    problem: Problem = payload.loads_shared(problem_bytes)
    try:
        simulation = Simulation(gzip.decompress(program), words)
        if problem.find is not None:
            found = found or brief(simulation.shard(problem.find))
            start = cpu.seconds()
            simulation = simulation.sharded(FoundShardings.from_json(found).best.options)
        row = dataclasses.replace(row_of(simulation.run(), problem), found=found)
    except Exception as error:
        text = text_of(error)
        full = does_not_fit(error)
        least = _NOTHING_FITS.search(text) if isinstance(error, Error) else None
        if full:
            row = Row(Status.DOES_NOT_FIT, why=f"needs {full[1]} of {full[2]}: {full[0]}")
        elif least:
            why = f"needs {least[1]} of {least[2]} with the shardings that need least"
            row = Row(Status.DOES_NOT_FIT, why=why)
        else:
            row = Row(Status.ERROR, why=text.removeprefix("tpusim: error: "))
    return dataclasses.replace(row, simulation_cpu_s=cpu.seconds() - start)


def row_of(report: Report, problem: Problem) -> Row:
    """Its figures."""
    return Row(
        Status.SIMULATED,
        chips=report.chips,
        devices=report.devices,
        usable_hbm_bytes=report.usable_hbm_bytes,
        step_time_ns=report.step_time_ns,
        mfu=report.mfu,
        hfu=report.hfu,
        flops=report.flops,
        exposed_communication_ns=report.exposed_communication_ns,
        hidden_communication_ns=report.hidden_communication_ns,
        peak_hbm_bytes=report.peak_hbm_bytes,
        ignored_skew_ns=report.folding.ignored_skew_ns,
        value=None if problem.value is None else float(problem.value(report)),
        value_of=problem.value_of,
        parts=parts_of(report),
        owners={owner.owner: owner.bytes for owner in report.memory_at_peak.owners},
        warnings=report.warnings,
    )


def parts_of(report: Report) -> dict[str, float]:
    """The step in a few parts that add up to it: compute, each kind of wait, the rest."""
    parts = {"compute": 0.0}
    for row in report.rollup.category:
        if row.name == "idle" or row.name.startswith("exposed "):
            parts[row.name] = parts.get(row.name, 0.0) + row.time_ns
        else:
            parts["compute"] += row.compute_ns
            rest = row.time_ns - row.compute_ns
            parts["memory and launches"] = parts.get("memory and launches", 0.0) + rest
    return parts
