// What JAX is doing while a block is allocated.
#pragma once

#include <cstdint>

#include "record/recorder.h"

namespace vramscope::capture::jax {

struct Activity {
  std::uint32_t op = 0;      // string id: the program that runs
  std::uint16_t region = 0;  // string id: "execute", "result", "compile", "transfer"
  std::int64_t run = 0;      // number of the execution; 0: none
};

// What the calling thread does. Threads of a compiler that runs now try out algorithms.
Activity current_activity();

// Wraps a call in an activity of the calling thread.
class Doing {
 public:
  explicit Doing(const Activity& activity);
  ~Doing();
  Doing(const Doing&) = delete;
  Doing& operator=(const Doing&) = delete;

 private:
  Activity before_;
};

// While one exists, programs are compiled.
class Compiling {
 public:
  Compiling();
  ~Compiling();
  Compiling(const Compiling&) = delete;
  Compiling& operator=(const Compiling&) = delete;
};

// The string id of a short word, as it fits into an event.
std::uint16_t region_called(const char* word);

}  // namespace vramscope::capture::jax
