// The programs that JAX has compiled: their names, and what their arguments are.
#pragma once

#include <cstddef>
#include <cstdint>

#include "record/recorder.h"

namespace vramscope::capture::jax {

struct Argument {
  std::uint32_t name = 0, layer = 0;  // string ids
  record::Category category = record::Category::unknown;
  std::uint8_t still = 0;     // number of runs, up to a few, for which its address has not changed
  std::uint64_t address = 0;  // on the first device, when the program last ran
};

struct Program {
  std::uint32_t name = 0;  // string id
  bool trains = false;     // computes gradients
  Argument* arguments = nullptr;
  std::size_t argument_count = 0, result_count = 0;
  const Argument* results = nullptr;  // what its results are, if that is known of result_count
  std::size_t labelled_count = 0;
  std::uint64_t runs = 0;
};

namespace programs {

// Python has described a program that is about to be compiled. By name, because the compiler may run in another thread: the last
// description of a name counts. The caller holds the interpreter's lock.
void describe(const Program& program);
// What was described under this name; otherwise just the name.
Program described_as(std::uint32_t name);
// String id of the program that was described last.
std::uint32_t last_described();

// Room for arguments that is never given back. NULL if there is none.
Argument* keep_arguments(const Argument* arguments, std::size_t count);

// Called for each executable that was compiled or loaded, and when it is destroyed.
void add(const void* executable, const Program& program);
void remove(const void* executable);
// NULL if it is unknown, or is from another recording.
Program* find(const void* executable);

}  // namespace programs
}  // namespace vramscope::capture::jax
