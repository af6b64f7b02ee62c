"""Candidates, their identities, reasons and the store, without JAX."""

import concurrent.futures
import dataclasses
import functools
import math
import os
import pathlib
import pickle
import sqlite3
import sys
from typing import Any

import pytest
import tpusim
from tpusim.search import stages
from tpusim.search.objective import objective_of
from tpusim.search.pool import ProcessPool
from tpusim.search.ranking import ranked, reason
from tpusim.search.row import Row, Status
from tpusim.search.space import candidates, identity, label_of
from tpusim.search.store import Store


def test_every_value_with_every_other():
    found = candidates(
        {"a": [1, 2], "b": {"p": "long", "q": "longer"}}, ["v5e-2x2", "v6e-2x2"], None
    )
    assert [c.name for c in found[:4]] == [
        "v5e-2x2 a=1 b=p",
        "v5e-2x2 a=1 b=q",
        "v5e-2x2 a=2 b=p",
        "v5e-2x2 a=2 b=q",
    ]
    assert len(found) == 8
    assert found[3].b == found[3]["b"] == "longer"
    assert dict(found[7]) == {"config": "v6e-2x2", "a": 2, "b": "longer"}
    with pytest.raises(AttributeError, match="no 'c'"):
        _ = found[0].c


def test_some_combinations_only():
    found = candidates({"a": [1, 2, 3], "b": [1, 2, 3]}, ["v5e-2x2"], lambda c: c.a * c.b == 3)
    assert [(c.a, c.b) for c in found] == [(1, 3), (3, 1)]
    with pytest.raises(tpusim.Error, match="empty"):
        candidates({"a": [1]}, ["v5e-2x2"], lambda c: False)


@pytest.mark.parametrize(
    ("space", "said"),
    [
        ({"config": [1]}, "not a name"),
        ({"step_time_ns": [1]}, "not a name"),
        ({"Found": [1]}, "not a name"),
        ({"a b": [1]}, "not a name"),
        ({"Mesh": [1], "mesh": [2]}, "not a name"),
        ({"mesh": "2x2"}, "a list of values"),
        ({"mesh": [(2, 2), (2, 2)]}, "listed twice"),
        ({"policy": [object()]}, "give it a label"),
        ({"policy": [lambda: 1]}, "give it a label"),
    ],
)
def test_what_cannot_be_searched(space, said):
    with pytest.raises(tpusim.Error, match=said):
        candidates(space, ["v5e-2x2"], None)


def test_a_candidate_travels():
    candidate = candidates({"a": [(1, 2)]}, ["v5e-2x2"], None)[0]
    there = pickle.loads(pickle.dumps(candidate))
    assert there.name == candidate.name == "v5e-2x2 a=1x2"
    assert there.a == (1, 2)


@dataclasses.dataclass(frozen=True)
class Rule:
    """Has a text of its own."""

    axis: str


def test_identities():
    assert identity({"a": [1, "x"], "b": None}) == "{('a', (1, 'x')), ('b', None)}"
    assert identity(Rule("x")) == "Rule(axis='x')"
    assert identity(Rule("x")) != identity(Rule("y"))
    assert identity(frozenset("ab")) == "{'a', 'b'}"
    assert identity(functools.partial(label_of, value=1)) == (
        f"partial({identity(label_of)}, (), {{('value', 1)}})"
    )
    assert identity(label_of) != identity(identity)
    assert identity([object()]) is None
    assert label_of((4, 2)) == "4x2"
    assert label_of(math.floor) == "floor"


def simulated(step: float, **parts: float) -> Row:
    return Row(
        Status.SIMULATED,
        step_time_ns=step,
        chips=4,
        mfu=0.4,
        peak_hbm_bytes=2**30,
        parts={name.replace("_", " "): value for name, value in parts.items()},
        owners={"parameters": 2**29, "gradients": 2**28},
    )


def test_reasons_by_hand():
    best = simulated(100, compute=80, exposed_all_gather=20)
    worse = simulated(150, compute=90, exposed_all_gather=10, exposed_all_reduce=50)
    step, _ = objective_of("step_time", None)
    assert reason(step, (worse, None), (best, None)) == (
        "+50.0% (50 ns): exposed all reduce +50.0%, compute +10.0%, exposed all gather -10.0%"
    )
    assert reason(step, (best, None), (best, None)) == "as good as the best"
    # Per token: 150 ns for 300 tokens are 50 for 100.
    rate, _ = objective_of("tokens_per_chip_second", None)
    assert reason(rate, (best, 100), (worse, 300)).startswith("+100.0% per token and chip: compute")
    peak, _ = objective_of("peak_hbm", None)
    large = dataclasses.replace(best, peak_hbm_bytes=2**31, owners={"parameters": 2**31})
    assert reason(peak, (large, None), (best, None)) == (
        "+100.0% (1 GiB): parameters +150.0%, fragmentation -25.0%, gradients -25.0%"
    )


def test_the_order_of_candidates():
    found = candidates({"a": [1, 2, 3, 4, 5]}, ["v5e-2x2"], None)
    rows = [
        Row(Status.ERROR, why="broken"),
        simulated(20, compute=20),
        Row(Status.PRUNED, why="slow"),
        simulated(10, compute=10),
        simulated(10, compute=10),
    ]
    known = [(c, row, None) for c, row in zip(found, rows, strict=True)]
    entries = ranked(known, objective_of("step_time", None)[0])
    assert [(e.rank, e.candidate.a) for e in entries] == [
        (1, 4),
        (2, 5),
        (3, 2),
        (None, 3),
        (None, 1),
    ]
    assert [e.reason for e in entries[3:]] == ["slow", "broken"]
    entries = ranked(known, objective_of("mfu", None)[0])
    assert entries[0].candidate.a == 2


@pytest.mark.parametrize(
    ("objective", "maximize", "said"),
    [("speed", None, "choose one of step_time"), ("mfu", False, "mfu is maximized as it is")],
)
def test_objectives_that_there_are_not(objective, maximize, said):
    with pytest.raises(tpusim.Error, match=said):
        objective_of(objective, maximize)


def test_the_store_keeps_rows(tmp_path: pathlib.Path):
    first, second = candidates({"mesh": [(2, 2), (4, 1)]}, ["v5e-2x2"], None)
    row = dataclasses.replace(simulated(10, compute=10), warnings=("careful",))
    store = Store(tmp_path / "s.sqlite")
    store.put("k1", first, row)
    store.put("k2", second, Row(Status.ERROR, why="broken"))
    store.put("k2", second, Row(Status.CRASHED, why="gone"))
    store.put_program("d", b"program", ("--config", "v5e-2x2"))
    store.close()
    store = Store(tmp_path / "s.sqlite")
    assert store.rows(["k1", "k2", "k3"]) == {"k1": row, "k2": Row(Status.CRASHED, why="gone")}
    assert store.program("d") == (b"program", ("--config", "v5e-2x2"))
    assert store.program("e") is None
    # Another space in the same file.
    other = candidates({"batch": [1]}, ["v5e-2x2"], None)[0]
    store.put("k3", other, row)
    with sqlite3.connect(tmp_path / "s.sqlite") as database:
        rows = database.execute("select config, mesh, batch, status from candidates").fetchall()
    assert rows == [
        ("v5e-2x2", "2x2", None, "simulated"),
        ("v5e-2x2", "4x1", None, "crashed"),
        ("v5e-2x2", None, "1", "simulated"),
    ]


def test_what_is_no_store(tmp_path: pathlib.Path):
    (tmp_path / "text").write_text("no database, but a text that is long enough to be looked at")
    with pytest.raises(tpusim.Error, match="not a database"):
        Store(tmp_path / "text")
    with sqlite3.connect(tmp_path / "other.sqlite") as database:
        database.execute("create table t (a)")
    with pytest.raises(tpusim.Error, match="not of a search"):
        Store(tmp_path / "other.sqlite")
    with pytest.raises(tpusim.Error, match="No such file or directory"):
        Store(tmp_path / "nowhere" / "s.sqlite")


class Nameless:
    """An object without a name, like some of C++."""

    __qualname__ = "Nameless"

    def __init__(self) -> None:
        self.__qualname__ = None

    def __call__(self) -> None:
        """Nothing."""

    def __repr__(self) -> str:
        return "nameless"


def test_a_callable_whose_name_is_none():
    assert identity(Nameless()) == "nameless"


@pytest.mark.parametrize(
    ("end", "said"),
    [
        ((sys.exit, 3), "the worker ended with exit code 3"),
        ((sys.exit, "no such layout"), "the worker ended with exit code 1: no such layout"),
        ((os._exit, 4), "the worker ended with exit code 4"),
        ((os.abort,), "the worker ended with SIGABRT"),
    ],
)
def test_how_a_worker_ends(end: tuple[Any, ...], said: str):
    with ProcessPool(1) as pool:
        assert str(pool.submit(*end).exception()).startswith(said)
        assert pool.submit(abs, -1).result() == 1  # Another takes its place.


def test_a_candidate_that_exits_ends_no_search():
    """Engines whose workers survive it raise the exception in the caller."""
    with concurrent.futures.ThreadPoolExecutor() as executor:
        row = stages._result(executor.submit(sys.exit, 3))
    assert (row.status, row.why) == (Status.CRASHED, "the candidate ended with sys.exit(3)")
