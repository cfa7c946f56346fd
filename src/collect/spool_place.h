// Where the spool goes: memory if there is enough of it, else a local disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "support/result.h"

namespace vramscope::collect {

struct SpoolPlace {
  std::filesystem::path folder;  // fresh, mode 0700
  std::uint64_t limit = 0;       // bytes that one process may use
};

// /dev/shm, then TMPDIR, /var/tmp, /tmp.
std::vector<std::filesystem::path> spool_candidates();

// Makes a folder in the first candidate that will do. `wanted`: bytes for one process, 0 = 256 MiB or what a small place allows.
// The error says why each candidate was refused.
Result<SpoolPlace> make_spool_folder(std::uint64_t wanted, const std::vector<std::filesystem::path>& candidates);

// Why a spool must not lie there; empty if it may. A mapping on a network or FUSE file system can block or kill the program.
std::string refusal(const std::filesystem::path& folder);

// Bytes that this process' control group may still take; all ones without a limit.
std::uint64_t cgroup_room();

}  // namespace vramscope::collect
