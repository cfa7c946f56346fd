// The part of the CUDA driver's binary interface that the hooks need, declared here so that building needs no CUDA header.
//
// Handles are opaque pointers. A struct is declared only if a hook reads it, up to the last field it reads, followed by what is
// known about its layout. tools/check_cuda_abi.py compares each such size and offset with NVIDIA's header; "cuda.h: name" is what
// a field is called there if it has another name here.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vramscope::capture::cuda {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = std::uint64_t;
using CUmemGenericAllocationHandle = std::uint64_t;
using CUcontext = void*;
using CUstream = void*;
using CUmemoryPool = void*;
using CUarray = void*;
using CUmipmappedArray = void*;
using CUexternalMemory = void*;
using CUgraph = void*;
using CUgraphNode = void*;
using CUgraphExec = void*;

inline constexpr CUresult kSuccess = 0;
inline constexpr CUresult kInvalidValue = 1;
inline constexpr CUresult kOutOfMemory = 2;
inline constexpr CUresult kNotInitialized = 3;
inline constexpr CUresult kInvalidDevice = 101;
inline constexpr CUresult kInvalidContext = 201;
inline constexpr CUresult kInvalidHandle = 400;
inline constexpr CUresult kNotFound = 500;  // also returned by a wrapper whose real function does not exist

enum LocationType : std::int32_t { kLocationDevice = 1, kLocationHost = 2, kLocationHostNuma = 3, kLocationHostNumaCurrent = 4 };

struct CUmemLocation {
  std::int32_t type;
  std::int32_t id;
};
static_assert(sizeof(CUmemLocation) == 8);

struct CUmemAllocationProp {
  std::int32_t type;
  std::int32_t requested_handle_types;
  CUmemLocation location;
  void* win32_metadata;
  std::uint8_t flags[8];
};
static_assert(offsetof(CUmemAllocationProp, location) == 8 && sizeof(CUmemAllocationProp) == 32);

struct CUmulticastObjectProp {
  std::uint32_t devices;
  std::size_t bytes;  // cuda.h: size
};
static_assert(offsetof(CUmulticastObjectProp, bytes) == 8);

struct CUmemPoolProps {
  std::int32_t alloc_type;
  std::int32_t handle_types;
  CUmemLocation location;
  void* win32_attributes;
  std::size_t max_size;  // cuda.h: maxSize
  std::uint16_t usage;
  std::uint8_t reserved[54];
};
static_assert(offsetof(CUmemPoolProps, location) == 8 && offsetof(CUmemPoolProps, max_size) == 24 &&
              sizeof(CUmemPoolProps) == 88);

struct CUDA_MEM_ALLOC_NODE_PARAMS {
  CUmemPoolProps pool_props;  // cuda.h: poolProps
  const void* access;
  std::size_t access_count;
  std::size_t bytes;  // cuda.h: bytesize
  CUdeviceptr address;
};
static_assert(offsetof(CUDA_MEM_ALLOC_NODE_PARAMS, pool_props) == 0 && offsetof(CUDA_MEM_ALLOC_NODE_PARAMS, bytes) == 104 &&
              sizeof(CUDA_MEM_ALLOC_NODE_PARAMS) == 120);

struct CUgraphNodeParams {
  std::int32_t type;  // GraphNodeType; a union of parameters follows
};
static_assert(offsetof(CUgraphNodeParams, type) == 0);
inline constexpr std::int32_t kGraphNodeMemAlloc = 10;

struct CUDA_ARRAY_DESCRIPTOR {
  std::size_t width;
  std::size_t height;
  std::int32_t format;  // cuda.h: Format
  std::uint32_t channels;
};
static_assert(offsetof(CUDA_ARRAY_DESCRIPTOR, format) == 16 && sizeof(CUDA_ARRAY_DESCRIPTOR) == 24);

struct CUDA_ARRAY3D_DESCRIPTOR {
  std::size_t width;
  std::size_t height;
  std::size_t depth;
  std::int32_t format;
  std::uint32_t channels;
  std::uint32_t flags;  // cuda.h: Flags
};
static_assert(offsetof(CUDA_ARRAY3D_DESCRIPTOR, flags) == 32 && sizeof(CUDA_ARRAY3D_DESCRIPTOR) == 40);
enum ArrayFlags : std::uint32_t { kArrayLayered = 0x01, kArrayCubemap = 0x04, kArraySparse = 0x40, kArrayDeferred = 0x80 };

struct CUDA_EXTERNAL_MEMORY_HANDLE_DESC {
  std::int32_t type;
  void* handle[2];
  std::uint64_t bytes;  // cuda.h: size
};
static_assert(offsetof(CUDA_EXTERNAL_MEMORY_HANDLE_DESC, bytes) == 24);

struct CUipcMemHandle {  // passed by value, in memory
  char bytes[64];
};
static_assert(sizeof(CUipcMemHandle) == 64);

enum MemPoolAttribute : std::int32_t { kPoolReleaseThreshold = 4, kPoolReservedCurrent = 5, kPoolUsedCurrent = 7 };
enum GraphMemAttribute : std::int32_t { kGraphUsedCurrent = 0, kGraphReservedCurrent = 2 };
enum PointerAttribute : std::int32_t { kPointerDeviceOrdinal = 9 };
enum ProcAddressFlags : std::uint64_t { kProcLegacy = 1, kProcPerThread = 2 };
enum ProcAddressStatus : std::int32_t { kProcFound = 0, kProcNotFound = 1, kProcVersionTooLow = 2 };

}  // namespace vramscope::capture::cuda
