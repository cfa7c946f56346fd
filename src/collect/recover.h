// Finishes traces from what is left when the collector died as well.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "collect/options.h"
#include "support/result.h"

namespace vramscope::collect {

struct Recovered {
  std::vector<TraceInfo> traces;
  std::vector<std::string> remarks;  // one line each: what could not be finished, and what to do
};

// `options.spool_folder` holds the spools, `options.output` the traces so far. Fails if a collector still looks after the folder.
// Spools whose trace is finished are removed; those of processes that still run stay.
Result<Recovered> recover(const CollectOptions& options);

}  // namespace vramscope::collect
