// Small numbers for texts that columns repeat: layers, lines, kinds of steps.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vramscope::analyze {

// A list of texts with ids; id 0 is the empty one.
class NameTable {
 public:
  std::uint32_t id(std::string_view text);
  const std::vector<std::string>& all() const { return texts_; }

 private:
  std::vector<std::string> texts_ = {""};
  std::vector<std::pair<std::uint64_t, std::uint32_t>> slots_;  // open addressing: hash, id + 1
  std::size_t used_ = 0;
  void grow();
};

}  // namespace vramscope::analyze
