"""Options, help, and what goes to which stream."""

import os
import re
import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest
import tpusim
from jax.sharding import PartitionSpec as P

from tests.tools.command_line import SLICE, example


@pytest.mark.parametrize(
    "arguments",
    [
        ["--config", SLICE],
        ["--no-such-flag", "w.pb"],
        ["run", "--config"],
        ["--config", SLICE, "--config", SLICE, "w.pb"],
        ["--config", SLICE, "w.pb", "--trip-count", "while.1"],
        ["--config", SLICE, "w.pb", "--trip-count", "while.1=-3"],
        ["--config", SLICE, "w.pb", "--trace-chips", "all"],
        ["--config", SLICE, "w.pb", "--trace", "t", "--trace-chips", "0,x"],
        ["--config", SLICE, "w.pb", "--trace-blocks", "8"],
        ["--config", SLICE, "w.pb", "--trace", "t", "--trace-detail", "steps"],
        ["--config", SLICE, "w.pb", "--trace", "t", "--trace-blocks", "-1"],
        ["--config", SLICE, "w.pb", "--trace", "t", "--trace-blocks", "many"],
        ["--config", SLICE, "w.pb", "--quiet", "--verbose"],
        ["compile", "--config", SLICE, "w.pb", "--emit", "optimised"],
        ["compile", "--config", SLICE, "w.pb", "--emit", "streams", "-o", "s.pb"],
        ["compare", "--config", SLICE, "w.pb"],
        ["configs", "v5e", "v5p"],
    ],
)
def test_usage_errors(rejects, arguments):
    assert "--help" in rejects(*arguments, code=2)


def test_help_and_version(run):
    assert run("--version").stdout.startswith("tpusim ")
    top = run("--help")
    assert top.returncode == 0
    for command in ("run", "compile", "compare", "configs"):
        assert re.search(rf"^\s+{command}\s", top.stdout, re.MULTILINE)
        assert run(command, "--help").returncode == 0


def test_verbose_goes_to_stderr(run):
    done = run("--config", SLICE, "--verbose", example("psum"))
    assert done.returncode == 0
    assert "import took" in done.stderr
    assert done.stdout == run("--config", SLICE, example("psum")).stdout


def test_python_runner_reports_the_binarys_words(binary, tmp_path):
    """`tpusim.run` raises with the one line that the binary printed."""
    script = f"import tpusim; tpusim.run({str(tmp_path / 'no.pb')!r}, config={SLICE!r})"
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "TPUSIM_BINARY": binary, "PYTHONPATH": ":".join(sys.path)},
    )
    assert done.returncode == 1
    assert "no.pb" in done.stderr


def test_sharded_export_end_to_end(report_of, tmp_path):
    """The README's steps work: export over an abstract mesh, simulate, read the report."""
    mesh = jax.sharding.AbstractMesh((2, 4), ("x", "y"), (jax.sharding.AxisType.Auto,) * 2)

    def array(*axes: str | None) -> jax.ShapeDtypeStruct:
        sharding = jax.sharding.NamedSharding(mesh, P(*axes))
        return jax.ShapeDtypeStruct((1024, 1024), jnp.bfloat16, sharding=sharding)

    path = tmp_path / "step.pb"
    tpusim.export(lambda a, b: a @ b, array("x", "y"), array("y", None), path=path, config=SLICE)
    report = report_of(path)
    assert [c["kind"] for c in report["collectives"]] == ["all-reduce"]
