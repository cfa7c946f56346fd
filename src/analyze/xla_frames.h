// Where instructions of an HLO module come from: the tables at the start of its text, which XLA writes since 2025.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "analyze/attribute/line_names.h"

namespace vramscope::analyze {

class XlaFrames {
 public:
  XlaFrames() = default;
  XlaFrames(std::string_view text, const CodeFolders& folders);

  // "train.py:13": the innermost frame that is not of a library, otherwise the innermost; empty if it is unknown.
  std::string line_of(std::uint64_t frame) const;

  // Whether a line of the text comes after the tables.
  static bool is_past(std::string_view line);

 private:
  struct File {
    std::string path;
    bool is_library = false;
  };
  struct Location {
    std::uint64_t file = 0, line = 0;
  };
  struct Frame {
    std::uint64_t location = 0, parent = 0;
  };

  void take(std::string_view line, int section, const CodeFolders& folders);

  std::map<std::uint64_t, File> files_;
  std::map<std::uint64_t, Location> locations_;
  std::map<std::uint64_t, Frame> frames_;
};

}  // namespace vramscope::analyze
