// The threads of TensorFlow's input pipeline.
#pragma once

#include <tsl/robin_set.h>

#include <cstdint>

#include "analyze/index/scan.h"
#include "analyze/index/store.h"

namespace vramscope::analyze::tensorflow {

// A block of TensorFlow without an op name, on a device or in host memory.
bool is_unnamed(const Store& draft, const Kind& kind, bool on_device);

// TensorFlow's input pipeline has threads of its own, and its blocks in host memory have no op name. A thread that never ran a
// named op, but for the ops of the pipeline's own functions, is one of them.
class PipelineThreads {
 public:
  PipelineThreads(const Store& draft, const Columns& columns);
  bool made(const Kind& kind, std::uint32_t thread) const { return unnamed_.contains(thread) && is_unnamed(draft_, kind, false); }

 private:
  const Store& draft_;
  tsl::robin_set<std::uint32_t> named_, unnamed_;
};

}  // namespace vramscope::analyze::tensorflow
