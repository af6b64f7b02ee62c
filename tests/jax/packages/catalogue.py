"""The programs of public packages, the slice that each runs on, and what is stated for it."""

import dataclasses
import importlib
import os
import pathlib
import subprocess
import sys
from typing import Any

import jax
import tpusim


@dataclasses.dataclass(frozen=True)
class Program:
    """One function of a module of this folder, which returns a step and its arguments."""

    module: str
    name: str
    package: str
    config: str
    # Options of `tpusim run` for what depends on data.
    options: tuple[str, ...] = ()
    # The message with which tpusim refuses it.
    refused: str = ""
    # A remark on what looks odd in the result, and why.
    remark: str = ""

    def export(self, path: pathlib.Path) -> tpusim.Workload:
        """Traces and lowers it; nothing is computed but constants."""
        with tpusim.seen_as(self.config):
            step, arguments = getattr(importlib.import_module(self.module), self.name)()
        workload = tpusim.export(step, *arguments, path=path, name=self.name, config=self.config)
        jax.clear_caches()
        return workload

    def run(self, path: pathlib.Path) -> dict[str, Any]:
        """The report."""
        return tpusim.run(path, options=self.options)


@dataclasses.dataclass(frozen=True)
class Script(Program):
    """A script as users have them, `MODULE.py`; one jitted function that it calls is captured."""

    function: str = ""

    def export(self, path: pathlib.Path) -> tpusim.Workload:
        """Runs the script, unchanged, up to the call of the function."""
        script = pathlib.Path(__file__).parent / f"{self.module}.py"
        options = ["--config", self.config, "--function", self.function, "-o", str(path)]
        command = [sys.executable, "-m", "tpusim.export", str(script), *options]
        packages = str(pathlib.Path(tpusim.__file__).parents[1])
        environment = dict(os.environ, PYTHONPATH=packages)
        subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
        return tpusim.Workload.load(path)


PROGRAMS = (
    Program("hugging_face", "gpt2", "transformers", "v5e-4x4"),
    Program("hugging_face", "llama", "transformers", "v5p-4x4x4"),
    Program("hugging_face", "bert", "transformers", "v5e-4x4"),
    Program("hugging_face", "bart", "transformers", "v5e-4x4"),
    Program("hugging_face", "vit", "transformers", "v5e-4x4"),
    Program(
        "hugging_face", "bart_beam_search", "transformers", "v5e-4x2", ("--trip-count", "*=63")
    ),
    Program(
        "hugging_face",
        "unet",
        "diffusers",
        "v5e-4x4",
        remark="the gradients of the convolutions' weights, which take most of the step, sum over "
        "windows as large as the image and over a batch of one, which is taken to fill one of 128 "
        "rows of the arrays; a compiler that puts the window into the rows needs far less",
    ),
    Program("haiku_graphs", "resnet50", "dm-haiku", "v5e-4x4"),
    Program("haiku_graphs", "graph_network", "jraph", "v5e-4x2"),
    Program("haiku_graphs", "normalizing_flow", "distrax", "v5e-4x2"),
    Program("flax_models", "nnx_decoder", "flax", "v5e-4x4"),
    Program("flax_models", "linen_muon", "flax, optax", "v5e-4x2"),
    Program("equinox_models", "mixer", "equinox", "v5e-4x2"),
    Program("equinox_models", "neural_ode", "diffrax", "v5e-4x2", ("--trip-count", "*=4")),
    Program("probabilistic", "variational_inference", "numpyro", "v5e-4x2"),
    Program("probabilistic", "hamiltonian_monte_carlo", "blackjax", "v5e-4x2"),
    Program("probabilistic", "no_u_turn_sampler", "blackjax", "v5e-4x2", ("--trip-count", "*=4")),
    Program("physics", "brax_rollout", "brax", "v5e-4x2"),
    Program("physics", "mjx_rollout", "mujoco-mjx", "v5e-4x2", ("--trip-count", "*=4")),
    Program("physics", "molecular_dynamics", "jax-md", "v5e-4x2"),
    Program("physics", "fluid", "jax-cfd", "v5e-4x2"),
    Program("pallas_kernels", "flash_attention", "jax", "v5e-4x2"),
    Program(
        "pallas_kernels",
        "splash_attention",
        "jax",
        "v5e-4x2",
        remark="75% MFU counts the FLOPs that the kernel states; what it does beside its products, "
        "and which blocks it skips, is not modelled, so the time is rather a bound",
    ),
    Program("pallas_kernels", "paged_attention", "jax", "v5e-4x2", ("--trip-count", "*=16")),
    Program("pallas_kernels", "ragged_paged_attention", "jax", "v5e-2x2", ("--trip-count", "*=4")),
    Program("pallas_kernels", "mixture_of_experts", "jax", "v5e-4x2"),
    Program("hugging_face_text", "t5", "transformers, optax", "v5e-8x8"),
    Program("hugging_face_text", "long_t5", "transformers", "v6e-4x4"),
    Program("hugging_face_text", "gemma_2b", "transformers", "v6e-16x16"),
    Program(
        "hugging_face_text", "mistral_decode", "transformers", "v5p-2x2x2", ("--trip-count", "*=31")
    ),
    Program("hugging_face_text", "gpt_neo", "transformers", "v5p-2x2x4"),
    Program("hugging_face_text", "bloom", "transformers", "v7x-2x2x4"),
    Program("hugging_face_text", "big_bird", "transformers", "v6e-4x4"),
    Program("hugging_face_text", "electra", "transformers, optax", "v5p-2x4x4"),
    Program(
        "hugging_face_text", "marian_sampling", "transformers", "v6e-2x2", ("--trip-count", "*=47")
    ),
    Program("hugging_face_vision", "whisper", "transformers", "v6e-4x4"),
    Program("hugging_face_vision", "wav2vec2", "transformers", "v5e-4x2"),
    Program("hugging_face_vision", "clip", "transformers", "v6e-8x8"),
    Program("hugging_face_vision", "beit", "transformers", "v7x-2x2x1"),
    Program("hugging_face_vision", "regnet", "transformers", "v5e-2x2"),
    Program("hugging_face_vision", "autoencoder", "diffusers", "v6e-4x2"),
    Program("hugging_face_vision", "control_net", "diffusers", "v6e-2x2"),
    Program("language_models", "recurrent_gemma", "recurrentgemma", "v6e-4x4"),
    Program("language_models", "tunix_experts", "google-tunix", "v5p-2x2x2"),
    Program("language_models", "penzai_llama", "penzai", "v5e-4x4"),
    Program("language_models", "mamba2", "mamba2-jax", "v5p-2x2x4"),
    Program("language_models", "haliax_decoder", "haliax", "v6e-8x4"),
    Program("evolution", "cma_es", "evosax", "v5e-4x4", ("--trip-count", "*=8")),
    Program("evolution", "separable_cma_es", "evosax", "v6e-4x2"),
    Program("evolution", "policy_gradients", "evosax", "v5p-4x4x4"),
    Program("reinforcement", "ppo", "gymnax, rlax", "v5e-4x2"),
    Program("reinforcement", "bin_packing", "jumanji", "v6e-2x2"),
    Program("reinforcement", "alpha_zero", "mctx, pgx", "v5p-2x2x2", ("--trip-count", "*=8")),
    Program("reinforcement", "replay_dqn", "flashbax, rlax", "v6e-4x2"),
    Program("reinforcement", "impala", "rlax, flax", "v5e-4x4"),
    Program("science", "weather", "dinosaur", "v5p-2x2x2"),
    Program("science", "sinkhorn", "ott-jax", "v6e-4x4"),
    Program("science", "marginal_likelihood", "tinygp", "v5e-4x2"),
    Program("science", "equivariant", "e3nn-jax", "v6e-4x2"),
    Program("quantum", "neural_quantum_state", "netket", "v5p-2x2x4"),
    Program("quantum", "master_equation", "dynamiqs", "v7x-2x2x1", ("--trip-count", "*=12")),
    Program("science", "hidden_markov_model", "dynamax", "v5e-2x2"),
    Program("science", "conjugate_gradients", "lineax", "v5p-2x2x2", ("--trip-count", "*=200")),
    Program("science", "lbfgs", "jaxopt", "v7x-2x2x2"),
    Script("keras_fit", "keras_fit", "keras", "v5e-4x2", function="train_step"),
    Script(
        "keras_model_parallel", "keras_model_parallel", "keras", "v6e-4x4", function="train_step"
    ),
    Program("tokamax_kernels", "tokamax_attention", "tokamax", "v6e-4x4"),
    Program("tokamax_kernels", "tokamax_cross_entropy", "tokamax", "v5e-4x2"),
    Program("tokamax_kernels", "tokamax_ragged_dot", "tokamax", "v5p-2x2x2"),
    Program("tokamax_kernels", "tokamax_feed_forward", "tokamax", "v7x-2x2x4"),
)
