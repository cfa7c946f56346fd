// Every event of a trace as one line of text, for people and for scripts.
#pragma once

#include <cstdio>

#include "support/result.h"
#include "trace/reader.h"

namespace vramscope::trace {

struct DumpOptions {
  bool jsonl = false;  // one JSON object per line instead of text
  bool stacks = true;  // with the frames of each allocation
};

// Prints what can be read. Returns an error, to be reported after the output, if the trace is damaged or `out` cannot be written.
// A recording that was interrupted is not an error, even if its last block is incomplete.
Status dump(const Reader& reader, DumpOptions options, std::FILE* out);

}  // namespace vramscope::trace
