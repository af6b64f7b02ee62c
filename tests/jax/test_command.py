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


def command(
    folder: pathlib.Path, *arguments: str, path: pathlib.Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs the exporter as a user would, without the settings of this test process.

    `path` is one more folder with packages.
    """
    environment = {k: v for k, v in os.environ.items() if k not in ("XLA_FLAGS", "JAX_PLATFORMS")}
    folders = [ROOT / "tools" / "python", *([path] if path else [])]
    environment["PYTHONPATH"] = os.pathsep.join(map(str, folders))
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
        f"captured step (script.py:{STEP}); called besides: evaluate (script.py:{EVALUATE})",
        "w.pb: step, 1 partitions (no mesh)",
    ]


def test_the_step_is_found_by_what_it_computes(folder: pathlib.Path):
    """The step is neither the first function nor the one that is called most often."""
    (folder / "train.py").write_text(
        "import jax, jax.numpy as jnp\n"
        "init = jax.jit(lambda key: jax.random.normal(key, (256, 256)))\n"
        "def loss(w, x):\n    return jnp.sum((x @ w) ** 2)\n"
        "@jax.jit\ndef train_step(w, x):\n    return w - jax.grad(loss)(w, x)\n"
        "evaluate = jax.jit(loss)\n"
        "w = init(jax.random.key(0))\n"
        "x = jnp.ones((512, 256))\n"
        "for step in range(10**9):\n"
        "    evaluate(w, x), evaluate(w, x)\n"
        "    w = train_step(w, x)\n"
    )
    done = command(folder, "train.py", "-o", "w.pb")
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "captured train_step (train.py:5), which computes most; called besides: <lambda> "
        "(train.py:2), loss (train.py:3)",
        "w.pb: train_step, 1 partitions (no mesh)",
    ]


@pytest.mark.parametrize("end", ["", "\nimport sys\nsys.exit()"])
def test_a_step_that_is_called_once_is_found_at_the_end(folder: pathlib.Path, end: str):
    with (folder / "script.py").open("a") as script:
        script.write(f"    print('after'){end}\n".replace("\n", "\n    "))
    done = command(folder, "script.py", "-o", "w.pb")
    assert done.stderr == ""
    assert done.stdout.splitlines()[-3:] == [
        "after",
        f"captured step (script.py:{STEP}), which computes most; called besides: evaluate "
        f"(script.py:{EVALUATE})",
        "w.pb: step, 1 partitions (no mesh)",
    ]


def test_a_script_that_fails_names_what_it_has_called(folder: pathlib.Path):
    with (folder / "script.py").open("a") as script:
        script.write("    raise RuntimeError('no data')\n")
    done = command(folder, "script.py", "-o", "w.pb")
    assert done.returncode == 1
    assert "RuntimeError: no data" in done.stderr.splitlines()
    assert done.stderr.splitlines()[-1] == (
        f"tpusim.capture: called before: evaluate (script.py:{EVALUATE}), step (script.py:{STEP}); "
        "function= (--function) names one of these to take it at its first call"
    )
    assert not (folder / "w.pb").exists()


def test_a_module_is_run_as_python_runs_it(folder: pathlib.Path):
    package = folder / "trainer"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "layers.py").write_text("def twice(x):\n    return x * 2\n")
    (package / "train.py").write_text(
        "import sys\nimport jax\nimport jax.numpy as jnp\nfrom .layers import twice\n"
        "def main(argv):\n    print(argv[1:], __name__, __package__)\n"
        "    jax.jit(lambda x: twice(x))(jnp.ones(8))\n"
        "if __name__ == '__main__':\n    main(sys.argv)\n"
    )
    (package / "__main__.py").write_text("from trainer import train\ntrain.main([0, 1])\n")
    done = command(folder, "-m", "trainer.train", "-o", "w.pb", "--", "--batch=3", "a=b")
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "['--batch=3', 'a=b'] __main__ trainer",
        "captured <lambda> (trainer/train.py:7), the only jitted function",
        "w.pb: <lambda>, 1 partitions (no mesh)",
    ]
    done = command(folder, "-m", "trainer", "--list")
    assert done.stdout.splitlines() == [
        "[1] trainer.train trainer",
        "<lambda> (trainer/train.py:7): float32[8]",
    ]
    for wrong, says in (("trainer.tran", "no such module"), ("no.such", "No module named 'no'")):
        done = command(folder, "-m", wrong)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith(f"tpusim.export: -m {wrong}: ")
        assert says in done.stderr


def test_operations_have_lines_of_the_package_that_is_run(folder: pathlib.Path):
    """An installed package that is run is the user's own; what else is installed is not."""
    site = folder / "site"
    for name, text in {
        "trainer/layers.py": "import library\ndef apply(x):\n    return library.twice(x)\n",
        "trainer/train.py": "import jax\nfrom trainer import layers\n"
        "jax.jit(layers.apply)(jax.numpy.ones((8, 128)))\n",
        "library.py": "def twice(x):\n    return x * 2\n",
        "trainer-1.dist-info/METADATA": "Name: trainer\nVersion: 1\n",
        "trainer-1.dist-info/RECORD": "trainer/layers.py,,\ntrainer/train.py,,\nlibrary.py,,\n",
    }.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text)
    done = command(folder, "-m", "trainer.train", "-o", "w.pb", path=site)
    assert done.returncode == 0, done.stderr
    library = tpusim.Workload.load(folder / "w.pb").library_files
    assert "library.py" in library
    assert not [file for file in library if file.startswith("trainer")]
    assert {"<frozen runpy>"} < set(library)


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


def test_scripts_see_the_chip_from_their_first_line(folder: pathlib.Path):
    """A script that has no other path than that of TPUs runs, is listed and is exported."""
    (folder / "asks.py").write_text(
        "import jax\nimport jax.numpy as jnp\n"
        "from jax.experimental import pallas as pl\n"
        "if jax.default_backend() != 'tpu' or 'v5 lite' not in jax.devices()[0].device_kind:\n"
        "    raise NotImplementedError('not on ' + jax.default_backend())\n"
        "def kernel(x, y):\n    y[...] = x[...] * 2\n"
        "def step(x):\n"
        "    jax.debug.print('{}', x[0, 0])\n"
        "    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)\n"
        "def pair():\n    return step, (jnp.ones((8, 128)),)\n"
        "if __name__ == '__main__':\n"
        "    compiled = jax.jit(step).lower(jnp.ones((8, 128))).compile()\n"
        "    print(compiled.memory_analysis().temp_size_in_bytes)\n"
        "    print(compiled(jnp.ones((8, 128)))[0, 0])\n"
    )
    listed = command(folder, "asks.py", "--config", "v5e-1x1", "--list")
    assert (listed.returncode, listed.stderr) == (0, "")
    assert listed.stdout.splitlines() == ["step (asks.py:8): float32[8,128]", "0", "0.0"]
    for program in ("asks.py", "asks.py:pair"):
        done = command(folder, program, "--config", "v5e-1x1", "-o", "w.pb")
        assert (done.returncode, done.stderr) == (0, "")
        assert b"tpu_custom_call" in tpusim.Workload.load(folder / "w.pb").hlo_module


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
        ("v5litepod-4x4", 16),
        ("tpu7x-128", 128),  # devices
        ("v7x-8", 8),
        ("tpu7x:4x4x4", 128),
        ("tpu7x-2x2x1", 8),
        ("tpu7x-standard-4t", 8),
        ("ct5p-hightpu-4t", 4),
        ("ct6e-standard-8t", 8),
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
