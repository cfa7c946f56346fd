// Arrays that the program turned into tensors by itself, before training, and that stay.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analyze/framework.h"
#include "analyze/index/store.h"
#include "analyze/query/grouper.h"

namespace vramscope::analyze {

struct KeptArray {
  std::string line;
  Bytes bytes = 0;
  std::uint64_t tensors = 0;
  const ArrayConversion* conversion = nullptr;  // of the framework that made them
};

// Those of 1 MiB or more that are live at the moment and were made before `training`, by line, largest first. Sources of datasets
// are not among them: they have a finding of their own.
std::vector<KeptArray> kept_arrays(const Store& store, const PoolSet& pools, Moment at, Moment training);

// "array-on-device", in the words of the framework.
Finding kept_array_finding(const KeptArray& array, const Place& place, std::string_view at);

}  // namespace vramscope::analyze
