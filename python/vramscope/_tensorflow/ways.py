"""The usual ways to train one Keras model, as functions train(steps, step_done). Each is written as the guides of TensorFlow and Keras
write it: what is compared is what people use."""
from __future__ import annotations

import functools
from typing import Any, Callable, Dict, Optional, Sequence, Tuple

import tensorflow as tf

Build = Callable[[], Any]
Batch = Callable[[], Tuple[Any, Any]]
Done = Callable[[int], None]          # with the samples of the step
_PARTS = 4


def _gradients(model: Any, x: Any, y: Any) -> Tuple[Any, Any]:
    with tf.GradientTape() as tape:
        loss = model.compute_loss(x=x, y=y, y_pred=model(x, training=True))
    return loss, tape.gradient(loss, model.trainable_variables)


def _step(model: Any, x: Any, y: Any) -> Any:
    loss, gradients = _gradients(model, x, y)
    model.optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


def _ready(build: Build, batch: Batch) -> Tuple[Any, Any, Any]:
    """A model and an optimizer with all their variables, and a batch on the device."""
    model, (x, y) = build(), batch()
    x, y = tf.convert_to_tensor(x), tf.convert_to_tensor(y)
    if not model.built:
        model.build(x.shape)
    model.optimizer.build(model.trainable_variables)
    return model, x, y


def eager(build: Build, batch: Batch, steps: int, done: Done) -> None:
    model, x, y = _ready(build, batch)
    for _ in range(steps):
        _step(model, x, y)
        done(x.shape[0])


def function(build: Build, batch: Batch, steps: int, done: Done, jit_compile: bool = False) -> None:
    model, x, y = _ready(build, batch)
    step = tf.function(functools.partial(_step, model), jit_compile=jit_compile)
    for _ in range(steps):
        step(x, y)
        done(x.shape[0])


def xla(build: Build, batch: Batch, steps: int, done: Done) -> None:
    function(build, batch, steps, done, jit_compile=True)


def mixed_precision(build: Build, batch: Batch, steps: int, done: Done) -> None:
    tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")
    function(build, batch, steps, done)


def _dataset(batch: Batch, steps: int) -> Any:
    x, y = batch()
    return tf.data.Dataset.from_tensors((x, y)).repeat(steps).prefetch(tf.data.AUTOTUNE)


def fit(build: Build, batch: Batch, steps: int, done: Done) -> None:
    """As the model was compiled: with XLA on a GPU, unless jit_compile=False."""
    class EachStep(tf.keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            done(samples)

    samples = len(batch()[0])
    build().fit(_dataset(batch, steps), verbose=0, callbacks=[EachStep()])


def custom_loop(build: Build, batch: Batch, steps: int, done: Done) -> None:
    """Over a dataset, with a metric, as in the guide "writing a training loop from scratch"."""
    model, _, _ = _ready(build, batch)
    mean = tf.keras.metrics.Mean()

    @tf.function
    def step(x: Any, y: Any) -> None:
        mean.update_state(_step(model, x, y))

    for x, y in _dataset(batch, steps):
        step(x, y)
        done(x.shape[0])


def gradient_accumulation(build: Build, batch: Batch, steps: int, done: Done) -> None:
    """A batch in four parts: activations of one part at a time, and one more copy of the gradients."""
    model, x, y = _ready(build, batch)
    sums = [tf.Variable(tf.zeros_like(variable), trainable=False) for variable in model.trainable_variables]
    parts = [part for part in zip(_split(x), _split(y)) if part[0].shape[0]]

    @tf.function
    def accumulate(x: Any, y: Any) -> None:
        for total, gradient in zip(sums, _gradients(model, x, y)[1]):
            if gradient is not None:
                total.assign_add(gradient / len(parts))

    @tf.function
    def apply() -> None:
        model.optimizer.apply_gradients(zip([total.value() for total in sums], model.trainable_variables))
        for total in sums:
            total.assign(tf.zeros_like(total))

    for _ in range(steps):
        for part in parts:
            accumulate(*part)
        apply()
        done(x.shape[0])


def _split(tensor: Any) -> Any:
    size = -(-tensor.shape[0] // _PARTS)
    return [tensor[begin:begin + size] for begin in range(0, tensor.shape[0], size)]


_WAYS = {"eager": eager, "function": function, "XLA": xla, "mixed precision": mixed_precision, "fit": fit, "custom loop": custom_loop,
         "gradient accumulation": gradient_accumulation}


def choose(build: Build, batch: Batch, only: Optional[Sequence[str]]) -> Dict[str, Callable[[int, Done], None]]:
    wanted = list(_WAYS) if only is None else list(only)
    unknown = [name for name in wanted if name not in _WAYS]
    if unknown:
        raise ValueError(f"only={only!r}: expected some of {', '.join(_WAYS)}")
    return {name: functools.partial(_WAYS[name], build, batch) for name in wanted}
