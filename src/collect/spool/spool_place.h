// Where the spool goes: memory if there is enough of it, else a local disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "support/owned_folder.h"
#include "support/result.h"

namespace vramscope::collect {

struct SpoolPlace {
  support::OwnedFolder folder;  // new, mode 0700
  std::uint64_t limit;          // bytes that one process may use
  std::uint64_t leaves;         // bytes of the file system that all processes together leave free
};

inline constexpr const char* kSpoolPrefix = "vramscope-";

// /dev/shm, then TMPDIR, /var/tmp, /tmp.
std::vector<std::filesystem::path> spool_candidates();

// Creates a folder in the first suitable candidate. `wanted`: bytes for one process, 0 = 256 MiB or what a small place allows.
// The error explains why each candidate was rejected.
Result<SpoolPlace> make_spool_folder(std::uint64_t wanted, const std::vector<std::filesystem::path>& candidates);

// Why a spool must not be placed there; empty if it may. A mapping on a network or FUSE file system can block or kill the
// program.
std::string refusal(const std::filesystem::path& folder);

// Bytes that the control group of this process may still use; all ones without a limit.
std::uint64_t cgroup_room();

}  // namespace vramscope::collect
