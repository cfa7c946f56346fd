// Many layers in a chart with few groups: layers with a common path become one, numbered neighbours a range.
#pragma once

#include <cstddef>
#include <limits>
#include <map>
#include <string>
#include <string_view>

#include "analyze/basics.h"

namespace vramscope::analyze {

// "encoder/layer_7/query" is "encoder/layer_7/*" or "encoder/layer_5 to 9", depending on how many layers there are.
class LayerFold {
 public:
  LayerFold() = default;  // changes no name
  // The finest one with which at most `most` groups hold nine tenths of the bytes.
  static LayerFold for_largest(const std::map<std::string, Bytes>& layers, std::size_t most);
  std::string operator()(std::string_view layer) const;

 private:
  LayerFold(std::size_t depth, std::uint64_t range) : depth_(depth), range_(range) {}
  std::size_t depth_ = std::numeric_limits<std::size_t>::max();  // parts of the path that are kept
  std::uint64_t range_ = 1;                                      // so many numbers are one group
};

}  // namespace vramscope::analyze
