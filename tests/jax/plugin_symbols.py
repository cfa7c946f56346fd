"""What a test has to know about the allocator inside a CUDA plugin of JAX, read from the plugin's symbols with binutils."""
import functools
import re
import struct
import subprocess

CLASS = "_ZTVN3tsl12BFCAllocatorE"
CONSTRUCTOR = re.compile(r"_ZN3tsl12BFCAllocatorC1E\w+")
ALLOCATE = "_ZN3tsl12BFCAllocator11AllocateRawEmmRKNS_20AllocationAttributesE"
DEALLOCATE = "_ZN3tsl12BFCAllocator13DeallocateRawEPv"
GET_STATS = "_ZN3tsl12BFCAllocator8GetStatsEv"


def symbols_of(plugin):
    """{name: (offset, bytes)} of the class."""
    found = {}
    for line in subprocess.run(["nm", "-S", plugin], capture_output=True, text=True, check=True).stdout.splitlines():
        parts = line.split()
        if len(parts) == 4 and "3tsl12BFCAllocator" in parts[3]:
            found[parts[3]] = int(parts[0], 16), int(parts[1], 16)
    return found


def functions_of(plugin, vtable, size):
    """The offsets of the vtable's functions, in order: the loader writes them there by relocations."""
    section = subprocess.run(["readelf", "-SW", plugin], capture_output=True, text=True, check=True).stdout
    offset, length = re.search(r"\.rela\.dyn\s+RELA\s+\w+ (\w+) (\w+)", section).groups()
    with open(plugin, "rb") as file:
        file.seek(int(offset, 16))
        relocations = file.read(int(length, 16))
    relative = 8    # R_X86_64_RELATIVE
    starts = (relocations.index(struct.pack("<QQ", place, relative)) for place in range(vtable + 16, vtable + size, 8))
    return [struct.unpack_from("<q", relocations, start + 16)[0] for start in starts]


@functools.lru_cache(maxsize=None)
def arguments(plugin):
    """What plugin_bfc needs: constructor, vtable, and the places of three functions."""
    symbols = symbols_of(plugin)
    vtable, size = symbols[CLASS]
    functions = functions_of(plugin, vtable, size)
    constructor = next(offset for name, (offset, _) in symbols.items() if CONSTRUCTOR.fullmatch(name))
    return [constructor, vtable, *(functions.index(symbols[name][0]) for name in (ALLOCATE, DEALLOCATE, GET_STATS))]
