"""Summaries of what the TPU compiler made of programs.

A summary is in `validation/compiler`, or is derived from the program's compiled module in
`tests/data/compiled`: `derived.json` names programs of the latter kind, by slice.
"""

import dataclasses
import json
from collections.abc import Iterator
from typing import Any

import compiler_hlo
import compiler_summary
import tpusim
from compiler_store import ROOT, SUMMARIES, unpack

MODULES = ROOT / "tests" / "data" / "compiled"
Summary = dict[str, Any]


DERIVED = {
    (slice_name, program)
    for slice_name, programs in json.loads((SUMMARIES / "derived.json").read_text()).items()
    for program in programs.split()
}


def is_derived(program: str, slice_name: str) -> bool:
    """Whether the summary is derived from a kept module."""
    return (slice_name, program) in DERIVED


def has_summary(program: str, slice_name: str) -> bool:
    """Whether there is a summary, kept or to be derived."""
    kept = SUMMARIES / slice_name / f"{program}.json.gz"
    return kept.exists() or is_derived(program, slice_name)


def summary(program: str, slice_name: str) -> Summary:
    """Returns the summary that there is, kept or derived."""
    if is_derived(program, slice_name):
        return summary_of(program, slice_name, kept_module(program, slice_name))
    return unpack(SUMMARIES / slice_name / f"{program}.json.gz")


def all_summaries() -> Iterator[Summary]:
    """Yields the summaries that there are, by slice and name."""
    kept = {(p.parent.name, p.name.partition(".")[0]) for p in SUMMARIES.glob("*/*.json.gz")}
    for slice_name, program in sorted(kept | DERIVED):
        yield summary(program, slice_name)


def summary_of(program: str, slice_name: str, compiled: dict[str, Any]) -> Summary:
    """Returns the summary of a compiled program: {"text", "versions", "memory"} or {"error"}."""
    from compiler_programs import PROGRAMS

    head: Summary = {
        "program": program,
        "family": PROGRAMS[program].family,
        "slice": slice_name,
        "mesh": PROGRAMS[program].example.mesh,
    }
    if "error" in compiled:
        return {**head, "error": compiled["error"]}
    module = compiler_hlo.parse(compiled["text"])
    stated = PROGRAMS[program].example.trip_counts.get("*", 1)
    whole = {
        **head,
        "versions": compiled["versions"],
        "memory": compiled["memory"],
        **compiler_summary.summarize(module, stated),
    }
    # Tuples become lists, as in a file.
    made: Summary = json.loads(json.dumps(whole))
    return made


def kept_module(program: str, slice_name: str) -> dict[str, Any]:
    """The kept module, in the form in which the compiler's child process hands it over."""
    from jaxlib import _hlo as hlo

    workload = tpusim.Workload.load(MODULES / slice_name / f"{program}.pb.gz")
    assert workload.compilation is not None
    module = hlo.HloModule.from_serialized_hlo_module_proto(workload.hlo_module)
    jax = workload.jax_version
    libtpu = workload.compilation.libtpu_version
    return {
        "text": module.to_string(hlo.HloPrintOptions()),
        "versions": {"jax": jax, "jaxlib": jax, "libtpu": libtpu},
        "memory": dataclasses.asdict(workload.compilation.memory),
    }
