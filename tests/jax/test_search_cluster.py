"""A search on a cluster: a worker may die, and the table is the same."""

import os
import pathlib
import signal
import threading
import time

import tpusim
from distributed import Client, LocalCluster

from tests.jax.search_steps import CONFIG, MESHES, RULES, marked, marks_in
from tests.jax.test_search import Inline, table


def kill_a_worker(folder: pathlib.Path, killed: list[int]) -> None:
    """The one that began the third task, while it is at it."""
    deadline = time.monotonic() + 300
    while len(begun := marks_in(folder)) < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    if len(begun) >= 3:
        killed.append(int(begun[2].suffix[1:]))
        os.kill(killed[0], signal.SIGKILL)
    (folder / ".held").unlink()


def test_a_cluster_that_loses_a_worker(tmp_path: pathlib.Path):
    marks = tmp_path / "marks"
    marks.mkdir()
    (marks / ".held").touch()
    space = {
        "mesh": MESHES,
        "rules": {name: RULES[name] for name in ("y", "both")},
        "folder": {"f": str(marks)},
    }
    given = {"configs": CONFIG, "progress": False}
    killed: list[int] = []
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            local_directory=str(tmp_path),
        ) as cluster,
        Client(cluster) as client,
    ):
        client.wait_for_workers(2)
        killer = threading.Thread(target=kill_a_worker, args=(marks, killed))
        killer.start()
        on_cluster = tpusim.search(marked, space, engine=client, **given)
        killer.join()
    begun = [path.name.rsplit(".", 1) for path in marks_in(marks)]
    assert killed
    lost = {task for task, pid in begun if int(pid) == killed[0]}
    again = {task for task, pid in begun if int(pid) != killed[0]}
    assert lost & again, "what it was at was not begun again"
    alone = tpusim.search(marked, space, engine=Inline(), workers=2, **given)
    assert table(on_cluster) == table(alone)
    assert on_cluster.counts().keys() <= {"simulated", "pruned"}
