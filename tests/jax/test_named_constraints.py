"""Constraints on values by what a program calls them: as if it had a with_sharding_constraint."""

import inspect
import json
import pathlib
import subprocess
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import oracle
import pytest
import tpusim
from jax.ad_checkpoint import checkpoint_name
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

CONFIG = "v5e-4x2"
LAYERS = 2
SPECS = {"up": P(None, "model"), "down": P("model", None)}


def program(
    mesh: Any, spec: P | None, width: int, dtype: Any = jnp.bfloat16, train: bool = False
) -> tuple[Any, tuple[Any, ...]]:
    """Blocks with weights that "model" splits, and a constraint where each has its result."""

    def block(x: jax.Array, w: dict[str, jax.Array]) -> jax.Array:
        y = jax.nn.gelu(x @ w["up"]) @ w["down"]
        with jax.named_scope("residual"):
            y += x  # the sum
        y = checkpoint_name(y, "out")
        if spec is not None:
            y = jax.lax.with_sharding_constraint(y, NamedSharding(mesh, spec))  # the constraint
        return y

    def forward(weights: list[dict[str, jax.Array]], x: jax.Array) -> jax.Array:
        for w in weights:
            x = block(x, w)
        return x

    def loss(weights: list[dict[str, jax.Array]], x: jax.Array) -> jax.Array:
        return jnp.mean(jnp.square(forward(weights, x).astype(jnp.float32)))

    def array(shape: tuple[int, ...], spec: P) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, spec))

    shapes = {"up": (width, 4 * width), "down": (4 * width, width)}
    weights = [{name: array(shapes[name], SPECS[name]) for name in SPECS} for _ in range(LAYERS)]
    x = array((8, width // 2, width), P("data", None, None))
    of_weights = [{name: NamedSharding(mesh, SPECS[name]) for name in SPECS}] * LAYERS
    step = jax.jit(jax.grad(loss), out_shardings=of_weights) if train else jax.jit(forward)
    return step, (weights, x)


def exported(file: pathlib.Path, spec: P | None) -> pathlib.Path:
    function, arguments = program(
        AbstractMesh((2, 4), ("data", "model"), (AxisType.Auto,) * 2), spec, 1024
    )
    tpusim.export(function, *arguments, path=file, config=CONFIG)
    return file


def answer(binary: str, command: str, file: pathlib.Path, *words: str) -> str:
    done = subprocess.run(
        [binary, command, str(file), *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def line_of(comment: str) -> str:
    lines, first = inspect.getsourcelines(program)
    (at,) = (n for n, line in enumerate(lines) if line.endswith(f"# {comment}\n"))
    return f"{pathlib.Path(__file__).name}:{first + at}"


@pytest.mark.parametrize("spec", [P(None, "model"), P("data", "model"), P()], ids=str)
@pytest.mark.parametrize("value", ["out", "o?t", "residual/add", "line"])
def test_as_exported_with_the_constraint(
    spec: P, value: str, binary: str, tmp_path: pathlib.Path
) -> None:
    asked = exported(tmp_path / "asked.pb", P("data") if value == "line" else None)
    with_it = exported(tmp_path / "with_it.pb", spec)
    named = line_of("the constraint") if value == "line" else value
    stated = f"{named}=P{tuple(spec)}"
    actual = json.loads(answer(binary, "run", asked, "--json", "--constrain", stated))
    expected = json.loads(answer(binary, "run", with_it, "--json"))
    for field in ("step_time_ns", "peak_hbm_bytes", "flops"):
        assert actual[field] == expected[field], field


SMALL = ["--axes=data,model", "--fix=weights*'up']=P(None, 'model')", "--fix=x=P('data')"]


def test_a_search_finds_the_constraint(binary: str, tmp_path: pathlib.Path) -> None:
    file = exported(tmp_path / "step.pb", None)

    def found(*words: str) -> dict[str, Any]:
        options = [*SMALL, "--seconds=0", "--json", *words]
        (slice_,) = json.loads(answer(binary, "shard", file, *options))["slices"]
        return slice_

    without = found()
    best = found("--may-constrain", "out")
    everything = found("--may-constrain", "out", "--all")
    assert best["gap"] == 0
    assert best["found"][0]["step_time_ns"] == everything["found"][0]["step_time_ns"]
    assert best["simulated"] < everything["simulated"]
    # Between blocks "model" splits what no argument has it for: sums are scattered, not repeated.
    assert best["found"][0]["step_time_ns"] < 0.95 * without["found"][0]["step_time_ns"]
    assert ["model"] in [best["found"][0]["decisions"].get(f"out {d}") for d in (1, 2)]
    assert f"{line_of('the sum')}: jax.lax.with_sharding_constraint(" in best["python"]
    run = ["--config", CONFIG, *best["found"][0]["options"], "--json"]
    report = json.loads(answer(binary, "run", file, *run))
    assert report["step_time_ns"] == best["found"][0]["step_time_ns"]


def test_in_python(tmp_path: pathlib.Path) -> None:
    file = exported(tmp_path / "step.pb", None)
    fix = {"weights*'up']": P(None, "model"), "x": P("data")}
    found = tpusim.shard(str(file), axes=["data", "model"], fix=fix, may_constrain="out", seconds=0)
    assert {"out 1", "out 2"} & found.best.decisions.keys()
    assert {constraint.scope.split("/")[-1] for constraint in found.best.constraints} == {"add"}


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> tuple[pathlib.Path, Any, Any]:
    """The gradients of narrow blocks, with arguments and results of each CPU device."""
    file = tmp_path_factory.mktemp("narrow") / "step.pb"
    mesh = Mesh(np.array(jax.devices()).reshape(2, 4), ("data", "model"))
    function, arguments = program(mesh, None, 64, jnp.float32, train=True)
    tpusim.export(function, *arguments, path=file, config=CONFIG)
    return (file, *oracle.reference(function, arguments))


@pytest.mark.parametrize(
    "spec",
    [P(), P("data", "model"), P(None, ("model", "data")), P("model", None, "data"), P("model")],
    ids=str,
)
def test_computes_the_same(
    spec: P, narrow: tuple[pathlib.Path, Any, Any], binary: str, tmp_path: pathlib.Path
) -> None:
    file, inputs, expected = narrow
    module = tmp_path / "module.pb"
    words = ["--emit", "executable", "--passes", oracle.EXACT_PASSES, "-o", str(module)]
    answer(binary, "compile", file, f"--constrain=out=P{tuple(spec)}", *words)
    actual = oracle.run(oracle.hlo_module(module.read_bytes()), inputs)
    oracle.check(actual, expected)


def test_what_cannot_be_constrained_is_one_line(binary: str, tmp_path: pathlib.Path) -> None:
    file = exported(tmp_path / "step.pb", None)
    for value, said in (
        ("aut", "no array of the program has the name 'aut', the nearest is 'out'"),
        ("*", "what is constrained together has as many"),
    ):
        done = subprocess.run(
            [binary, "shard", str(file), "--may-constrain", value], capture_output=True, text=True
        )
        assert done.returncode == 1
        assert done.stderr.startswith(f"tpusim: error: --may-constrain {value}: ")
        assert said in done.stderr
        assert done.stderr.count("\n") == 1
