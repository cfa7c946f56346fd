// What `vramscope run` (or a late attach) requested. Read once, before main.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vramscope::record {

struct Options {
  char spool_folder[3072];     // empty: nothing is recorded
  std::uint64_t spool_limit;   // bytes of this process's spool
  std::uint64_t spool_leaves;  // bytes of the file system that it leaves free
  bool use_tsc;
  bool python_stacks;
  bool native_stacks;
  bool unwind_tables;  // native stacks by unwind tables: exact, but about 200 ns per frame
};

extern Options g_options;

// From the environment; run by the library's constructor.
void read_environment();
// "stacks=python,stacks=native": unknown words are ignored.
void parse_options(const char* text);

}  // namespace vramscope::record
