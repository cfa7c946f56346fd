// Where CPython stores what a stack needs, for each version. 3.9 to 3.12 from tables; 3.13 and later describe themselves.
#pragma once

#include <cstdint>

namespace vramscope::stacks {

enum class InstrKind : std::uint8_t { byte_offset, unit_offset, pointer };
enum class LineTable : std::uint8_t {
  increments,  // 3.9: co_lnotab
  ranges,      // 3.10: PEP 626
  locations,   // 3.11 and later: PEP 657
};

// Offsets in bytes.
struct PythonLayout {
  std::uint16_t thread_frame = 0;
  std::int16_t cframe_current = -1;  // 3.11 and 3.12: one more hop between thread and frame; -1 = none
  std::uint16_t frame_previous = 0;
  std::uint16_t frame_code = 0;
  std::uint16_t frame_instr = 0;
  std::int16_t frame_owner = -1;  // a byte; 3 and more = a frame of the interpreter itself, not of the program
  std::uint16_t frame_locals = 0;
  std::uint16_t frame_tlbc = 0;                    // free-threaded 3.14: index of this thread's copy of the bytecode; 0 = none
  std::uint64_t pointer_mask = ~std::uint64_t{0};  // 3.14: references carry tags in their low bits
  InstrKind instr = InstrKind::pointer;

  std::uint16_t code_file = 0;
  std::uint16_t code_name = 0;  // the qualified name where there is one
  std::uint16_t code_first_line = 0;
  std::uint16_t code_lines = 0;  // the line table, a bytes object
  LineTable line_table = LineTable::locations;
  std::uint16_t code_instructions = 0;
  std::uint16_t code_tlbc = 0;
  std::uint16_t code_bytes = 0;    // how much of a code object is read
  std::uint16_t code_version = 0;  // 3.12 and 3.13: a number that no other code object ever had; 0 = none

  std::uint16_t object_type = 8;
  std::uint16_t bytes_size = 16;
  std::uint16_t bytes_data = 32;
  std::uint16_t text_length = 16;
  std::uint16_t text_state = 32;
  std::uint16_t text_kind_shift = 2;  // in the state word: kind (3 bits), compact, ascii; differs between builds, so that it is
                                      // found by looking at a known text (learn_text_state)
  std::uint16_t text_ascii_data = 40;
  std::uint16_t text_wide_data = 56;
};

// Layout of version major.minor. `debug_offsets` = address of _PyRuntime (used from 3.13 on; otherwise NULL). False = unknown.
bool python_layout(int major, int minor, const void* debug_offsets, PythonLayout& out);

}  // namespace vramscope::stacks
