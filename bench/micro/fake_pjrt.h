// What the stand-in for a plugin of JAX and its driver agree on.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fake_pjrt {

inline constexpr std::size_t kTableBytes = 1144;
inline constexpr const char* kProgram = "jit_train_step";

struct Question {
  std::size_t struct_size;
  void* extension;
  const void* about;
  std::uint64_t answer, second_answer;
};

struct Buffer {
  std::uint64_t address, bytes;
};

}  // namespace fake_pjrt
