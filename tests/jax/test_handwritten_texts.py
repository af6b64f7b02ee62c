"""Modules that people write by hand: what XLA expands on every backend is expanded here too."""

import json
import pathlib
import subprocess

import jax
import numpy as np
import oracle
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

COUNT, SIZE, FEATURES = 32, 6, 5
EPSILON = 0.001
FORMS = {
    "training": "(f32[32,6,5], f32[5], f32[5]) batch-norm-training(x, scale, offset)",
    "inference": "f32[32,6,5] batch-norm-inference(x, scale, offset, mean, variance)",
    "grad": "(f32[32,6,5], f32[5], f32[5]) batch-norm-grad(x, scale, mean, variance, g)",
}


def text(form: str) -> str:
    vectors = ["scale", "offset", "mean", "variance"]
    lines = [f"  {name} = f32[5] parameter({number + 2})" for number, name in enumerate(vectors)]
    rows = "sharding={devices=[8,1,1]<=[8]}"
    return "\n".join(
        [
            "HloModule m, num_partitions=8",
            "ENTRY e {",
            f"  x = f32[32,6,5] parameter(0), {rows}",
            f"  g = f32[32,6,5] parameter(1), {rows}",
            *lines,
            f"  ROOT r = {FORMS[form]}, epsilon={EPSILON}, feature_index=2",
            "}",
        ]
    )


def expected(form: str, values: list[np.ndarray]) -> list[np.ndarray]:
    """Batch normalisation over the first two dimensions, in 64 bits."""
    x, g, scale, offset, mean, variance = (v.astype(np.float64) for v in values)
    if form == "training":
        mean, variance = x.mean((0, 1)), x.var((0, 1))
    inverse = 1 / np.sqrt(variance + EPSILON)
    centered = x - mean
    if form == "grad":
        inner = g - g.mean((0, 1)) - centered * inverse**2 * (g * centered).mean((0, 1))
        of_scale = (g * centered).sum((0, 1)) * inverse
        return [scale * inverse * inner, of_scale, g.sum((0, 1))]
    y = centered * inverse * scale + offset
    return [y, mean, variance] if form == "training" else [y]


@pytest.mark.parametrize("form", FORMS)
def test_batch_normalisation(binary: str, tmp_path: pathlib.Path, form: str):
    source, module = tmp_path / "m.hlo", tmp_path / "m.pb"
    source.write_text(text(form))
    words = ["--config", "v5e-4x2", "--emit", "partitioned", "-o", str(module)]
    subprocess.run([binary, "compile", str(source), *words], check=True)

    random = np.random.default_rng(1)
    shapes = [(COUNT, SIZE, FEATURES)] * 2 + [(FEATURES,)] * 4
    values = [random.uniform(0.5, 2, shape).astype(np.float32) for shape in shapes]
    mesh = Mesh(np.array(jax.devices()), ("d",))

    def shards(value: np.ndarray) -> list[np.ndarray]:
        spec = PartitionSpec("d") if value.ndim == 3 else PartitionSpec()
        return oracle.shards_of(jax.device_put(value, NamedSharding(mesh, spec)))

    actual = oracle.run(module.read_bytes(), [shards(v) for v in values])
    wanted = [shards(w.astype(np.float32)) for w in expected(form, values)]
    if actual[0][0].shape != wanted[0][0].shape:  # the partitioner may gather the result
        wanted[0] = [np.concatenate(wanted[0])] * len(wanted[0])
    oracle.check(actual, wanted, {"float32": 2e-5})


@pytest.mark.parametrize(
    ("call", "mean", "deviation"),
    [
        ("f32[64,1024] rng(a, b), distribution=rng_uniform", 3.0, 2 / np.sqrt(12)),
        ("f32[64,1024] rng(a, b), distribution=rng_normal", 2.0, 4.0),
        # The 201 numbers from -100 to 100, whose range is wider than s8.
        ("s8[64,1024] rng(l, h), distribution=rng_uniform", 0.0, np.sqrt((201**2 - 1) / 12)),
    ],
)
def test_random_arrays_have_their_distribution(
    binary: str, tmp_path: pathlib.Path, call: str, mean: float, deviation: float
):
    source, module = tmp_path / "m.hlo", tmp_path / "m.pb"
    source.write_text(
        "HloModule m, num_partitions=8\nENTRY e {\n  a = f32[] constant(2)\n"
        "  b = f32[] constant(4)\n  l = s8[] constant(-100)\n  h = s8[] constant(101)\n"
        f"  ROOT r = {call}\n}}\n"
    )
    words = ["--config", "v5e-4x2", "--emit", "partitioned", "-o", str(module)]
    subprocess.run([binary, "compile", str(source), *words], check=True)
    values = oracle.run(module.read_bytes(), [])[0][0]
    assert values.mean() == pytest.approx(mean, abs=0.0125 * deviation)
    assert values.std() == pytest.approx(deviation, rel=0.02)


def test_products_of_nothing(binary: str, tmp_path: pathlib.Path):
    source = tmp_path / "m.hlo"
    source.write_text(
        "ENTRY e {\n  a = f32[8,0] parameter(0)\n  b = f32[0,16] parameter(1)\n"
        "  c = dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
        "  d = bf16[32,50,28,28] parameter(2)\n  k = bf16[50,0,5,5] parameter(3)\n"
        "  e = convolution(d, k), window={size=5x5}, dim_labels=bf01_io01->bf01\n"
        "  ROOT t = tuple(c, e)\n}\n"
    )
    done = subprocess.run(
        [binary, str(source), "--config", "v5e-1x1", "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["flops"] == 0


def test_a_fusion_takes_no_tuple(binary: str, tmp_path: pathlib.Path):
    source = tmp_path / "m.hlo"
    source.write_text(
        "ENTRY e {\n  a = (f32[4,4], f32[4,4]) parameter(0)\n"
        "  ROOT f = f32[4,4] fusion(a), kind=kCustom, calls={\n"
        "    p = (f32[4,4], f32[4,4]) parameter(0)\n"
        "    x = get-tuple-element(p), index=0\n    y = get-tuple-element(p), index=1\n"
        "    ROOT d = dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n  }\n}\n"
    )
    done = subprocess.run(
        [binary, str(source), "--config", "v5e-1x1"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "its operand a is a tuple; give it the elements" in done.stderr
