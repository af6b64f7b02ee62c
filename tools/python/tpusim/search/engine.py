"""Runs tasks of candidates: in processes of this machine, or in any object with `submit`.

    tpusim.search(..., engine=None)                           # all cores of this machine
    tpusim.search(..., engine=dask.distributed.Client(...))   # by its `get_executor()`
    tpusim.search(..., engine=concurrent.futures.ProcessPoolExecutor(8))
    tpusim.search(..., engine=anything.with_submit)           # submit(f, *args).result()

Futures need no more than `result()`. Those of `concurrent.futures` are waited for as they are,
others by a thread each.
"""

import concurrent.futures
import contextlib
import os
import threading
from collections.abc import Iterator
from typing import Any, Protocol

from tpusim.errors import Error
from tpusim.search.pool import ProcessPool

Future = concurrent.futures.Future


class Submits(Protocol):
    """An engine: any object that takes tasks."""

    def submit(self, function: Any, /, *arguments: Any) -> Any:
        """Begins `function(*arguments)` somewhere; the result has a method `result`."""


class Engine:
    """Gives futures of `concurrent.futures` for any engine."""

    def __init__(self, submits: Submits, workers: int):
        self._submits = submits
        self.workers = workers

    def submit(self, function: Any, *arguments: Any) -> "Future[Any]":
        """Submits a task, like an executor; tpusim.Error if the engine takes no more."""
        try:
            future = self._submits.submit(function, *arguments)
        except Exception as error:
            raise Error(
                f"search: the engine takes no more tasks: {type(error).__name__}: {error}"
            ) from error
        return future if isinstance(future, Future) else _awaited(future)


def _awaited(other: Any) -> "Future[Any]":
    future: Future[Any] = Future()
    future.set_running_or_notify_cancel()

    def wait() -> None:
        try:
            future.set_result(other.result())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=wait, daemon=True).start()
    return future


def processors() -> int:
    """Returns how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _workers_of(given: Any) -> int:
    """Returns how many tasks the engine runs at a time."""
    nthreads = getattr(given, "nthreads", None)  # Of a client of Dask: by worker.
    if callable(nthreads):
        with contextlib.suppress(Exception):
            return max(1, sum(nthreads().values()))
    count = getattr(given, "_max_workers", None)
    return count if isinstance(count, int) and count > 0 else processors()


@contextlib.contextmanager
def opened(given: Any, workers: int | None) -> Iterator[Engine]:
    """The engine to use; one of our own is ended with the block, at once if that fails."""
    if given is not None:
        executor = given.get_executor() if hasattr(given, "get_executor") else given
        if not callable(getattr(executor, "submit", None)):
            raise Error(f"search: engine: {type(given).__name__} has no submit")
        yield Engine(executor, workers or _workers_of(given))
        return
    pool = ProcessPool(workers or processors())
    finished = False
    try:
        yield Engine(pool, pool.workers)
        finished = True
    finally:
        pool.shutdown(cancel_futures=not finished)
