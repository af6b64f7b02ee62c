"""Recipes with the packages that they are of, where these are installed."""

import importlib.util
import pathlib
import subprocess
import sys

import pytest
from tpusim.recipes import maxtext, recipe_of, tunix

MAXTEXT_SWEEP = """
import tpusim
sweep = tpusim.sweep(
    "python3 -m maxtext.trainers.pre_train.train_compile model_name=default "
    "base_num_decoder_layers=2 compile_topology=v6e-8 dataset_type=grain log_period=7",
    {"per_device_batch_size": [1, 2], "log_period": [7, 9]},
    recipe="maxtext",
)
for variant in sweep.variants:
    owners = {owner.owner for owner in variant.report.memory_at_peak.owners}
    print(variant.verdict, variant.tokens, variant.workload.name, variant.workload.config)
    assert "optimizer state" in owners
    assert "--xla_tpu_spmd_rng_bit_generator_unsafe=true" in variant.workload.xla_flags
    assert any(op.source.startswith("maxtext/layers") for op in variant.report.op_records)
print(sweep.alike)
"""

TUNIX = """
import sys
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jax.sharding import AxisType
from tunix.models.llama3 import model as llama
from tunix.sft import peft_trainer

rows = int(sys.argv[1].removeprefix("batch_size="))
with jax.make_mesh((4, 2), ("fsdp", "tp"), axis_types=(AxisType.Auto,) * 2):

    @nnx.jit
    def create():
        config = llama.ModelConfig(
            num_layers=2, vocab_size=1024, embed_dim=256, hidden_dim=512, num_heads=4, head_dim=64,
            num_kv_heads=4, rope_theta=500000, norm_eps=1e-5,
        )
        model = llama.Llama3(config, rngs=nnx.Rngs(0))
        state = nnx.state(model)
        specs = nnx.get_partition_spec(state)
        nnx.update(model, jax.lax.with_sharding_constraint(state, specs))
        return model

    def inputs(given):
        shape = given.input_tokens.shape
        return {
            "input_tokens": given.input_tokens,
            "input_mask": given.input_mask,
            "positions": jnp.broadcast_to(jnp.arange(shape[1]), shape),
            "attention_mask": jnp.ones((*shape, shape[1]), bool),
        }

    config = peft_trainer.TrainingConfig(eval_every_n_steps=100, max_steps=4)
    trainer = peft_trainer.PeftTrainer(create(), optax.adamw(1e-4), config)
    tokens, mask = np.ones((rows, 128), np.int32), np.ones((rows, 128), bool)
    batch = peft_trainer.TrainingInput(input_tokens=tokens, input_mask=mask)
    trainer.with_gen_model_input_fn(inputs).train([batch] * 4, None)
"""
TUNIX_SWEEP = """
import tpusim
sweep = tpusim.sweep("python3 train.py batch_size=8", {"batch_size": [8, 16]}, config="v5e-4x2")
for variant in sweep.variants:
    print(variant.verdict, variant.tokens, variant.workload.name, variant.workload.num_partitions)
"""


def swept(folder: pathlib.Path, program: str) -> list[str]:
    """Returns the lines of a Python of its own: JAX shows devices once."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()


def test_those_of_the_package_are_found_by_name():
    assert recipe_of("maxtext") is maxtext.RECIPE
    assert recipe_of("tunix") is tunix.RECIPE
    assert all("=" in argument for argument in maxtext.RECIPE.arguments)


@pytest.mark.skipif(
    importlib.util.find_spec("maxtext") is None,
    reason="maxtext is not installed (pip install maxtext, for Python 3.12 or later)",
)
def test_maxtext_is_captured_from_its_own_command(tmp_path: pathlib.Path):
    assert swept(tmp_path, MAXTEXT_SWEEP) == [
        "fits 16384 train_step v6e-8",
        "fits 16384 train_step v6e-8",
        "fits 32768 train_step v6e-8",
        "fits 32768 train_step v6e-8",
        "{'log_period': [(7, 9)]}",
    ]


@pytest.mark.skipif(
    importlib.util.find_spec("tunix") is None,
    reason="tunix is not installed (pip install google-tunix)",
)
def test_a_trainer_of_tunix_is_captured_as_it_is(tmp_path: pathlib.Path):
    (tmp_path / "train.py").write_text(TUNIX)
    assert swept(tmp_path, TUNIX_SWEEP) == ["fits 1024 _train_step 8", "fits 2048 _train_step 8"]
