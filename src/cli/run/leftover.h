// What a recording leaves for `recover`: a link in the run folder that points to the spool, and a file with the options in the
// spool folder.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "collect/options.h"
#include "support/owned_folder.h"
#include "support/result.h"

namespace vramscope::cli {

// Creates the link and the file. The link's name is random, because runs in several containers may share the folder, host name
// and pids.
Result<std::filesystem::path> leave_for_recovery(const collect::CollectOptions& options);

// A spool that a recording left behind, with its options. `options.output` is where its trace belongs.
struct Leftover {
  support::OwnedFolder spool;
  collect::CollectOptions options;
  std::filesystem::path link;  // in the output folder; empty if the spool itself was named
};

struct Leftovers {
  std::vector<Leftover> found;
  std::vector<std::string> remarks;  // one line each: links that point to nothing, or to nothing of ours, and what to do
};

// `folder`: a run folder, or a spool folder itself. A link in a run folder is trusted only if the spool agrees: it must be ours
// and must have been created for this very folder. Otherwise a folder from someone else could make us write or delete anywhere.
Leftovers find_leftovers(const std::filesystem::path& folder);

}  // namespace vramscope::cli
