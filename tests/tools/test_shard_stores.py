"""Stores of `tpusim shard`: a verdict is believed if it is that of this search, or asked again."""

import pathlib
import subprocess

import pytest

from tests.conftest import BINARY
from tests.tools import shard_stores
from tests.tools.shard_stores import SEARCH, WORKLOAD, Stores, put, rows_of, search

FEW, MANY = 60, 20_000


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Stores:
    return Stores(tmp_path_factory.mktemp("stores"))


@pytest.fixture
def filled(stores: Stores, tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "s.sqlite"
    path.write_bytes(stores.filled)
    return path


def test_what_is_known_is_not_asked(stores: Stores, filled: pathlib.Path):
    assert search(filled.parent, filled) == stores.expected
    # A picosecond less for all, and the checksums of that: only what is read there can say so.
    rows = [[*row[:5], row[5] - 1, *row[6:]] for row in stores.rows if row[3] == 0]
    put(filled, rows)
    (step, _) = search(filled.parent, filled).answer["found"][0]
    assert step == pytest.approx(stores.expected.answer["found"][0][0] - 0.001, abs=1e-6)


def test_a_changed_figure_is_asked_again(stores: Stores, filled: pathlib.Path):
    database = shard_stores.sqlite3.connect(filled)
    with database:
        database.execute("UPDATE verdicts SET step_ps = step_ps / 10 WHERE kind = 0")
    database.close()
    changed = sum(row[0] == stores.rows[0][0] and row[3] == 0 for row in rows_of(filled))
    outcome = search(filled.parent, filled)
    assert outcome.answer == stores.expected.answer
    (line,) = outcome.lines
    assert line == (
        f"tpusim: warning: --store {filled}: {changed} rows are damaged, and done again"
    )
    # And is right from then on.
    assert search(filled.parent, filled) == stores.expected


def test_another_build_believes_nothing(stores: Stores, tmp_path: pathlib.Path):
    """A file that runs as the same program and has other bytes is another build."""
    other, store = tmp_path / "tpusim", tmp_path / "s.sqlite"
    other.write_bytes(BINARY.read_bytes() + b"\0")
    other.chmod(0o755)
    words = [other, "shard", WORKLOAD, *SEARCH, f"--store={store}"]
    subprocess.run(words, check=True, capture_output=True)
    rows = rows_of(store)
    assert {tuple(row[1:9]) for row in rows} == {tuple(row[1:9]) for row in stores.rows}
    assert {row[0] for row in rows}.isdisjoint({row[0] for row in stores.rows})


def test_options_of_the_search_share_verdicts(stores: Stores, filled: pathlib.Path):
    """They are in no key, and yet a choice that means another program is another."""
    for options in (("--fix", "x=P()"), ("--forbid", "x=P(?, 'data')"), ("--keep-constraints",)):
        bare = search(filled.parent, None, *options)
        assert bare.code == 0
        assert search(filled.parent, filled, *options) == bare


@pytest.mark.parametrize("limit", [0, 4, 12])
def test_a_full_disk_leaves_nothing(tmp_path: pathlib.Path, limit: int):
    """Files of so many KiB at most."""
    store = tmp_path / "s.sqlite"
    words = ["bash", "-c", f'ulimit -f {limit} && exec "$0" "$@"', BINARY, "shard", WORKLOAD]
    words += [*SEARCH, f"--store={store}"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("tpusim: error: ")
    assert done.stderr.count("\n") == 1
    left = list(tmp_path.iterdir())
    assert left == [] or (left == [store] and rows_of(store))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seeds" in metafunc.fixturenames:
        count = MANY if metafunc.config.getoption("--long") else FEW
        step = 20 if count == FEW else 1000
        parts = [range(at, at + step) for at in range(0, count, step)]
        metafunc.parametrize("seeds", parts, ids=lambda part: f"from {part.start}")


def test_whatever_is_in_the_file(stores: Stores, seeds: range):
    for seed in seeds:
        kind, outcome = stores.mutated(seed)
        assert stores.is_right(outcome), (seed, kind, outcome)
