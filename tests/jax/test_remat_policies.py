"""`--remat` makes of a program that computes all again what JAX makes of it under a policy."""

import collections
import itertools
import json
import pathlib
import re
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

NAMES = ("context", "hidden")
POLICIES = ("saved", "offloaded", "recomputed")
LAYERS = 3
CONFIG = "v5e-4x2"
SPECS = {
    "query": P(None, "data", "model"),
    "key": P(None, "data", "model"),
    "out": P(None, "model", "data"),
    "up": P(None, "data", "model"),
    "down": P(None, "model", "data"),
}


def layer(x: jax.Array, w: dict[str, jax.Array]) -> jax.Array:
    """Attention with two heads, whose values are its keys, and an MLP."""

    def heads(y: jax.Array) -> jax.Array:
        return y.reshape(*y.shape[:2], 2, -1)

    query, key = heads(x @ w["query"]), heads(x @ w["key"])
    weights = jax.nn.softmax(jnp.einsum("bshd,bthd->bhst", query, key) / 8.0, axis=-1)
    context = jnp.einsum("bhst,bthd->bshd", weights.astype(x.dtype), key)
    x += checkpoint_name(context, "context").reshape(*x.shape[:2], -1) @ w["out"]
    return x + checkpoint_name(jax.nn.gelu(x @ w["up"]), "hidden") @ w["down"]


def program(
    mesh: Any, policy: Any, scan: bool, width: int, dtype: Any = jnp.float32
) -> tuple[Any, tuple[Any, ...]]:
    """A step of gradient descent of such layers, and its arguments."""
    again = jax.checkpoint(layer, policy=policy, prevent_cse=not scan)
    shapes = {
        **dict.fromkeys(("query", "key", "out"), (LAYERS, width, width)),
        "up": (LAYERS, width, 2 * width),
        "down": (LAYERS, 2 * width, width),
    }

    def array(shape: tuple[int, ...], spec: P) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, spec))

    def loss(weights: dict[str, jax.Array], x: jax.Array) -> jax.Array:
        if scan:
            x, _ = jax.lax.scan(lambda x, w: (again(x, w), None), x, weights)
        else:
            for i in range(LAYERS):
                x = again(x, {name: w[i] for name, w in weights.items()})
        return jnp.mean(jnp.square(x.astype(jnp.float32)))

    def step(weights: dict[str, jax.Array], x: jax.Array) -> dict[str, jax.Array]:
        gradients = jax.grad(loss)(weights, x)
        return jax.tree.map(lambda w, g: w - (g * 8).astype(w.dtype), weights, gradients)

    weights = {name: array(shapes[name], spec) for name, spec in SPECS.items()}
    out = {name: NamedSharding(mesh, spec) for name, spec in SPECS.items()}
    x = array((8, width // 2, width), P("data", None, None))
    return jax.jit(step, out_shardings=out), (weights, x)


def policy_of(choice: dict[str, str]) -> Any:
    """Returns the policy of JAX; None keeps nothing."""
    names = {p: [n for n in choice if choice[n] == p] for p in POLICIES}
    policies = jax.checkpoint_policies
    if not names["offloaded"]:
        return policies.save_only_these_names(*names["saved"]) if names["saved"] else None
    return policies.save_and_offload_only_these_names(
        names_which_can_be_saved=names["saved"],
        names_which_can_be_offloaded=names["offloaded"],
        offload_src="device",
        offload_dst="pinned_host",
    )


CHOICES = [dict(zip(NAMES, p, strict=True)) for p in itertools.product(POLICIES, repeat=2)]


def options_of(choice: dict[str, str]) -> list[str]:
    return [word for name in choice for word in ("--remat", f"{name}={choice[name]}")]


def answer(binary: str, command: str, file: pathlib.Path, *words: str) -> str:
    done = subprocess.run(
        [binary, command, str(file), *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def products(binary: str, file: pathlib.Path, *words: str) -> collections.Counter[str]:
    """The matrix products of one device, by their results and what they sum over."""
    text = answer(binary, "compile", file, *words, "--emit", "partitioned")
    return collections.Counter(
        f"{shape} {dims}"
        for shape, dims in re.findall(
            r" = (\S+?)\{\S* dot\(.*?\), (.*?_contracting_dims=\S+)", text
        )
    )


def test_a_search_for_shardings_finds_policies(
    everything_again: pathlib.Path, binary: str, scan: bool
):
    fixed = [f"--fix={name}={spec}" for name, spec in (("x", "P('data')"), ("*/up", "P(None)"))]
    words = ["--mesh=data=4,model=2", *fixed, "--all", "--seconds=60", "--jobs=1", "--json"]
    (found,) = json.loads(answer(binary, "shard", everything_again, *words))["slices"]
    seen = {tuple(sorted(row.get("remat", {}).items())) for row in found["found"]}
    # Two names are computed again, saved or off-loaded.
    assert len(seen) == 9
    best = found["found"][0]
    run = ["--config", CONFIG, *best["options"], "--json"]
    report = json.loads(answer(binary, "run", everything_again, *run))
    assert report["step_time_ns"] == best["step_time_ns"]
    assert ("checkpoint_policies" in found["python"]) == ("remat" in best)
    assert all(f'"{name}"' in found["python"] for name in best.get("remat", {}))


def id_of(choice: dict[str, str]) -> str:
    return "-".join(choice.values())


@pytest.fixture(scope="module", params=[True, False], ids=["scan", "unrolled"])
def scan(request: pytest.FixtureRequest) -> bool:
    return request.param


@pytest.fixture(scope="module")
def everything_again(scan: bool, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Wide layers over 8 devices, exported once."""
    file = tmp_path_factory.mktemp("again") / "step.pb"
    mesh = AbstractMesh((4, 2), ("data", "model"), (AxisType.Auto,) * 2)
    function, arguments = program(mesh, None, scan, 1024, jnp.bfloat16)
    tpusim.export(function, *arguments, path=file, config=CONFIG)
    return file


@pytest.mark.parametrize("choice", CHOICES, ids=id_of)
def test_as_exported_with_the_policy(
    choice: dict[str, str],
    everything_again: pathlib.Path,
    scan: bool,
    binary: str,
    tmp_path: pathlib.Path,
) -> None:
    file = tmp_path / "step.pb"
    mesh = AbstractMesh((4, 2), ("data", "model"), (AxisType.Auto,) * 2)
    function, arguments = program(mesh, policy_of(choice), scan, 1024, jnp.bfloat16)
    tpusim.export(function, *arguments, path=file, config=CONFIG)
    options = options_of(choice)
    assert products(binary, everything_again, *options) == products(binary, file)
    expected = json.loads(answer(binary, "run", file, "--json"))
    actual = json.loads(answer(binary, "run", everything_again, "--json", *options))
    # Copies from the host may come in any order, and some orders take more memory.
    all_on_host = not scan and set(choice.values()) == {"offloaded"}
    for field, within in (
        ("step_time_ns", 0.01),
        ("flops", 0.001),
        ("peak_hbm_bytes", 0.08 if all_on_host else 0.01),
    ):
        assert actual[field] == pytest.approx(expected[field], rel=within), field


@pytest.fixture(scope="module")
def narrow(scan: bool, tmp_path_factory: pytest.TempPathFactory) -> tuple[pathlib.Path, Any, Any]:
    """Narrow layers, exported once, with arguments and results of each CPU device."""
    file = tmp_path_factory.mktemp("narrow") / "step.pb"
    mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"))
    function, arguments = program(mesh, None, scan, 64)
    tpusim.export(function, *arguments, path=file, config=CONFIG)
    return (file, *oracle.reference(function, arguments))


@pytest.mark.parametrize("choice", CHOICES, ids=id_of)
def test_computes_the_same(
    choice: dict[str, str],
    narrow: tuple[pathlib.Path, Any, Any],
    binary: str,
    tmp_path: pathlib.Path,
) -> None:
    file, inputs, expected = narrow
    module = tmp_path / "module.pb"
    words = ["--emit", "executable", "--passes", oracle.EXACT_PASSES, "-o", str(module)]
    answer(binary, "compile", file, *options_of(choice), *words)
    actual = oracle.run(oracle.hlo_module(module.read_bytes()), inputs)
    oracle.check(actual, expected)


def refusal(binary: str, file: pathlib.Path, *words: str) -> str:
    done = subprocess.run(
        [binary, "run", str(file), *words], capture_output=True, text=True, check=False
    )
    assert done.returncode in (1, 2)
    return done.stderr


def test_names_are_listed(everything_again: pathlib.Path, binary: str) -> None:
    listed = answer(binary, "compile", everything_again, "--emit", "names").splitlines()
    # 3 layers, 8 sequences of 512 in bfloat16: heads of 1024 together, a hidden width of 2048.
    assert [line.split() for line in listed[1:]] == [
        ["context", "3", str(3 * 8 * 512 * 1024 * 2), "3", "recomputed"],
        ["hidden", "3", str(3 * 8 * 512 * 2048 * 2), "3", "recomputed"],
    ]


def test_unknown_names_are_refused(everything_again: pathlib.Path, binary: str) -> None:
    said = refusal(binary, everything_again, "--remat", "contexts=saved")
    assert said == (
        "tpusim: error: --remat contexts=saved: the program has no value of that name; its names "
        "are context, hidden\n"
    )
    assert "is not NAME=saved" in refusal(binary, everything_again, "--remat", "context=kept")


def test_what_is_saved_stays_saved(scan: bool, binary: str, tmp_path: pathlib.Path) -> None:
    file = tmp_path / "step.pb"
    mesh = AbstractMesh((4, 2), ("data", "model"), (AxisType.Auto,) * 2)
    policy = policy_of({"context": "saved", "hidden": "recomputed"})
    function, arguments = program(mesh, policy, scan, 64)
    tpusim.export(function, *arguments, path=file, config=CONFIG)
    said = refusal(binary, file, "--remat", "context=recomputed")
    assert "has 'context' saved already; export it with full rematerialisation" in said
    # The other one can be kept as well.
    both = json.loads(answer(binary, "run", file, "--json", "--remat", "*=saved"))
    policy = policy_of(dict.fromkeys(NAMES, "saved"))
    function, arguments = program(mesh, policy, scan, 64)
    expected = tpusim.simulate(function, *arguments, config=CONFIG)
    assert both["step_time_ns"] == pytest.approx(expected.step_time_ns, rel=0.01)


def test_names_cost_nothing(scan: bool, tmp_path: pathlib.Path) -> None:
    mesh = AbstractMesh((4, 2), ("data", "model"), (AxisType.Auto,) * 2)
    function, arguments = program(mesh, None, scan, 64)
    named = tpusim.export(function, *arguments, path=None, config=CONFIG)
    lowered = function.trace(*arguments).lower(lowering_platforms=("tpu",))
    file = tmp_path / "plain.pb"
    file.write_bytes(lowered.compiler_ir("hlo").as_serialized_hlo_module_proto())
    plain = tpusim.simulate(file, config=CONFIG)
    of_names = tpusim.simulate(named)
    assert of_names.step_time_ns == plain.step_time_ns
    assert of_names.flops == plain.flops
    assert of_names.peak_hbm_bytes == plain.peak_hbm_bytes
