"""Profiles by the protobuf run time, with the message of google/pprof's proto/profile.proto described here field by field."""
import gzip

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_INT64, _UINT64, _BOOL, _STRING, _MESSAGE = 3, 4, 8, 9, 11
_MESSAGES = {
    "ValueType": [("type", 1, _INT64), ("unit", 2, _INT64)],
    "Label": [("key", 1, _INT64), ("str", 2, _INT64), ("num", 3, _INT64), ("num_unit", 4, _INT64)],
    "Sample": [("location_id", 1, _UINT64, True), ("value", 2, _INT64, True), ("label", 3, "Label", True)],
    "Mapping": [("id", 1, _UINT64), ("filename", 5, _INT64), ("has_functions", 7, _BOOL)],
    "Line": [("function_id", 1, _UINT64), ("line", 2, _INT64)],
    "Location": [("id", 1, _UINT64), ("mapping_id", 2, _UINT64), ("address", 3, _UINT64), ("line", 4, "Line", True)],
    "Function": [("id", 1, _UINT64), ("name", 2, _INT64), ("system_name", 3, _INT64), ("filename", 4, _INT64)],
    "Profile": [("sample_type", 1, "ValueType", True), ("sample", 2, "Sample", True), ("mapping", 3, "Mapping", True),
                ("location", 4, "Location", True), ("function", 5, "Function", True), ("string_table", 6, _STRING, True),
                ("time_nanos", 9, _INT64), ("duration_nanos", 10, _INT64), ("period_type", 11, "ValueType"), ("period", 12, _INT64),
                ("default_sample_type", 14, _INT64)],
}


def _profile_class():
    file = descriptor_pb2.FileDescriptorProto(name="profile.proto", package="perftools.profiles", syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, number, kind, *repeated in fields:
            one = message.field.add(name=field, number=number, label=3 if repeated else 1)
            if isinstance(kind, str):
                one.type, one.type_name = _MESSAGE, f".perftools.profiles.{kind}"
            else:
                one.type = kind
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("perftools.profiles.Profile"))


Profile = _profile_class()


def read(path):
    profile = Profile()
    profile.ParseFromString(gzip.decompress(path.read_bytes()))
    return profile


def totals(profile):
    """Sum of each type of sample, by name."""
    names = [profile.string_table[kind.type] for kind in profile.sample_type]
    return {name: sum(sample.value[i] for sample in profile.sample) for i, name in enumerate(names)}
