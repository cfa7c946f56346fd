// The file that a recovery writes. Its name is random until it contains everything: only then does it replace what the collector
// had stored, so that a recovery may fail or be killed at any moment.
#pragma once

#include <filesystem>
#include <string>

#include "support/result.h"

namespace vramscope::collect {

class FreshTrace {
 public:
  // `note`: a file in the spool folder that remembers the random name. Removes what an interrupted recovery left.
  FreshTrace(std::filesystem::path output, std::string stem, std::filesystem::path note);
  FreshTrace(const FreshTrace&) = delete;
  FreshTrace& operator=(const FreshTrace&) = delete;
  // Removes the file, unless keep() succeeded.
  ~FreshTrace();

  const std::filesystem::path& path() const { return path_; }
  // Waits until the file is on disk, and renames it: to `place`, where it replaces what is there, or to a new name if `place` is
  // an empty path. Returns the name.
  Result<std::filesystem::path> keep(const std::filesystem::path& place);

 private:
  std::filesystem::path output_;
  std::string stem_;
  std::filesystem::path path_;
  bool kept_ = false;
};

// The name of the n-th trace of a process, n from 1.
std::filesystem::path trace_name(const std::string& stem, int n);

}  // namespace vramscope::collect
