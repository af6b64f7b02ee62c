"""Interrupts that nothing may lose.

Python raises KeyboardInterrupt wherever the main thread is. Where that is code which something
calls back, such as JAX's callback of the garbage collector, the exception is printed and gone. So
an interrupt is remembered, too, and raised again at the next place that asks. Where a process has
been started that no variable has as yet, nobody would end it. So an interrupt waits there.
"""

import contextlib
import signal
import threading
import types
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def heeded() -> Iterator[Callable[[], None]]:
    """An interrupt ends the block, be it at its end, or where it calls what this yields.

    It has no effect outside of the main thread, and where the script has a handler of its own.
    """
    interrupted = False

    def check() -> None:
        if interrupted:
            raise KeyboardInterrupt

    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield check
        return

    def handle(number: int, frame: types.FrameType | None) -> None:
        nonlocal interrupted
        interrupted = True
        signal.default_int_handler(number, frame)

    signal.signal(signal.SIGINT, handle)
    try:
        yield check
        check()
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextlib.contextmanager
def deferred() -> Iterator[None]:
    """Delays handlers of interrupts and of requests to end until the block is over."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    waiting: list[tuple[int, types.FrameType | None]] = []
    for number, handler in handlers.items():
        if callable(handler):
            signal.signal(number, lambda *received: waiting.append(received))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            if callable(handler):
                signal.signal(number, handler)
        for number, frame in waiting[:1]:
            handlers[signal.Signals(number)](number, frame)
