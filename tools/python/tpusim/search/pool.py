"""`ProcessPool`: workers on this machine that may die without harm to each other's tasks.

Differs from `concurrent.futures.ProcessPoolExecutor` in what a search needs: a worker that crashes
fails its own task only, and is replaced; workers start without running the main script again; all
of them, and the simulations they run, end at once when they are told to.
"""

import concurrent.futures
import contextlib
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from typing import IO, Any

from tpusim.search import worker

_GRACE_SECONDS = 2.0


class WorkerDiedError(RuntimeError):
    """The process ended without a result."""


class ProcessPool(concurrent.futures.Executor):
    """An executor of up to `workers` processes, each started when there is a task for it."""

    def __init__(self, workers: int):
        self.workers = workers
        self._tasks: queue.SimpleQueue[tuple[concurrent.futures.Future[Any], Any] | None] = (
            queue.SimpleQueue()
        )
        self._lock = threading.Lock()
        self._closed = False
        self._processes: set[_Process] = set()
        self._threads = [
            threading.Thread(target=self._serve, daemon=True, name=f"tpusim-search-{i}")
            for i in range(workers)
        ]
        for thread in self._threads:
            thread.start()

    def submit(  # type: ignore[override]
        self, function: Callable[..., Any], /, *arguments: Any
    ) -> concurrent.futures.Future[Any]:
        """Runs it in a worker that is free, or as soon as one is."""
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        self._tasks.put((future, (function, arguments)))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Ends the workers; with `cancel_futures` also those that are at work, at once."""
        with self._lock:
            self._closed = self._closed or cancel_futures
            for process in self._processes if cancel_futures else ():
                process.kill()
        if cancel_futures:
            with contextlib.suppress(queue.Empty):
                while True:
                    task = self._tasks.get_nowait()
                    if task is not None:
                        task[0].cancel()
        for _ in self._threads:
            self._tasks.put(None)
        if wait:
            for thread in self._threads:
                thread.join()

    def _serve(self) -> None:
        process: _Process | None = None
        while (task := self._tasks.get()) is not None:
            future, message = task
            if not future.set_running_or_notify_cancel():
                continue
            try:
                process = process or self._begin()
                done, result = process.answer(message)
            except (EOFError, OSError) as error:
                died = process.died() if process else str(error)
                self._forget(process)
                process = None
                future.set_exception(WorkerDiedError(died))
                continue
            if done:
                future.set_result(result)
            else:
                future.set_exception(result)
        if process:
            process.end()
            self._forget(process)

    def _begin(self) -> "_Process":
        with self._lock:
            if self._closed:
                raise OSError("the pool is closed")
            process = _Process()
            self._processes.add(process)
        return process

    def _forget(self, process: "_Process | None") -> None:
        with self._lock:
            self._processes.discard(process)  # type: ignore[arg-type]


class _Process:
    """One worker, in a session of its own: an interrupt on the terminal is not for it."""

    def __init__(self) -> None:
        self._errors: IO[bytes] = tempfile.TemporaryFile(prefix="tpusim-")  # noqa: SIM115
        path = [os.path.abspath(p) for p in sys.path]
        code = f"import sys; sys.path[:] = {path!r}; from tpusim.search.worker import main; main()"
        self._process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,
        )

    def answer(self, message: Any) -> tuple[bool, Any]:
        """Sends a task and waits for its result."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        worker.send(self._process.stdin, message)
        return worker.receive(self._process.stdout)

    def kill(self) -> None:
        """Kills the process with everything that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def end(self) -> None:
        """Nothing more will come."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            self._process.wait()
        self._close()

    def died(self) -> str:
        """Returns how the process ended, with its last words on standard error."""
        try:
            code = self._process.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            code = None
        self.kill()
        code = self._process.wait() if code is None else code
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        self._close()
        how = f"exit code {code}" if code >= 0 else signal.Signals(-code).name
        return f"the worker ended with {how}" + (f": {lines[-1]}" if lines else "")

    def _close(self) -> None:
        for stream in (self._errors, self._process.stdout, self._process.stdin):
            with contextlib.suppress(OSError):
                if stream is not None:
                    stream.close()
