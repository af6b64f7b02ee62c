"""Examples on every chip: folded is unfolded, and the default detail is every step executed.

A sample by default; `--long` runs all examples on all chips.
"""

import json
import pathlib
import random
from typing import Any

import pytest

from tests.tools.command_line import example, examples

# Slices of eight devices.
SLICES = (
    "v2-2x2", "v3-2x2", "v4-2x2x2", "v5e-4x2", "v5p-2x2x2", "v6e-2x4", "v7x-2x2x1", "2x(v5e-2x2)"
)  # fmt: skip
CASES = [
    (name, slice_)
    for name in examples()
    for slice_ in SLICES
    if not name.endswith(("_16x16", "_8x16"))
]
SAMPLE = 40


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" not in metafunc.fixturenames:
        return
    whole = metafunc.config.getoption("--long")
    cases = CASES if whole else random.Random(11).sample(CASES, SAMPLE)
    metafunc.parametrize("case", cases, ids=lambda case: f"{case[0]}-{case[1]}")


def simulated(run: Any, tmp_path: pathlib.Path, case: tuple[Any, str], *flags: str) -> Any:
    report = tmp_path / "report.json"
    program = case[0] if isinstance(case[0], pathlib.Path) else example(case[0])
    done = run("--config", case[1], program, "--report", report, *flags)
    if done.returncode != 0:
        return done.stderr
    return json.loads(report.read_text())


def test_shortcuts_do_not_show(run, tmp_path, case) -> None:
    default = simulated(run, tmp_path, case)
    unfolded = simulated(run, tmp_path, case, "--fold", "off")
    every = simulated(run, tmp_path, case, "--detail", "tile")
    if isinstance(default, str):  # it does not fit, or the chip has no rule for it
        assert unfolded == default
        assert every == default
        return
    # 10 ps, or the rounding of rates.
    assert unfolded["step_time_ns"] == pytest.approx(default["step_time_ns"], rel=1e-9, abs=0.01)
    for kind in ("exposed_communication_ns", "hidden_communication_ns"):
        assert unfolded[kind] == pytest.approx(default[kind], rel=1e-6, abs=1)
    for name in ("flops", "peak_hbm_bytes", "mfu"):
        assert unfolded[name] == pytest.approx(default[name], rel=1e-9)
    assert [link["bytes"] for link in unfolded["links"]] == [
        link["bytes"] for link in default["links"]
    ]
    # Kernels that share HBM with transfers are an average of their steps.
    assert every["step_time_ns"] == pytest.approx(default["step_time_ns"], rel=0.02)


def unrolled(layers: int) -> str:
    """Products by weights that are gathered over 8 devices, one layer after the other."""
    body = ["x.0 = bf16[512,2048]{1,0} parameter(0)"]
    for n in range(layers):
        body += [
            f"w.{n} = bf16[256,2048]{{1,0}} parameter({n + 1})",
            f"gathered.{n} = bf16[2048,2048]{{1,0}} all-gather(w.{n}), channel_id={n + 1}, "
            "replica_groups={{0,1,2,3,4,5,6,7}}, dimensions={0}, use_global_device_ids=true",
            f"product.{n} = bf16[512,2048]{{1,0}} dot(x.{n}, gathered.{n}), "
            "lhs_contracting_dims={1}, rhs_contracting_dims={0}",
            f"{'ROOT ' if n == layers - 1 else ''}x.{n + 1} = bf16[512,2048]{{1,0}} "
            f"tanh(product.{n})",
        ]
    return "HloModule layers, num_partitions=8\n\nENTRY main {\n  " + "\n  ".join(body) + "\n}\n"


@pytest.mark.parametrize("slice_", SLICES)
def test_unrolled_layers_that_are_passed_over_do_not_show(run, tmp_path, slice_) -> None:
    file = tmp_path / "layers.hlo"
    file.write_text(unrolled(24))
    # Unfolded, as devices in a trace are told apart from others.
    default = simulated(run, tmp_path, (file, slice_), "--fold", "off")
    # Layers that a trace shows are executed.
    trace = ("--trace", tmp_path / "t.pftrace")
    shown = simulated(run, tmp_path, (file, slice_), "--fold", "off", *trace)
    executed, passed = shown.pop("events"), default.pop("events")
    assert shown == default
    assert passed <= executed
    if slice_ == "v5e-4x2":  # not every slice has a steady state after so few layers
        assert passed < executed / 2
