"""Settings of all Python tests; eight CPU devices, settled before anything imports JAX."""

import collections
import os
import pathlib

import pytest
from tpusim.export import force_cpu_devices

force_cpu_devices(8)

ROOT = pathlib.Path(__file__).resolve().parents[1]


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
    path = pathlib.Path(os.environ.get("TPUSIM_BINARY", ROOT / "build" / "tpusim"))
    assert path.is_file(), f"{path} is not built; run tools/test or set TPUSIM_BINARY"
    return str(path)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line for each reason to skip tests, with their number."""
    reasons = collections.Counter(
        report.longrepr[2].removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", [])
    )
    for reason, tests in sorted(reasons.items()):
        terminalreporter.write_line(f"skipped {tests}: {reason}")
