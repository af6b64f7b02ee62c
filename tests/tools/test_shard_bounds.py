"""Bounds of a search for shardings, against everything below them that is simulated."""

import pathlib
import re
import subprocess

import pytest

from tests.tools.command_line import example

ROOT = pathlib.Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "workloads" / "examples").glob("*.pb.gz"))


def sampled(binary: str, files: list[pathlib.Path], candidates: int) -> dict[str, list[str]]:
    """Returns the row of each program in the table of benchmarks/shard_bounds.cc."""
    program = pathlib.Path(binary).with_name("shard_bounds")
    if not program.exists():
        pytest.skip("built without benchmarks")
    command = [str(program), "--candidates", str(candidates), *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    rows = [line.split() for line in done.stdout.splitlines()]
    return {row[0]: row[1:] for row in rows if row}


def test_no_bound_is_above_what_is_simulated(binary: str):
    names = ("fully_sharded_layers_large", "mlp_scan_8_layers", "layers_auto", "weights_from_host")
    files = [example(name) for name in names]
    rows = sampled(binary, files, 12)
    assert set(names) <= set(rows)
    simulated, partial, above = map(int, rows["all"][:3])
    assert simulated > 20
    assert partial > 3 * simulated
    assert above == 0


@pytest.mark.long
def test_ten_thousand_partial_choices_of_all_examples(binary: str):
    rows = sampled(binary, EXAMPLES, 100)
    _, partial, above = map(int, rows["all"][:3])
    assert partial >= 10_000
    assert above == 0
    for name, row in rows.items():
        if name not in ("program", "all"):
            assert all(re.fullmatch(r"\d+|\d\.\d\d|-", word) for word in row), (name, row)
