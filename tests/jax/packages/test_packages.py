"""Programs of public packages, exported and run: nothing of them was written for tpusim.

Only with `--long`, and where the packages are: `pip install -r requirements.txt` of this folder.
"""

import importlib.util
import pathlib

import catalogue
import pytest
import tpusim

MODULES = {
    "hugging_face": ("transformers", "diffusers"),
    "hugging_face_text": ("transformers", "diffusers", "optax"),
    "hugging_face_vision": ("transformers", "diffusers", "optax"),
    "haiku_graphs": ("haiku", "jraph", "distrax"),
    "flax_models": ("flax", "optax"),
    "equinox_models": ("equinox", "diffrax", "optax"),
    "probabilistic": ("numpyro", "blackjax", "optax"),
    "physics": ("brax", "mujoco", "jax_md", "jax_cfd"),
    "pallas_kernels": ("optax",),
    "language_models": ("recurrentgemma", "tunix", "penzai", "mamba2_jax", "haliax"),
    "evolution": ("evosax",),
    "reinforcement": ("gymnax", "rlax", "jumanji", "mctx", "pgx", "flashbax"),
    "science": ("dinosaur", "ott", "tinygp", "e3nn_jax", "dynamax", "lineax", "jaxopt"),
    "quantum": ("netket", "dynamiqs"),
    "keras_fit": ("keras",),
    "keras_model_parallel": ("keras",),
    "tokamax_kernels": ("tokamax",),
}


@pytest.mark.long
@pytest.mark.parametrize("program", catalogue.PROGRAMS, ids=lambda program: program.name)
def test_program_of_a_package(program: catalogue.Program, tmp_path: pathlib.Path):
    for module in MODULES[program.module]:
        # Importing some of them sets what belongs to the whole process.
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed")
    workload = program.export(tmp_path / "w.pb")
    assert workload.num_partitions > 1, "sharded"
    if not isinstance(program, catalogue.Script):
        # A script asks before anything is known of the chip.
        assert not any("asked for" in line for line in workload.assumptions)
    if program.refused:
        with pytest.raises(tpusim.Error, match=program.refused):
            program.run(tmp_path / "w.pb")
        return
    report = program.run(tmp_path / "w.pb")
    assert report["step_time_ns"] >= max(report["bound_ns"].values())
    assert report["flops"] > 0
    assert 0 < report["peak_hbm_bytes"] <= report["usable_hbm_bytes"]
    assert report["exposed_communication_ns"] <= report["step_time_ns"]
    # What is stated was needed, and is said.
    if program.options:
        assert any("as stated" in line for line in report["assumptions"])
    assert not any("has no effect" in line for line in report["warnings"])
