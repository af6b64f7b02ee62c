"""Programs of public packages, exported and run: nothing of them was written for tpusim.

Only with `--long`, and where the packages are: `pip install -r requirements.txt` of this folder.
"""

import pathlib

import catalogue
import pytest

MODULES = {
    "hugging_face": ("transformers", "diffusers"),
    "haiku_graphs": ("haiku", "jraph", "distrax"),
    "flax_models": ("flax", "optax"),
    "equinox_models": ("equinox", "diffrax", "optax"),
    "probabilistic": ("numpyro", "blackjax", "optax"),
    "physics": ("brax", "mujoco", "jax_md", "jax_cfd"),
    "pallas_kernels": ("optax",),
}


@pytest.mark.long
@pytest.mark.parametrize("program", catalogue.PROGRAMS, ids=lambda program: program.name)
def test_program_of_a_package(program: catalogue.Program, tmp_path: pathlib.Path):
    for module in MODULES[program.module]:
        pytest.importorskip(module)
    workload = program.export(tmp_path / "w.pb")
    assert workload.num_partitions > 1, "sharded"
    assert not any("asked for" in line for line in workload.assumptions)
    report = program.run(tmp_path / "w.pb")
    assert report["step_time_ns"] >= max(report["bound_ns"].values())
    assert report["flops"] > 0
    assert 0 < report["peak_hbm_bytes"] <= report["usable_hbm_bytes"]
    assert report["exposed_communication_ns"] <= report["step_time_ns"]
    # What is stated was needed, and is said.
    if program.options:
        assert any("as stated" in line for line in report["assumptions"])
    assert not any("has no effect" in line for line in report["warnings"])
