"""`tpusim.search(..., shardings="auto")`: candidates with the shardings found for them."""

import concurrent.futures
import json
import os
import pathlib
import sqlite3
from typing import Any

import pytest
import tpusim
from jax.sharding import PartitionSpec as P
from tpusim.runner import Simulation
from tpusim.search import page
from tpusim.search.row import Status
from tpusim.search.simulating import simulate

from tests.jax.search_steps import mlp, unsharded_mlp
from tests.jax.test_search import Inline, table
from tests.tools import schemas

CONFIG = "v5e-2x2"
SPACE = {"mesh": [(4, 1), (1, 4)], "width": [512, 1024]}
# Exact, so that equal programs have equal steps whatever their shardings were.
EXACT = {"gap": 0.0}


def search(build: Any = mlp, space: Any = SPACE, **given: Any) -> tpusim.SearchResults:
    found = {"shardings": "auto", "find": EXACT}
    given = {"configs": CONFIG, "progress": False, "engine": Inline(), "workers": 2, **given}
    return tpusim.search(build, space, **{**found, **given})


def exposed(report: tpusim.Report) -> float:
    return report.exposed_communication_ns


@pytest.fixture(scope="module")
def found() -> tpusim.SearchResults:
    return search()


@pytest.fixture(scope="module")
def stated() -> tpusim.SearchResults:
    return search(shardings="stated", find=None, prune=False)


def test_candidates_are_ranked_by_the_steps_that_are_found(found, stated):
    assert found.counts() == stated.counts() == {"simulated": 4}
    own = {entry.candidate.name: entry for entry in stated}
    assert [e.row.step_time_ns for e in found] == sorted(e.row.step_time_ns for e in found)
    for entry in found:
        before = own[entry.candidate.name]
        step, arguments = mlp(entry.candidate)
        alone = tpusim.shard(step, *arguments, config=CONFIG, jobs=1)
        assert entry.row.step_time_ns == alone.best.step_time_ns <= before.row.step_time_ns
        assert entry.found.best == alone.best
        assert entry.found.as_it_is.step_time_ns == before.row.step_time_ns
        assert entry.found.counts == alone.counts
        assert (entry.found.gap, entry.found.lower_bound_ns) == (0, alone.best.step_time_ns)
        assert before.found is None
    # Only the rows of the batch need no transfers.
    assert found.best.candidate.mesh == (4, 1)
    assert found.best.found.best == found.best.found.as_it_is
    changed = found[1]
    assert changed.candidate.mesh == (1, 4)
    assert changed.row.step_time_ns < own[changed.candidate.name].row.step_time_ns
    assert changed.found.best.arguments["x"] == P("model")
    assert changed.found.best.mesh == {"data": 1, "model": 4}


def test_rows_are_those_of_reports(found):
    for entry in found:
        row, report = entry.row, found.report(entry)
        assert row.step_time_ns == report.step_time_ns == entry.found.best.step_time_ns
        assert row.peak_hbm_bytes == report.peak_hbm_bytes == entry.found.best.peak_hbm_bytes
        assert (row.mfu, row.chips, row.flops) == (report.mfu, 4, report.flops)
        assert sum(row.parts.values()) == pytest.approx(row.step_time_ns, rel=1e-6)
        assert sum(row.owners.values()) <= row.peak_hbm_bytes
        # What is known of the stated shardings bounds nothing.
        assert row.schedule_bound_ns is row.hbm_bound_ns is row.argument_bytes is None
    program = found.workload(found[1])
    assert [axis.size for axis in program.mesh] == [1, 4]


def test_a_program_without_shardings():
    results = search(unsharded_mlp, {"width": [512, 1024]}, objective="mfu")
    for entry in results:
        assert entry.found.as_it_is is None
        step, arguments = unsharded_mlp(entry.candidate)
        best = tpusim.shard(step, *arguments, config=CONFIG, jobs=1).best
        assert entry.found.best == best
        assert entry.row.devices == 4
    assert results.best.candidate.width == 1024


def test_options_of_the_search_for_shardings():
    given = {"fix": {"params/up": P(P.UNCONSTRAINED, "model")}, "axes": ["data", "model"]}
    results = search(unsharded_mlp, {"width": [512]}, find={**given, **EXACT})
    assert results.best.found.best.dims["params['up']"][1] == ["model"]
    free = search(unsharded_mlp, {"width": [512]})
    assert free.best.row.step_time_ns < results.best.row.step_time_ns


def test_a_search_is_continued(tmp_path: pathlib.Path, found, monkeypatch: pytest.MonkeyPatch):
    store = tmp_path / "search.sqlite"

    def interrupt(function: Any) -> None:
        if function is simulate and engine.simulated == 2:
            raise KeyboardInterrupt

    engine = Inline(interrupt)
    with pytest.raises(tpusim.SearchInterruptedError):
        search(engine=engine, store=store, workers=1)
    with sqlite3.connect(store) as database:
        kept = database.execute("select found from candidates where status = 'simulated'")
        texts = [text for (text,) in kept]
    assert 1 <= len(texts) <= 2
    assert all(json.loads(text)["schema"] == "tpusim.shard/1" for text in texts)
    engine = Inline()
    again = search(engine=engine, store=store)
    assert table(again) == table(found)
    assert [entry.found for entry in again] == [entry.found for entry in found]
    assert engine.simulated == 4 - len(texts)
    engine = Inline(lambda function: pytest.fail("nothing is left to do"))
    again = search(engine=engine, store=store)
    assert [entry.found for entry in again] == [entry.found for entry in found]
    assert again.report().step_time_ns == found.best.row.step_time_ns

    # A function needs the report, not another search for shardings.
    def fail(simulation: Simulation, words: Any) -> str:
        pytest.fail("they are known")

    monkeypatch.setattr(Simulation, "shard", fail)
    judged = search(objective=exposed, store=store)
    assert {e.candidate.name: e.row.found for e in judged} == {
        e.candidate.name: e.row.found for e in again
    }
    assert judged.best.value == 0


def test_stated_and_found_rows_are_not_mixed_up(tmp_path: pathlib.Path, found, stated):
    store = tmp_path / "search.sqlite"
    in_one = {"store": store, "space": SPACE}
    own = {"shardings": "stated", "find": None, "prune": False}
    assert table(search(**in_one, **own)) == table(stated)
    assert table(search(**in_one)) == table(found)
    nothing = Inline(lambda function: pytest.fail("nothing is left to do"))
    assert table(search(**in_one, **own, engine=nothing)) == table(stated)
    assert table(search(**in_one, engine=nothing)) == table(found)
    # What is known elsewhere decides nothing; what is left out does.
    known = {**EXACT, "store": tmp_path / "known.sqlite"}
    assert table(search(**in_one, find=known, engine=nothing)) == table(found)
    engine = Inline()
    rough = search(**in_one, find={"gap": 0.9}, engine=engine)
    assert engine.simulated == 4
    assert all(entry.found.gap <= 0.9 for entry in rough)
    with sqlite3.connect(store) as database:
        rows = database.execute(
            "select count(*), count(nullif(found, '')) from candidates"
        ).fetchone()
    assert rows == (12, 8)


@pytest.mark.parametrize("kind", ["threads", "own processes", "dask"])
def test_engines_give_the_same_table(kind: str, found, tmp_path: pathlib.Path):
    if kind == "threads":
        with concurrent.futures.ThreadPoolExecutor(2) as executor:
            results = search(engine=executor)
    elif kind == "own processes":
        results = search(engine=None)
    else:
        from distributed import Client, LocalCluster

        where = {"dashboard_address": None, "local_directory": str(tmp_path)}
        with (
            LocalCluster(n_workers=1, threads_per_worker=1, processes=True, **where) as cluster,
            Client(cluster) as client,
        ):
            results = search(engine=client)
    assert table(results) == table(found)
    assert [entry.found for entry in results] == [entry.found for entry in found]


def test_what_does_not_fit_or_is_refused_is_a_row():
    tight = {"settings": {"chip.hbm.bytes": "256.125MiB"}}
    results = search(unsharded_mlp, {"width": [512]}, options=tight)
    (entry,) = results
    assert entry.row.status is Status.DOES_NOT_FIT
    assert entry.reason.startswith("needs ")
    assert entry.reason.endswith(" of 128.0 KiB with the shardings that need least")
    assert entry.found is None
    results = search(find={"fix": ["weight=P('data')"]})
    assert results.counts() == {"error": 4}
    assert results[0].reason.startswith("--fix weight=P('data'): the program has no argument")


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"shardings": "best"}, ValueError, 'shardings: \'best\': expected "stated" or "auto"'),
        ({"shardings": None}, TypeError, 'shardings: None: expected "stated" or "auto"'),
        ({"shardings": "stated"}, ValueError, 'find: only with shardings="auto"'),
        ({"find": [1]}, TypeError, r"find: \[1\]: expected {argument of tpusim.shard: value}"),
        ({"find": {"jobs": 2}}, ValueError, "find: jobs: not of tpusim.shard in a search; these"),
        ({"find": {"gap": 2}}, ValueError, "gap: 2: expected a share, from 0 to 1"),
        ({"find": {"seconds": -1}}, ValueError, "seconds: -1: expected seconds, 0 or more"),
        ({"options": {"compiled": True}}, ValueError, '"auto": not with compiled'),
        ({"options": {"shardings": {}}}, tpusim.Error, "shardings: not an argument"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_done(given, error, said):
    nothing = Inline(lambda function: pytest.fail("it began"))
    with pytest.raises(error, match=said) as raised:
        search(engine=nothing, **given)
    assert "\n" not in str(raised.value)
    assert isinstance(raised.value, tpusim.Error)


def test_a_store_is_of_one_kind(tmp_path: pathlib.Path):
    path = tmp_path / "s.sqlite"
    with pytest.raises(ValueError, match=r"find: store: .*s.sqlite is that of the search"):
        search(store=path, find={"store": str(path)})


def test_text_frame_json_and_page(found, stated, tmp_path: pathlib.Path):
    assert "mesh found" in repr(found).splitlines()[0]
    assert "mesh found" not in repr(stated)
    lines = repr(found).splitlines()
    assert "as it is" in lines[1]
    assert "data=1,model=4" in lines[2]
    frame = found.to_frame()
    assert list(frame.found) == [str(entry.found.best) for entry in found]
    assert "found" not in stated.to_frame()
    schemas.check(os.environ["TPUSIM_BINARY"], stated.to_json())
    assert "found" not in json.loads(stated.to_json())["candidates"][0]
    text = found.to_json()
    schemas.check(os.environ["TPUSIM_BINARY"], text)
    first, second, *_ = json.loads(text)["candidates"]
    assert first["found"]["options"] == []
    assert second["found"]["arguments"]["x"] == [["model"], []]
    assert second["found"]["gap"] == 0
    data = page.data_of(found)
    runs = {run["name"]: run["panels"] for run in data["runs"]}
    told = runs[found[1].candidate.name]
    panel = next(panel for panel in told if panel["title"] == "Shardings that were found")
    assert panel["lines"] == repr(found[1].found).splitlines()
    found.save(tmp_path / "found.html")
    assert "Shardings that were found" in (tmp_path / "found.html").read_text()


def test_rows_keep_the_best_alone(found):
    for entry in found:
        assert len(json.loads(entry.row.found)["slices"][0]["found"]) <= 1
