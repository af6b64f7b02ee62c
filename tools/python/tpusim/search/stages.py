"""The two stages of a search: all candidates are exported, then simulated unless they are behind.

Candidates are simulated in the order of their lower bounds, unless the bound alone is behind what
was found before: such a one cannot be the best. Candidate n is judged by those up to n - `ahead` in
that order, however fast others are; so which ones are pruned does not depend on when workers
finish, on how many are left in the end, or on whether the search was interrupted.
"""

import concurrent.futures
import dataclasses
import heapq
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tpusim.errors import Error
from tpusim.scripts import exit_of
from tpusim.search import exporting, payload, simulating
from tpusim.search.candidate import Candidate
from tpusim.search.engine import Engine
from tpusim.search.keys import key_of, shared_by
from tpusim.search.objective import Objective
from tpusim.search.problem import Problem
from tpusim.search.progress import Progress
from tpusim.search.results import SearchResults
from tpusim.search.row import Row, Status
from tpusim.search.store import Store

# Bounds are whole picoseconds, and figures of reports may be rounded.
_ROUNDING = 1e-9
# The longest time until an interrupt that was lost is noticed.
_CHECK_SECONDS = 0.5


@dataclasses.dataclass
class _Group:
    """Candidates whose programs, options and tokens are the same: simulated once."""

    members: list[int]
    bound: float | None


class Stages:
    """One search: rows as far as they are known, and how they get known."""

    def __init__(
        self,
        problem: Problem,
        found: Sequence[Candidate],
        tokens: Sequence[float | None],
        objective: Objective,
        store: Store,
        engine: Engine,
        progress: Progress,
        check: Callable[[], None],
    ):
        self.problem = problem
        self.found = found
        self.tokens = tokens
        self.objective = objective
        self.store = store
        self.engine = engine
        self.progress = progress
        self.check = check  # Raises an interrupt that was lost.
        self.keys: list[str] = []
        self.problem_bytes = b""
        self.rows: dict[int, Row] = {}
        self.running: dict[concurrent.futures.Future[Any], int] = {}

    def identify(self) -> None:
        """Before all else: what candidates are in a store, and what a worker gets of the problem.

        It reads the user's code, which may be much.
        """
        shared = shared_by(self.problem)
        self.keys = [key_of(candidate, shared) for candidate in self.found]
        self.problem_bytes = payload.dumps(self.problem, "build, options or objective")
        self.check()

    def cancel(self) -> None:
        """Cancels tasks that an engine of the user has not started."""
        for future in self.running:
            future.cancel()

    def results(self) -> SearchResults:
        """Returns the results as far as they are known."""
        known = [
            (c, self.rows.get(i, Row(Status.EXPORTED, why="not simulated yet")), self.tokens[i])
            for i, c in enumerate(self.found)
        ]
        return SearchResults(known, self.objective, self.problem, self.store)

    def export(self) -> None:
        """The first stage: all rows there are, then the exports that are missing."""
        stored = self.store.rows(self.keys)
        missing = []
        for index, key in enumerate(self.keys):
            row = stored.get(key)
            if row is not None and self._holds(row):
                self.rows[index] = row
            else:
                missing.append(index)
        self.store.tell()
        self.progress.begin("exporting", len(missing))

        def put(index: int, exported: exporting.Exported | Row) -> None:
            if isinstance(exported, exporting.Exported):
                row = exported.row
                if exported.program:
                    self.store.put_program(row.program, exported.program, exported.words)
            else:
                row = exported
            self._put(index, row)
            self.progress.advance()

        shared = self.problem_bytes
        tasks = (
            (index, (exporting.export, shared, payload.dumps(self.found[index], "a candidate")))
            for index in missing
        )
        self._run(tasks, put)

    def _holds(self, row: Row) -> bool:
        """Whether a stored row is good for this search, be it only as an export."""
        if row.status is Status.CRASHED:
            return False
        needs_program = row.status in (Status.EXPORTED, Status.PRUNED, Status.SIMULATED)
        return not needs_program or self.store.program(row.program) is not None

    def _program(self, row: Row) -> tuple[bytes, tuple[str, ...]]:
        """Returns a program and its options, as this search exported or found them."""
        found = self.store.program(row.program)
        if found is None:
            raise Error("search: a program that was in the store is there no more; search again")
        return found

    def _done(self, row: Row) -> bool:
        """Whether it need not be simulated: an objective that is a function needs the report."""
        of = self.problem.value_of
        known = self.problem.value is None or (of != "" and row.value_of == of)
        return known and row.status is Status.SIMULATED

    def simulate(self, prune: bool, exact: int, ahead: int) -> None:
        """The second stage."""
        groups = self._groups()
        pending = sum(not self._done(self.rows[group.members[0]]) for group in groups)
        what = "simulating" if self.problem.find is None else "finding shardings"
        self.progress.begin(what, pending)
        finished: list[bool] = []
        # Of the best: negative costs, the worst of them first.
        best: list[float] = []
        counted = 0
        trusted = prune
        pruned: list[int] = []
        running = self.running
        position = 0

        def note() -> str:
            return f"best {self.objective.text(self._best_value())}" if best else ""

        def count_results() -> None:
            """In order, as far as results are there without a gap."""
            nonlocal counted
            limit = position - ahead + 1
            while counted < min(limit, len(finished)) and finished[counted]:
                for cost in self._costs(groups[counted]):
                    heapq.heappush(best, -cost)
                    if len(best) > exact:
                        heapq.heappop(best)
                counted += 1

        def begin(number: int) -> None:
            row = self.rows[groups[number].members[0]]
            task = (simulating.simulate, self.problem_bytes, *self._program(row), row.found)
            running[self.engine.submit(*task)] = number

        while position < len(groups) or running:
            count_results()
            may_decide = counted >= min(position - ahead + 1, len(finished))
            if position < len(groups) and may_decide and len(running) < 2 * self.engine.workers:
                group = groups[position]
                row = self.rows[group.members[0]]
                done = self._done(row)
                behind = (
                    trusted
                    and not done
                    and group.bound is not None
                    and len(best) == exact
                    and group.bound > -best[0]
                )
                finished.append(done or behind)
                if behind:
                    self._prune(group, -best[0])
                    pruned.append(position)
                    self.progress.advance(note())
                elif not done:
                    begin(position)
                position += 1
                continue
            if not running:
                continue
            for future in self._wait(running):
                number = running.pop(future)
                row = _result(future)
                finished[number] = True
                for index in groups[number].members:
                    self._put(index, _merged(self.rows[index], row))
                if trusted and self._beats_bound(groups[number]):
                    trusted = False
                self.progress.advance(note())
        if prune and not trusted:
            self._simulate_after_all(groups, pruned)

    def _simulate_after_all(self, groups: Sequence[_Group], pruned: Sequence[int]) -> None:
        """A candidate was faster than its bound: none is left out for its bound."""
        self.progress.begin("simulating what was pruned", len(pruned))

        def put(number: int, row: Row) -> None:
            for index in groups[number].members:
                self._put(index, _merged(self.rows[index], row))
            self.progress.advance()

        def tasks() -> Iterable[tuple[int, tuple[Any, ...]]]:
            for number in pruned:
                row = self.rows[groups[number].members[0]]
                yield number, (simulating.simulate, self.problem_bytes, *self._program(row))

        self._run(tasks(), put)

    def _run(self, tasks: Iterable[tuple[int, tuple[Any, ...]]], put: Callable[..., None]) -> None:
        """Runs all tasks, a few at a time."""
        waiting = iter(tasks)
        running = self.running
        more = True
        while more or running:
            while more and len(running) < 2 * self.engine.workers:
                following = next(waiting, None)
                if following is None:
                    more = False
                    break
                running[self.engine.submit(*following[1])] = following[0]
            if running:
                for future in self._wait(running):
                    put(running.pop(future), _result(future))

    def _wait(self, running: Iterable[Any]) -> list[Any]:
        done: set[Any] = set()
        while not done:
            self.check()
            done, _ = concurrent.futures.wait(
                list(running), _CHECK_SECONDS, return_when=concurrent.futures.FIRST_COMPLETED
            )
        return list(done)

    def _groups(self) -> list[_Group]:
        """Groups candidates of equal programs, by lower bound; those without one are first."""
        by_task: dict[tuple[str, float | None], _Group] = {}
        for index in range(len(self.found)):
            row = self.rows[index]
            if row.status not in (Status.EXPORTED, Status.PRUNED, Status.SIMULATED):
                continue
            if row.status is Status.PRUNED:
                row = self.rows[index] = dataclasses.replace(row, status=Status.EXPORTED, why="")
            bound = self.objective.least_cost(row, self.tokens[index])
            group = by_task.setdefault((row.program, self.tokens[index]), _Group([], bound))
            group.members.append(index)
        for group in by_task.values():
            # One of them may be known from another search.
            known = next((i for i in group.members if self._done(self.rows[i])), None)
            for index in group.members if known is not None else ():
                if not self._done(self.rows[index]):
                    self._put(index, _merged(self.rows[index], self.rows[known]))
        first = float("-inf")
        return sorted(by_task.values(), key=lambda g: first if g.bound is None else g.bound)

    def _costs(self, group: _Group) -> list[float]:
        rows = [(self.rows[i], self.tokens[i]) for i in group.members]
        costs = [self.objective.cost(*r) for r in rows if r[0].status is Status.SIMULATED]
        return [cost for cost in costs if cost == cost]

    def _best_value(self) -> float:
        simulated = [
            (self.rows[i], self.tokens[i])
            for i in range(len(self.found))
            if self.rows[i].status is Status.SIMULATED
        ]

        def cost(row: tuple[Row, float | None]) -> tuple[bool, float]:
            value = self.objective.cost(*row)
            return math.isnan(value), value

        return self.objective.value(*min(simulated, key=cost))

    def _beats_bound(self, group: _Group) -> bool:
        if group.bound is None:
            return False
        room = _ROUNDING * abs(group.bound)
        return any(cost < group.bound - room for cost in self._costs(group))

    def _prune(self, group: _Group, best: float) -> None:
        best_text = self.objective.text(abs(best))
        for index in group.members:
            row = self.rows[index]
            why = f"{self.objective.bound_text(row)}; the best so far: {best_text}"
            self._put(index, dataclasses.replace(row, status=Status.PRUNED, why=why))

    def _put(self, index: int, row: Row) -> None:
        self.rows[index] = row
        self.store.put(self.keys[index], self.found[index], row)


def _result(future: "concurrent.futures.Future[Any]") -> Any:
    """Returns a task's result; tasks catch errors of candidates, so others are the worker's."""
    try:
        return future.result()
    except SystemExit as error:  # Of an engine whose workers survive it.
        return Row(Status.CRASHED, why=f"the candidate ended with {exit_of(error)}")
    except Exception as error:
        text = " ".join(str(error).split()) or type(error).__name__
        return Row(Status.CRASHED, why=text)


def _merged(exported: Row, simulated: Row) -> Row:
    """Bounds of the one, figures of the other."""
    return dataclasses.replace(
        simulated,
        program=exported.program,
        schedule_bound_ns=exported.schedule_bound_ns,
        hbm_bound_ns=exported.hbm_bound_ns,
        argument_bytes=exported.argument_bytes,
        chips=simulated.chips or exported.chips,
        usable_hbm_bytes=simulated.usable_hbm_bytes or exported.usable_hbm_bytes,
        export_cpu_s=exported.export_cpu_s,
    )
