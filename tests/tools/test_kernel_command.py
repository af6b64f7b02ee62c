"""tpusim kernel: where the time of one kernel goes."""

import json
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).parents[2]
# The operation of a compiled module, Pallas's name for every kernel, the function that is one.
NAMES_OF_MATMUL = ("multiply.1", "pallas*", "kernel")
MATMUL = ROOT / "validation/workloads/pallas_matmul_4096.pb.gz"


def kernel(binary: str, *arguments: str | pathlib.Path) -> subprocess.CompletedProcess[str]:
    command = [binary, "kernel", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_kernel_is_the_report_s(binary: str, tmp_path: pathlib.Path) -> None:
    done = kernel(binary, MATMUL, "pallas_call.1", "--json")
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    (found,) = printed["kernels"]
    assert printed["schema"] == "tpusim.kernel/1"
    assert found["grid"] == [32, 32, 32]
    assert found["steps"] == 32**3
    # Blocks of 128 x 128 in bf16: both operands anew at every step, the result at every 32nd.
    assert found["read_bytes"] == 2 * 32**3 * 128 * 128 * 2
    assert found["written_bytes"] == 32**2 * 128 * 128 * 2
    assert found["vmem_bytes"] == 6 * 128 * 128 * 2
    assert found["bound_by"] == "DMA in"
    assert found["without_input_dma_ns"] < found["without_compute_ns"] < found["time_ns"]
    units = {unit["unit"]: unit for unit in found["units"]}
    # 128 rows through one tile, on the first of four arrays or a quarter on each.
    assert units["MXU"]["cycles"] >= 32**3 * 32
    assert 0 < units["MXU"]["share"] < units["DMA in"]["share"] < 1
    report = tmp_path / "r.json"
    subprocess.run([binary, "run", MATMUL, "--report", report, "--quiet"], check=True)
    step = json.loads(report.read_text())["step_time_ns"]
    assert abs(found["time_ns"] - step) < 0.01 * step


def test_a_compiled_module_knows_kernels_by_their_author_s_names(binary: str) -> None:
    module = ROOT / "tests/data/compiled/v5e-1x1/pallas_matmul_4096.pb.gz"
    first = [kernel(binary, module, name).stdout.partition("\n")[0] for name in NAMES_OF_MATMUL]
    assert first == [first[0]] * len(NAMES_OF_MATMUL)
    assert first[0].startswith("multiply.1 (custom-call)")


def test_text_and_names(binary: str) -> None:
    text = kernel(binary, MATMUL, "pallas*").stdout
    assert "bound by DMA in" in text
    assert "32768 steps (32 x 32 x 32)" in text
    assert "without compute" in text
    wrong = kernel(binary, MATMUL, "nothing")
    assert wrong.returncode == 1
    assert "its longest are pallas_call.1" in wrong.stderr
