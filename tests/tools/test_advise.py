"""`tpusim advise`: what would make a step shorter, by simulation."""

import json
import re

import jax
import jax.numpy as jnp
import pytest
import tpusim
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from tests.tools.command_line import example

CONFIG = "v5e-4x4"
# The two members of `model` sit in opposite corners.
SCATTERED = ",".join(f"{i},{15 - i}" for i in range(8))


@pytest.fixture(scope="module")
def train_step(tmp_path_factory):
    """One step of gradient descent of an MLP, on data x pairs of `model`."""
    mesh = AbstractMesh((8, 2), ("data", "model"), (AxisType.Auto,) * 2)

    def array(shape, *axes):
        return jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=NamedSharding(mesh, P(*axes)))

    def loss(weights, x):
        w_in, w_out = weights
        return jnp.mean((jax.nn.gelu(x @ w_in) @ w_out) ** 2)

    @jax.jit
    def step(weights, x):
        gradients = jax.grad(loss)(weights, x)
        return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients)

    weights = (array((1024, 2048), None, "model"), array((2048, 1024), "model", None))
    path = tmp_path_factory.mktemp("advise") / "mlp_train.pb"
    tpusim.export(step, weights, array((65536, 1024), "data", None), path=path, config=CONFIG)
    return path


def advice(run, *arguments):
    done = run("advise", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_scattered_pairs(run, report_of, train_step):
    answer = advice(run, train_step, "--device-order", SCATTERED)
    first = next(v for v in answer["variants"] if v["kind"] == "device order")
    assert first["change"] < -0.2
    assert "`model` neighbours: " in first["why"]
    # What is claimed is what a run has.
    base = report_of(train_step, "--device-order", SCATTERED)
    assert answer["step_time_ns"] == base["step_time_ns"]
    then = report_of(train_step, *first["options"])
    change = then["step_time_ns"] / base["step_time_ns"] - 1
    assert first["change"] == pytest.approx(change, rel=0.01)
    shown = run("advise", train_step, "--device-order", SCATTERED).stdout.split("\n\n")[1]
    assert any(line.startswith("device order") for line in shown.splitlines())


def test_equal_programs_run_once(run):
    """A constraint that the partitioner meets anyway leaves the program of the run."""
    name = example("language_model_train_fully_sharded_tensor_parallel")
    done = run("advise", name, "--verbose", "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    effort = re.findall(r"(\d+) asked, (\d+) compiled, (\d+) simulated", done.stderr)
    speeds, others = (tuple(int(n) for n in numbers) for numbers in effort)
    impossible = len(answer["not_possible"])
    assert speeds[0] + others[0] == len(answer["variants"] + answer["chip"]) + impossible
    assert speeds[1] == 0  # the scheduled program is there
    assert speeds[2] == speeds[0]
    assert others[2] == others[1] < others[0] - impossible
    kept = [row for row in answer["variants"] if row["kind"] == "sharding" and row["change"] == 0]
    assert kept


@pytest.mark.parametrize("name", ["residual_mlp_train_loop_two_dimensional", "moments_on_host"])
def test_every_claim_can_be_run(run, report_of, name):
    answer = advice(run, example(name))
    for variants in (answer["variants"], answer["chip"]):
        steps = [variant["step_time_ns"] for variant in variants]
        assert steps == sorted(steps)
    everything = answer["variants"] + answer["chip"]
    names = [variant["name"] for variant in everything]
    assert len(set(names)) == len(names)
    assert {"links x2", "HBM bandwidth x2", "clock x2", "device order ids"} <= set(names)
    for variant in everything:
        report = report_of(example(name), *variant["options"])
        assert report["step_time_ns"] == variant["step_time_ns"], variant
        assert report["peak_hbm_bytes"] == variant["peak_hbm_bytes"], variant
        assert variant["change"] == pytest.approx(
            variant["step_time_ns"] / answer["step_time_ns"] - 1, abs=1e-9
        )


def test_faster_parts_never_make_a_step_longer(run):
    for variant in advice(run, example("pipeline_large"))["chip"]:
        assert variant["change"] < 0.01, variant


def test_donation_lowers_the_peak(run, train_step):
    answer = advice(run, train_step)
    donated = next(v for v in answer["variants"] if v["options"] == ["--donate"])
    assert donated["peak_hbm_bytes"] <= answer["peak_hbm_bytes"]


def test_the_users_settings_hold(run):
    slow = ("--set", "ici.link_bytes_per_second=0.25x")
    answer = advice(run, example("all_reduce_64mib_4x2"), *slow)
    first = answer["chip"][0]
    assert first["name"] == "links x2"
    # Half of 64 MiB over links that are all there is to it.
    assert first["change"] == pytest.approx(-0.5, abs=0.02)


def test_mistakes(rejects):
    assert "no.pb" in rejects("advise", "no.pb")
    assert "no slice 3x3" in rejects("advise", example("psum"), "--config", "v5e-3x3")


def test_from_python(run, train_step):
    report = tpusim.simulate(train_step, device_order=SCATTERED)
    found = tpusim.advise(report)
    printed = advice(run, train_step, "--device-order", SCATTERED)
    assert found.step_time_ns == report.step_time_ns == printed["step_time_ns"]
    assert [v.name for v in found.variants] == [v["name"] for v in printed["variants"]]
    assert found.best == found.variants[0]
    again = tpusim.simulate(train_step, options=found.best.options)
    assert again.step_time_ns == found.best.step_time_ns
    assert found.best.name in str(found)
    assert len(found.chip) == len(printed["chip"])


# More than the 256 MiB that the runtime takes for itself.
TIGHT = ("--set", "chip.hbm.bytes=1GiB")


def test_what_would_fit(run, report_of, train_step):
    """Advice for a program that may use 768 MiB."""
    answer = advice(run, example("pipeline_large"), "--config", "v5e-2x2", *TIGHT)
    assert answer["schema"] == "tpusim.advise-memory/1"
    assert answer["usable_hbm_bytes"] == 768 * 2**20
    assert answer["usable_hbm_bytes"] < answer["peak_hbm_bytes"] <= answer["kept_hbm_bytes"]
    variants = answer["variants"]
    fits = [variant["fits"] for variant in variants]
    assert fits == sorted(fits, reverse=True)
    assert any(fits)
    assert not all(fits)
    for variant in variants:
        assert variant["fits"] == (variant["peak_hbm_bytes"] <= variant["usable_hbm_bytes"])
        options = ("--config", "v5e-2x2", *TIGHT, *variant["options"])
        if variant["fits"]:
            report = report_of("pipeline_large", *options)
            assert report["step_time_ns"] == variant["step_time_ns"], variant
            assert report["peak_hbm_bytes"] == variant["peak_hbm_bytes"], variant
        else:
            assert "step_time_ns" not in variant
            done = run(example("pipeline_large"), *options)
            assert done.returncode == 1
            assert "does not fit in HBM" in done.stderr
    # The least that is enough: what is needed and the 256 MiB of the runtime.
    least = next(v for v in variants if v["why"] == "as much as is needed")
    assert least["options"] == ["--set", f"chip.hbm.bytes={answer['peak_hbm_bytes'] + 2**28}"]
    assert least["usable_hbm_bytes"] == answer["peak_hbm_bytes"]


def test_chips_with_more_memory(run, report_of, tmp_path):
    """Eight layers on 16 devices whose activations need 24 GiB and more if none is dropped."""
    mesh = AbstractMesh((8, 2), ("data", "model"), (AxisType.Auto,) * 2)

    def array(shape, *axes):
        return jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=NamedSharding(mesh, P(*axes)))

    def loss(weights, x):
        for w_in, w_out in weights:
            x = x + jax.nn.gelu(x @ w_in) @ w_out
        return jnp.mean(x**2)

    @jax.jit
    def step(weights, x):
        gradients = jax.grad(loss)(weights, x)
        return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients)

    layer = (array((1024, 4096), None, "model"), array((4096, 1024), "model", None))
    x = array((2**23, 1024), "data", None)
    path = tmp_path / "large.pb"
    tpusim.export(step, [layer] * 8, x, path=path, config=CONFIG)
    found = tpusim.advise(path)
    assert isinstance(found, tpusim.MemoryAdvice)
    assert found.kept_hbm_bytes > found.peak_hbm_bytes > found.usable_hbm_bytes
    slices = {v.name: v for v in found.variants if v.kind == "slice"}
    assert "slice v5p-2x2x4" in slices
    assert slices["slice v5p-2x2x4"].fits
    assert found.best is found.variants[0]
    report = tpusim.simulate(path, options=found.best.options)
    assert report.step_time_ns == found.best.step_time_ns
    assert "does not fit" in str(found)
    assert len(found.to_frame()) == len(found.variants)
    shown = run("advise", path).stdout
    assert "what would fit" in shown
    assert "with what the compiler computes again" in shown

    # Where the compiler makes it fit by computing again, the price of that is a variant.
    roomy = "chip.hbm.bytes=40GiB"
    everything = report_of(path, "--set", roomy)
    answer = advice(run, path, "--set", roomy)
    without = [
        v
        for v in answer["variants"] + answer["not_possible"]
        if v["name"] == "without rematerialize"
    ]
    assert len(without) == 1
    assert without[0]["options"] == ["--passes=-rematerialize"]
    assert answer["step_time_ns"] == everything["step_time_ns"]
    if "reason" in without[0]:
        assert without[0]["reason"].startswith("does not fit in HBM: it needs ")


def test_another_mesh(run, report_of):
    program = example("residual_mlp_train_loop_two_dimensional")
    meshes = {v["name"]: v for v in advice(run, program)["variants"] if v["kind"] == "mesh"}
    assert meshes.keys() == {f"mesh data={n},model={8 // n}" for n in (1, 4, 8)}
    for variant in meshes.values():
        assert report_of(program, *variant["options"])["step_time_ns"] == variant["step_time_ns"]


def test_a_shard_map_has_one_mesh(run):
    kinds = {v["kind"] for v in advice(run, example("transformer_block_manual"))["variants"]}
    assert "mesh" not in kinds
