"""The rank that TensorFlow's own launcher variable says."""
import json

import pytest

PROGRAM = """
import tensorflow as tf, vramscope
vramscope.mark("begins")
tf.function(lambda x: x @ x)(tf.ones([8, 8]))
print("{}")
"""
CLUSTER = {"chief": ["localhost:2221"], "worker": ["localhost:2222", "localhost:2223"], "ps": ["localhost:2224"]}


def ranks(recording):
    settings = {event["key"]: event["value"] for event in recording.events() if event["event"] == "setting"}
    return {key: settings[key] for key in ("launcher", "rank", "world_size") if key in settings}


@pytest.mark.parametrize("task, index, rank", [("chief", 0, "0"), ("worker", 1, "2"), ("ps", 0, None)])
def test_tf_config(record, newest_tensorflow, task, index, rank):
    config = json.dumps({"cluster": CLUSTER, "task": {"type": task, "index": index}})
    recording = record([newest_tensorflow, "-c", PROGRAM], env={"TF_CONFIG": config})
    assert ranks(recording) == ({} if rank is None else {"launcher": "tf_config", "rank": rank, "world_size": "3"})


def test_a_launcher_comes_first(record, newest_tensorflow):
    config = json.dumps({"cluster": CLUSTER, "task": {"type": "worker", "index": 0}})
    recording = record([newest_tensorflow, "-c", PROGRAM], env={"TF_CONFIG": config, "SLURM_PROCID": "5", "SLURM_NTASKS": "8"})
    assert ranks(recording) == {"launcher": "slurm", "rank": "5", "world_size": "8"}
