"""A user's script: a decoder of Keras, trained by `model.fit` under `ModelParallel`.

Weights are sharded by a `LayoutMap` over four devices, the batch over the other axis of the mesh.
"""

import os

os.environ["KERAS_BACKEND"] = "jax"

import keras
import numpy as np

BATCH, LENGTH, VOCABULARY, WIDTH, HEADS, LAYERS = 32, 1024, 32000, 2048, 16, 4


def block(x, number):
    """Causal attention and a gated layer, each added to what comes in."""
    attention = keras.layers.MultiHeadAttention(HEADS, WIDTH // HEADS, use_bias=False)
    normed = keras.layers.RMSNormalization()(x)
    x = x + attention(normed, normed, use_causal_mask=True)
    y = keras.layers.RMSNormalization()(x)
    gate = keras.layers.Dense(4 * WIDTH, "silu", use_bias=False, name=f"gate_{number}")
    up = keras.layers.Dense(4 * WIDTH, use_bias=False, name=f"up_{number}")
    down = keras.layers.Dense(WIDTH, use_bias=False, name=f"down_{number}")
    return x + down(gate(y) * up(y))


def build():
    """Tokens to logits; the table of embeddings is used twice."""
    tokens = keras.Input((LENGTH,), dtype="int32")
    table = keras.layers.ReversibleEmbedding(VOCABULARY, WIDTH)
    x = table(tokens)
    for number in range(LAYERS):
        x = block(x, number)
    return keras.Model(tokens, table(keras.layers.RMSNormalization()(x), reverse=True))


def main():
    keras.mixed_precision.set_global_policy("mixed_bfloat16")
    mesh = keras.distribution.DeviceMesh((4, 4), ("batch", "model"))
    layouts = keras.distribution.LayoutMap(mesh)
    layouts["reversible_embedding.*embeddings"] = ("model", None)
    layouts[".*(query|key|value)/kernel"] = (None, "model", None)
    layouts[".*attention_output/kernel"] = ("model", None, None)
    layouts["(gate|up)_.*/kernel"] = (None, "model")
    layouts["down_.*/kernel"] = ("model", None)
    layout = keras.distribution.ModelParallel(layout_map=layouts, batch_dim_name="batch")
    keras.distribution.set_distribution(layout)
    model = build()
    model.compile(
        optimizer=keras.optimizers.Lion(1e-4),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    tokens = np.zeros((BATCH, LENGTH), np.int32)
    model.fit(tokens, tokens, batch_size=BATCH, epochs=1, verbose=0)


if __name__ == "__main__":
    main()
