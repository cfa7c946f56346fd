#include "capture/tensorflow/pools.h"

#include <atomic>

#include "capture/bfc_pools.h"
#include "record/recorder.h"

namespace vramscope::capture::tensorflow {

namespace {

constinit BfcPools g_pools;
std::atomic<bool> g_frees_report_sizes;

BfcQueries queries_of(const Library& real) { return {real.allocator_name, real.get_stats, real.memory_type, real.release}; }

__attribute__((noinline, cold)) std::uint8_t make_pool(const Library& real, void* allocator) {
  return g_pools.make(queries_of(real), allocator, kFramework, spool::kPoolOrderExact | spool::kPoolAttributed);
}

}  // namespace

std::uint8_t pool_of(const Library& real, void* allocator) {
  const std::uint8_t pool = record::find_pool(reinterpret_cast<std::uint64_t>(allocator));
  return __builtin_expect(pool != record::kNoPool, 1) ? pool : make_pool(real, allocator);
}

void forget(void* allocator) { g_pools.forget(allocator); }

bool frees_report_sizes() { return g_frees_report_sizes.load(std::memory_order_relaxed); }
void learn_that_frees_report_sizes() { g_frees_report_sizes.store(true, std::memory_order_relaxed); }

int record_counters() { return is_bound() ? g_pools.record_counters(queries_of(*library())) : 0; }

}  // namespace vramscope::capture::tensorflow
