// Finishes traces from what is left after the collector died as well.
#pragma once

#include <string>
#include <vector>

#include "collect/options.h"
#include "collect/spool/folder_claim.h"
#include "support/owned_folder.h"
#include "support/result.h"

namespace vramscope::collect {

struct Recovered {
  std::vector<TraceInfo> traces;
  std::vector<std::string> remarks;  // one line each: what could not be finished, and what to do
  bool unfinished = false;           // a trace could not be written: its spool, and what was stored before, are unchanged
  FolderClaim claim;                 // keep it until the folder is removed
};

// `spool` contains the spools, `options.output` the traces so far. Fails if a collector still serves the folder or
// another recovery is running. Removes spools whose trace contains everything; all others stay as they are.
Result<Recovered> recover(const support::OwnedFolder& spool, CollectOptions options);

}  // namespace vramscope::collect
