"""`report.open_perfetto()`: what the Perfetto UI would fetch, fetched here."""

import pathlib
import threading
import urllib.error
import urllib.request

import pytest
import tpusim
from tpusim import perfetto

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Browser:
    """Does what the UI's page does: fetches what its address names, from its own origin."""

    def __init__(self) -> None:
        self.opened = ""
        self.body = b""
        self.origin = ""
        self.elsewhere = 0
        self._thread: threading.Thread | None = None

    def __call__(self, url: str) -> bool:
        """Opens an address."""
        self.opened = url
        self._thread = threading.Thread(target=self._fetch)
        self._thread.start()
        return True

    def _fetch(self) -> None:
        page, _, local = self.opened.partition("/#!/?url=")
        folder = local.rsplit("/", 1)[0]
        with pytest.raises(urllib.error.HTTPError) as error:
            urllib.request.urlopen(f"{folder}/etc/passwd", timeout=10)
        self.elsewhere = error.value.code
        request = urllib.request.Request(local, headers={"Origin": page})
        with urllib.request.urlopen(request, timeout=10) as answer:
            self.origin = answer.headers["Access-Control-Allow-Origin"]
            self.body = answer.read()

    def join(self) -> None:
        """Waits until it has what it fetched."""
        assert self._thread is not None
        self._thread.join()


def test_the_trace_is_served_once_and_nothing_else(tmp_path):
    trace = tmp_path / "t.pftrace"
    trace.write_bytes(b"\x0a\x00" * 1000)
    browser = Browser()
    url = perfetto.open_trace(trace, port=0, browse=browser)
    browser.join()
    assert url == browser.opened
    assert url.startswith("https://ui.perfetto.dev/#!/?url=http://127.0.0.1:")
    assert browser.body == trace.read_bytes()
    assert browser.origin == "https://ui.perfetto.dev"
    assert browser.elsewhere == 404
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(url.partition("url=")[2], timeout=10)


def test_nobody_comes(tmp_path):
    trace = tmp_path / "t.pftrace"
    trace.write_bytes(b"x")
    with pytest.raises(tpusim.Error, match=r"no browser fetched the trace within 0\.1 s"):
        perfetto.open_trace(trace, port=0, timeout=0.1, browse=lambda url: True)


def test_a_report_opens_its_trace(tmp_path, monkeypatch):
    program = ROOT / "workloads" / "examples" / "psum.pb.gz"
    report = tpusim.simulate(program, config="v5e-4x2")
    seen = []
    monkeypatch.setattr(perfetto, "open_trace", lambda path: seen.append(path.read_bytes()))
    report.open_perfetto()
    report.save(tmp_path / "r.json", trace=tmp_path / "t.pftrace")
    assert seen == [(tmp_path / "t.pftrace").read_bytes()]


def test_a_report_is_saved_as_a_page(tmp_path):
    program = ROOT / "workloads" / "examples" / "psum.pb.gz"
    report = tpusim.simulate(program, config="v5e-4x2")
    report.save(tmp_path / "x.html")
    page = (tmp_path / "x.html").read_text()
    assert page.startswith("<!doctype html>")
    assert '"workload": "psum"' in page
    assert [f.name for f in tmp_path.iterdir()] == ["x.html"]
    loaded = tpusim.Report.from_json(report.text)
    with pytest.raises(tpusim.Error, match="a page needs the program"):
        loaded.save(tmp_path / "y.html")
