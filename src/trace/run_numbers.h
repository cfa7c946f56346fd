// Numbers function runs by first appearance.
#pragma once

#include <tsl/robin_map.h>

#include <cstdint>
#include <utility>

#include "support/secret_hash.h"

namespace vramscope::trace {

// Remembers at least the last 64 Ki runs: eager mode creates one per op, for days. A run that reappears later gets a new
// number.
class RunNumbers {
 public:
  std::int64_t number(std::int64_t id) {
    if (id == 0) return 0;
    if (id == last_id_) return last_;
    last_id_ = id;
    if (const auto found = recent_.find(id); found != recent_.end()) return last_ = found->second;
    const auto old = older_.find(id);
    last_ = old != older_.end() ? old->second : ++count_;
    if (recent_.size() == kRemembered) older_ = std::exchange(recent_, {});
    recent_.emplace(id, last_);
    return last_;
  }

 private:
  static constexpr std::size_t kRemembered = 64u << 10;
  tsl::robin_map<std::int64_t, std::int64_t, support::SecretHash> recent_;
  tsl::robin_map<std::int64_t, std::int64_t, support::SecretHash> older_;
  std::int64_t count_ = 0;
  std::int64_t last_id_ = 0;
  std::int64_t last_ = 0;
};

}  // namespace vramscope::trace
