"""More ways to train as the examples of Keras show them, with data made up and few steps."""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

from corpus import program, run_all  # noqa: E402
from tf_made_up import PEAKS, STEPS, images, of  # noqa: E402

keras, layers = tf.keras, tf.keras.layers
BATCH = 16


class MaskedConvolution(layers.Layer):
    """Sees only the pixels before its own: in each call, it writes zeros into its kernel."""

    def __init__(self, center, **options):
        super().__init__()
        self.center, self.convolution = center, layers.Conv2D(padding="same", activation="relu", **options)

    def build(self, shape):
        self.convolution.build(shape)
        rows, columns, *_ = self.convolution.kernel.shape
        self.mask = np.zeros(self.convolution.kernel.shape, "float32")
        self.mask[:rows // 2] = self.mask[rows // 2, :columns // 2] = 1
        self.mask[rows // 2, columns // 2] = self.center

    def call(self, x):
        self.convolution.kernel.assign(self.convolution.kernel * self.mask)
        return self.convolution(x)


class MaskedBlock(layers.Layer):
    def __init__(self, width):
        super().__init__()
        self.parts = [layers.Conv2D(width, 1, activation="relu"), MaskedConvolution(1, filters=width // 2, kernel_size=3), layers.Conv2D(width, 1)]

    def call(self, x):
        y = x
        for part in self.parts:
            y = part(y)
        return x + y


@program("tutorial", steps=STEPS, also=PEAKS)
def pictures_pixel_by_pixel():
    x = entry = keras.Input((28, 28, 1))
    x = MaskedConvolution(0, filters=32, kernel_size=7)(x)
    for _ in range(2):
        x = MaskedBlock(32)(x)
    model = keras.Model(entry, layers.Conv2D(1, 1, activation="sigmoid")(MaskedConvolution(1, filters=32, kernel_size=1)(x)))
    model.compile("adam", "binary_crossentropy", jit_compile=False)
    pixels = images().round()
    model.fit(pixels, pixels, batch_size=BATCH, verbose=0)
    made = np.zeros((4, 28, 28, 1), "float32")
    for column in range(3):
        made[:, 0, column] = model.predict(made, verbose=0)[:, 0, column] > 0.5
    return of(model)


class NextItem(keras.Model):
    """The table of items makes its inputs, and is what its outputs are compared with."""

    def __init__(self, items, width, length):
        super().__init__()
        self.item = layers.Embedding(items, width, embeddings_regularizer=keras.regularizers.L2(0.001))
        self.place = layers.Embedding(length, width)
        self.norms = [layers.LayerNormalization() for _ in range(2)]
        self.attentions = [layers.MultiHeadAttention(1, width, dropout=0.2) for _ in range(2)]

    def call(self, items, training=False):
        x = self.item(items) + self.place(tf.range(tf.shape(items)[1]))
        for norm, attention in zip(self.norms, self.attentions):
            x = norm(x + attention(x, x, use_causal_mask=True, training=training))
        return x

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        scores = [tf.reduce_sum(y_pred * self.item(y[which]), -1) for which in ("next", "other")]
        of_each = [tf.nn.sigmoid_cross_entropy_with_logits(tf.ones_like(scores[0]), scores[0]),
                   tf.nn.sigmoid_cross_entropy_with_logits(tf.zeros_like(scores[1]), scores[1])]
        return tf.reduce_mean(tf.add_n(of_each)) + tf.add_n(self.losses)


@program("tutorial", steps=STEPS, also=PEAKS)
def next_item_by_attention():
    history = np.random.randint(1, 3000, (STEPS * BATCH, 51))
    others = np.random.randint(1, 3000, (STEPS * BATCH, 50))
    model = NextItem(3000, 64, 50)
    model.compile("adam", jit_compile=False)
    model.fit(history[:, :-1], {"next": history[:, 1:], "other": others}, batch_size=BATCH, verbose=0)
    return of(model)


@program("optimizer", "optimizer-state", r"2\.0 values per parameter", saving=4 * (256 * 1024 + 512 * 1024 + 1536 + 5130))
def adam_with_accumulated_gradients():
    """One value per parameter instead of two is what another optimizer saves: it sums up gradients too."""
    model = keras.Sequential([keras.Input((256,)), layers.Dense(1024, activation="relu"), layers.Dense(512), layers.Dense(10)])
    model.compile(keras.optimizers.Adam(gradient_accumulation_steps=2), "mse", jit_compile=False)
    model.fit(np.ones((STEPS * BATCH, 256), "float32"), np.ones((STEPS * BATCH, 10), "float32"), batch_size=BATCH, verbose=0)


if __name__ == "__main__":
    run_all()
