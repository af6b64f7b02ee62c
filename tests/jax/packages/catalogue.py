"""The programs of public packages, the slice that each runs on, and what is stated for it."""

import dataclasses
import importlib
import pathlib
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
    # Of `tpusim run`: what depends on data.
    options: tuple[str, ...] = ()
    # What looks odd in the result, and why.
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
)
