// The table of processes in a frame of `vramscope top`.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "cli/top/canvas.h"
#include "cli/top/model.h"

namespace vramscope::cli::top {

struct ProcessTable {
  std::span<const Process> processes;
  std::uint32_t selected = 0;  // pid
  std::uint64_t now_us = 0;
  std::string sort;  // the column whose head is highlighted, in lower case
  bool ascii = false;
};

struct DrawnTable {
  int end = 0;                        // the line after it
  const Process* selected = nullptr;  // NULL: not among the rows
};

// Draws the heads at line `y`, and below them at most `most_rows` processes, but at least one.
DrawnTable draw_table(Canvas& canvas, int y, int most_rows, const ProcessTable& table);

}  // namespace vramscope::cli::top
