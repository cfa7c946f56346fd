#include "capture/jax/activity.h"

#include <atomic>

namespace vramscope::capture::jax {

namespace {

constinit thread_local Activity t_activity;
std::atomic<int> g_compiling;

}  // namespace

std::uint16_t region_called(const char* word) {
  const std::uint32_t id = record::intern(word);
  return id <= 0xffff ? static_cast<std::uint16_t>(id) : std::uint16_t{0};
}

Activity current_activity() {
  const Activity now = t_activity;
  if (now.region != 0 || __builtin_expect(g_compiling.load(std::memory_order_relaxed) == 0, 1)) return now;
  return {record::intern("autotuning"), region_called("compile"), 0};
}

Doing::Doing(const Activity& activity) : before_(t_activity) { t_activity = activity; }
Doing::~Doing() { t_activity = before_; }

Compiling::Compiling() { g_compiling.fetch_add(1, std::memory_order_relaxed); }
Compiling::~Compiling() { g_compiling.fetch_sub(1, std::memory_order_relaxed); }

}  // namespace vramscope::capture::jax
