"""Devices, by all the names that frameworks have for them."""
from __future__ import annotations

import re
import sys
from typing import NamedTuple


class Device(NamedTuple):
    kind: str       # "GPU" or "CPU"
    index: int

    def __str__(self) -> str:
        return f"{self.kind}:{self.index}"


_NAME = re.compile(r"^(?:/job:\w+/replica:\d+/task:\d+/)?/?(?:device:|(physical_device:))?(gpu|cuda|cpu)(?::(\d+))?$", re.IGNORECASE)


def parse_device(device: object) -> Device:
    """Accepts 'GPU:0', 'cuda:1', 'CPU', '/job:localhost/replica:0/task:0/device:GPU:0', '/physical_device:GPU:0', and objects that have such a
    name or print as one; raises ValueError for anything else."""
    if hasattr(device, "platform") and hasattr(device, "local_hardware_id"):        # JAX's; each plugin prints its devices in another way
        number = device.id if device.local_hardware_id is None else device.local_hardware_id  # type: ignore[attr-defined]
        return Device("GPU" if device.platform in ("gpu", "cuda", "rocm") else "CPU", number)
    name = name_of(device)
    match = _NAME.match(name)
    if match is None:
        raise ValueError(f'unknown device "{name}": expected a name such as "GPU:0" or "CPU:0"')
    found = Device("CPU" if match.group(2).lower() == "cpu" else "GPU", int(match.group(3) or 0))
    return _logical(found, name) if match.group(1) else found


def name_of(device: object) -> str:
    """The name as it was given: as text, or by an object such as an entry of tf.config.list_physical_devices()."""
    return device if isinstance(device, str) else str(getattr(device, "name", device))


def not_found(device: object) -> str:
    """In TensorFlow's own words: programs that handle its error handle ours."""
    return f"No matching devices found for '{device}'"


def _logical(physical: Device, name: str) -> Device:
    """TensorFlow numbers the visible devices, and the parts of those that the program splits. Each of these has its own counters."""
    tf = sys.modules.get("tensorflow")
    if not hasattr(tf, "config"):
        return physical
    first = 0
    for visible in tf.config.get_visible_devices(physical.kind):        # type: ignore[union-attr]
        parts = len(tf.config.get_logical_device_configuration(visible) or (None,))     # type: ignore[union-attr]
        if visible.name.endswith(f":{physical}"):
            if parts > 1:
                names = ", ".join(f'"{physical.kind}:{first + part}"' for part in range(parts))
                raise ValueError(f'device "{name}" is split into {names}; name one of them')
            return Device(physical.kind, first)
        first += parts
    raise ValueError(not_found(name))
