"""`tpusim compile`."""

import pytest

from tests.tools.command_line import SLICE, example


@pytest.mark.parametrize(
    ("stage", "says"),
    [
        ("sharded", "sharding="),
        ("partitioned", "all-reduce"),
        ("optimized", "fusion"),
        ("schedule", "fusion"),
        ("executable", "dot("),
        ("streams", "kernel"),
    ],
)
def test_compile_emits(run, tmp_path, stage, says):
    command = ("compile", "--config", SLICE, "--emit", stage, example("mlp_two_layers"))
    printed = run(*command)
    assert printed.returncode == 0, printed.stderr
    assert says in printed.stdout
    assert run(*command, "-o", "out.txt").stdout == ""
    assert (tmp_path / "out.txt").read_text() == printed.stdout


@pytest.mark.parametrize("stage", ["partitioned", "executable"])
def test_compile_writes_a_module(run, tmp_path, stage):
    for name in ("1.pb", "2.pb"):
        done = run(
            *("compile", "--config", SLICE, "--emit", stage, "-o", name),
            example("matmul_square"),
        )
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "1.pb").read_bytes() == (tmp_path / "2.pb").read_bytes()
    from jax._src.lib import xla_client

    module = xla_client.XlaComputation((tmp_path / "1.pb").read_bytes())
    assert "all-reduce" in module.as_hlo_text()


def test_dump_after(run, rejects):
    on = ("compile", "--config", SLICE, example("mlp_two_layers"))
    done = run(*on, "--dump-after", "fuse")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("// after fuse\n")
    assert "fusion" in done.stdout
    assert "fuse" in rejects(*on, "--dump-after", "fuze")
