// Replays and forecasts of a trace: every model of an allocator, and every change of the program.
#pragma once

#include <cstdint>
#include <iterator>
#include <string>

#include "analyze/api.h"
#include "analyze/json.h"

namespace vramscope::fuzz {

// One of them for one file in four: a forecast is many replays, and takes longer than all other questions together.
inline void ask_forecast(const analyze::Engine& e, std::uint64_t which) {
  using namespace analyze;
  constexpr const char* kAllocators[] = {"recorded",
                                         "default",
                                         "expandable",
                                         "divisions",
                                         "growth",
                                         "preallocated",
                                         "async",
                                         "none",
                                         "max_split_size_mb:20",
                                         "garbage_collection_threshold:0.5"};
  if (which % 4 != 0) return;
  which /= 4;
  WhatifRequest request;
  request.allocator = kAllocators[which % std::size(kAllocators)];
  switch (which / std::size(kAllocators) % 6) {
    case 0:
      request.limit = 1 << 20;
      break;
    case 1:
      request.optimizer = "adafactor";
      break;
    case 2:
      request.precision = "bf16";
      break;
    case 3:
      request.accumulate = 2;
      break;
    case 4:
      request.checkpoint = "all";
      break;
    default: {
      const Engine* const runs[] = {&e};
      const std::string names[] = {"run"};
      FitRequest fits;
      fits.batches = {8};
      fits.limit = 1 << 22;
      fits.allocator = request.allocator;
      if (const auto answer = fit(runs, names, fits)) to_json(*answer);
      return;
    }
  }
  if (const auto answer = e.whatif(request)) to_json(*answer);
}

}  // namespace vramscope::fuzz
