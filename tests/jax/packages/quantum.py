"""Quantum physics: neural quantum states of NetKet, master equations of Dynamiqs."""

import os
from typing import Any

# NetKet would set a mesh of its own, and 64 bits, which TPUs do not have, for all of the process.
os.environ["NETKET_SHARDING"] = "0"
os.environ["NETKET_ENABLE_X64"] = "0"

import dynamiqs
import jax
import jax.numpy as jnp
import netket
import shapes


def neural_quantum_state() -> Any:
    """NetKet: energy gradients of a complex restricted Boltzmann machine, 16,384 spins samples."""
    over = shapes.mesh(samples=16)
    graph = netket.graph.Square(8)
    space = netket.hilbert.Spin(0.5, graph.n_nodes)
    hamiltonian = netket.operator.IsingJax(space, graph, h=1.0)
    model = netket.models.RBM(alpha=4, param_dtype=jnp.complex64)
    samples = shapes.shaped(over, (16384, graph.n_nodes), jnp.int8, "samples")
    params = shapes.abstract(model.init, shapes.key(), samples)

    def step(params: Any, samples: jax.Array) -> Any:
        joined, elements = hamiltonian.get_conn_padded(samples)
        logs = model.apply(params, samples)
        others = model.apply(params, joined)
        local = jnp.sum(elements * jnp.exp(others - logs[:, None]), axis=-1)
        energy = local.mean()

        def log(params: Any) -> jax.Array:
            return model.apply(params, samples)

        _, pull = jax.vjp(log, params)
        gradient = pull(jnp.conj(local - energy) / samples.shape[0])[0]
        return jax.tree.map(lambda p, g: p - 0.01 * jnp.conj(g), params, gradient), energy

    return jax.jit(step, donate_argnums=0), (shapes.replicated(params, over), samples)


def master_equation() -> Any:
    """Dynamiqs: a driven Kerr oscillator of 64 levels with loss, 256 drives over the chips."""
    over = shapes.mesh(drives=8)
    size = 64
    a = dynamiqs.destroy(size, layout=dynamiqs.dense)

    def final(drives: jax.Array) -> Any:
        hamiltonian = a.dag() @ a.dag() @ a @ a + drives[:, None, None] * (a + a.dag())
        result = dynamiqs.mesolve(
            hamiltonian,
            [a],
            dynamiqs.fock(size, 0),
            jnp.linspace(0.0, 1.0, 5),
            exp_ops=[a.dag() @ a],
            method=dynamiqs.method.Tsit5(max_steps=1000),
            progress_meter=False,
        )
        return result.expects

    return jax.jit(final), (shapes.shaped(over, (256,), jnp.float32, "drives"),)
