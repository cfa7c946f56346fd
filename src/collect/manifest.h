// The page of a run folder: what ran, on which host, which traces came of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collect/options.h"
#include "support/result.h"

namespace vramscope::collect {

struct Manifest {
  std::uint64_t started_us = 0;  // realtime
  std::uint64_t ended_us = 0;    // 0 = not yet
  std::optional<int> exit_code;
  std::optional<int> signal;
  std::vector<TraceInfo> traces;
};

// Writes <output>/<host>-<pid>-<start>.manifest.json of this process, in one piece.
Status write_manifest(const CollectOptions& options, const Manifest& manifest);

}  // namespace vramscope::collect
