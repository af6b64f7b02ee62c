"""Scripts that train large models are listed and captured in seconds, in little memory."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

import tpusim
from resources_used import measured

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPTS = pathlib.Path(__file__).parent / "scripts"


def exported(folder: pathlib.Path, *arguments: str) -> tuple[str, str, float, float]:
    """Returns both streams that it prints, its processor seconds, and the most bytes."""
    path = str(ROOT / "tools" / "python")
    environment = {k: v for k, v in os.environ.items() if k not in ("XLA_FLAGS", "JAX_PLATFORMS")}
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        try:
            used = measured(
                sys.executable,
                "-m",
                "tpusim.export",
                *arguments,
                cwd=folder,
                env={**environment, "PYTHONPATH": path},
                stdout=out,
                stderr=err,
            )
        except subprocess.CalledProcessError:
            err.seek(0)
            raise AssertionError(err.read()) from None
        out.seek(0)
        err.seek(0)
        return out.read(), err.read(), *used


def test_a_billion_parameters_trained_for_ten_steps(tmp_path: pathlib.Path):
    said, errors, seconds, memory = exported(tmp_path, str(SCRIPTS / "train_1b.py"), "--list")
    assert seconds < 15, seconds
    assert memory < 10**9, memory
    lines = said.splitlines()
    # 32,000 x 2,048 words, 2,048 of the last norm; a layer has 4 of 2,048^2 + 2,048 for attention,
    # 2 x 2,048 x 8,192 + 10,240 for the network, 2 x 2,048 of norms.
    parameters = 32_000 * 2048 + 2048 + 18 * (4 * 2048 * 2049 + 2**25 + 14_336)
    assert lines[0] == f"{parameters} parameters"
    steps = [n for n, line in enumerate(lines) if line.startswith("train_step (")]
    # Said when it is called, before the script goes on.
    assert steps == [1]
    assert re.search(r"train_step \(.*train_1b\.py:43\): float32\[", lines[1])
    assert lines[2:12] == [f"loss of step {n}: 0.000" for n in range(10)]
    assert re.search(r"evaluate \(.*train_1b\.py:\d+\): float32\[.*and \d+ more$", lines[12])
    assert lines[13] == "evaluated 0.0"
    assert re.fullmatch(r"called again: train_step \(.*\) 10 times", lines[14])
    assert errors == ""


def test_a_script_that_stops_by_its_loss(tmp_path: pathlib.Path):
    script = str(SCRIPTS / "early_stop.py")
    said, errors, _, memory = exported(tmp_path, script, "--config", "v5e-4x2", "--list")
    # 1 GiB of parameters, twice that in the state.
    assert memory < 10**9, memory
    initialise, step, stopped, losses, evaluate, metrics, norm = said.splitlines()
    assert re.fullmatch(r"initial \(.*early_stop\.py:17\): key<fry>\[\]", initialise)
    place = r"train_step \(.*early_stop\.py:\d+\)"
    down, up = "float32[32768,4096]@P(None, 'model')", "float32[4096,32768]@P(None, 'model')"
    assert re.match(place + re.escape(f": {down}, {up}, int32[], {down}, {up}"), step), step
    assert step.endswith("float32[64,4096]@P('data',)")
    assert (stopped, losses) == ("stopped after 1", "losses [0.] 0.0")
    assert evaluate.startswith("evaluate (")
    assert f"{down}, {up}" in evaluate
    assert (metrics, norm) == ("{'count': 0, 'mean': 0.0}", "norm 0.0")
    assert re.fullmatch(
        r"tpusim\.export: warning: .*early_stop\.py:\d+ decides by a value that a jitted function "
        r"computes; it is not executed, and the script sees True, as if its results were zeros\n",
        errors,
    )


def test_a_function_after_the_training(tmp_path: pathlib.Path):
    script = str(SCRIPTS / "early_stop.py")
    options = ("--config", "v5e-4x2", "--function", "evaluate", "-o", "w.pb")
    said, _, _, memory = exported(tmp_path, script, *options)
    assert memory < 10**9, memory
    assert said.splitlines()[-1] == "w.pb: evaluate, 8 partitions (data=4 x model=2)"
    assert tpusim.Workload.load(tmp_path / "w.pb").num_partitions == 8


SAVES = """
import os
import jax, jax.numpy as jnp
import orbax.checkpoint as ocp

@jax.jit
def step(x):
    return x * 2

folder = os.path.abspath("trained")
manager = ocp.CheckpointManager(folder, options=ocp.CheckpointManagerOptions(max_to_keep=1))
x = jnp.ones(3)
for n in range(3):
    x = step(x)
    print("saved", manager.save(n, args=ocp.args.StandardSave({"x": x})))
with ocp.StandardCheckpointer() as checkpointer:
    checkpointer.save(os.path.abspath("last"), {"x": x})
manager.wait_until_finished()
"""


def test_checkpoints_are_not_written(tmp_path: pathlib.Path):
    (tmp_path / "train.py").write_text(SAVES)
    said, errors, *_ = exported(tmp_path, "train.py", "--list")
    assert said.splitlines()[1:] == ["saved False"] * 3 + [
        "called again: step (train.py:6) 3 times"
    ]
    for line in (15, 17):
        assert f"train.py:{line} saves a checkpoint: nothing is written, since no" in errors
    assert list((tmp_path / "trained").iterdir()) == []
    assert not (tmp_path / "last").exists()


def test_a_reader_that_leaves(tmp_path: pathlib.Path):
    """A reader that leaves early, like `... | head -1`."""
    (tmp_path / "train.py").write_text("for n in range(100_000):\n    print(n)\n")
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "tpusim.export", "train.py", "--list"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "tools" / "python")},
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")


ENDS = """
import atexit, threading, time
import jax, jax.numpy as jnp

@jax.jit
def step(x):
    return x * 2

y = step(jnp.ones(3))
atexit.register(lambda: print("at exit", y.sum()))
threading.Thread(target=time.sleep, args=(600,)).start()
"""


def test_nothing_is_left_to_run_at_the_end(tmp_path: pathlib.Path):
    (tmp_path / "train.py").write_text(ENDS)
    said, errors, *_ = exported(tmp_path, "train.py", "--list")
    assert (said, errors) == ("step (train.py:5): float32[3]\n", "")
