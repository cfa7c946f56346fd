"""Processes that a recorded program makes have traces of their own, with all that the Python side reports."""
import json
import subprocess

import pytest

CHILDREN = """
import multiprocessing, os

def train(who):
    import keras, tensorflow as tf, vramscope
    model = keras.Sequential([keras.Input((16,)), keras.layers.Dense(8)])
    optimizer = keras.optimizers.Adam()
    x = tf.random.normal([32, 16])
    for _ in range(4):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(x) ** 2)
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    ours, theirs = vramscope.memory_info("CPU:0"), tf.config.experimental.get_memory_info("CPU:0")
    assert (ours.source, ours.current, ours.peak) == ("recorder", theirs["current"], theirs["peak"]), (ours, theirs)

if __name__ == "__main__":
    if HOW == "fork":
        train("parent")                 # the child finds everything as the parent left it
    child = multiprocessing.get_context(HOW).Process(target=train, args=("child",))
    child.start()
    child.join(120)
    assert child.exitcode == 0, child.exitcode
"""


@pytest.mark.parametrize("how", ["fork", "spawn"])
def test_a_child_is_recorded_as_its_parent_is(record_python, python, vramscope, how):
    folder, _ = record_python(python, f"HOW = {how!r}\n{CHILDREN}")
    traces = sorted(folder.glob("*.vram"))
    assert len(traces) == (2 if how == "fork" else 1)
    for trace in traces:
        dump = subprocess.run([str(vramscope), "dump", "--jsonl", str(trace)], capture_output=True, text=True, check=True).stdout
        events = [json.loads(line) for line in dump.splitlines()]
        settings = {event["key"] for event in events if event["event"] == "setting"}
        tagged = {event["name"] for event in events if event["event"] == "tag"}
        assert "tensorflow.version" in settings and "keras.version" in settings
        assert sum(event["event"] == "mark" and event["kind"] == "step" for event in events) == 4
        assert any(name.endswith("kernel") for name in tagged) and any("momentum" in name for name in tagged), tagged
        assert all(event["stack"] for event in events if event["event"] == "alloc")
