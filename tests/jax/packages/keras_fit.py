"""A user's script: a vision transformer of Keras, trained by `model.fit` under `DataParallel`.

Nothing here knows of tpusim, which exports the train step of `fit` as it finds it:
python -m tpusim.export keras_fit.py --config v5e-4x2 --function one_train_step -o step.pb
"""

import os

os.environ["KERAS_BACKEND"] = "jax"

import keras
import numpy as np

BATCH, SIZE, PATCH, WIDTH, LAYERS, CLASSES = 512, 224, 16, 384, 12, 1000


def block(x):
    """Attention, then two layers, each added to what comes in."""
    normed = keras.layers.LayerNormalization(epsilon=1e-6)(x)
    x = x + keras.layers.MultiHeadAttention(6, WIDTH // 6, dropout=0.1)(normed, normed)
    y = keras.layers.LayerNormalization(epsilon=1e-6)(x)
    y = keras.layers.Dense(4 * WIDTH, activation="gelu")(y)
    return x + keras.layers.Dropout(0.1)(keras.layers.Dense(WIDTH)(y))


def build():
    """The small vision transformer of 22 million parameters."""
    images = keras.Input((SIZE, SIZE, 3))
    x = keras.layers.RandomFlip("horizontal")(images)
    x = keras.layers.Conv2D(WIDTH, PATCH, PATCH)(x)
    x = keras.layers.Reshape((-1, WIDTH))(x)
    for _ in range(LAYERS):
        x = block(x)
    x = keras.layers.GlobalAveragePooling1D()(keras.layers.LayerNormalization()(x))
    return keras.Model(images, keras.layers.Dense(CLASSES, dtype="float32")(x))


def main():
    keras.mixed_precision.set_global_policy("mixed_bfloat16")
    keras.distribution.set_distribution(keras.distribution.DataParallel())
    model = build()
    model.compile(
        optimizer=keras.optimizers.AdamW(1e-3, weight_decay=0.05),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    images = np.zeros((BATCH, SIZE, SIZE, 3), np.float32)
    labels = np.zeros((BATCH,), np.int32)
    model.fit(images, labels, batch_size=BATCH, epochs=1, verbose=0)


if __name__ == "__main__":
    main()
