"""Iterations of a training loop of one's own, counted by the loop itself."""
import json
import subprocess

import pytest

LOOPS = '''
import sys
import keras, tensorflow as tf

def network(outputs):
    return keras.Sequential([keras.Input((16,)), keras.layers.Dense(32, activation="relu"), keras.layers.Dense(outputs)])

one, other = network(8), network(16)
x = tf.random.normal([32, 16])

def gradients(model, x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(x) ** 2)
    return tape.gradient(loss, model.trainable_variables)

def write(model, *sums):
    for variable, *parts in zip(model.trainable_variables, *sums):
        variable.assign_sub(0.01 * tf.add_n(parts))

def trainer(model, compile):
    optimizer = keras.optimizers.Adam()
    def train(x):
        optimizer.apply_gradients(zip(gradients(model, x), model.trainable_variables))
    return tf.function(train) if compile else train

def two_models(compile):
    first, second = trainer(one, compile), trainer(other, compile)
    for _ in range(20):
        first(x)
        second(x)

def one_after_the_other():
    for train in (trainer(one, True), trainer(other, False)):
        for _ in range(10):
            train(x)

def followed():
    train = trainer(one, True)
    for _ in range(20):
        train(x)
        for target, variable in zip(other.trainable_variables[:2], one.trainable_variables[:2]):
            target.assign(variable)

def by_hand(compile):
    take = tf.function(gradients) if compile else gradients
    for _ in range(20):
        write(one, take(one, x), take(one, x))

def by_hand_two_models():
    for _ in range(20):
        for model in (one, other):
            write(model, gradients(model, x))

def of_tensorflow_1():
    optimizer = tf.compat.v1.train.GradientDescentOptimizer(0.1)
    for _ in range(20):
        optimizer.apply_gradients(zip(gradients(one, x), one.trainable_variables))

'''


@pytest.mark.parametrize("loop", ["two_models(True)", "two_models(False)", "one_after_the_other()", "followed()", "by_hand(True)",
                                  "by_hand(False)", "by_hand_two_models()", "of_tensorflow_1()"])
def test_every_loop_has_its_twenty_iterations(record_python, python, vramscope, loop):
    folder, _ = record_python(python, LOOPS + loop)
    printed = subprocess.run([str(vramscope), "steps", str(folder), "--json"], capture_output=True, text=True, check=True).stdout
    answer = json.loads(printed)["steps"]
    assert len(answer["steps"]) == 20 and answer["source"] == "reported", answer["sentence"]
