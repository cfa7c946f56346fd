#!/usr/bin/env python3
"""Compares the driver functions and structs that the hooks declare with NVIDIA's own header.

    tools/check_cuda_abi.py INCLUDE_FOLDER     a folder with cuda.h (of the CUDA toolkit, or of the nvidia-cuda-runtime wheel)

For each function of src/capture/cuda/hooks.inc: number, size and kind (pointer or not) of the parameters. For each struct of abi.h: the sizes and
offsets that its static_assert states. Of the constants in abi.h, those of SAME_VALUE. The header is not needed to build; run this when a hook is added.
"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROW = re.compile(r"^VS_(?:HOOK|QUERY)\((\w+), \w+, (\d+), [01], (?:\w+, )?\((.*?)\)(?:, \"|\)$)", re.MULTILINE)
STRUCT = re.compile(r"^struct (\w+) \{(.*?)^\};", re.MULTILINE | re.DOTALL)

# ours, theirs
SAME_VALUE = [("kPointerDeviceOrdinal", "CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL"), ("kPoolReservedCurrent", "CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT"),
              ("kPoolUsedCurrent", "CU_MEMPOOL_ATTR_USED_MEM_CURRENT"), ("kPoolReleaseThreshold", "CU_MEMPOOL_ATTR_RELEASE_THRESHOLD"),
              ("kGraphReservedCurrent", "CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT"), ("kGraphNodeMemAlloc", "CU_GRAPH_NODE_TYPE_MEM_ALLOC"),
              ("kLocationDevice", "CU_MEM_LOCATION_TYPE_DEVICE"), ("kArraySparse", "CUDA_ARRAY3D_SPARSE"),
              ("kArrayDeferred", "CUDA_ARRAY3D_DEFERRED_MAPPING"), ("kOutOfMemory", "CUDA_ERROR_OUT_OF_MEMORY"), ("kNotFound", "CUDA_ERROR_NOT_FOUND")]

PROGRAM = """
#define __CUDA_API_VERSION_INTERNAL 1
#include <cuda.h>
#include "capture/cuda/abi.h"
#include <type_traits>
namespace ours = vramscope::capture::cuda;
template <typename A, typename B> constexpr bool same = sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B>;
template <typename F, typename G> constexpr bool alike = false;
template <typename R, typename... A, typename S, typename... B> requires(sizeof...(A) == sizeof...(B))
constexpr bool alike<R(A...), S(B...)> = (same<A, B> && ...);
"""


def assertions():
    table = (ROOT / "src/capture/cuda/hooks.inc").read_text()
    for symbol, since, parameters in ROW.findall(table):
        mine = re.sub(r"\b(CU\w+)", r"ours::\1", parameters)
        # The header declares the per-thread twins under the plain name.
        theirs = symbol.removesuffix("_ptsz")
        yield f'#if CUDA_VERSION >= {since}\nstatic_assert(alike<int({mine}), decltype(::{theirs})>, "{symbol}");\n#endif'
    layout = (ROOT / "src/capture/cuda/abi.h").read_text()
    for struct, body in STRUCT.findall(layout):
        sizes, offsets = re.findall(rf"sizeof\({struct}\) == ", layout), re.findall(rf"offsetof\({struct}, (\w+)\) == ", layout)
        if not sizes and not offsets:
            sys.exit(f"check_cuda_abi: abi.h states neither size nor offset of {struct}")
        if sizes:
            yield f'static_assert(sizeof(ours::{struct}) == sizeof(::{struct}), "size of {struct}");'
        for mine in offsets:
            renamed = re.search(rf"\b{mine};.*// cuda\.h: (\w+)", body)
            theirs = renamed[1] if renamed else mine
            yield f'static_assert(offsetof(ours::{struct}, {mine}) == offsetof(::{struct}, {theirs}), "{struct}::{theirs}");'
    for mine, theirs in SAME_VALUE:
        yield f'static_assert(int(ours::{mine}) == int({theirs}), "{theirs}");'


def main():
    if len(sys.argv) != 2 or not (Path(sys.argv[1]) / "cuda.h").exists():
        print("check_cuda_abi: give the folder that holds cuda.h", file=sys.stderr)
        return 2
    checks = list(assertions())
    with tempfile.NamedTemporaryFile("w", suffix=".cpp") as source:
        source.write(PROGRAM + "\n".join(checks) + "\n")
        source.flush()
        done = subprocess.run(["c++", "-std=c++20", "-fsyntax-only", f"-I{sys.argv[1]}", f"-I{ROOT / 'src'}", source.name], capture_output=True, text=True)
    failed = re.findall(r"static assertion failed: (.*)", done.stderr)
    if done.returncode != 0:
        print(*(failed or [done.stderr]), sep="\n")
    print(f"check_cuda_abi: {len(checks) - len(failed)} of {len(checks)} agree" if failed or done.returncode == 0 else "check_cuda_abi: does not compile")
    return 0 if done.returncode == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
