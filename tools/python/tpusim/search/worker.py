"""A process of the pool: reads tasks from its standard input, writes results, until that ends.

A message is its length in eight bytes and a pickle. What the task prints goes to standard error.
"""

import os
import pickle
import struct
import sys
from typing import Any, BinaryIO

_LENGTH = struct.Struct("<Q")


def send(stream: BinaryIO, message: Any) -> None:
    """Writes one message."""
    data = pickle.dumps(message)
    stream.write(_LENGTH.pack(len(data)))
    stream.write(data)
    stream.flush()


def receive(stream: BinaryIO) -> Any:
    """Reads one message; EOFError at the end."""
    return pickle.loads(_exactly(stream, _LENGTH.unpack(_exactly(stream, _LENGTH.size))[0]))


def _exactly(stream: BinaryIO, count: int) -> bytes:
    data = stream.read(count)
    if len(data) < count:
        raise EOFError
    return data


def main() -> None:
    """The process. `(function, arguments)` is answered by `(True, result)` or `(False, error)`."""
    results = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    tasks = sys.stdin.buffer
    while True:
        try:
            function, arguments = receive(tasks)
        except EOFError:
            return
        try:
            answer = (True, function(*arguments))
        except Exception as error:
            answer = (False, RuntimeError(f"{type(error).__name__}: {error}"))
        try:
            send(results, answer)
        except BrokenPipeError:
            return  # Nobody waits for it any more.
