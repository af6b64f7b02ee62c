"""A decoder of eight billion weights fits on eight chips of v6e, and may keep less there.

32 layers, 4096 wide, 8 of 32 heads for keys and values, MLPs of 14336, 128256 words; three
sequences of 8192 tokens on each device; Adam in float32. By hand, of one device:

    state               3 x 4 B x 8.03e9 weights / 8                              12.0 GB
    saved layer inputs  32 x 3 x 8192 x 4096 x 2 B                                 6.4 GB
    logits              3 x 8192 x 128256 x 2 B                                    6.3 GB
    off-loaded          32 x 3 x 8192 x (4096 + 1024 + 1024 + 4096) x 2 B         16.1 GB each way
"""

import json
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SIZES = (
    "--layers 32 --hidden 4096 --ffn 14336 --kv-heads 8 --vocab 128256 --seq 8192 "
    "--batch-per-device 3 --fsdp 8 --splash --narrow-logits --config v6e-4x2"
)
OFF_LOADED = 32 * 3 * 8192 * (4096 + 1024 + 1024 + 4096) * 2
PCIE = 3.2e10  # bytes per second, each way


def simulate(binary: str, folder: pathlib.Path, kept: str) -> dict:
    program, report = folder / "decoder.pb", folder / "decoder.json"
    export = [sys.executable, str(ROOT / "benchmarks" / "decoder_train.py"), *SIZES.split()]
    subprocess.run([*export, kept, "-o", str(program)], check=True)
    subprocess.run([binary, "run", str(program), "--report", str(report), "-q"], check=True)
    return json.loads(report.read_text())


@pytest.mark.parametrize("kept", ["--remat", "--offload"])
def test_fits_in_hbm(binary: str, tmp_path: pathlib.Path, kept: str) -> None:
    report = simulate(binary, tmp_path, kept)
    # State, layer inputs and logits are there together, when the loss is computed.
    assert 24.7e9 < report["peak_hbm_bytes"] < report["usable_hbm_bytes"]
    copies = [op for op in report["ops"] if op["category"] in ("copy to host", "copy from host")]
    if kept == "--remat":
        assert copies == []
        return
    # Every slot goes out once and comes in once, and the step waits for hardly any of it.
    assert report["bound_ns"]["host"] == pytest.approx(OFF_LOADED / PCIE * 1e9, rel=1e-3)
    assert sum(op["count"] for op in copies) == 2 * 32 * 4
    waits = sum(op["total_ns"] for op in report["ops"] if op["engine"] == "host")
    assert waits < 0.03 * report["bound_ns"]["host"]
