"""Train steps whose source can be read in another way than their rows read it."""

import dataclasses
import pathlib
import sys
from collections.abc import Callable
from typing import Any

from measurements import ROOT

sys.path[:0] = [str(ROOT), str(ROOT / "tools" / "python")]

from validation.workloads import training  # noqa: E402
from workloads.examples import export_all  # noqa: E402
from workloads.examples.example import Example  # noqa: E402

Row = dict[str, Any]

FULL_HBM = "--xla_tpu_scheduler_percent_shared_memory_limit=100"


def reading_of(row: Row, run: training.Run, folder: pathlib.Path) -> Row:
    """The row with another program; as it has it in `folder`."""
    name = name_of(row)
    example = Example(name=name, mesh=run.mesh, config=run.config, build=run.build)
    path = folder / f"{name}.pb.gz"
    export_all.export(example).save(path)
    return row | {"workload": str(path), "model_flops": run.model_flops_per_device()}


def name_of(row: Row) -> str:
    """The name of the run that the row's workload is an export of."""
    return pathlib.Path(row["workload"]).name.removesuffix(".pb.gz")


def run_of(row: Row) -> training.Run:
    """Returns the run that the row's workload is an export of."""
    return training.RUNS[name_of(row)]


def script_sizes(row: Row, folder: pathlib.Path) -> Row:
    """V58 with the sizes that the script prints."""
    name = "22b as the script has it"
    training.MODELS[name] = dataclasses.replace(training.MODELS["22b"], head=128, gated=True)
    other = reading_of(row, dataclasses.replace(run_of(row), model=name), folder)
    return other | {"seconds": row["seconds"] * other["model_flops"] / row["model_flops"]}


def printed_batch(row: Row, folder: pathlib.Path) -> Row:
    """V64 with the batch that the recipe prints."""
    return reading_of(row, dataclasses.replace(run_of(row), batch=3), folder)


def limited_schedule(row: Row, folder: pathlib.Path) -> Row:
    """Without the flag that lets the scheduler fill HBM."""
    del folder
    return row | {"xla_flags": row["xla_flags"].replace(FULL_HBM, "")}


@dataclasses.dataclass(frozen=True)
class Reading:
    """An assumption of a row, another reading of it, and the row with that reading."""

    row: str
    assumed: str
    instead: str
    change: Callable[[Row, pathlib.Path], Row]


READINGS = (
    Reading(
        "V58 1 slices",
        "heads of 256, a plain MLP: 22.1 billion parameters",
        "heads of 128, a gated MLP: what the script prints, 25.8 billion",
        script_sizes,
    ),
    Reading(
        "V58 8 slices",
        "heads of 256, a plain MLP",
        "heads of 128, a gated MLP",
        script_sizes,
    ),
    Reading(
        "V49",
        "the scheduler may fill HBM, as later recipes for MaxText say by a flag",
        "95% of it, today's default: nothing is beside compute",
        limited_schedule,
    ),
    Reading(
        "V64",
        "2 sequences per device: the tokens of the recipe's log",
        "3, as the recipe prints",
        printed_batch,
    ),
)
