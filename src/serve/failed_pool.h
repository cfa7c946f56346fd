// Where the pool of a failed request is.
#pragma once

#include <cstdint>
#include <string_view>

#include "analyze/api.h"

namespace vramscope::serve {

struct FailedPool {
  int place = -1;          // index into places(); -1: unknown
  std::int64_t pool = -1;  // index into pool_names()
};
FailedPool failed_pool(const analyze::Engine& engine, std::string_view name);

}  // namespace vramscope::serve
