"""`tpusim.search`: every candidate of a space, exported, bounded, simulated, ranked."""

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from tpusim import arguments as checks
from tpusim import files, interrupts
from tpusim.errors import ArgumentTypeError, ArgumentValueError, Error
from tpusim.report import Report
from tpusim.search import engine as engines
from tpusim.search.candidate import Candidate
from tpusim.search.failures import text_of
from tpusim.search.objective import objective_of
from tpusim.search.problem import Build, Problem, check_options
from tpusim.search.progress import Progress
from tpusim.search.results import SearchInterruptedError, SearchResults
from tpusim.search.space import Space, candidates, identity
from tpusim.search.stages import Stages
from tpusim.search.store import MEMORY, Store
from tpusim.sharding import words_of_search

_MOST_FORCED_DEVICES = 4096
# Default options of the search for shardings of a candidate.
_FIND = {"gap": 0.02, "seconds": 60.0}


def search(
    build: Build,
    space: Space,
    *,
    configs: Sequence[str] | str,
    objective: str | Callable[[Report], float] = "step_time",
    maximize: bool | None = None,
    tokens: float | Callable[[Candidate], float] | None = None,
    where: Callable[[Candidate], bool] | None = None,
    options: Mapping[str, Any] | None = None,
    shardings: Literal["stated", "auto"] = "stated",
    find: Mapping[str, Any] | None = None,
    store: str | os.PathLike[str] | None = None,
    engine: Any = None,
    workers: int | None = None,
    prune: bool = True,
    exact: int = 1,
    ahead: int | None = None,
    progress: bool = True,
) -> SearchResults:
    """Simulates the candidates of a space side by side and ranks them.

        def build(candidate):
            auto = jax.sharding.AxisType.Auto
            mesh = jax.sharding.AbstractMesh(candidate.mesh, ("data", "model"), (auto, auto))
            return step, arguments(mesh, candidate.batch)

        results = tpusim.search(
            build,
            {"mesh": [(8, 1), (4, 2), (2, 4)], "batch": [64, 128]},
            configs=["v5e-4x2", "v6e-4x2"],
            objective="tokens_per_chip_second",
            tokens=lambda candidate: 2048 * candidate.batch,
            store="search.sqlite",
        )
        results.best, results.to_frame(), results.plot_pareto()

    Args:
      build: makes `(step, arguments)` of a candidate, as `tpusim.simulate` takes them, or `(step,
        arguments, options)` with more arguments of `tpusim.simulate` for this candidate.
      space: {name: values}, or {name: {label: value}} where values have no short text.
      configs: slices, "v5e-4x2"; each with all of the space.
      objective: "step_time", "tokens_per_chip_second", "mfu", "peak_hbm", or a function of the
        report.
      maximize: of a function, whether more is better.
      tokens: how many tokens a step processes; for "tokens_per_chip_second".
      where: drops candidates for which it is false.
      options: more arguments of `tpusim.simulate` for all candidates.
      shardings: "stated": candidates have the mesh and the shardings that `build` gives them.
        "auto": each has those with the shortest step that `tpusim.shard` finds for its program, be
        it those of `build`; `results.best.found` has them. No candidate is pruned then.
      find: arguments of `tpusim.shard` for each candidate: `axes`, `fix`, `forbid`, `gap` (0.02
        unless given), `seconds` (60), `prune`, `keep_constraints`, `may_donate`,
        `may_constrain`, `store` (not that of the search). One process works on a candidate.
      store: an SQLite file of results, which a search that is repeated or continued does not
        simulate again; None keeps them in memory.
      engine: where to work: None for all cores of this machine, an executor, a `Client` of Dask, or
        any object with `submit(function, *arguments)`.
      workers: how many candidates are worked on at a time; by default as many as the engine can.
      prune: simulate no candidate whose lower bound is behind the best.
      exact: so many of the best are the same with pruning as without.
      ahead: how many candidates are simulated before the first result counts for pruning; by
        default twice the workers.
      progress: show on standard error how far it is.

    Returns:
      All candidates, the best first, with the reason why each is behind the best. What does not
      fit, fails, or takes its worker along is a row, too.

    Raises:
      tpusim.Error: nothing can be searched this way.
      KeyboardInterrupt: at once on an interrupt; `results` of the exception has what is finished.
    """
    # Not with the package: `python -m tpusim.export` runs it.
    from tpusim.slices import devices_of

    if not callable(build):
        raise ArgumentTypeError(checks.wrong("build", build, "a function of a candidate"))
    if not isinstance(space, Mapping):
        expected = '{name: values}, such as {"batch": [64, 128]}'
        raise ArgumentTypeError(checks.wrong("space", space, expected))
    if where is not None and not callable(where):
        raise ArgumentTypeError(checks.wrong("where", where, "a function of a candidate"))
    of, function = objective_of(objective, maximize)
    slices = _slices(configs)
    common = _options(options)
    words = _find(shardings, find)
    if words is not None and common.get("compiled"):
        raise ArgumentValueError('shardings: "auto": not with compiled: no shardings are left')
    count = "a whole number, at least 1"
    least = checks.whole("exact", exact, count, least=1)
    most_workers = None if workers is None else checks.whole("workers", workers, count, least=1)
    most_ahead = None if ahead is None else checks.whole("ahead", ahead, count, least=1)
    path = MEMORY if store is None else files.check_target(store, "store")
    found = candidates(space, slices, where)
    if of.name == "tokens_per_chip_second" and tokens is None:
        raise Error("search: tokens_per_chip_second: say how many tokens a step has (tokens=)")
    counts = [_tokens(tokens, candidate) for candidate in found]
    if of.name == "tokens_per_chip_second" and None in counts:
        raise Error(f"search: no tokens in {found[counts.index(None)].name}")
    devices = min(_MOST_FORCED_DEVICES, max((devices_of(c) or 8) for c in slices))
    problem = Problem(
        build,
        common,
        devices,
        function,
        (identity(function) or "") if function else "",
        words,
    )
    if words is not None and path != MEMORY and _is_same(path, (find or {}).get("store")):
        raise ArgumentValueError(f"find: store: {path} is that of the search; name another file")
    with interrupts.heeded() as check, engines.opened(engine, most_workers) as opened:
        run = Stages(
            problem,
            found,
            counts,
            of,
            Store(path),
            opened,
            Progress(progress),
            check,
        )
        try:
            run.identify()
            run.export()
            run.simulate(prune, least, most_ahead or 2 * opened.workers)
            check()
        except KeyboardInterrupt as interrupt:
            raise SearchInterruptedError(run.results()) from interrupt
        finally:
            run.cancel()
            run.progress.end()
        return run.results()


def _slices(configs: Any) -> list[str]:
    expected = 'slices, such as ["v5e-4x2", "v6e-4x2"]'
    if isinstance(configs, str):
        configs = [configs]
    named = [checks.config(config) for config in checks.several("configs", configs, expected)]
    if "" in named:
        raise ArgumentValueError(checks.wrong("configs", configs, expected))
    return named


def _options(options: Any) -> dict[str, Any]:
    """Checks the options of all candidates, so that an error is not told once for each."""
    given = checks.mapping("options", options, "{argument of tpusim.simulate: value}")
    check_options(given)
    return given


def _find(shardings: Any, find: Any) -> tuple[str, ...] | None:
    """Options of `tpusim shard` where shardings are to be found."""
    expected = '"stated" or "auto"'
    if checks.text("shardings", shardings, expected) not in ("stated", "auto"):
        raise ArgumentValueError(checks.wrong("shardings", shardings, expected))
    given = checks.mapping("find", find, "{argument of tpusim.shard: value}")
    if shardings == "stated":
        if given:
            raise ArgumentValueError('find: only with shardings="auto"')
        return None
    known = inspect.signature(words_of_search).parameters
    if unknown := sorted(given.keys() - known.keys()):
        raise ArgumentValueError(
            f"find: {', '.join(unknown)}: not of tpusim.shard in a search; these are: "
            f"{', '.join(known)}"
        )
    return (*words_of_search(**{**_FIND, **given}), "--jobs=1")


def _is_same(store: str, other: Any) -> bool:
    return other is not None and os.path.realpath(store) == os.path.realpath(other)


def _tokens(tokens: Any, candidate: Candidate) -> float | None:
    if tokens is None:
        return None
    expected = "a number of tokens, or a function of the candidate that returns one"
    try:
        count = tokens(candidate) if callable(tokens) else tokens
    except Exception as error:
        raise Error(f"search: tokens of {candidate.name}: {text_of(error)}") from error
    if count is None:
        return None
    value = checks.number(f"tokens of {candidate.name}", count, expected)
    if value < 0:
        raise ArgumentValueError(checks.wrong(f"tokens of {candidate.name}", count, expected))
    return float(value) or None
