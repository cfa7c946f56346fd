// What to do about a finding, in the words of the framework that was recorded.
#pragma once

#include <string_view>

#include "analyze/index/store.h"

namespace vramscope::analyze {

enum class Remedy {
  limit_autotuning,
  return_cached_memory,
  return_empty_regions,
  recompute_activations,
  keep_data_on_host,
  avoid_fragmentation,
  avoid_layout_copies,
  keep_a_number,
  lower_precision,
  raise_limit,       // the setting's name
  raise_host_limit,  // the same for a pool on the host
};

// What a framework says about one of them: one instruction to copy.
struct Advice {
  Remedy remedy;
  std::string_view text;
};

// The framework whose pools make up the place; none where there are several or none.
trace::Framework framework_of(const Store& store, const Place& place);

// One instruction to copy. For a framework without one of its own, what holds for all.
std::string_view remedy_for(Remedy remedy, trace::Framework framework);

}  // namespace vramscope::analyze
