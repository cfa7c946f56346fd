// Which blocks that an op of TensorFlow requested as scratch are alive when its thread runs another op.
//
// Some kernels return their scratch as the result. Real scratch is freed before the kernel returns. Only for ops outside of
// graphs: in graphs, an op that makes the gradient of a variable is reported by name, and its scratch could not be told from its
// result.
#pragma once

#include <tsl/robin_set.h>

#include <cstdint>
#include <string_view>

#include "analyze/index/scan.h"

namespace vramscope::analyze::tensorflow {

// In graphs, the names of ops contain their scopes.
bool is_eager_op(std::string_view op);

class OpRuns {
 public:
  OpRuns(const Store& draft, const Columns& columns);
  bool outlives_op(std::uint64_t alloc) const { return outlived_.contains(alloc); }

 private:
  tsl::robin_set<std::uint64_t> outlived_;
};

}  // namespace vramscope::analyze::tensorflow
