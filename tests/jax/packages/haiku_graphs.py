"""DeepMind's Haiku, jraph and distrax: a ResNet-50, a graph network, a normalizing flow."""

from typing import Any

import distrax
import haiku as hk
import jax
import jax.numpy as jnp
import jraph
import numpy as np
import optax
import shapes


def resnet50() -> Any:
    """Haiku's ResNet-50 with batch norm over all devices: 64 images per device, data parallel."""
    over = shapes.mesh(data=16)
    optimizer = optax.sgd(0.1, momentum=0.9, nesterov=True)

    def forward(images: jax.Array) -> jax.Array:
        return hk.nets.ResNet50(1000, resnet_v2=True)(images, is_training=True)

    network = hk.transform_with_state(forward)

    def loss(params: Any, state: Any, images: jax.Array, labels: jax.Array) -> Any:
        half = jax.tree.map(lambda p: p.astype(jnp.bfloat16), params)
        logits, state = network.apply(half, state, None, images)
        decay = sum(jnp.vdot(p, p) for p in jax.tree.leaves(params))
        return shapes.cross_entropy(logits, labels) + 1e-4 * decay, state

    def step(params: Any, state: Any, moments: Any, images: jax.Array, labels: jax.Array) -> Any:
        gradients, state = jax.grad(loss, has_aux=True)(params, state, images, labels)
        updates, moments = optimizer.update(gradients, moments, params)
        return optax.apply_updates(params, updates), state, moments

    images = shapes.shaped(over, (16 * 64, 224, 224, 3), jnp.bfloat16, "data")
    labels = shapes.shaped(over, (16 * 64,), jnp.int32, "data")
    params, state = shapes.abstract(network.init, shapes.key(), images)
    moments = shapes.abstract(optimizer.init, params)
    trees = (shapes.replicated(tree, over) for tree in (params, state, moments))
    return jax.jit(step, donate_argnums=(0, 1, 2)), (*trees, images, labels)


def graph_network() -> Any:
    """A jraph GraphNetwork of six rounds: a mini-batch of padded molecules per device."""
    over = shapes.mesh(data=8)
    graphs, nodes, edges, width = 128, 4096, 8192, 256
    optimizer = optax.adam(1e-3)

    def mlp(name: str) -> Any:
        return jraph.concatenated_args(hk.nets.MLP([width, width], name=name))

    def forward(graph: jraph.GraphsTuple) -> jax.Array:
        embed = jraph.GraphMapFeatures(hk.Linear(width), hk.Linear(width), hk.Linear(width))
        graph = embed(graph)
        for number in range(6):
            network = jraph.GraphNetwork(
                mlp(f"edge_{number}"), mlp(f"node_{number}"), mlp(f"global_{number}")
            )
            graph = network(graph)
        return hk.Linear(1)(graph.globals)[:, 0]

    network = hk.without_apply_rng(hk.transform(forward))

    def loss(params: Any, batch: jraph.GraphsTuple, targets: jax.Array) -> jax.Array:
        predicted = jax.vmap(lambda graph: network.apply(params, graph))(batch)
        return jnp.square(predicted - targets).mean()

    def batch(devices: int) -> jraph.GraphsTuple:
        def array(*shape: int, dtype: Any = jnp.float32) -> Any:
            return shapes.shaped(over, (devices, *shape), dtype, "data")

        return jraph.GraphsTuple(
            nodes=array(nodes, 64),
            edges=array(edges, 16),
            globals=array(graphs, 8),
            senders=array(edges, dtype=jnp.int32),
            receivers=array(edges, dtype=jnp.int32),
            n_node=array(graphs, dtype=jnp.int32),
            n_edge=array(graphs, dtype=jnp.int32),
        )

    whole = batch(8)
    one = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), whole)
    params = shapes.abstract(network.init, shapes.key(), one)
    state = shapes.replicated(shapes.abstract(optimizer.init, params), over)
    targets = shapes.shaped(over, (8, graphs), jnp.float32, "data")
    step = shapes.train_step(loss, optimizer)
    return step, (shapes.replicated(params, over), state, whole, targets)


def normalizing_flow() -> Any:
    """A distrax flow of eight affine couplings, trained by maximum likelihood."""
    over = shapes.mesh(data=8)
    width, layers = 64, 8
    optimizer = optax.adamw(1e-3)

    def density(samples: jax.Array) -> jax.Array:
        couplings = []
        mask = jnp.asarray(np.arange(width) % 2 == 0)
        for _ in range(layers):
            network = hk.Sequential([hk.nets.MLP([512, 512, 2 * width])])
            couplings.append(
                distrax.MaskedCoupling(
                    mask=mask,
                    conditioner=network,
                    bijector=lambda p: distrax.ScalarAffine(
                        shift=p[..., :width], log_scale=jnp.tanh(p[..., width:])
                    ),
                )
            )
            mask = jnp.logical_not(mask)
        base = distrax.MultivariateNormalDiag(jnp.zeros(width), jnp.ones(width))
        return distrax.Transformed(base, distrax.Chain(couplings)).log_prob(samples)

    network = hk.without_apply_rng(hk.transform(density))

    def loss(params: Any, samples: jax.Array) -> jax.Array:
        return -network.apply(params, samples).mean()

    samples = shapes.shaped(over, (8 * 4096, width), jnp.float32, "data")
    params = shapes.abstract(network.init, shapes.key(), samples)
    state = shapes.replicated(shapes.abstract(optimizer.init, params), over)
    return shapes.train_step(loss, optimizer), (shapes.replicated(params, over), state, samples)
