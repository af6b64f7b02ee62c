"""The site builds without a warning, a broken link or anchor, and loads nothing from elsewhere."""

import contextlib
import functools
import html
import http.server
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
import tpusim

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONFIG = ROOT / "tools" / "docs" / "mkdocs.yml"
# Modules that are functions, too: of them the function is shown.
CALLABLE = ("calibrate", "export", "flags", "search")
# Sources that a browser fetches without being asked, from another host.
FETCHED = re.compile(
    r"""<(?:script|img|iframe)[^>]*\ssrc=["'](?:https?:)?//"""
    r"""|<link[^>]*rel=["']stylesheet["'][^>]*href=["'](?:https?:)?//"""
    r"""|<link[^>]*href=["'](?:https?:)?//[^>]*rel=["']stylesheet["']"""
    r"""|url\(["']?(?:https?:)?//|@import"""
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    for name in ("mkdocs", "material", "mkdocstrings"):
        if importlib.util.find_spec(name) is None:
            how = "pip install -r tools/python/requirements-test.txt"
            pytest.skip(f"the site's {name} is not installed: {how}")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", str(CONFIG)]
    done = subprocess.run(
        [*command, "--site-dir", str(folder)],
        capture_output=True,
        text=True,
        check=False,
        # Another generator that the theme advertises.
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_every_page_is_in_the_site(site: pathlib.Path) -> None:
    sources = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")}
    assert len(sources) > 10
    for source in sources:
        built = (site / source).with_suffix(".html").is_file()
        assert built == (source.name != "status.md"), source


def test_nothing_is_loaded_from_elsewhere(site: pathlib.Path) -> None:
    files = [path for ending in ("html", "css") for path in sorted(site.rglob(f"*.{ending}"))]
    assert len(files) > 10
    found = {
        f"{path.relative_to(site)}: {match[0]}"
        for path in files
        for match in FETCHED.finditer(path.read_text())
    }
    assert not found


def test_code_is_code(site: pathlib.Path) -> None:
    page = (site / "tutorials" / "sharded-matmuls.html").read_text()
    assert '<span class="kn">import</span>' in page
    assert "```" not in page


@pytest.mark.parametrize("name", tpusim.__all__)
def test_public_names_are_in_the_reference(site: pathlib.Path, name: str) -> None:
    value = getattr(tpusim, name)
    anchor = f"tpusim.{name}.{name}" if name in CALLABLE else f"tpusim.{name}"
    alias = f"{getattr(value, '__module__', '')}.{name}"
    pages = "".join(path.read_text() for path in sorted((site / "api").glob("*.html")))
    assert f'id="{anchor}"' in pages or f'id="{alias}"' in pages


def test_fields_are_described_by_their_comments(site: pathlib.Path) -> None:
    cells = re.findall(r"<tr[^>]*>(.*?)</tr>", (site / "api/report.html").read_text(), re.DOTALL)
    rows = [" ".join(html.unescape(re.sub(r"<[^>]+>", " ", cell)).split()) for cell in cells]
    # Behind the field, and on lines of their own before it.
    assert "step_time_ns float when the last device finishes" in rows
    assert any(
        row.startswith("tpusim_version str The version that made the report;") for row in rows
    )


@contextlib.contextmanager
def served(folder: pathlib.Path) -> Iterator[str]:
    """The address of a server of that folder."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            pass

    handler = functools.partial(Handler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1400])
def test_pages_are_shown_and_searched(
    site: pathlib.Path, browser: "Browser", width: int, scheme: Any
) -> None:
    with served(site) as address:
        context = browser.new_context(
            color_scheme=scheme, viewport={"width": width, "height": 1000}
        )
        with contextlib.closing(context):
            page = context.new_page()
            wrong: list[str] = []
            page.on("console", lambda m: m.type in ("error", "warning") and wrong.append(m.text))
            page.on("pageerror", lambda error: wrong.append(str(error)))
            page.on(
                "request",
                lambda r: r.url.startswith((address, "data:")) or wrong.append(r.url),
            )
            for name in ("index.html", "user-guide.html", "api/report.html"):
                page.goto(address + name)
                # Wide tables and outputs scroll by themselves, not the page.
                assert page.evaluate("document.documentElement.scrollWidth") <= width, name
                color = page.evaluate("getComputedStyle(document.body).backgroundColor")
                assert (color == "rgb(255, 255, 255)") == (scheme == "light")
            page.keyboard.press("/")
            page.keyboard.type("step_time_ns")
            page.locator(".md-search-result__item a").first.wait_for()
            assert wrong == []
