"""Pallas kernels take as long by their bodies as by the prices of the exporter.

A workload without prices is what raw HLO is: then the simulator reads the body that each call
carries. Both ways have one set of rules, and what lowering changes is little.
"""

import dataclasses
import json
import pathlib
import subprocess
import sys
from typing import Any

import pytest
import tpusim

sys.path.append(str(pathlib.Path(__file__).parent / "packages"))

import pallas_kernels

ROOT = pathlib.Path(__file__).parents[2]
# Relative difference; JAX lowers some operations to several.
MOST = 0.02
WORKLOADS = [
    "pallas_matmul_1024",
    "pallas_matmul_1024_large_blocks",
    "pallas_block_sparse_matmul",
    "train_mistral_7b_v6e_8",
    "train_22b_8_v4_64",
    "train_llama3_405b_v5p_512",
]


def step_time(binary: str, path: pathlib.Path, *options: str) -> float:
    report = path.with_suffix(".json")
    command = [binary, "run", str(path), "--report", str(report), "--quiet", *options]
    subprocess.run(command, capture_output=True, check=True)
    return json.loads(report.read_text())["step_time_ns"]


def both(
    binary: str, folder: pathlib.Path, workload: tpusim.Workload, *options: str
) -> tuple[float, float]:
    """The step with the exporter's prices, and without."""
    times = []
    for name, kernels in (("priced", workload.kernels), ("plain", ())):
        path = folder / f"{name}.pb"
        path.write_bytes(dataclasses.replace(workload, kernels=kernels).to_bytes())
        times.append(step_time(binary, path, *options))
    return times[0], times[1]


@pytest.mark.parametrize("name", WORKLOADS)
def test_exported_workloads(binary: str, tmp_path: pathlib.Path, name: str) -> None:
    data = (ROOT / f"validation/workloads/{name}.pb").read_bytes()
    workload = tpusim.Workload.from_bytes(data)
    assert workload.kernels
    priced, plain = both(binary, tmp_path, workload)
    assert plain == pytest.approx(priced, rel=MOST)


@pytest.mark.parametrize(
    "program",
    [
        pallas_kernels.flash_attention,
        pallas_kernels.splash_attention,
        pallas_kernels.paged_attention,
        pallas_kernels.ragged_paged_attention,
    ],
    ids=lambda program: program.__name__,
)
def test_kernels_that_come_with_jax(binary: str, tmp_path: pathlib.Path, program: Any) -> None:
    function, arguments = program()
    workload = tpusim.export(function, *arguments, path=None, config="v5e-4x2")
    assert workload.kernels
    priced, plain = both(binary, tmp_path, workload, "--trip-count", "*=3")
    assert plain == pytest.approx(priced, rel=MOST)


def test_hlo_text_is_enough(binary: str, tmp_path: pathlib.Path) -> None:
    """What another compiler's text says of a kernel is its body."""
    data = (ROOT / "validation/workloads/pallas_block_sparse_matmul.pb").read_bytes()
    workload = tpusim.Workload.from_bytes(data)
    priced, _ = both(binary, tmp_path, workload)
    text = tmp_path / "text.hlo"
    on = ("--config", workload.config or "v5e-1x1")
    command = [binary, "compile", str(tmp_path / "plain.pb"), "--emit", "partitioned", *on]
    command += ["--print-large-constants", "-o", str(text), "--quiet"]
    subprocess.run(command, check=True)
    assert "tpusim.kernel_cost" not in text.read_text()
    assert step_time(binary, text, *on) == pytest.approx(priced, rel=MOST)
