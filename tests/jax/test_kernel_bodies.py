"""Pallas kernels cost the same in exports, in raw HLO, and in HLO text.

A module by itself is what raw HLO is: there is no exporter's word on anything. The bodies that its
calls carry are read in every form.
"""

import gzip
import json
import pathlib
import subprocess
import sys
from typing import Any

import pytest
import tpusim

sys.path.append(str(pathlib.Path(__file__).parent / "packages"))

import pallas_kernels

from tests.tools.command_line import program_name

ROOT = pathlib.Path(__file__).parents[2]
MOST = 0.02  # relative difference
WORKLOADS = sorted(
    path
    for path in (ROOT / "validation/workloads").glob("*.pb.gz")
    if b"tpu_custom_call" in gzip.decompress(path.read_bytes())
)


def step_time(binary: str, path: pathlib.Path, report: pathlib.Path, *options: str) -> float:
    command = [binary, "run", str(path), "--report", str(report), "--quiet", *options]
    subprocess.run(command, capture_output=True, check=True)
    return json.loads(report.read_text())["step_time_ns"]


def raw(workload: tpusim.Workload, folder: pathlib.Path) -> pathlib.Path:
    """Its module alone: an HloModuleProto."""
    path = folder / "module.pb"
    path.write_bytes(workload.hlo_module)
    return path


def text(binary: str, program: pathlib.Path, folder: pathlib.Path, *options: str) -> pathlib.Path:
    """Returns the program of one device as HLO text."""
    path = folder / "text.hlo"
    command = [binary, "compile", str(program), "--emit", "partitioned", *options]
    subprocess.run([*command, "--print-large-constants", "-o", str(path), "--quiet"], check=True)
    written = path.read_text()
    assert "tpusim.kernel_cost" not in written
    # It is one device's program; the number of devices is not in it.
    partitions = tpusim.Workload.load(program).num_partitions
    first, rest = written.split("\n", 1)
    path.write_text(f"{first}, num_partitions={partitions}\n{rest}")
    return path


def test_all_examples_with_kernels_are_looked_at() -> None:
    assert len(WORKLOADS) >= 26


@pytest.mark.parametrize("path", WORKLOADS, ids=program_name)
def test_exported_workloads(binary: str, tmp_path: pathlib.Path, path: pathlib.Path) -> None:
    workload = tpusim.Workload.load(path)
    assert workload.kernels == ()
    on = ("--config", workload.config or "v5e-1x1")
    # Of the mesh a module knows no more than its order of devices.
    # Another order may need more memory than the run had.
    ids = ("--device-order", "ids", "--set", "chip.hbm.bytes=2x")
    report = tmp_path / "report.json"
    # Nor how often loops on data run.
    trips = [
        word
        for trip in workload.trip_counts
        for word in ("--trip-count", f"{trip.loop}={trip.count}")
    ]
    exported = step_time(binary, path, report, *on, *ids)
    assert step_time(binary, raw(workload, tmp_path), report, *on, *ids, *trips) == pytest.approx(
        exported, rel=MOST
    )


@pytest.mark.parametrize(
    "program",
    [
        pallas_kernels.flash_attention,
        pallas_kernels.splash_attention,
        pallas_kernels.paged_attention,
        pallas_kernels.ragged_paged_attention,
        pallas_kernels.mixture_of_experts,
    ],
    ids=lambda program: program.__name__,
)
def test_kernels_that_come_with_jax(binary: str, tmp_path: pathlib.Path, program: Any) -> None:
    function, arguments = program()
    path, report = tmp_path / "w.pb", tmp_path / "report.json"
    workload = tpusim.export(function, *arguments, path=path, config="v5e-4x2")
    assert workload.kernels == ()
    options = ("--trip-count", "*=3", "--config", "v5e-4x2", "--device-order", "ids")
    exported = step_time(binary, path, report, *options)
    assert step_time(binary, raw(workload, tmp_path), report, *options) == pytest.approx(
        exported, rel=MOST
    )
    printed = text(binary, path, tmp_path, "--config", "v5e-4x2")
    assert step_time(binary, printed, report, *options) == pytest.approx(exported, rel=MOST)


def test_hlo_text_is_enough(binary: str, tmp_path: pathlib.Path) -> None:
    """A kernel in the text of another compiler has its body."""
    path = ROOT / "validation/workloads/pallas_block_sparse_matmul.pb.gz"
    on = ("--config", tpusim.Workload.load(path).config or "v5e-1x1")
    report = tmp_path / "report.json"
    exported = step_time(binary, path, report, *on)
    printed = text(binary, path, tmp_path, *on)
    assert step_time(binary, printed, report, *on) == pytest.approx(exported, rel=MOST)
