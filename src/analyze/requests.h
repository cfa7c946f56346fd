// The requests to the engine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyze/basics.h"

namespace vramscope::analyze {

struct StackedRequest {
  std::uint64_t t0_us = 0, t1_us = 0;  // t1 = 0: to the end
  std::uint32_t width = 1600;          // columns wanted; fewer are returned for a shorter time range than that many microseconds
  By by = By::category;
  std::string where;
  int place = -1;             // index into places(), -1 = main
  std::uint32_t groups = 12;  // at most; the last is "other"
};

struct LiveRequest {
  std::string at = "peak";              // as in resolve(): peak, steady, end, step:N, 6.244s, moment:123, ...
  std::vector<By> by = {By::category};  // nesting order; empty: single blocks instead of groups
  std::string where;
  int place = -1;
  std::uint32_t limit = 50;  // rows; 0 = all
};

struct TopRequest {  // bytes allocated in a range, by group
  std::uint64_t t0_us = 0, t1_us = 0;
  By by = By::op;
  std::string where;
  int place = -1;
  std::uint32_t limit = 50;
};

struct MapRequest {
  std::string at = "peak";
  std::int64_t pool = -1;  // -1: every pool of the place that has regions
  int place = -1;
  std::string where;  // blocks that do not match keep their position with `faded`
};

struct DiffRequest {  // two instants of one trace
  std::string a = "0", b = "peak";
  By by = By::category;
  std::string where;
  int place = -1;
  std::uint32_t limit = 50;
};

struct EventsRequest {
  std::uint64_t t0_us = 0, t1_us = 0;
  std::string where;
  int place = -1;
  std::uint32_t limit = 2000;
};

struct WhatifRequest {
  std::string allocator;   // a name of WhatifRow, or settings as in PYTORCH_CUDA_ALLOC_CONF; empty = those that may help
  Bytes limit = 0;         // that the pool may hold; 0 = none
  std::string optimizer;   // changes of the program, each empty or 0 for none
  std::string precision;   // bf16, fp16
  std::string checkpoint;  // layers whose activations are computed again, separated by commas; "all"
  std::uint64_t accumulate = 0;
  std::string where;
  int place = -1;
};

struct FitRequest {
  std::string on;                      // a size, or a card such as "H100-80GB"; empty = a table of cards
  Bytes limit = 0;                     // of the pool, instead of a device
  Bytes outside = 0;                   // device memory that is not the pool's, if that is more than was recorded
  std::uint64_t batch = 0;             // to forecast; 0 = only the largest that fits
  std::uint64_t seq = 0;               // instead: the recordings differ in their sequence length, and this one is forecast
  std::vector<std::uint64_t> batches;  // of the recordings; empty = found in their commands or shapes
  std::string allocator;               // as in WhatifRequest; empty = that of the recording
  std::string where;
  int place = -1;
};

}  // namespace vramscope::analyze
