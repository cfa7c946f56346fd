// The table of functions of one plugin, and how to ask it.
#pragma once

#include <atomic>
#include <cstddef>

#include "capture/jax/pjrt_abi.h"
#include "capture/once.h"

namespace vramscope::capture::jax::pjrt {

struct Table {
  static constexpr std::size_t kMostBytes = 4096;
  std::atomic<void*> entry;  // the plugin's GetPjrtApi; NULL: free
  std::atomic<bool> tracks;  // its allocator is not recorded: buffers are (buffers.h)
  Once made;
  const unsigned char* real = nullptr;
  alignas(16) unsigned char copy[kMostBytes] = {};
};

std::size_t size_of(const unsigned char* table);
// NULL if the table is shorter.
Function function_at(const Table& table, Place place);
// Errors are dropped: the question was ours, not the program's.
bool ask(const Table& table, Place place, const void* about, std::size_t struct_size, Question& question);

}  // namespace vramscope::capture::jax::pjrt
