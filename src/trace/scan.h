// Finds the blocks of a file: by its footer, or by walking from block to block if there is none.
#pragma once

#include <string_view>
#include <vector>

#include "support/file.h"
#include "trace/footer.h"

namespace vramscope::trace {

// Bytes between blocks that do not belong to a block.
struct Gap {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

// The end of the sentence about a file that stops inside a block, as a killed recording may; other damage has other sentences.
inline constexpr std::string_view kUnfinished = "are an unfinished block and were left out";

struct Scan {
  std::vector<IndexEntry> blocks;  // in file order, without footers
  std::vector<Gap> gaps;
  std::uint64_t end = 0;  // after the last complete block
  bool complete = false;  // there is a valid footer
};

Result<Scan> scan_blocks(const support::ReadFile& file);

}  // namespace vramscope::trace
