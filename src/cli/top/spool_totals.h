// One recorded process as described by its spool header, mapped read-only.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "spool/layout.h"
#include "support/result.h"

namespace vramscope::cli::top {

class SpoolTotals {
 public:
  static Result<SpoolTotals> open(const std::filesystem::path& path);
  SpoolTotals(SpoolTotals&& other) noexcept;
  SpoolTotals& operator=(SpoolTotals&& other) = delete;
  ~SpoolTotals();

  const spool::Header& header() const { return *header_; }
  std::string command() const;  // "python train.py --eager"
  bool alive() const;           // the process still holds its lock

 private:
  SpoolTotals(const spool::Header* header, std::filesystem::path path) : header_(header), path_(std::move(path)) {}
  const spool::Header* header_;
  std::filesystem::path path_;
};

// Spool files of this user's recordings, in every place where recordings put them.
std::vector<std::filesystem::path> find_spools();

}  // namespace vramscope::cli::top
