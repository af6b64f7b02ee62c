"""`tpusim.flags`: a step as the TPU compiler compiles it, with one option changed at a time."""

import functools
import os
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tpusim import arguments as checks
from tpusim import slices, topology
from tpusim.errors import ArgumentTypeError, ArgumentValueError
from tpusim.flags.results import Entry, FlagResults, entries_of
from tpusim.flags.table import Setting, Value, settings_for
from tpusim.search import engine as engines
from tpusim.search.candidate import Candidate
from tpusim.search.driver import search

# The name of the candidate without any setting.
DEFAULT = "default"
# A setting that makes less of a difference than that is not put together with others.
_LEAST_GAIN = 0.002
_MOST_TOGETHER = 6

Build = Callable[[], tuple[Any, ...]]


def cache_folder() -> pathlib.Path:
    """Returns the default folder of compiled modules."""
    root = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(root) / "tpusim" / "compiled"


def flags(
    build: Build,
    *,
    config: str,
    settings: Sequence[Setting | Mapping[str, Value]] | None = None,
    compiler_options: Mapping[str, Value] | None = None,
    options: Mapping[str, Any] | None = None,
    together: bool = True,
    cache: str | os.PathLike[str] | None = None,
    engine: Any = None,
    workers: int | None = None,
    progress: bool = True,
) -> FlagResults:
    """Compiles a step ahead of time with one setting of the TPU compiler after another.

        def build():
            return train_step, (params, batch)

        found = tpusim.flags(build, config="v6e-4x2")
        found.best.options, found.best.change

    Each module is simulated; what comes out is ranked by the time of the step. Needs the `libtpu`
    wheel, and no TPU. Modules are kept on disk, and not compiled again.

    Args:
      build: makes `(step, arguments)` or `(step, arguments, keyword_arguments)`; called by every
        worker.
      config: the slice to compile for, "v6e-4x2".
      settings: options to try, each {option: value}; by default those of `tpusim flags --list` that
        may change a program of so many devices on that chip.
      compiler_options: of every compilation, also that which the others are compared with.
      options: more arguments of `tpusim.simulate`.
      together: also try the settings that help, the best two, the best three, ....
      cache: the folder for compiled modules; by default tpusim/compiled in the user's cache.
      engine: where to work, as for `tpusim.search`.
      workers: how many modules are compiled at a time; a large program takes gigabytes each.
      progress: show on standard error how far it is.

    Returns:
      A row per setting, the shortest step first; what the compiler refuses is a row, too.
    """
    if not callable(build):
        raise ArgumentTypeError(checks.wrong("build", build, "a function without arguments"))
    named = checks.config(config)
    described = topology.topology_of(named)
    topology.require_libtpu()
    base = checks.compiler_options(compiler_options)
    given = None if settings is None else [_setting(setting) for setting in settings]
    folder = str(pathlib.Path(cache_folder() if cache is None else cache).absolute())
    with engines.opened(engine, workers) as opened:

        def found(tried: Sequence[Setting]) -> list[Entry]:
            results = search(
                functools.partial(varied, build, base, folder),
                {"setting": {s.label: dict(s.options) for s in tried}},
                configs=[named],
                options=options,
                engine=opened,
                workers=opened.workers,
                prune=False,
                progress=progress,
            )
            return entries_of(results, {setting.label: setting for setting in tried}, base)

        (default,) = found([Setting({}, "", name=DEFAULT)])
        if given is None:
            devices = default.devices or slices.devices_of(named) or 1
            given = settings_for(described.chip, devices)
        tried = found(_distinct(given, base)) if given else []
        if together and (joined := _together(default, tried)):
            tried += found(joined)
    return FlagResults(named, default, tried)


def varied(build: Build, base: Mapping[str, Value], folder: str, candidate: Candidate) -> Any:
    """Builds the program with the options of a candidate, in a worker of the search."""
    from tpusim import compiling

    compiling.keep(folder)
    step, arguments, keywords = (*build(), {})[:3]
    return (
        step,
        arguments,
        {
            "keyword_arguments": keywords,
            "compiled": True,
            "compiler_options": {**base, **candidate["setting"]},
        },
    )


def _setting(given: Any) -> Setting:
    if isinstance(given, Setting):
        return given
    options = checks.compiler_options(given)
    if not options:
        expected = '{option: value}, such as {"xla_tpu_scoped_vmem_limit_kib": 65536}'
        raise ArgumentValueError(checks.wrong("settings", given, expected))
    return Setting(options, "")


def _distinct(settings: Sequence[Setting], base: Mapping[str, Value]) -> list[Setting]:
    """Each once, without those that are so already."""
    by_label = {setting.label: setting for setting in settings}
    return [
        setting
        for setting in by_label.values()
        if any(base.get(name) != value for name, value in setting.options.items())
    ]


def _together(default: Entry, tried: Sequence[Entry]) -> list[Setting]:
    """The settings that help, added one by one, the best first, as far as they go together."""
    if default.step_time_ns is None:
        return []
    least = default.step_time_ns * (1 - _LEAST_GAIN)
    better = [e for e in tried if e.step_time_ns is not None and e.step_time_ns < least]
    better.sort(key=lambda entry: (entry.step_time_ns, entry.label))
    joined: list[Setting] = []
    options: dict[str, Value] = {}
    labels: list[str] = []
    for entry in better:
        if any(options.get(name, value) != value for name, value in entry.options.items()):
            continue
        options |= entry.options
        labels.append(entry.label)
        if len(labels) > 1:
            joined.append(Setting(dict(options), "together", name=" + ".join(labels)))
        if len(labels) == _MOST_TOGETHER:
            break
    return joined
