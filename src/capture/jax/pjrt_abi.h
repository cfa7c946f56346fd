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
  executable_destroy = 360,
  executable_name = 368,
  loaded_destroy = 440,
  loaded_executable = 448,
  execute = 480,
  deserialize = 488,
  buffer_bytes = 552,
  buffer_address = 648,
  load = 1072,
};

// The start of every argument.
struct Head {
  std::size_t struct_size;
  void* extension;
};

// For functions with one input and up to two results: PJRT_Error_Destroy, _Executable_Destroy, _Executable_Name,
// _LoadedExecutable_GetExecutable, _Buffer_OnDeviceSizeInBytes, _Buffer_OpaqueDeviceMemoryDataPointer.
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

struct Destroy {
  Head head;
  const void* executable;
};

struct Execute {  // PJRT_LoadedExecutable_Execute_Args
  Head head;
  const void* executable;
  void* options;
  const void* const* const* arguments;  // by device, then by argument
  std::size_t devices;
  std::size_t argument_count;
};

}  // namespace vramscope::capture::jax::pjrt
