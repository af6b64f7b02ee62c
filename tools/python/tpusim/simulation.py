"""`tpusim.simulate`: from a JAX function to the report of one step, without files."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from tpusim import arguments as checks
from tpusim import files, stablehlo_files
from tpusim.errors import ArgumentTypeError
from tpusim.report import Report
from tpusim.runner import Simulation
from tpusim.workload import Workload

# A function, what JAX has made of one, StableHLO, a workload or a file.
Program = Any
Words = str | Sequence[str]


def simulate(
    program: Program,
    *arguments: Any,
    config: str | os.PathLike[str] = "",
    keyword_arguments: Mapping[str, Any] | None = None,
    name: str = "",
    coordinates: Sequence[Sequence[int]] | None = None,
    trip_counts: Mapping[str, int] | None = None,
    kernel_costs: Mapping[str, Mapping[str, float]] | None = None,
    compiled: bool = False,
    compiler_options: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    branches: Mapping[str, int | str] | None = None,
    ragged: Mapping[str, str | Sequence[float]] | None = None,
    routing: str | os.PathLike[str] = "",
    mesh: Mapping[str, int] | None = None,
    shardings: Mapping[str, Any] | None = None,
    constraints: Mapping[str, Any] | None = None,
    remat: Mapping[str, str] | None = None,
    donate: Words = (),
    keep: Words = (),
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
      program: a function, jitted or not, what JAX has compiled of one for TPUs, a `Workload`, the
        path of a file that `tpusim.export` wrote or that XLA dumped, or StableHLO: such a file, its
        text or bytes, a `jax.export.Exported`, what `jax.jit(...).lower(...)` returns.
      *arguments: of a function, what it would be called with: arrays, or `jax.ShapeDtypeStruct`s
        with a `NamedSharding` over an `AbstractMesh` or over a mesh of CPU devices.
      config: the slice, "v5e-4x2", or a configuration file; without it the one that an exported
        program names.
      keyword_arguments: of a function, what it would be called with by name.
      name: of a function, what reports call it; its own name if empty.
      coordinates: of a function, chip coordinates of partition 0, 1, ..., as for `tpusim.export`.
      trip_counts: {loop name or glob: count} for loops that depend on data.
      kernel_costs: {kernel name or glob: {"flops": ..., "bytes_accessed": ...}} for opaque kernels,
        or {"seconds": ...}, how long a call takes.
      compiled: of a function, whether the TPU compiler compiles it ahead of time, as for
        `tpusim.export`; its module is simulated as it is.
      compiler_options: of the TPU compiler, as for `tpusim.export`; `xla_flags` are of tpusim.
      settings: parameters of the chip to override, {"chip.hbm.bytes_per_second": 1.6e12}.
      branches: {conditional: index or "longest"} where the predicate is data.
      ragged: {operation or glob: sizes} where sizes are data.
      routing: how often experts are asked for: "uniform", "zipf:1.1" or a JSON file of rows per
        expert, a list for each layer.
      mesh: {axis: size}, as if the mesh of the program had these axes; what it says of shardings
        goes by their names.
      shardings: {argument: PartitionSpec}, as if arguments of the program were sharded so; names
        such as "params['w']", `*` for any text.
      constraints: {value or glob: PartitionSpec}, as if the program had a
        `jax.lax.with_sharding_constraint` on these values (names before partitioning).
      remat: {name or glob: "saved", "offloaded" or "recomputed"}, as if `jax.checkpoint` had this
        policy on values of that name (`jax.ad_checkpoint.checkpoint_name`).
      donate: arguments that are taken to be donated, `*` for any text.
      keep: arguments that are taken not to be.
      xla_flags: of the TPU compiler, "--xla_enable_async_all_gather=true ...".
      device_order: "ids", or the device of partition 0, 1, ....
      algorithm: how collectives are done in place of the TPU compiler's way: "best", the fastest
        of all, or ["all-reduce=ring", ...].
      slow: stragglers, "chip=3:0.9".
      link: degraded links, "0:x+=0.5".
      fold: "auto" (default), "on" (always exact), "off" or "approximate".
      options: more options of `tpusim run`, passed on as they are.

    Returns:
      The report; it can simulate the same again, for traces and timelines.

    Raises:
      tpusim.Error: what the simulator says on a terminal when it refuses.
      TypeError, ValueError: an argument is not what is expected; the text names it.
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
    kernel_costs: Mapping[str, Mapping[str, float]] | None,
    compiled: bool,
    compiler_options: Mapping[str, Any] | None,
    trip_counts: Mapping[str, int] | None,
    options: Sequence[str],
    config: str | os.PathLike[str],
    **of_run: Any,
) -> Simulation:
    """Returns the simulation that `simulate` runs with these arguments."""
    of_function = {
        "arguments": tuple(arguments),
        "keyword_arguments": checks.mapping(
            "keyword_arguments", keyword_arguments, "{name: value}"
        ),
        "name": checks.text("name", name, empty=True),
        "coordinates": checks.coordinates(coordinates),
        "compiled": checks.flag("compiled", compiled),
        "compiler_options": checks.compiler_options(compiler_options),
    }
    words = words_of(config=config, trip_counts=trip_counts, **of_run)
    words += checks.options(options)
    workload: bytes | str
    is_stablehlo = stablehlo_files.is_stablehlo(program)
    if isinstance(program, Workload | str | os.PathLike) and not is_stablehlo:
        given = [key for key, value in of_function.items() if value]
        if given:
            hint = ": name the slice with config=" if "arguments" in given else ""
            raise ArgumentTypeError(
                f"tpusim.simulate: {', '.join(given)}: only with a function{hint}"
            )
        if isinstance(program, Workload):
            workload = program.to_bytes()
        else:
            workload = files.path_of(program, "program")
        words += _kernel_words(kernel_costs)
    elif callable(program) or is_stablehlo:
        from tpusim import exporter

        workload = exporter.exported(
            program,
            of_function["arguments"],
            of_function["keyword_arguments"],
            config=config,
            name=name,
            coordinates=coordinates,
            trip_counts=trip_counts,
            kernel_costs=kernel_costs,
            compiled=compiled,
            compiler_options=compiler_options,
        ).to_bytes()
    else:
        expected = "a function, a tpusim.Workload, StableHLO or the path of a file"
        raise ArgumentTypeError(checks.wrong("program", program, expected))
    return Simulation(workload, words)


def words_of(
    *,
    config: str | os.PathLike[str] = "",
    trip_counts: Mapping[str, int] | None = None,
    settings: Mapping[str, Any] | None = None,
    branches: Mapping[str, int | str] | None = None,
    ragged: Mapping[str, str | Sequence[float]] | None = None,
    routing: str | os.PathLike[str] = "",
    mesh: Mapping[str, int] | None = None,
    shardings: Mapping[str, Any] | None = None,
    constraints: Mapping[str, Any] | None = None,
    remat: Mapping[str, str] | None = None,
    donate: Words = (),
    keep: Words = (),
    xla_flags: str = "",
    device_order: str | Sequence[int] = "",
    algorithm: Words = (),
    slow: Words = (),
    link: Words = (),
    fold: str = "",
) -> list[str]:
    """The arguments of `simulate` as options of the command line.

    Each is one word, `--option=value`: no value is ever read as an option.
    """
    flags = '"--xla_...=VALUE ..." in one text'
    values = {
        "--config": [checks.config(config)],
        "--trip-count": [f"{loop}={n}" for loop, n in checks.trip_counts(trip_counts).items()],
        "--set": checks.settings(settings),
        "--branch": checks.branches(branches),
        "--ragged": checks.ragged(ragged),
        "--routing": [checks.routing(routing)],
        "--mesh": [checks.mesh(mesh)],
        "--shard": checks.specs("shardings", shardings, "argument"),
        "--constrain": checks.specs("constraints", constraints, "value"),
        "--remat": checks.policies("remat", remat),
        "--donate-argument": checks.words("donate", donate, "an argument, or a list of them"),
        "--keep-argument": checks.words("keep", keep, "an argument, or a list of them"),
        "--xla-flags": [checks.text("xla_flags", xla_flags, flags, empty=True)],
        "--device-order": [checks.device_order(device_order)],
        "--algorithm": checks.words("algorithm", algorithm, '"best", or a list of such texts'),
        "--slow": checks.words("slow", slow, '"chip=3:0.9", or a list of such texts'),
        "--link": checks.words("link", link, '"0:x+=0.5", or a list of such texts'),
        "--fold": [checks.fold(fold)],
    }
    return [f"{option}={value}" for option, of in values.items() for value in of if value]


def _kernel_words(costs: Mapping[str, Mapping[str, float]] | None) -> list[str]:
    """Returns options for kernel costs of a file; some figures have no option."""
    words = []
    for kernel, cost in checks.kernel_costs(costs).items():
        unknown = sorted(cost.keys() - {"flops", "bytes_accessed", "picoseconds"})
        if unknown:
            raise ArgumentTypeError(
                f"tpusim.simulate: kernel_costs of {kernel!r}: {', '.join(unknown)}: only with a "
                "function; a file takes flops, bytes_accessed and seconds"
            )
        figures = [f"{cost['picoseconds']}ps"] if "picoseconds" in cost else []
        if cost.keys() != {"picoseconds"}:
            figures[:0] = [str(cost.get("flops", 0)), str(cost.get("bytes_accessed", 0))]
        words.append(f"--kernel-cost={kernel}={','.join(figures)}")
    return words
