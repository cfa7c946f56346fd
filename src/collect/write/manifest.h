// The manifest of a run folder: what ran, on which host, and the resulting traces.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collect/options.h"
#include "support/owned_folder.h"
#include "support/result.h"

namespace vramscope::collect {

struct Manifest {
  std::string id = support::random_name();  // part of the name; unique to this run
  std::uint64_t started_us = 0;             // realtime
  std::uint64_t ended_us = 0;               // 0 = not yet
  std::optional<int> exit_code;
  std::optional<int> signal;
  std::vector<TraceInfo> traces;
};

// Writes <output>/<host>-<pid>-<start>-<id>.manifest.json atomically.
Status write_manifest(const CollectOptions& options, const Manifest& manifest);

}  // namespace vramscope::collect
