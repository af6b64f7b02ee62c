"""The site builds without a warning, a broken link or anchor, and loads nothing from elsewhere."""

import importlib.util
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONFIG = ROOT / "tools" / "docs" / "mkdocs.yml"
# What a browser fetches without being asked, from another host.
FETCHED = re.compile(
    r"""<(?:script|img|iframe)[^>]*\ssrc=["'](?:https?:)?//"""
    r"""|<link[^>]*rel=["']stylesheet["'][^>]*href=["'](?:https?:)?//"""
    r"""|<link[^>]*href=["'](?:https?:)?//[^>]*rel=["']stylesheet["']"""
    r"""|url\(["']?(?:https?:)?//|@import"""
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    if importlib.util.find_spec("mkdocs") is None:
        pytest.skip("mkdocs is not installed: pip install -r tools/python/requirements-test.txt")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", str(CONFIG)]
    done = subprocess.run(
        [*command, "--site-dir", str(folder)], capture_output=True, text=True, check=False
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
    assert 'class="codehilite"' in page
    assert "```" not in page
