// Every event of a trace as one line of text, for people and for scripts.
#pragma once

#include <cstdio>

#include "support/result.h"
#include "trace/reader.h"

namespace vramscope::trace {

struct DumpOptions {
  bool jsonl = false;  // one JSON object a line instead of words
  bool stacks = true;  // with the frames of each allocation
};

// Prints what can be read. The result is an error, to be told after the output, if the trace is damaged or `out` does not take
// more. A recording that merely did not end by itself is no error, even if its last block is cut.
Status dump(const Reader& reader, DumpOptions options, std::FILE* out);

}  // namespace vramscope::trace
