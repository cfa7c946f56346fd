// What XLA planned for the one block that an executable allocates for its temporaries, as written by XLA with `--xla_dump_to`
// (`vramscope run --xla`).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/api.h"
#include "support/result.h"

namespace vramscope::analyze {

// The setting of a trace that names the folder next to it with XLA's plans.
inline constexpr std::string_view kXlaPlans = "xla.plans";

// A value inside the block. `from` and `to` are instructions of the executable, both included.
struct XlaPart {
  std::string instruction, op, layer, line;
  Bytes bytes = 0, offset = 0;
  std::uint64_t from = 0, to = 0;
  std::string category;
  std::uint64_t frame = 0;  // of the source line (xla_frames.h); 0 = none, and `line` may be known by itself
};

struct XlaBlock {
  std::string module;
  Bytes bytes = 0;
  std::uint64_t instructions = 0;
  std::uint64_t fullest = 0;   // the instruction at which most of it is in use
  std::vector<XlaPart> parts;  // what is in use there, largest first; a byte that two values share counts once
  Bytes unused = 0;            // bytes = sum of the parts + unused
  std::uint64_t recorded = 0;  // blocks of this size in the trace
};

// The temporary blocks of one dump (*-buffer-assignment.txt); empty if the executable needs none.
Result<std::vector<XlaBlock>> read_buffer_assignment(std::string_view text);

// The temporary blocks of all dumps in a folder, largest first, with layers and lines from the trace.
Result<std::vector<XlaBlock>> xla_blocks(const Engine& engine, const std::filesystem::path& folder);

// The answer in one sentence.
std::string sentence_of(const std::vector<XlaBlock>& blocks);

}  // namespace vramscope::analyze
