"""The shell side: `python -m tpusim.export`, and `tpusim.run` on the binary."""

import json
import os
import pathlib
import stat
import subprocess
import sys

import pytest
import tpusim
from tpusim.slices import devices_of

ROOT = pathlib.Path(__file__).resolve().parents[2]
MATMUL = ROOT / "workloads" / "examples" / "matmul_square.pb.gz"

SCRIPT = """
import sys
import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P

@jax.jit
def step(x):
    return x * 2

@jax.jit
def evaluate(x):
    return x.sum()

def arguments():
    mesh = jax.make_mesh((len(jax.devices()),), ("x",))
    sharding = NamedSharding(mesh, P("x"))
    return (jax.ShapeDtypeStruct((1024,), jnp.float32, sharding=sharding),)

def pair():
    return step, arguments()

def with_keywords():
    return (lambda x, y: x + y), arguments(), {"y": 1.0}

def wrong():
    return 3

if __name__ == "__main__":
    print("arguments", sys.argv[1:])
    print("loss", evaluate(jnp.ones(4)))
    step(jnp.ones(4))
"""

# Lines that define its functions: those of their decorators.
STEP, EVALUATE = (
    SCRIPT[: SCRIPT.index(f"@jax.jit\ndef {name}")].count("\n") + 1 for name in ("step", "evaluate")
)


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "script.py").write_text(SCRIPT)
    return tmp_path


def command(folder: pathlib.Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the exporter as a user would, without the settings of this test process."""
    environment = {k: v for k, v in os.environ.items() if k not in ("XLA_FLAGS", "JAX_PLATFORMS")}
    environment["PYTHONPATH"] = str(ROOT / "tools" / "python")
    return subprocess.run(
        [sys.executable, "-m", "tpusim.export", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_function_of_a_script(folder: pathlib.Path):
    done = command(folder, "script.py:pair", "--config", "v5e-4x4", "-o", "w.pb")
    assert done.stderr == ""
    assert done.stdout == "w.pb: pair, 16 partitions (x=16)\n"
    workload = tpusim.Workload.load(folder / "w.pb")
    assert workload.config == "v5e-4x4"
    assert workload.num_partitions == 16


def test_keyword_arguments_and_device_count(folder: pathlib.Path):
    done = command(folder, "script.py:with_keywords", "--devices", "4")
    assert done.stdout == "workload.pb: with_keywords, 4 partitions (x=4)\n", done.stderr


def test_whole_script(folder: pathlib.Path):
    done = command(folder, "script.py", "--function", "step", "-o", "w.pb", "--", "--batch", "3")
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "arguments ['--batch', '3']",
        "loss 0.0",  # Not executed.
        f"captured step (script.py:{STEP}); called before: evaluate (script.py:{EVALUATE})",
        "w.pb: step, 1 partitions (no mesh)",
    ]


def test_the_first_function_is_not_taken_silently(folder: pathlib.Path):
    done = command(folder, "script.py", "-o", "w.pb")
    assert done.stdout.splitlines()[-2:] == [
        f"captured evaluate (script.py:{EVALUATE}), the first jitted function that is called; "
        "--list shows all",
        "w.pb: evaluate, 1 partitions (no mesh)",
    ]


def test_list_of_functions(folder: pathlib.Path):
    done = command(folder, "script.py", "--list")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "arguments []",
        f"evaluate (script.py:{EVALUATE}): float32[4]",
        "loss 0.0",
        f"step (script.py:{STEP}): float32[4]",
    ]
    assert not (folder / "workload.pb").exists()
    done = command(folder, "script.py:pair", "--list")
    assert done.returncode == 1
    assert "leave out the function" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.py:pair"], "missing.py: no such file"),
        (["script.py:missing"], "script.py has no function 'missing'"),
        (["script.py:pare"], "script.py has no function 'pare'; did you mean 'pair'?"),
        (["script.py", "--function", "stepp"], "of 'stepp' (did you mean 'step'?), but of"),
        (["script.py:wrong"], "must return (function, arguments)"),
        (["script.py", "--function", "missing"], "without a call of 'missing'"),
        (["script.py:pair", "-o", "no/such/folder.pb"], "No such file or directory"),
    ],
)
def test_errors_are_one_line_and_leave_no_file(folder: pathlib.Path, arguments, message: str):
    done = command(folder, *arguments)
    assert done.returncode == 1
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert [p.name for p in folder.iterdir() if p.suffix == ".pb"] == []


def test_figures_on_data_are_stated(folder: pathlib.Path):
    options = ("--trip-count", "while*=4", "--kernel-cost", "flash*=2e9,16")
    done = command(folder, "script.py:pair", *options, "-o", "w.pb")
    assert done.returncode == 0, done.stderr
    workload = tpusim.Workload.load(folder / "w.pb")
    assert workload.trip_counts == (tpusim.TripCount("while*", 4),)
    assert workload.kernels == (
        tpusim.KernelCost("flash*", flops=2_000_000_000, bytes_accessed=16),
    )
    for wrong in (("--trip-count", "while"), ("--kernel-cost", "a=1"), ("--kernel-cost", "=1,2")):
        done = command(folder, "script.py:pair", *wrong, "-o", "wrong.pb")
        assert done.returncode == 2
        assert wrong[1] in done.stderr


def test_a_question_for_the_platform_is_a_line(folder: pathlib.Path):
    (folder / "asks.py").write_text(
        "import jax\nfast = jax.default_backend() == 'tpu'\n"
        "def pair():\n    return (lambda x: x * 2 if fast else x), (1.0,)\n"
        "if __name__ == '__main__':\n    jax.jit(pair()[0])(1.0)\n"
    )
    done = command(folder, "asks.py", "--config", "v5e-1x1", "-o", "w.pb")
    assert done.returncode == 0
    (line,) = done.stderr.splitlines()
    assert line.startswith("tpusim.export: warning: asks.py:2 asked for the platform and saw 'cpu'")
    # A function that describes what to export sees TPUs.
    done = command(folder, "asks.py:pair", "--config", "v5e-1x1", "-o", "w.pb")
    assert (done.returncode, done.stderr) == (0, "")


def test_examples_can_be_exported_by_name(tmp_path: pathlib.Path):
    target = tmp_path / "w.pb"
    done = command(ROOT, "workloads/examples/matmul.py:matmul_square", "-o", str(target))
    assert done.returncode == 0, done.stderr
    assert tpusim.Workload.load(target).mesh == tpusim.Workload.load(MATMUL).mesh


@pytest.mark.parametrize(
    ("config", "devices"),
    [
        ("v5e-4x2", 8),
        ("v5p-4x4x4", 64),
        ("v4-4x4x8_twisted", 128),
        ("v7x-2x2x1", 8),  # two devices per chip
        ("8i-1x1", 2),
        ("2x(v5e-16x16)", 512),
        # Names of Cloud TPU: chips; TensorCores, of which a device of v4 and v5p has two.
        ("v5litepod-8", 8),
        ("v6e-8", 8),
        ("v4-32", 16),
        ("2x(v5p-128)", 128),
        ("v2-8", 8),
        ("a.json", None),
    ],
)
def test_devices_of_a_slice(config: str, devices: int | None):
    assert devices_of(config) == devices


def test_devices_of_every_chip():
    for path in (ROOT / "configs" / "chips").glob("*.json"):
        if path.stem != "schema":
            devices = json.loads(path.read_text())["chip"]["devices"]["value"]
            assert devices_of(f"{path.stem}-1x1") == devices, path.stem


def fake_binary(folder: pathlib.Path, body: str) -> str:
    """An executable shell script in place of the simulator."""
    path = folder / "tpusim"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_run_passes_its_options_on(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch):
    # The report echoes the command line; $4 is the path behind --report.
    body = """printf '{"command": "%s"}' "$*" > "$4" """
    monkeypatch.setenv("TPUSIM_BINARY", fake_binary(tmp_path, body))
    report = tpusim.run(
        "w.pb", config="v5e-4x2", settings={"a.b": 2}, trace="t", options=["--slow"]
    )
    words = report["command"].split()
    assert words[:3] == ["run", "w.pb", "--report"]
    assert words[4:] == [
        "--quiet",
        "--config=v5e-4x2",
        "--set=a.b=2",
        "--trace=t",
        "--slow",
    ]


def test_run_reports_errors(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch):
    body = "echo 'w.pb: file is empty' >&2; exit 1"
    monkeypatch.setenv("TPUSIM_BINARY", fake_binary(tmp_path, body))
    with pytest.raises(tpusim.Error, match="file is empty"):
        tpusim.run("w.pb")


def test_run_simulates():
    report = tpusim.run(MATMUL, config="v5e-4x2")
    assert report["schema"] == "tpusim.report/1"
    # No step beats its bounds.
    assert report["step_time_ns"] >= max(report["bound_ns"].values()) > 0
