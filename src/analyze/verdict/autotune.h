// Scratch that a library asks for while it tries algorithms.
#pragma once

#include <string_view>

#include "analyze/answers.h"
#include "analyze/attribute/categories.h"
#include "analyze/framework.h"
#include "analyze/index/store.h"
#include "analyze/query/grouper.h"

namespace vramscope::analyze {

bool is_scratch(std::string_view op, Shown category, const Framework& framework);
bool is_scratch(const Store& store, std::uint64_t alloc);
// Bytes of it that are live at a moment.
Bytes autotune_share(const Store& store, const PoolSet& pools, Moment at);
// Those at the peak of a place, where they are what lifts it `above` its steady steps; else 0. On the host no library tries
// algorithms.
Bytes autotuning(const Store& store, const PoolSet& pools, const Place& place, Bytes above);

}  // namespace vramscope::analyze
