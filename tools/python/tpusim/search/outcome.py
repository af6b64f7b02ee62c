"""`Outcome`: what a search found, candidate by candidate."""

import gzip
from collections import Counter
from collections.abc import Sequence
from typing import Any

from tpusim.errors import Error
from tpusim.report import Report
from tpusim.runner import Simulation
from tpusim.search.objective import Objective
from tpusim.search.problem import Problem
from tpusim.search.ranking import Entry, Known, ranked
from tpusim.search.store import Store
from tpusim.workload import Workload


class Outcome(Sequence[Entry]):
    """The candidates, the best first; an entry has `candidate`, `value`, `row` and `reason`."""

    def __init__(
        self, known: Sequence[Known], objective: Objective, problem: Problem, store: Store
    ):
        self.objective = objective
        self.entries = ranked(known, objective)
        self._problem = problem
        # Whether shardings are found, not stated.
        self._finds = problem.find is not None
        self._store = store

    def __getitem__(self, index: Any) -> Any:
        return self.entries[index]

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def best(self) -> Entry:
        """The first; tpusim.Error if no candidate could be simulated."""
        if not self.entries or self.entries[0].rank is None:
            told = "; ".join(dict.fromkeys(e.reason for e in self.entries))
            raise Error(f"search: no candidate was simulated: {told}")
        return self.entries[0]

    def counts(self) -> dict[str, int]:
        """Returns the number of candidates of each status."""
        return dict(Counter(str(entry.row.status) for entry in self.entries))

    def report(self, entry: Entry | None = None) -> Report:
        """The whole report of a candidate, by default of the best; simulates it again."""
        entry = entry or self.best
        simulation = Simulation(*self._program(entry))
        return simulation.sharded(entry.found.best.options if entry.found else ()).run()

    def workload(self, entry: Entry | None = None) -> Workload:
        """The program of a candidate, as `tpusim.export` makes it, by default of the best.

        It has the shardings that `build` states, also where others were found.
        """
        return Workload.from_bytes(self._program(entry or self.best)[0])

    def _program(self, entry: Entry) -> tuple[bytes, tuple[str, ...]]:
        """A serialized workload, and the options that it runs with."""
        found = self._store.program(entry.row.program)
        if found is None:
            raise Error(f"search: {entry.candidate.name} has no program: {entry.reason}")
        program, words = found
        return gzip.decompress(program), words

    def pareto(self) -> list[Entry]:
        """Simulated candidates for which none is better both in the objective and in peak HBM."""
        front: list[Entry] = []
        for entry in self.entries:
            if entry.rank is None or entry.value is None:
                continue
            if all((entry.row.peak_hbm_bytes or 0) < (e.row.peak_hbm_bytes or 0) for e in front):
                front.append(entry)
        return front
