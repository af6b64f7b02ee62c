"""`tpusim.calibrate`: from a program and its profile to the parameters of the chip."""

import concurrent.futures
import json
import os
import pathlib
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from tpusim import arguments as checks
from tpusim import files
from tpusim.calibrate.parameters import PARAMETERS, Fitted
from tpusim.calibrate.results import Calibration, Operation
from tpusim.errors import Error
from tpusim.optional import require
from tpusim.runner import execute

# Less of the step than this is no operation to fit to: a tick of the profiler's clock.
_LEAST_SHARE = 1e-5
# Waits depend on everything before them, and loops on what is inside.
_WAITS = ("idle", "while", "conditional", "call", "async-start", "copy-start")
# Every third operation is not fitted to.
_THIRD = 3

_Key = tuple[str, str, str]


def _key(row: Mapping[str, Any]) -> _Key:
    return (row["name"] or row["scope"], row["source"], row["category"])


class _Comparer:
    """`tpusim validate W.pb --xplane PROFILE` with other values of parameters."""

    def __init__(self, workload: str, profile: str, config: str, options: Sequence[str]):
        self._words = ["validate", workload, f"--xplane={profile}", "--json", "--quiet"]
        self._words += [f"--config={config}"] if config else []
        self._words += options

    def run(self, values: Mapping[str, float]) -> dict[str, Any]:
        words = [f"--set={name}={value!r}" for name, value in values.items()]
        comparison: dict[str, Any] = json.loads(execute([*self._words, *words]))
        return comparison


def _parameters_of(config: str) -> dict[str, float]:
    """The values of the chip, by name."""
    (chip,) = json.loads(execute(["configs", config, "--json"]))["chips"]
    wanted = {p.name for p in PARAMETERS}
    return {p["name"]: float(p["value"]) for p in chip["parameters"] if p["name"] in wanted}


def _chip_of(config: str) -> str:
    """Returns the base of a chip file: the chip's name, or the file that a configuration names."""
    if not config.endswith(".json"):
        (chip,) = json.loads(execute(["configs", config, "--json"]))["chips"]
        name: str = chip["name"]
        return name
    stated = json.loads(files.read_bytes(config)).get("chip", "")
    if not str(stated).endswith(".json"):
        return str(stated)
    return str((pathlib.Path(config).parent / stated).resolve())


def calibrate(
    workload: str | os.PathLike[str],
    *,
    profile: str | os.PathLike[str],
    config: str = "",
    options: Sequence[str] = (),
    workers: int | None = None,
) -> Calibration:
    """Fits parameters of the chip to a profile of XProf, operation by operation.

    Args:
      workload: the program, as `tpusim.simulate` takes it from a file. What `tpusim.export` wrote
        with `compiled=True` has the operations of the profile; any other is compared by place.
      profile: an .xplane.pb file, or a folder that `jax.profiler.trace` wrote into.
      config: the slice; without it the one that the program names.
      options: more options of `tpusim validate`, such as "--kernel-cost=...".
      workers: simulations at a time; the processors by default.

    Returns:
      The parameters that the profile determines, with their standard errors, those that it does not
      and why, and what remains of every operation. A third of them is not used by the fit.

    Raises:
      tpusim.Error: a file that cannot be read, a program that cannot be simulated, a profile of
        another program, or one that determines nothing.
    """
    np: Any = require("numpy", "tpusim calibrate")
    require("scipy", "tpusim calibrate")
    from tpusim.calibrate.fitting import fit

    path = files.path_of(workload, "workload")
    comparer = _Comparer(
        path, files.path_of(profile, "profile"), checks.text("config", config, empty=True), options
    )
    first = comparer.run({})
    config = config or str(first["config"])
    before = _parameters_of(config)
    parameters = [p for p in PARAMETERS if p.name in before]

    least = _LEAST_SHARE * first["measured_ns"]
    rows = [
        row
        for row in first["rows"]
        if min(row["measured_ns"], row["simulated_ns"]) > least
        and row["category"] not in _WAITS
        and not row["category"].endswith("-done")
    ]
    if not rows:
        raise Error(
            f"{profile}: nothing that was measured is in the simulation of {path}: is it a profile "
            "of this program?"
        )
    rows.sort(key=lambda row: row["measured_ns"], reverse=True)
    keys = [_key(row) for row in rows]
    # By name, so that another profile of the program sets the same aside.
    aside = np.array([zlib.crc32("\n".join(key).encode()) % _THIRD == 0 for key in keys])
    measured = np.array([row["measured_ns"] for row in rows])
    if aside.all():
        aside[:] = False

    def times(comparison: Mapping[str, Any]) -> Any:
        found = {_key(row): row["simulated_ns"] for row in comparison["rows"]}
        return np.array([found[key] for key in keys])

    def simulate(sets: Sequence[Sequence[float]]) -> list[Any]:
        named = [dict(zip([p.name for p in parameters], s, strict=True)) for s in sets]
        with concurrent.futures.ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
            return [times(c)[~aside] for c in pool.map(comparer.run, named)]

    fitted: list[Fitted] = fit(
        parameters, [before[p.name] for p in parameters], measured[~aside], simulate
    )
    values = {f.parameter.name: f.value for f in fitted if not f.refused}
    last = comparer.run(values) if values else first
    operations = tuple(
        Operation(
            name=key[0],
            category=key[2],
            source=key[1],
            measured_ns=row["measured_ns"],
            before_ns=row["simulated_ns"],
            after_ns=float(after),
            set_aside=bool(is_aside),
        )
        for key, row, after, is_aside in zip(keys, rows, times(last), aside, strict=True)
    )
    return Calibration(
        chip=_chip_of(config),
        config=config,
        slice_name=str(first["config"]).rpartition("-")[2],
        profile=os.fspath(profile),
        program=str(first["module"]),
        parameters=tuple(fitted),
        operations=operations,
        step_measured_ns=first["measured_ns"],
        step_before_ns=first["simulated_ns"],
        step_after_ns=last["simulated_ns"],
        gap_ns=first["gap_ns"],
    )
