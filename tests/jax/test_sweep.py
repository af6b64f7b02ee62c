"""`tpusim.sweep`: variants of one command, captured and simulated in one process."""

import pathlib
import re
import textwrap
from typing import Any

import pytest
import tpusim
from tpusim.recipes import recipe_of
from tpusim.sweeping import _Command, _varied

TRAIN = """
import os
import sys
import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

given = dict(word.split("=") for word in sys.argv[1:])
os.environ["LIBTPU_INIT_ARGS"] = os.environ.get("LIBTPU_INIT_ARGS", "") + " --xla_tpu_own=1"
print("a line for every parameter")
if given.get("model") == "none":
    raise ValueError("model: none: no such model")
width = int(given.get("width", 1024))
mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
rows = NamedSharding(mesh, P("data"))
weights = jnp.zeros((int(given.get("layers", 4)), width, width), jnp.bfloat16)
tokens = jax.device_put(jnp.zeros((8 * int(given["batch"]), 128), jnp.int32), rows)

def loss(weights, tokens):
    x = jax.nn.one_hot(tokens, width, dtype=jnp.bfloat16)
    for layer in weights:
        x = jax.nn.relu(x @ layer)
    return x.astype(jnp.float32).mean()

@jax.jit
def train_step(weights, tokens):
    return jax.tree.map(lambda w, g: w - g, weights, jax.grad(loss)(weights, tokens))

for _ in range(3):
    weights = train_step(weights, tokens)
"""


@pytest.fixture
def train(tmp_path: pathlib.Path) -> pathlib.Path:
    script = tmp_path / "train.py"
    script.write_text(TRAIN)
    return script


def test_a_table_of_variants(train: pathlib.Path, capfd: pytest.CaptureFixture[str]):
    sweep = tpusim.sweep(
        f"python3 {train} batch=2 seed=0",
        {"batch": [2, 4], "seed": [0, 1], "model": ["small", "none"]},
        config="v5e-8",
    )
    assert [v.verdict for v in sweep.variants] == ["fits", "failed"] * 4
    small = sweep.variants[::2]
    assert [v.tokens for v in small] == [8 * 2 * 128] * 2 + [8 * 4 * 128] * 2
    assert small[0].report.devices == 8
    step = small[0].report.step_time_ns * 1e-9
    assert small[0].tokens_per_second_and_device == pytest.approx(2048 / step / 8)
    # One variant knows nothing of the one before it.
    assert {v.workload.xla_flags for v in small} == {"--xla_tpu_own=1"}
    head, *rows = str(sweep).splitlines()
    assert head.split() == ["batch", "seed", "model", "verdict", "HBM", "step", "tokens/s/device"]
    assert rows[0].split()[:4] == ["2", "0", "small", "fits"]
    assert "2, 0, none: ValueError: model: none: no such model (train.py:12)" in rows
    assert sweep.alike == {"seed": [(0, 1)]}
    assert capfd.readouterr().out == ""


def test_knobs_that_change_nothing(train: pathlib.Path):
    sweep = tpusim.sweep(
        ["python3", str(train), "batch=2"],
        {"seed": [0, 1], "width": [1024, "01024", 512]},
        config="v5e-8",
    )
    assert sweep.alike == {"seed": [(0, 1)], "width": [(1024, "01024")]}
    said = str(sweep).splitlines()
    assert "seed changes nothing" in said
    assert "width: 1024, 01024 make the same program" in said


def test_fits_at_the_limit_and_refused(train: pathlib.Path):
    def swept(hbm: float, **options: Any) -> tpusim.Variant:
        options = {**options, "settings": {"chip.hbm.bytes": hbm, "chip.hbm.reserved_bytes": 0}}
        command = f"python3 {train} batch=64"
        (variant,) = tpusim.sweep(command, {}, config="v5e-8", **options).variants
        return variant

    fits = swept(2**33)
    assert fits.verdict == "fits"
    peak = fits.report.peak_hbm_bytes
    close = swept(peak - peak // 100)
    assert (close.verdict, close.report.peak_hbm_bytes) == ("at the limit", peak)
    refused = swept(2**23, slow="chip=3:0.9")
    assert (refused.verdict, refused.report) == ("refused", None)
    assert re.fullmatch(r"needs [\d.]+ MiB of 8 MiB", refused.why)


REMATERIALISED = """
import functools
import sys
import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

given = dict(word.split("=") for word in sys.argv[1:])
mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
rows = P("data")
policies = jax.checkpoint_policies
policy = {
    "full": None,
    "save_context": policies.save_only_these_names("context"),
    "offload_query": policies.save_and_offload_only_these_names(
        names_which_can_be_saved=[], names_which_can_be_offloaded=["query"],
        offload_src="device", offload_dst="pinned_host",
    ),
}[given["remat_policy"]]

@functools.partial(jax.shard_map, mesh=mesh, in_specs=rows, out_specs=rows, check_vma=False)
def attention(q):
    weights = jax.nn.softmax(jnp.einsum("bsd,btd->bst", q, q))
    return checkpoint_name(jnp.einsum("bst,btd->bsd", weights, q), "context")

def layer(x, w):
    return x + attention(checkpoint_name(x @ w, "query")) @ w, None

def loss(weights, x):
    again = jax.checkpoint(layer, policy=policy, prevent_cse=False)
    return jax.lax.scan(again, x, weights)[0].mean()

@jax.jit
def train_step(weights, x):
    return jax.tree.map(lambda w, g: w - g, weights, jax.grad(loss)(weights, x))

x = jax.device_put(jnp.zeros((16, 256, 512)), NamedSharding(mesh, rows))
weights = jnp.zeros((4, 512, 512))
for _ in range(2):
    weights = train_step(weights, x)
"""


def test_a_rematerialisation_policy_is_exported_anew(tmp_path: pathlib.Path):
    """A variant of the command has what `--remat` refuses."""
    (tmp_path / "train.py").write_text(REMATERIALISED)
    sweep = tpusim.sweep(
        f"python3 {tmp_path / 'train.py'} remat_policy=full",
        {"remat_policy": ["full", "save_context", "offload_query"]},
        config="v5e-8",
    )
    assert [v.verdict for v in sweep.variants] == ["fits"] * 3
    full, saved, offloaded = sweep.variants
    assert full.report.flops > saved.report.flops
    assert full.report.flops > offloaded.report.flops
    assert saved.report.peak_hbm_bytes > full.report.peak_hbm_bytes
    with pytest.raises(tpusim.Error, match="'query' off-loaded already; export it with full remat"):
        tpusim.simulate(offloaded.workload, remat={"query": "saved"})
    with pytest.raises(tpusim.Error, match="it is inside of a shard_map or a branch"):
        tpusim.simulate(full.workload, remat={"context": "saved"})
    kept = tpusim.simulate(full.workload, remat={"query": "offloaded"})
    assert kept.step_time_ns == offloaded.report.step_time_ns


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"a": 2}, "python3 t.py --b 3 a=2 --c"),
        ({"--b": 4}, "python3 t.py --b 4 a=1 --c"),
        ({"--b": None}, "python3 t.py a=1 --c"),
        ({"--c": False}, "python3 t.py --b 3 a=1"),
        ({"--c": True}, "python3 t.py --b 3 a=1 --c"),
        ({"--d": True, "e": False}, "python3 t.py --b 3 a=1 --c --d e=false"),
        ({"LIBTPU_INIT_ARGS": "--x=1"}, "LIBTPU_INIT_ARGS=--x=1 python3 t.py --b 3 a=1 --c"),
    ],
)
def test_arguments_of_a_variant(values: dict[str, object], words: str):
    assert _varied(["python3", "t.py", "--b", "3", "a=1", "--c"], values) == words.split()


def test_a_command_as_a_shell_has_it(tmp_path: pathlib.Path):
    recipe = tmp_path / "mine.py"
    recipe.write_text(
        textwrap.dedent(
            """
            from tpusim.recipes import Recipe
            RECIPE = Recipe(arguments=("data=none", "steps=3"), modules={"a.compile": "a.train"},
                            slice="topology", slices="slices", vary={"batch": (1, 2)})
            """
        )
    )
    words = "X_Y=1 /usr/bin/python3.12 -u -m a.compile topology=v5p-128 slices=2 steps=9 seed=1"
    command = _Command.of(words.split(), recipe_of(str(recipe)), "")
    assert command == _Command(
        {"X_Y": "1"}, "a.train", "", ["seed=1", "data=none", "steps=3"], "2x(v5p-128)"
    )
    with pytest.raises(tpusim.Error, match="names neither a script"):
        _Command.of(["python3"], recipe_of(""), "")
    with pytest.raises(tpusim.Error, match="neither maxtext, tunix nor a Python file"):
        recipe_of("maxtxt")
    with pytest.raises(tpusim.Error, match="same number of devices"):
        tpusim.sweep("python3 -m a.train", {"topology": ["v6e-4", "v6e-8"]}, recipe=str(recipe))
