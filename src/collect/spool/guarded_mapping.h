// A mapping of a file that others can truncate. Touching a page behind the end of the file raises SIGBUS, which would end the
// collector and orphan the command. Instead, the mapping then reads as zeros, and its owner can find out.
#pragma once

#include <cstddef>

namespace vramscope::collect {

// Stays at its address, because the signal handler finds it there. All of them belong to one thread.
class GuardedMapping {
 public:
  // `memory`: from mmap(); unmapped with this object.
  GuardedMapping(void* memory, std::size_t bytes);
  GuardedMapping(const GuardedMapping&) = delete;
  GuardedMapping& operator=(const GuardedMapping&) = delete;
  ~GuardedMapping();

  std::byte* data() const { return memory_; }
  // The file ended within the mapping: all of it is zeros now, and what is written goes nowhere.
  bool was_cut() const { return cut_; }

  // For the signal handler. True: `address` was in a mapping, which can be read now.
  static bool replace_at(const void* address);

 private:
  std::byte* memory_;
  std::size_t bytes_;
  volatile bool cut_ = false;  // set by the handler
  GuardedMapping* previous_ = nullptr;
  GuardedMapping* next_ = nullptr;
};

}  // namespace vramscope::collect
