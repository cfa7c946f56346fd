"""Lets TensorFlow write a profile and run out of memory. Prints what it counted, as TensorFlow's own messages read it."""
import glob
import json
import sys

import tensorflow as tf
from tensorflow.compiler.xla.tsl.protobuf import bfc_memory_map_pb2
from tensorflow.tsl.profiler.protobuf import xplane_pb2

folder = sys.argv[1]
x = tf.Variable(tf.random.normal((256, 256)))
tf.profiler.experimental.start(folder + "/profile")
kept = []
for i in range(5):
    y = tf.matmul(x, x)
    kept.append(tf.nn.relu(y) + 1)
del kept[2:]
tf.profiler.experimental.stop()

space = xplane_pb2.XSpace()
with open(glob.glob(folder + "/profile/**/*.xplane.pb", recursive=True)[0], "rb") as file:
    space.ParseFromString(file.read())
seen = []
for plane in space.planes:
    names = {key: value.name for key, value in plane.event_metadata.items()}
    stats = {key: value.name for key, value in plane.stat_metadata.items()}
    for line in plane.lines:
        for event in line.events:
            if names[event.metadata_id] in ("MemoryAllocation", "MemoryDeallocation"):
                said = {stats[stat.metadata_id]: getattr(stat, stat.WhichOneof("value")) for stat in event.stats}
                seen.append((line.timestamp_ns * 1000 + event.offset_ps, said["bytes_allocated"], said["allocation_bytes"],
                             names[event.metadata_id] == "MemoryDeallocation"))
seen.sort(key=lambda item: item[0])
_, total, bytes_, freed = seen[0]
at_start = total + bytes_ if freed else total - bytes_

try:
    hoard = [tf.zeros((1024, 1024)) + i for i in range(100)]
    sys.exit("there was enough memory")
except tf.errors.ResourceExhaustedError:
    pass
dump = bfc_memory_map_pb2.MemoryDump()
with open(sorted(glob.glob(folder + "/dump*"))[-1], "rb") as file:
    dump.ParseFromString(file.read())
print(json.dumps({
    "profile": {"peak": max(at_start, max(item[1] for item in seen)), "end": seen[-1][1]},
    "dump": {"in_use": sum(chunk.size for chunk in dump.chunk if chunk.in_use), "pool": sum(chunk.size for chunk in dump.chunk)},
    "failed": {"bytes": 4 << 20}}))
