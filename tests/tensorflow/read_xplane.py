"""Prints the memory allocations that TensorFlow's profiler wrote into a log folder, one JSON object a line, in order of time."""
import glob
import json
import sys

from tensorflow.tsl.profiler.protobuf import xplane_pb2

space = xplane_pb2.XSpace()
with open(glob.glob(sys.argv[1] + "/**/*.xplane.pb", recursive=True)[0], "rb") as file:
    space.ParseFromString(file.read())

found = []
for plane in space.planes:
    names = {key: value.name for key, value in plane.event_metadata.items()}
    stats = {key: value.name for key, value in plane.stat_metadata.items()}

    def value(stat):
        kind = stat.WhichOneof("value")
        return stats[stat.ref_value] if kind == "ref_value" else getattr(stat, kind)

    for line in plane.lines:
        for event in line.events:
            if names[event.metadata_id] != "MemoryAllocation":
                continue
            said = {stats[stat.metadata_id]: value(stat) for stat in event.stats}
            found.append((line.timestamp_ns * 1000 + event.offset_ps, said))



def word(said, name):
    """Versions that hold names as C strings print a missing one as "(null)"."""
    text = said.get(name, "")
    return "" if text == "(null)" else text


for _, said in sorted(found, key=lambda item: item[0]):
    print(json.dumps({
        "allocator": said["allocator_name"], "address": said["addr"], "requested_bytes": said["requested_bytes"],
        "allocation_bytes": said["allocation_bytes"], "tf_op": word(said, "tf_op"), "region_type": word(said, "region_type"),
        "data_type": said.get("data_type", 0), "shape": word(said, "shape"), "id": said.get("id", 0)}))
