"""Settings of all Python tests; eight CPU devices, settled before anything imports JAX."""

import collections
import contextlib
import os
import pathlib
import shutil
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from tpusim.cpu_devices import force_cpu_devices

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

force_cpu_devices(8)
# Compiled programs of XLA for CPUs run once here, and compiling takes longer than that. Its older
# emitters would compile in half the time, but round bfloat16 after other operations, and refuse
# negative padding. Asked for by their name, a caller's own stay.
for flag in (
    "--xla_backend_optimization_level=0",
    "--xla_cpu_parallel_codegen_split_count=1",
):
    if flag.partition("=")[0] not in os.environ["XLA_FLAGS"]:
        os.environ["XLA_FLAGS"] += f" {flag}"

ROOT = pathlib.Path(__file__).resolve().parents[1]
# The simulator under test, for every test and what it starts, in whatever folder.
BINARY = pathlib.Path(os.environ.get("TPUSIM_BINARY", ROOT / "build" / "tpusim")).absolute()
os.environ["TPUSIM_BINARY"] = str(BINARY)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="also run tests marked long")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--long"):
        for item in items:
            if "long" in item.keywords:
                item.add_marker(pytest.mark.skip(reason="only with --long"))


@pytest.fixture(scope="session")
def binary() -> str:
    """The simulator under test; $TPUSIM_BINARY, by default build/tpusim."""
    assert BINARY.is_file(), f"{BINARY} is not built; run tools/test or set TPUSIM_BINARY"
    return str(BINARY)


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    """Chromium without a display."""
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=60_000)  # Milliseconds; five seconds are few on a busy machine.
    chromium = shutil.which("chromium")
    assert chromium, "chromium is not installed; tools/install does"
    with sync_playwright() as playwright:
        # Inside of a container its sandbox has no rights.
        started = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def show(browser: "Browser") -> Iterator[Callable[..., "Page"]]:
    """Opens a page; afterwards nothing may have gone wrong."""
    with contextlib.ExitStack() as stack:
        wrong: list[str] = []

        def opened(path: pathlib.Path, scheme: str = "light") -> "Page":
            context = stack.enter_context(
                contextlib.closing(browser.new_context(offline=True, color_scheme=scheme))
            )
            page = context.new_page()
            url = path.as_uri()
            page.on("console", lambda m: m.type in ("error", "warning") and wrong.append(m.text))
            page.on("pageerror", lambda error: wrong.append(str(error)))
            page.on(
                "request",
                lambda r: r.url.partition("#")[0] not in (url, "data:,") and wrong.append(r.url),
            )
            page.goto(url)
            return page

        yield opened
        assert wrong == []


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line for each reason to skip tests, with their number."""
    reasons = collections.Counter(
        report.longrepr[2].removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", [])
    )
    for reason, tests in sorted(reasons.items()):
        terminalreporter.write_line(f"skipped {tests}: {reason}")
