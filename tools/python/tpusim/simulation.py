"""`tpusim.simulate`: from a JAX function to the report of one step, without files."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tpusim.report import Report
from tpusim.runner import Simulation
from tpusim.workload import Workload

Program = Callable[..., Any] | Workload | str | os.PathLike[str]
Words = str | Sequence[str]


def simulate(
    program: Program,
    *arguments: Any,
    config: str = "",
    keyword_arguments: Mapping[str, Any] | None = None,
    name: str = "",
    coordinates: Sequence[Sequence[int]] | None = None,
    trip_counts: Mapping[str, int] | None = None,
    kernel_costs: Mapping[str, Mapping[str, int]] | None = None,
    settings: Mapping[str, Any] | None = None,
    branches: Mapping[str, int | str] | None = None,
    ragged: Mapping[str, str | Sequence[float]] | None = None,
    xla_flags: str = "",
    device_order: str | Sequence[int] = "",
    algorithm: Words = (),
    slow: Words = (),
    link: Words = (),
    fold: str = "",
    options: Sequence[str] = (),
) -> Report:
    """Simulates one step of `program` and reports on it.

        report = tpusim.simulate(train_step, params, batch, config="v5e-4x2")
        report = tpusim.simulate("step.pb", config="v5e-2x4")

    Args:
      program: a function, jitted or not, a `Workload`, or the path of a file that `tpusim.export`
        wrote or that XLA dumped.
      *arguments: of a function, what it would be called with: arrays, or `jax.ShapeDtypeStruct`s
        with a `NamedSharding` over an `AbstractMesh` or over a mesh of CPU devices.
      config: the slice, "v5e-4x2", or a configuration file; without it the one that an exported
        program names.
      keyword_arguments: of a function, what it would be called with by name.
      name: of a function, what reports call it; its own name if empty.
      coordinates: of a function, chip coordinates of partition 0, 1, ..., as for `tpusim.export`.
      trip_counts: {loop name or glob: count} for loops that depend on data.
      kernel_costs: {kernel name or glob: {"flops": ..., "bytes_accessed": ...}} for opaque kernels.
      settings: parameters of the chip to override, {"chip.hbm.bytes_per_second": 1.6e12}.
      branches: {conditional: index or "longest"} where the predicate is data.
      ragged: {operation or glob: sizes} where sizes are data.
      xla_flags: of the TPU compiler, "--xla_enable_async_all_gather=true ...".
      device_order: "ids", or the device of partition 0, 1, ....
      algorithm: how collectives are done, "best" or ["all-reduce=ring", ...].
      slow: stragglers, "chip=3:0.9".
      link: degraded links, "0:x+=0.5".
      fold: "on", "off" or "approximate".
      options: more options of `tpusim run`, passed on as they are.

    Returns:
      The report; it can simulate the same again, for traces and timelines.

    Raises:
      tpusim.Error: what the simulator says on a terminal when it refuses.
    """
    given = dict(locals())
    return simulation_of(given.pop("program"), given.pop("arguments"), **given).run()


def simulation_of(
    program: Any,
    arguments: Sequence[Any],
    *,
    keyword_arguments: Mapping[str, Any] | None,
    name: str,
    coordinates: Sequence[Sequence[int]] | None,
    kernel_costs: Mapping[str, Mapping[str, int]] | None,
    trip_counts: Mapping[str, int] | None,
    options: Sequence[str],
    config: str,
    **of_run: Any,
) -> Simulation:
    """What `simulate` runs, of the same arguments."""
    of_function = {
        "arguments": arguments,
        "keyword_arguments": keyword_arguments,
        "name": name,
        "coordinates": coordinates,
    }
    words = words_of(config=config, trip_counts=trip_counts, **of_run)
    workload: bytes | str | os.PathLike[str]
    if isinstance(program, Workload | str | os.PathLike):
        given = [key for key, value in of_function.items() if value]
        if given:
            raise TypeError(f"tpusim.simulate: {', '.join(given)}: only with a function")
        workload = program.to_bytes() if isinstance(program, Workload) else program
        words += _kernel_words(kernel_costs or {})
    else:
        from tpusim import exporter

        workload = exporter.workload_of(
            exporter.traceable(program),
            tuple(arguments),
            keyword_arguments or {},
            config=config,
            name=name,
            coordinates=coordinates,
            trip_counts=trip_counts,
            kernel_costs=kernel_costs,
        ).to_bytes()
    return Simulation(workload, [*words, *options])


def words_of(
    *,
    config: str = "",
    trip_counts: Mapping[str, int] | None = None,
    settings: Mapping[str, Any] | None = None,
    branches: Mapping[str, int | str] | None = None,
    ragged: Mapping[str, str | Sequence[float]] | None = None,
    xla_flags: str = "",
    device_order: str | Sequence[int] = "",
    algorithm: Words = (),
    slow: Words = (),
    link: Words = (),
    fold: str = "",
) -> list[str]:
    """The arguments of `simulate` as options of the command line."""
    words = ["--config", config] if config else []
    pairs = {
        "--trip-count": trip_counts,
        "--set": settings,
        "--branch": branches,
        "--ragged": ragged,
    }
    for option, values in pairs.items():
        for key, value in (values or {}).items():
            words += [option, f"{key}={_listed(value)}"]
    if xla_flags:
        words += ["--xla-flags", xla_flags]
    if device_order:
        words += ["--device-order", _listed(device_order)]
    for option, values in (("--algorithm", algorithm), ("--slow", slow), ("--link", link)):
        for value in [values] if isinstance(values, str) else values:
            words += [option, value]
    return [*words, "--fold", fold] if fold else words


def _listed(value: Any) -> str:
    if isinstance(value, str) or not isinstance(value, Sequence):
        return str(value)
    return ",".join(map(str, value))


def _kernel_words(costs: Mapping[str, Mapping[str, int]]) -> list[str]:
    """For a file only what the command line can say."""
    words = []
    for kernel, cost in costs.items():
        unknown = sorted(cost.keys() - {"flops", "bytes_accessed"})
        if unknown:
            raise TypeError(
                f"tpusim.simulate: kernel_costs of {kernel!r}: {', '.join(unknown)}: only with a "
                "function; a file takes flops and bytes_accessed"
            )
        figures = f"{cost.get('flops', 0)},{cost.get('bytes_accessed', 0)}"
        words += ["--kernel-cost", f"{kernel}={figures}"]
    return words
