"""A run ends with one line where memory ends."""

import pathlib
import resource
import subprocess

import pytest

MIB = 1 << 20


@pytest.fixture
def chain(tmp_path: pathlib.Path) -> pathlib.Path:
    """200,000 instructions, for which a simulation takes several hundred MiB."""
    count = 200_000
    lines = [f"  x{n} = f32[8] negate(x{n - 1})" for n in range(1, count)]
    text = ["HloModule chain", "ENTRY main {", "  x0 = f32[8] parameter(0)", *lines]
    path = tmp_path / "chain.hlo"
    path.write_text("\n".join([*text, f"  ROOT r = f32[8] negate(x{count - 1})", "}", ""]))
    return path


@pytest.mark.parametrize("available", [100 * MIB, 200 * MIB])
def test_it_says_so(binary: str, chain: pathlib.Path, tmp_path: pathlib.Path, available: int):
    report = tmp_path / "r.json"
    command = [binary, "run", "--config", "v5e-1x1", chain, "--report", report]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (available, available)),
    )
    assert done.returncode == 1, done.stderr
    assert done.stdout == ""
    assert done.stderr == (
        "tpusim: error: out of memory: the program needs more than this process may have\n"
    )
    assert sorted(tmp_path.iterdir()) == [chain]
