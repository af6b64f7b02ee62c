"""`tpusim.search`: every candidate of a space, exported, bounded, simulated, ranked."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tpusim.errors import Error
from tpusim.report import Report
from tpusim.search import engine as engines
from tpusim.search.candidate import Candidate
from tpusim.search.objective import objective_of
from tpusim.search.problem import OPTIONS, Build, Problem
from tpusim.search.progress import Progress
from tpusim.search.results import SearchInterruptedError, SearchResults
from tpusim.search.space import Space, candidates, identity
from tpusim.search.stages import Stages
from tpusim.search.store import Store

_MOST_FORCED_DEVICES = 4096


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
            mesh = jax.sharding.AbstractMesh(candidate.mesh, ("data", "model"))
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

    of, function = objective_of(objective, maximize)
    slices = [configs] if isinstance(configs, str) else list(configs)
    found = candidates(space, slices, where)
    if unknown := sorted(dict(options or {}).keys() - OPTIONS):
        raise Error(f"search: options: {', '.join(unknown)}: not an argument of tpusim.simulate")
    if of.name == "tokens_per_chip_second" and tokens is None:
        raise Error("search: tokens_per_chip_second: say how many tokens a step has (tokens=)")
    counts = [float(tokens(c) if callable(tokens) else tokens or 0) or None for c in found]
    if of.name == "tokens_per_chip_second" and None in counts:
        raise Error(f"search: no tokens in {found[counts.index(None)].name}")
    if exact < 1 or (workers is not None and workers < 1) or (ahead is not None and ahead < 1):
        raise Error("search: exact, workers and ahead: at least 1")
    devices = min(_MOST_FORCED_DEVICES, max((devices_of(c) or 8) for c in slices))
    problem = Problem(
        build,
        dict(options or {}),
        devices,
        function,
        (identity(function) or "") if function else "",
    )
    with engines.opened(engine, workers) as opened:
        run = Stages(
            problem,
            found,
            counts,
            of,
            Store(store or ":memory:"),
            opened,
            Progress(progress),
        )
        try:
            run.export()
            run.simulate(prune, exact, ahead or 2 * opened.workers)
        except KeyboardInterrupt as interrupt:
            raise SearchInterruptedError(run.results()) from interrupt
        finally:
            run.cancel()
            run.progress.end()
        return run.results()
