"""`tpusim.search` over real exports: the best is the best, the rest are rows with reasons."""

import concurrent.futures
import itertools
import json
import multiprocessing
import os
import pathlib
import sqlite3
from collections.abc import Callable
from typing import Any

import pandas
import pytest
import tpusim
from tpusim.runner import Simulation
from tpusim.search.engine import Engine
from tpusim.search.row import Status
from tpusim.search.simulating import simulate

from tests.jax.search_steps import CONFIG, MESHES, RULES, dies_at_2x4, fails_at_2x4, matmul
from tests.tools import schemas
from tests.tools.command_line import EXAMPLES

SPACE = {
    "mesh": MESHES,
    "rules": {"y": RULES["y"], "none": RULES["none"]},
    "batch": [1024, 4096],
}
# The arrays of a v5e: 4 of 128 x 128, two operations each, 1.5 GHz, of which 0.955 are reached.
FLOPS_PER_NS = 4 * 128 * 128 * 2 * 1.5 * 0.955


class Inline:
    """Works in this process, at once; `before` sees every task."""

    def __init__(self, before: Callable[[Any], None] = lambda function: None):
        self.before = before
        self.simulated = 0

    def submit(self, function: Any, *arguments: Any) -> "Inline.Done":
        """Does it."""
        self.before(function)
        self.simulated += function is simulate
        return Inline.Done(function(*arguments))

    class Done:
        """No future of `concurrent.futures`."""

        def __init__(self, value: Any):
            self.result = lambda: value


def search(build: Any = matmul, space: Any = SPACE, **given: Any) -> tpusim.SearchResults:
    given = {"configs": CONFIG, "progress": False, "engine": Inline(), "workers": 2, **given}
    return tpusim.search(build, space, **given)


def table(results: tpusim.SearchResults) -> list[tuple[Any, ...]]:
    return [(e.rank, e.candidate.name, e.row.status, e.value, e.reason) for e in results]


def tokens_of(candidate: tpusim.Candidate) -> float:
    return candidate.batch


def exposed_share(report: tpusim.Report) -> float:
    return report.exposed_communication_ns / report.step_time_ns


@pytest.mark.parametrize(
    "objective",
    ["step_time", "tokens_per_chip_second", "mfu", "peak_hbm", exposed_share],
)
def test_the_best_is_that_of_all(objective: Any):
    given = {"objective": objective, "tokens": tokens_of}
    everything = search(prune=False, **given)
    found = search(exact=3, **given)
    assert everything.counts() == {"simulated": 16}
    assert table(found)[:3] == table(everything)[:3]
    simulated = {e.candidate.name: e.row.step_time_ns for e in everything}
    for entry in found:
        if entry.row.status is Status.SIMULATED:
            assert entry.row.step_time_ns == simulated[entry.candidate.name]
    if objective in ("step_time", "peak_hbm"):
        assert found.counts()["pruned"] > 0
    for entry in everything:
        assert entry.row.schedule_bound_ns <= entry.row.step_time_ns
        assert entry.row.hbm_bound_ns <= entry.row.step_time_ns
        assert entry.row.argument_bytes <= entry.row.peak_hbm_bytes
        assert sum(entry.row.parts.values()) == pytest.approx(entry.row.step_time_ns, rel=1e-6)


def test_figures_by_hand():
    results = search(
        space={"mesh": [(2, 4)], "rules": {"y": RULES["y"], "none": RULES["none"]}}, prune=False
    )
    rows = {e.candidate.labels["rules"]: e.row for e in results}
    # Half of the rows of the one, a quarter of the columns of the other.
    assert rows["y"].argument_bytes == 2 * (512 * 2048 + 2048 * 2048)
    assert rows["y"].schedule_bound_ns == pytest.approx(2 * 512 * 2048 * 2048 / FLOPS_PER_NS, 2e-6)
    assert rows["y"].hbm_bound_ns == pytest.approx(rows["y"].argument_bytes / 819, 2e-6)
    # Every device has all columns.
    assert rows["none"].argument_bytes == 2 * (512 * 2048 + 2048 * 8192)
    assert rows["none"].schedule_bound_ns == pytest.approx(
        4 * 2 * 512 * 2048**2 / FLOPS_PER_NS, 2e-6
    )
    tokens = search(
        space={"mesh": [(2, 4)], "rules": {"y": RULES["y"]}},
        objective="tokens_per_chip_second",
        tokens=1024,
    )
    assert tokens.best.value == pytest.approx(1024 / 8 / (rows["y"].step_time_ns * 1e-9))


def test_what_does_not_fit_or_fails_is_a_row():
    results = search(
        fails_at_2x4,
        {
            "mesh": [(8, 1), (2, 4), (1, 8)],
            "rules": {"none": (None, None)},
            "batch": [10**6, 10**7],
        },
        prune=False,
    )
    rows = {(e.candidate.mesh, e.candidate.batch): e.row for e in results}
    assert rows[(8, 1), 10**6].status is Status.SIMULATED
    failed = rows[(2, 4), 10**6]
    assert failed.status is Status.ERROR
    assert "ValueError: this mesh is not for it (search_steps.py:" in failed.why
    # 4.77 GiB of arguments and 19.07 of results; the arguments alone, eight times as many.
    assert rows[(8, 1), 10**7].status is Status.DOES_NOT_FIT
    assert rows[(8, 1), 10**7].why.startswith("needs ")
    assert rows[(1, 8), 10**7].why == "the arguments alone take 38.18 GiB of 15.75 GiB"
    assert rows[(1, 8), 10**7].simulation_cpu_s == 0


def test_nothing_that_can_be_simulated():
    results = search(fails_at_2x4, {"mesh": [(2, 4)], "rules": RULES})
    assert results.counts() == {"error": 4}
    with pytest.raises(tpusim.Error, match="this mesh is not for it"):
        _ = results.best


def test_own_processes_and_a_worker_that_crashes():
    space = {"mesh": MESHES, "rules": {"y": RULES["y"], "none": RULES["none"]}}
    results = search(dies_at_2x4, space, engine=None, prune=False)
    assert results.counts() == {"simulated": 6, "crashed": 2}
    crashed = [e for e in results if e.row.status is Status.CRASHED]
    assert {e.candidate.mesh for e in crashed} == {(2, 4)}
    assert all("SIGABRT" in e.reason for e in crashed)
    alike = search(matmul, space, prune=False)
    names = {e.candidate.name for e in crashed}
    others = [row[1:4] for row in table(alike) if row[1] not in names]
    assert [row[1:4] for row in table(results)][:6] == others


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_other_executors_give_the_same_table(kind: str):
    space = {"mesh": MESHES, "rules": {"y": RULES["y"], "none": RULES["none"]}}
    spawn = multiprocessing.get_context("spawn")
    executor = (
        concurrent.futures.ThreadPoolExecutor(2)
        if kind == "threads"
        else concurrent.futures.ProcessPoolExecutor(2, mp_context=spawn)
    )
    with executor:
        assert table(search(space=space, engine=executor)) == table(search(space=space))


def test_a_search_is_continued(tmp_path: pathlib.Path):
    def search_one_by_one(**given: Any) -> tpusim.SearchResults:
        return search(workers=1, **given)

    store = tmp_path / "search.sqlite"
    whole = search_one_by_one()
    simulated = whole.counts()["simulated"]

    def interrupt(function: Any) -> None:
        if function is simulate and engine.simulated == 2:
            raise KeyboardInterrupt

    engine = Inline(interrupt)
    with pytest.raises(tpusim.SearchInterruptedError) as interrupted:
        search_one_by_one(engine=engine, store=store)
    assert interrupted.value.results.counts()["simulated"] >= 1
    with sqlite3.connect(store) as database:
        kept = pandas.read_sql("select * from candidates", database)
    assert len(kept) == 16
    finished = int((kept.status == "simulated").sum())
    assert finished == interrupted.value.results.counts()["simulated"]
    assert set(kept.mesh) == {"8x1", "4x2", "2x4", "1x8"}

    engine = Inline()
    assert table(search_one_by_one(engine=engine, store=store)) == table(whole)
    # Programs that are the same are simulated once.
    assert engine.simulated <= simulated - finished

    engine = Inline(lambda function: pytest.fail("nothing is left to do"))
    assert table(search_one_by_one(engine=engine, store=store)) == table(whole)
    # More of the same space needs only what is new.
    engine = Inline()
    more = {**SPACE, "batch": [1024, 2048, 4096]}
    assert table(search_one_by_one(space=more, engine=engine, store=store)) == table(
        search_one_by_one(space=more)
    )
    # Another objective has the exports, and simulates what was pruned.
    assert table(search_one_by_one(objective="mfu", store=store)) == table(
        search_one_by_one(objective="mfu")
    )


def test_a_bound_that_were_wrong_would_not_be_believed(monkeypatch: pytest.MonkeyPatch):
    asked = Simulation.bounds

    def wrong(simulation: Simulation) -> str:
        bounds = json.loads(asked(simulation))
        return json.dumps(bounds | {"schedule_ns": 1e3 * bounds["schedule_ns"]})

    monkeypatch.setattr(Simulation, "bounds", wrong)
    results = search()
    assert results.counts() == {"simulated": 16}
    monkeypatch.undo()
    assert table(results)[0] == table(search())[0]


def test_options_of_a_candidate():
    def build(candidate: tpusim.Candidate) -> Any:
        return (*matmul(candidate), {"settings": {"ici.link_bytes_per_second": candidate.rate}})

    space = {"mesh": [(1, 8)], "rules": {"x": ("y", None)}, "rate": ["1x", "2x"]}
    slow, fast = sorted(search(build, space), key=lambda e: e.candidate.rate)
    assert fast.row.step_time_ns < slow.row.step_time_ns
    with pytest.raises(tpusim.Error, match="colour: not an argument"):
        search(space=space, options={"colour": "red"})


def test_slices_are_candidates():
    results = search(
        space={"mesh": [(4, 2)], "rules": {"y": RULES["y"]}},
        configs=[CONFIG, "v6e-4x2", "v5e-2x4"],
        prune=False,
    )
    assert results.best.candidate.config == "v6e-4x2"
    assert {e.candidate.config for e in results} == {CONFIG, "v6e-4x2", "v5e-2x4"}


def test_the_table_as_frame_json_html_and_picture(tmp_path: pathlib.Path):
    import matplotlib as mpl

    mpl.use("Agg")
    results = search()
    frame = results.to_frame()
    assert len(frame) == 16
    assert list(frame["rank"].dropna()) == list(range(1, results.counts()["simulated"] + 1))
    results.save(tmp_path / "r.json")
    written = json.loads((tmp_path / "r.json").read_text())
    schemas.check(os.environ["TPUSIM_BINARY"], (tmp_path / "r.json").read_text())
    assert written["schema"] == "tpusim.search/1"
    assert written["command_line"] == []
    assert len(written["candidates"]) == 16
    assert "pruned" in results._repr_html_()
    assert "16 candidates" in repr(results)
    front = results.pareto()
    assert front[0] is results.best
    for better, worse in itertools.pairwise(front):
        assert better.value <= worse.value
        assert better.row.peak_hbm_bytes > worse.row.peak_hbm_bytes
    axes = results.plot_pareto()
    assert axes.get_ylabel() == "step time (us)"
    assert axes.get_xlabel() == "peak HBM of a device (MiB)"
    report = results.report()
    assert report.step_time_ns == results.best.value


def test_an_engine_that_breaks_is_an_error():
    class Broken:
        def submit(self, function: Any, *arguments: Any) -> Any:
            raise RuntimeError("out of order")

    with pytest.raises(tpusim.Error, match="takes no more tasks: RuntimeError: out of order"):
        search(engine=Broken())
    with pytest.raises(tpusim.Error, match="has no submit"):
        search(engine=object())
    assert Engine(Inline(), 1).submit(int, "7").result() == 7


def test_the_guide(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
):
    """Its example runs; here in this process."""
    monkeypatch.chdir(tmp_path)  # the guide's store is in the working folder
    guide = (EXAMPLES.parents[1] / "docs" / "user-guide.md").read_text()
    section = guide.partition("\n## 8. Search\n")[2]
    code = section.partition("```python\n")[2].partition("```")[0]
    assert "engine=None" in code
    names: dict[str, Any] = {"Inline": Inline}
    exec(code.replace("engine=None", "engine=Inline()"), names)
    assert "why behind" in capsys.readouterr().out
    results = names["results"]
    assert results.counts().keys() <= {"simulated", "pruned"}
    assert results.best.candidate.config == "v6e-4x2"
    read = section.partition("```python\n")[2].partition("```python\n")[2].partition("```")[0]
    exec(read, names)
