"""`jax.pmap` as this JAX lowers it (a jitted shard_map): exported, partitioned, simulated.

Every program is exported as the user would, partitioned by tpusim and run on eight CPU devices; the
numbers must be those of JAX. The same workload must simulate.
"""

import json
import pathlib
import runpy
import subprocess
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import oracle
import pytest
import tpusim
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

DEVICES = 8


def integers(*shape: int) -> np.ndarray:
    """Sums of these are exact, in any order."""
    return np.random.default_rng(len(shape)).integers(-50, 50, shape, np.int32)


def floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape, np.float32)


class Case:
    """A pmapped function, its arguments, and along which axis each is divided (None: nowhere)."""

    def __init__(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        in_axes: Sequence[Any] = (),
        uses: str = "",
        **options: Any,
    ):
        self.axes = tuple(in_axes) or (0,) * len(arguments)
        static = options.get("static_broadcasted_argnums", ())
        self.function = jax.pmap(
            function,
            "i",
            in_axes=tuple(0 if n in static else a for n, a in enumerate(self.axes)),
            **options,
        )
        self.arguments = arguments
        self.divided = [
            (leaf, axis)
            for n, axis in enumerate(self.axes)
            if n not in static
            for leaf in jax.tree.leaves(arguments[n])
        ]
        self.uses = uses  # an operation that the simulated program must have


def momentum_step(w: jax.Array, m: jax.Array, x: jax.Array, y: jax.Array) -> Any:
    """Data-parallel training: a gradient inside, its mean over the replicas."""
    loss, gradient = jax.value_and_grad(lambda w: jnp.mean((jnp.tanh(x @ w) - y) ** 2))(w)
    m = 0.5 * m + lax.pmean(gradient, "i")
    return w - 0.25 * m, m, lax.pmean(loss, "i")


def around_the_ring(x: jax.Array, w: jax.Array) -> jax.Array:
    """A scan whose body passes its blocks on."""

    def body(carry: Any, weights: jax.Array) -> Any:
        block, total = carry
        total = total + block @ weights
        shift = [(i, (i + 1) % DEVICES) for i in range(DEVICES)]
        return (lax.ppermute(block, "i", shift), total), None

    (_, total), _ = lax.scan(body, (x, jnp.zeros_like(x)), w)
    return total


CASES = {
    "psum": Case(lambda x: lax.psum(x, "i"), integers(8, 4, 16), uses="all-reduce"),
    "mean_and_variance": Case(
        lambda x: (lax.pmean(x, "i"), lax.pmean(x * x, "i"), lax.pmax(x, "i")),
        floats(8, 4, 16),
        uses="all-reduce",
    ),
    "all_gather": Case(lambda x: lax.all_gather(x, "i"), integers(8, 4, 16), uses="all-gather"),
    "all_gather_tiled": Case(
        lambda x: lax.all_gather(x, "i", axis=1, tiled=True), integers(8, 4, 16), uses="all-gather"
    ),
    "psum_scatter": Case(
        lambda x: lax.psum_scatter(x, "i", tiled=True),
        integers(8, 16, 128).astype(jnp.float32),
        uses="reduce-scatter",
    ),
    "all_to_all": Case(
        lambda x: lax.all_to_all(x, "i", 0, 1, tiled=True), integers(8, 16, 4), uses="all-to-all"
    ),
    "ppermute": Case(
        lambda x: lax.ppermute(x, "i", [(i, (i + 3) % 8) for i in range(8)]),
        integers(8, 16),
        uses="collective-permute",
    ),
    "pshuffle": Case(lambda x: lax.pshuffle(x, "i", [7, 6, 5, 4, 3, 2, 1, 0]), integers(8, 16)),
    "axis_index": Case(lambda x: x + 10 * lax.axis_index("i"), integers(8, 16)),
    "groups": Case(
        lambda x: lax.psum(x, "i", axis_index_groups=[[0, 2, 4, 6], [1, 3, 5, 7]]),
        integers(8, 16),
        uses="all-reduce",
    ),
    "along_the_second_axis": Case(lambda x: x - lax.psum(x, "i"), integers(4, 8, 6), in_axes=(1,)),
    "to_the_last_axis": Case(lambda x: x * 2, integers(8, 4, 6), out_axes=2),
    "the_same_for_all": Case(
        lambda x, w: lax.psum(x @ w, "i"), integers(8, 4, 6), integers(6, 3), in_axes=(0, None)
    ),
    "one_result_for_all": Case(lambda x: lax.psum(x, "i"), integers(8, 4), out_axes=None),
    "tree": Case(
        lambda batch, w: {"y": batch["x"] @ w + batch["b"], "n": lax.psum(1, "i")},
        {"x": integers(8, 4, 6), "b": integers(8, 3)},
        integers(6, 3),
        in_axes=(0, None),
    ),
    "static": Case(
        lambda x, power, shift: lax.psum(x**power, "i") + shift,
        integers(8, 16),
        3,
        integers(8, 1),
        static_broadcasted_argnums=(1,),
    ),
    "train_step": Case(
        momentum_step,
        *(floats(8, 16, 4), floats(8, 16, 4), floats(8, 32, 16), floats(8, 32, 4)),
        donate_argnums=(0, 1),
        uses="all-reduce",
    ),
    "scan": Case(
        around_the_ring, floats(8, 4, 16), floats(8, 3, 16, 16), uses="collective-permute"
    ),
    "random": Case(
        lambda k, x: x + jax.random.normal(jax.random.fold_in(k, lax.axis_index("i")), x.shape),
        np.array([3, 5], np.uint32),
        floats(8, 128),
        in_axes=(None, 0),
    ),
}


def mesh() -> Mesh:
    return Mesh(np.array(jax.devices()), "i")


def placed(value: Any, axis: int | None) -> jax.Array:
    spec = P() if axis is None else P(*[None] * axis, "i")
    return jax.device_put(value, NamedSharding(mesh(), spec))


def exported(tmp_path: pathlib.Path, function: Any, arguments: Sequence[Any]) -> pathlib.Path:
    path = tmp_path / "workload.pb"
    tpusim.export(function, *arguments, path=path)
    return path


def partitioned(binary: str, path: pathlib.Path) -> bytes:
    output = path.with_name("partitioned.pb")
    command = [binary, "compile", "--config", "v5e-4x2", str(path), "--emit", "partitioned"]
    subprocess.run([*command, "-o", str(output)], check=True)
    return oracle.hlo_module(output.read_bytes())


def simulated(binary: str, path: pathlib.Path, config: str = "v5e-4x2") -> dict:
    output = path.with_name("report.json")
    command = [binary, "run", "--config", config, str(path), "--quiet", "--report", str(output)]
    subprocess.run(command, check=True)
    return json.loads(output.read_text())


@pytest.mark.parametrize("name", CASES)
def test_partitioned_equals_jax(name: str, binary: str, tmp_path: pathlib.Path):
    case = CASES[name]
    path = exported(tmp_path, case.function, case.arguments)
    assert tpusim.Workload.load(path).num_partitions == DEVICES
    inputs = [oracle.shards_of(placed(leaf, axis)) for leaf, axis in case.divided]
    results = case.function(*case.arguments)
    expected = [oracle.shards_of(leaf) for leaf in jax.tree.leaves(results)]
    oracle.check(oracle.run(partitioned(binary, path), inputs), expected)

    report = simulated(binary, path)
    assert report["devices"] == DEVICES
    assert report["step_time_ns"] > 0
    kinds = {collective["kind"] for collective in report["collectives"]}
    assert not case.uses or case.uses in kinds


def test_gradient_through_a_pmap(binary: str, tmp_path: pathlib.Path):
    """jit(grad(pmap)): the collective of the backward pass is there."""
    forward = jax.pmap(lambda x, w: lax.psum(jnp.sin(x) @ w, "i"), "i", in_axes=(0, None))
    gradient = jax.jit(jax.grad(lambda w, x: jnp.sum(forward(x, w)[0]), argnums=(0, 1)))
    w, x = floats(16, 4), floats(8, 2, 16)
    arguments = (placed(w, None), placed(x, 0))
    path = exported(tmp_path, gradient, arguments)
    results = gradient(*arguments)
    inputs = [oracle.shards_of(a) for a in arguments]
    expected = [oracle.shards_of(r) for r in results]
    oracle.check(oracle.run(partitioned(binary, path), inputs), expected)
    assert simulated(binary, path)["collectives"]


def test_some_of_the_devices(binary: str, tmp_path: pathlib.Path):
    on_four = jax.pmap(lambda x: lax.psum(x, "i"), "i", devices=jax.devices()[:4])
    path = exported(tmp_path, on_four, [integers(4, 1024)])
    assert tpusim.Workload.load(path).num_partitions == 4
    report = simulated(binary, path, "v5e-2x2")
    assert [c["group_size"] for c in report["collectives"]] == [4]


SCRIPT = '''
"""A training script of the time of pmap."""
import functools
import jax
import jax.numpy as jnp
import numpy as np

n = jax.local_device_count()


@functools.partial(jax.pmap, axis_name="replica", donate_argnums=(0,))
def train_step(weights, batch):
    def loss(weights):
        return jnp.mean((jax.nn.relu(batch @ weights["in"]) @ weights["out"]) ** 2)

    gradients = jax.lax.pmean(jax.grad(loss)(weights), "replica")
    return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients)


def main():
    key = jax.random.key(0)
    weights = {"in": jax.random.normal(key, (64, 256)), "out": jax.random.normal(key, (256, 8))}
    weights = jax.tree.map(lambda w: jnp.broadcast_to(w, (n, *w.shape)), weights)
    for step in range(3):
        batch = np.full((n, 128, 64), step, np.float32)
        weights = train_step(weights, batch)
    raise AssertionError("the first step was not captured")


if __name__ == "__main__":
    main()
'''


def test_capture_around_a_script(binary: str, tmp_path: pathlib.Path):
    script, path = tmp_path / "train.py", tmp_path / "workload.pb"
    script.write_text(SCRIPT)
    with tpusim.capture(path, config="v5e-4x2") as captured:
        runpy.run_path(str(script), run_name="__main__")
    assert captured.workload.name == "train_step"
    assert captured.workload.num_partitions == DEVICES
    report = simulated(binary, path)
    # Both gradients, 64 x 256 and 256 x 8 floats, are averaged over all replicas.
    sums = [c for c in report["collectives"] if c["kind"] == "all-reduce"]
    assert sum(c["bytes"] for c in sums) == 4 * (64 * 256 + 256 * 8)
    assert {c["group_size"] for c in sums} == {8}
    assert any("train.py:" in op["source"] for op in report["ops"])


def test_donation_is_seen(binary: str, tmp_path: pathlib.Path):
    """Without donation the old and the new weights lie in memory together."""
    weights, x = np.zeros((8, 1024, 1024), np.float32), np.ones((8, 1024, 8), np.float32)

    def update(w: jax.Array, x: jax.Array) -> jax.Array:
        return w - lax.pmean(jnp.sum(x), "i")

    peaks = {}
    for donated in ((), (0,)):
        step = jax.pmap(update, "i", donate_argnums=donated)
        folder = tmp_path / f"donated{len(donated)}"
        folder.mkdir()
        path = exported(folder, step, [weights, x])
        peaks[donated] = simulated(binary, path)["peak_hbm_bytes"]
    assert peaks[()] - peaks[(0,)] >= 0.9 * 1024 * 1024 * 4
