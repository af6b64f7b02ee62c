"""`tools/jax-versions`: what it would run, and (long) that every version runs every program."""

import pathlib
import sys

import pytest

from tools.versions import matrix
from tools.versions.matrix import Environment, Outcome

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_environments():
    found = [(e.jax, e.python, e.folder.name) for e in matrix.environments()]
    assert found[0] == ("0.7.2", "3.11", "jax-0.7.2")
    assert found[5:8] == [
        ("0.10.2", "3.11", "jax-0.10.2"),
        ("0.11.2", "3.12", "jax-0.11.2"),
        ("0.12.0.1", "3.12", "jax-0.12.0.1"),
    ]
    assert ("0.12.0.1", "3.13", "jax-0.12.0.1-python3.13") in found
    assert Environment("0.9.2", "3.11").requirements == [
        "jax==0.9.2",
        "jaxlib==0.9.2",
        "flax==0.12.6",
        "optax",
        "pytest",
    ]


def test_interpreters_are_found_or_not():
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert matrix.interpreter(own) is not None
    assert matrix.interpreter("3.99") is None


def test_a_table_says_what_fails():
    outcomes = {program: Outcome(1000.0) for program in matrix.PROGRAMS}
    outcomes["kernel"] = Outcome(1020.0).compared_with(1000.0)
    outcomes["capture"] = Outcome(1009.0).compared_with(1000.0)
    outcomes["readme"] = Outcome(None, "AttributeError: a|b (exit code 1)")
    row = matrix.table([(Environment("0.9.2", "3.11"), outcomes)]).splitlines()[2]
    assert row == (
        r"| 0.9.2 | 3.11 | 0.12.6 | fails: AttributeError: a\|b (exit code 1) | passes | "
        "fails: a step of 1.02 us, that of the newest takes 1.00 us | passes |"
    )


def test_other_versions_are_refused(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as end:
        matrix.main(["0.6.2"])
    assert end.value.code == 2
    assert "0.6.2: not among 0.7.2, 0.8.3," in capsys.readouterr().err
    with pytest.raises(SystemExit):
        matrix.main(["0.9.2", "-x"])
    assert "unknown: -x" in capsys.readouterr().err


def test_tests_are_those_of_the_tree():
    assert [
        n for n in matrix.TESTS if not (ROOT / "tests" / "jax" / f"test_{n}.py").is_file()
    ] == []


@pytest.mark.long
@pytest.mark.parametrize("version", list(matrix.TESTED)[-2:])
def test_the_newest_pass_the_tests(version: str):
    """tools/test runs all tests with the JAX of its own environment; these depend on JAX."""
    python = matrix.TESTED[version].python
    if matrix.interpreter(python) is None:
        pytest.skip(f"no Python {python} on this machine")
    assert matrix.tests(Environment(version, python), []) == 0


def test_the_newest_captures_a_script(binary: str):
    """This program of the table meets most of what is private to JAX."""
    version = list(matrix.TESTED)[-1]
    python = matrix.TESTED[version].python
    if matrix.interpreter(python) is None:
        pytest.skip(f"no Python {python} on this machine")
    found = matrix.outcome(Environment(version, python), "capture")
    assert found.error == ""


@pytest.mark.long
def test_every_version_runs_every_program(binary: str):
    rows, missing = matrix.run(list(matrix.TESTED))
    shown = matrix.PAGE.read_text()
    for row in matrix.table(rows).splitlines():
        assert row in shown, "run tools/jax-versions --page"
    # Interpreters may be missing here that were there when the page was written.
    if not missing:
        assert matrix.page(rows, missing) == shown, "run tools/jax-versions --page"
