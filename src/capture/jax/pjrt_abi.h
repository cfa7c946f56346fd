// The parts of PJRT's C interface that are used. It only grows at the end: a table or an argument that is shorter lacks the rest.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vramscope::capture::jax::pjrt {

struct Error;
using Function = Error* (*)(void* arguments);

// Places in the table of functions (PJRT_Api), in bytes.
enum class Place : std::uint16_t {
  error_destroy = 40,
  compile = 200,
  buffer_from_host = 216,
  description_id = 224,
  device_description = 272,
  executable_destroy = 360,
  executable_name = 368,
  executable_results = 392,
  loaded_destroy = 440,
  loaded_executable = 448,
  execute = 480,
  deserialize = 488,
  buffer_destroy = 504,
  buffer_bytes = 552,
  buffer_device = 560,
  buffer_delete = 576,
  buffer_is_deleted = 584,
  buffer_to_device = 592,
  buffer_on_cpu = 608,
  buffer_address = 648,
  buffer_to_memory = 776,
  transferred_buffer = 872,
  load = 1072,
};

// The start of every argument.
struct Head {
  std::size_t struct_size;
  void* extension;
};

// For functions with one input and up to two results: PJRT_Error_Destroy, _Executable_Destroy, _Executable_Name,
// _Executable_NumOutputs, _LoadedExecutable_GetExecutable, _Buffer_OnDeviceSizeInBytes, _Buffer_OpaqueDeviceMemoryDataPointer,
// _Buffer_Device, _Buffer_IsDeleted, _Buffer_IsOnCpu, _Device_GetDescription, _DeviceDescription_Id. Flags and small numbers take
// the lower bytes of the answer.
struct Question {
  Head head;
  const void* about;
  std::uint64_t answer;
  std::uint64_t second_answer;
};
inline constexpr std::size_t kNoAnswer = 24, kOneAnswer = 32, kTwoAnswers = 40;  // struct_size
static_assert(sizeof(Question) == kTwoAnswers);

struct Compile {  // PJRT_Client_Compile_Args, and PJRT_Client_Load_Args up to its names
  Head head;
  void* client;
  const void* program;
  const char* options;
  std::size_t option_bytes;
  const void* executable;  // result
};
static_assert(offsetof(Compile, executable) == 48);

struct Deserialize {  // PJRT_Executable_DeserializeAndLoad_Args
  Head head;
  void* client;
  const char* serialized;
  std::size_t serialized_bytes;
  const void* executable;  // result
};
static_assert(offsetof(Deserialize, executable) == 40);

struct Destroy {  // PJRT_LoadedExecutable_Destroy_Args, PJRT_Buffer_Destroy_Args, PJRT_Buffer_Delete_Args
  Head head;
  const void* object;
};

struct FromHost {  // PJRT_Client_BufferFromHostBuffer_Args
  Head head;
  const void* inputs[11];
  void* done;          // result
  const void* buffer;  // result
};
static_assert(offsetof(FromHost, buffer) == 112);

// PJRT_Buffer_CopyToDevice_Args, PJRT_Buffer_CopyToMemory_Args, PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args
struct Copy {
  Head head;
  const void* from;
  const void* to;
  const void* buffer;  // result
};
static_assert(offsetof(Copy, buffer) == 32);

struct Execute {  // PJRT_LoadedExecutable_Execute_Args
  Head head;
  const void* executable;
  void* options;
  const void* const* const* arguments;  // by device, then by argument
  std::size_t devices;
  std::size_t argument_count;
  const void* const* const* results;  // by device
};
static_assert(offsetof(Execute, results) == 56);

}  // namespace vramscope::capture::jax::pjrt
