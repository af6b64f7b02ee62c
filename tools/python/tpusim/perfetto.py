"""Hands a trace to the Perfetto UI, which fetches it from this machine.

The UI is a web page; it may fetch from http://127.0.0.1:9001 and nothing else that is local. So the
file is served there until the page has it. The trace stays on this machine.
"""

import functools
import http.server
import os
import pathlib
import threading
import webbrowser
from collections.abc import Callable

from tpusim import arguments as checks
from tpusim import files
from tpusim.errors import ArgumentValueError, Error

ORIGIN = "https://ui.perfetto.dev"
PORT = 9001
_LAST_PORT = 65535
NAME = "trace.pftrace"


class _Handler(http.server.BaseHTTPRequestHandler):
    """Answers requests for the one file, from the UI's page only."""

    def __init__(self, path: pathlib.Path, fetched: threading.Event, *arguments):
        self._path = path
        self._fetched = fetched
        super().__init__(*arguments)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def _answer(self, *, with_body: bool) -> None:
        if self.path != f"/{NAME}":
            self.send_error(404)
            return
        body = self._path.read_bytes()
        self.send_response(200)
        self.send_header("Access-Control-Allow-Origin", ORIGIN)
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            self.wfile.write(body)
            self._fetched.set()

    def log_message(self, format: str, *arguments: object) -> None:
        """Says nothing."""


def open_trace(
    path: str | os.PathLike[str],
    *,
    port: int = PORT,
    timeout: float = 60,
    browse: Callable[[str], object] = webbrowser.open,
) -> str:
    """Opens a trace in the Perfetto UI and returns once it has been fetched.

    Args:
      path: the trace.
      port: where it is served; the UI fetches from 9001 only.
      timeout: seconds to wait for the UI.
      browse: opens an address in a browser.

    Returns:
      The address that was opened.

    Raises:
      tpusim.Error: the port is taken, or nobody came.
    """
    # Said before a browser opens, which would wait for it.
    files.read_bytes(path)
    checks.whole("port", port, "a port, 0 to 65535", most=_LAST_PORT)
    if checks.number("timeout", timeout, "seconds, more than 0") <= 0:
        raise ArgumentValueError(checks.wrong("timeout", timeout, "seconds, more than 0"))
    trace = pathlib.Path(path)
    fetched = threading.Event()
    try:
        server = http.server.ThreadingHTTPServer(
            ("127.0.0.1", port), functools.partial(_Handler, trace, fetched)
        )
    except OSError as error:
        raise Error(f"cannot serve the trace at port {port}: {error.strerror}") from error
    url = f"{ORIGIN}/#!/?url=http://127.0.0.1:{server.server_address[1]}/{NAME}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        browse(url)
        if not fetched.wait(timeout):
            raise Error(f"no browser fetched the trace within {timeout:g} s; open {url}")
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    return url
