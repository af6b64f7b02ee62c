"""`tpusim compare`."""

import re

from tests.tools.command_line import SLICE, example


def test_compare_workloads(run):
    done = run(
        *("compare", "--config", SLICE),
        *(example("allgather_matmul_int32"), example("collective_matmul_int32")),
    )
    assert done.returncode == 0, done.stderr
    assert "allgather_matmul_int32" in done.stdout
    assert "collective_matmul_int32" in done.stdout
    assert re.search(r"^B is [\d.]+x faster than A ", done.stdout, re.MULTILINE)


def test_compare_slices(run):
    done = run("compare", "--config", SLICE, "--config", "v5e-2x4", example("psum"))
    assert done.returncode == 0, done.stderr
    assert SLICE in done.stdout
    assert "v5e-2x4" in done.stdout


def test_compare_tells_files_of_one_name_apart(run, tmp_path):
    for name in ("left.pb", "right.pb"):
        (tmp_path / name).write_bytes(example("psum").read_bytes())
    done = run("compare", "--config", SLICE, "left.pb", "right.pb")
    assert done.returncode == 0, done.stderr
    assert "left" in done.stdout
    assert "right" in done.stdout


def test_compare_passes_errors_on(rejects, tmp_path):
    message = rejects("compare", "--config", SLICE, example("psum"), tmp_path / "no.pb")
    assert "no.pb" in message
