"""A training program as TensorFlow 1 had them, with the numbers that its user wants to see. `session_programs.py ref|resource`: the kind of
variables. Prints one line of JSON."""
import csv
import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np  # noqa: E402
import tensorflow.compat.v1 as tf  # noqa: E402

import vramscope  # noqa: E402
import vramscope.tf as vtf  # noqa: E402

tf.disable_v2_behavior()
tf.logging.set_verbosity(tf.logging.ERROR)
if sys.argv[1] == "resource":
    tf.enable_resource_variables()
STEPS, CPU = 20, "CPU:0"
theirs = tf.config.experimental.get_memory_info
differences = []


def compare(when):
    now = theirs(CPU)
    info, again = vramscope.memory_info(CPU), vtf.get_memory_info(CPU)
    for name in ("current", "peak"):
        if not now[name] == getattr(info, name) == again[name]:
            differences.append([when, name, now[name], getattr(info, name), again[name]])
    return info


x = tf.placeholder(tf.float32, [None, 256], name="x")
y = tf.placeholder(tf.float32, [None, 10], name="y")
kernel = tf.get_variable("hidden/kernel", [256, 512])
bias = tf.get_variable("hidden/bias", [512], initializer=tf.zeros_initializer())
out = tf.get_variable("out/kernel", [512, 10], initializer=tf.truncated_normal_initializer(stddev=0.1))
tf.Variable(np.ones((100, 300), "float32"), name="table", trainable=False)
loss = tf.reduce_mean(tf.square(tf.matmul(tf.nn.relu(tf.matmul(x, kernel) + bias), out) - y))
optimizer = tf.train.AdamOptimizer(1e-3)
train = optimizer.minimize(loss)
feed = {x: np.zeros((64, 256), "float32"), y: np.zeros((64, 10), "float32")}

with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    vramscope.memory_info(CPU)          # the first time it places an op, which takes 256 bytes for a moment
    compare("initialized")
    done = 0
    with vtf.memory_logger(every=0.01, to="memory.csv", device=CPU, step=lambda: done) as logger:
        for done in range(1, STEPS + 1):
            session.run([train, loss], feed)
            source = compare(done).source
    logged = theirs(CPU)["current"]
    vramscope.reset_peak(CPU)
    compare("reset")
    reset = theirs(CPU)
    session.run(train, feed)
    compare("after")
    trainable = {id(variable) for variable in tf.trainable_variables()}
    sizes = {variable.op.name: int(np.prod(variable.shape)) * 4 for variable in tf.global_variables()}

with open("memory.csv", newline="") as file:
    rows = list(csv.DictReader(file))
parameters = {variable.op.name: sizes[variable.op.name] for variable in tf.global_variables() if id(variable) in trainable}
slots = {variable.op.name: sizes[variable.op.name] for variable in optimizer.variables()}
print(json.dumps({
    "differences": differences, "source": source, "reset": reset["peak"] == reset["current"], "parameters": parameters, "slots": slots,
    "kinds": sorted({type(variable).__name__ for variable in tf.global_variables()}), "entries": [logger.entries, len(rows)],
    "steps": [int(row["step"]) for row in rows], "logged": [int(rows[-1]["current"]), logged]}))
