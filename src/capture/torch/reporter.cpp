// Records every block that PyTorch's allocators hand out and take back, as they report it to PyTorch's profiler.
//
// The CUDA allocator always reports, under its device's lock and with its own totals. The CPU allocator reports only while a
// memory profiler is on: on a machine without an accelerator, this library claims that one is, so that the same path is recorded
// (and tested) there. Every report is passed on, so torch.profiler gets its events as before.
#include "capture/torch/reporter.h"

#include <unistd.h>

#include <atomic>

#include "capture/hook.h"
#include "capture/python/startup.h"
#include "capture/stacks/stacks.h"
#include "capture/stacks/watches.h"
#include "capture/torch/autograd.h"
#include "capture/torch/library.h"
#include "capture/torch/progress.h"
#include "record/recorder.h"
#include "record/text.h"

namespace vramscope::capture::torch {

namespace {

using stacks::Phase;

// c10::DeviceType
enum DeviceType : std::uint8_t { kCpu = 0, kCuda = 1, kHip = 6, kXpu = 12 };

struct Device {
  std::uint8_t type;
  std::uint8_t index;
  explicit Device(std::uint32_t raw) : type(static_cast<std::uint8_t>(raw)), index(static_cast<std::uint8_t>(raw >> 8)) {}
  bool is_host() const { return type == kCpu; }
  std::uint64_t key() const { return 0x746f726368000000u | (std::uint64_t{type} << 8) | (is_host() ? 0 : index); }  // "torch"
};

// Host tensors are recorded only if there is no accelerator: each report costs PyTorch a lock and a hash table lookup.
bool records_host() {
  static std::atomic<int> cached{-1};
  int records = cached.load(std::memory_order_relaxed);
  if (__builtin_expect(records < 0, 0)) {
    const bool accelerator =
        access("/dev/nvidiactl", F_OK) == 0 || access("/dev/kfd", F_OK) == 0 || access("/dev/dxg", F_OK) == 0;
    records = accelerator ? 0 : 1;
    cached.store(records, std::memory_order_relaxed);
  }
  return records == 1;
}

// PyTorch's own totals as last reported, for cross-checks.
struct ReportedTotals {
  std::atomic<std::uint64_t> allocated, reserved;
  std::atomic<std::uint64_t> recording;  // in which the last report came; 0 = there was none
};
ReportedTotals g_reported_totals[spool::kMaxPools];

__attribute__((noinline)) std::uint8_t make_pool(const Device& device) {
  record::Text<64> name;
  const char* const kind = device.type == kCpu ? "cpu" : device.type == kCuda ? "cuda" : device.type == kHip ? "hip" : "device";
  name.add("pytorch_").add(kind);
  if (!device.is_host()) name.add("_").add(device.index);
  const std::uint8_t pool = record::pool({device.key(), name.c_str(), device.is_host() ? -1 : device.index, record::Level::tensor,
                                          device.is_host() ? record::Memory::host : record::Memory::device,
                                          record::Framework::pytorch, device.is_host() ? 0u : spool::kPoolOrderExact});
  if (pool != record::kNoPool) python::framework_seen(kFramework);
  return pool;
}

std::uint8_t pool_of(const Device& device) {
  const std::uint8_t pool = record::find_pool(device.key());
  return __builtin_expect(pool != record::kNoPool, 1) ? pool : make_pool(device);
}

std::uint16_t phase_text(Phase phase) {
  // For each phase, its string id in the lower 16 bits, and above them the spool in which the id is valid.
  static std::atomic<std::uint64_t> known[static_cast<std::size_t>(Phase::kCount)];
  if (phase == Phase::none) return 0;
  auto& cached = known[static_cast<std::size_t>(phase)];
  const std::uint64_t generation = stacks::spool_generation();
  const std::uint64_t word = cached.load(std::memory_order_relaxed);
  if (__builtin_expect(word >> 16 == generation && word != 0, 1)) return static_cast<std::uint16_t>(word);
  const std::uint32_t id = record::intern(stacks::phase_name(phase));
  if (id >= 0x10000) return 0;  // does not fit into a record
  cached.store((generation << 16) | id, std::memory_order_relaxed);
  return static_cast<std::uint16_t>(id);
}

// The stack that last called backward(). Autograd's own threads have no Python frames: this is the line that they work for. The
// id is valid in one spool only.
class BackwardStack {
 public:
  void keep(std::uint64_t id) {
    generation_.store(stacks::spool_generation(), std::memory_order_relaxed);
    id_.store(id, std::memory_order_relaxed);
  }
  std::uint64_t id() const {
    return generation_.load(std::memory_order_relaxed) == stacks::spool_generation() ? id_.load(std::memory_order_relaxed) : 0;
  }

 private:
  std::atomic<std::uint64_t> generation_{0};
  std::atomic<std::uint64_t> id_{0};
};
constinit BackwardStack g_backward_stack;

// Adds the stack, layer, node and phase of the block that is being handed out.
void describe(const Library& real, record::AllocEvent& event) {
  const stacks::Snapshot stack = stacks::snapshot();
  event.stack = stack.id;
  event.op = stack.op;
  const Backward backward = current_node();
  const Progress now = follow(real, stack, backward.inside);
  if (backward.inside) {
    if (stack.layer != 0) note_again(real, stack.layer);
    if (stack.part != 0) event.op = part_of(backward, stack.part);
    if (stack.op == 0) event.op = backward.op;  // otherwise the forward pass runs again there, or FSDP gathers shards
    if (stack.id == 0) event.stack = g_backward_stack.id();
  } else if (now.phase == Phase::backward) {  // the first gradient is allocated before autograd's threads start
    g_backward_stack.keep(stack.id);
  } else if (now.phase == Phase::forward && stack.layer != 0) {
    note_forward(real, stack.layer);
  } else if (now.loop_computes && stack.op == 0) {
    static constexpr const char* kLoop = "(training loop)/forward";
    event.op = record::intern(kLoop);
    note_forward(real, stacks::keep_layer(kLoop));
  }
  event.region = phase_text(now.phase);
}

void on_alloc(const Library& real, const Device& device, std::uint8_t pool, std::uint64_t address, std::uint64_t bytes) {
  spool::Pool& totals = *record::pool_totals(pool);
  record::AllocEvent event;
  event.pool = pool;
  event.address = address;
  event.requested = bytes;
  event.granted = bytes;
  describe(real, event);
  if (!device.is_host()) {  // under the device's lock
    record::count_alloc(totals, bytes);
    event.count = false;
  }
  record::alloc(event);
}

void on_free(const Device& device, std::uint8_t pool, std::uint64_t address, std::uint64_t bytes) {
  record::FreeEvent event;
  event.pool = pool;
  event.address = address;
  event.bytes = bytes;
  if (!device.is_host()) {
    record::count_free(*record::pool_totals(pool), bytes);
    event.count = false;
  }
  record::free(event);
}

// At the first report of a recording: what was allocated before it started. PyTorch's total already includes this event.
void count_bytes_from_before(std::uint8_t pool, std::uint64_t allocated, std::int64_t bytes) {
  const std::uint64_t recording = record::recording_number();
  std::atomic<std::uint64_t>& reported_in = g_reported_totals[pool].recording;
  if (reported_in.load(std::memory_order_relaxed) == recording) return;
  if (reported_in.exchange(recording, std::memory_order_relaxed) == recording) return;  // another thread was faster
  const std::uint64_t before = allocated - static_cast<std::uint64_t>(bytes);
  if (allocated == 0 || before == 0 || before > (std::uint64_t{1} << 50)) return;
  spool::Pool& totals = *record::pool_totals(pool);
  totals.before_bytes.store(before, std::memory_order_relaxed);
  totals.flags.fetch_or(spool::kPoolSeenLate, std::memory_order_relaxed);
}

void keep_totals(std::uint8_t pool, const Device& device, std::uint64_t allocated, std::uint64_t reserved) {
  ReportedTotals& reported = g_reported_totals[pool];
  reported.allocated.store(allocated, std::memory_order_relaxed);
  reported.reserved.store(reserved, std::memory_order_relaxed);
  if (device.is_host()) return;
  spool::Pool& totals = *record::pool_totals(pool);
  totals.region_bytes.store(reserved, std::memory_order_relaxed);
  if (reserved > totals.region_peak.load(std::memory_order_relaxed))
    totals.region_peak.store(reserved, std::memory_order_relaxed);
}

void record_report(const Library& real, void* block, std::int64_t bytes, std::uint64_t allocated, std::uint64_t reserved,
                   std::uint32_t raw) {
  const Device device(raw);
  if (bytes == 0 || !record::active() || record::busy() || (device.is_host() && !records_host())) return;
  const std::uint8_t pool = pool_of(device);
  if (pool == record::kNoPool) return;
  count_bytes_from_before(pool, allocated, bytes);
  const auto address = reinterpret_cast<std::uint64_t>(block);
  if (bytes > 0) {
    on_alloc(real, device, pool, address, static_cast<std::uint64_t>(bytes));
  } else {
    on_free(device, pool, address, static_cast<std::uint64_t>(-bytes));
  }
  keep_totals(pool, device, allocated, reserved);
}

void record_oom(const Library& real, std::int64_t bytes, std::uint64_t allocated, std::uint64_t reserved, std::uint32_t raw) {
  const Device device(raw);
  if (!record::active() || record::busy() || (device.is_host() && !records_host())) return;
  record::AllocEvent event;
  event.pool = pool_of(device);
  if (event.pool == record::kNoPool) return;
  event.flags = spool::kFlagFinal;  // reported once, after all retries
  event.requested = static_cast<std::uint64_t>(bytes);
  describe(real, event);
  record::oom(event);
  keep_totals(event.pool, device, allocated, reserved);
}

}  // namespace

// PyTorch itself calls these, so its library is always found.

void on_report_19(const Library& real, void* block, std::int64_t bytes, std::uint32_t device) {
  record_report(real, block, bytes, 0, 0, device);
  real.report_19(block, bytes, device);
}

void on_report_113(const Library& real, void* block, std::int64_t bytes, std::uint64_t allocated, std::uint64_t reserved,
                   std::uint32_t device) {
  record_report(real, block, bytes, allocated, reserved, device);
  real.report_113(block, bytes, allocated, reserved, device);
}

void on_report(const Library& real, void* block, std::int64_t bytes, std::uint64_t allocated, std::uint64_t reserved,
               std::uint32_t device) {
  record_report(real, block, bytes, allocated, reserved, device);
  real.report(block, bytes, allocated, reserved, device);
}

void on_report_oom_113(const Library& real, std::int64_t bytes, std::uint64_t allocated, std::uint64_t reserved,
                       std::uint32_t device) {
  record_oom(real, bytes, allocated, reserved, device);
  real.report_oom_113(bytes, allocated, reserved, device);
}

void on_report_oom(const Library& real, std::int64_t bytes, std::uint64_t allocated, std::uint64_t reserved,
                   std::uint32_t device) {
  record_oom(real, bytes, allocated, reserved, device);
  real.report_oom(bytes, allocated, reserved, device);
}

bool on_profiling_enabled(const Library& real) { return (records_host() && record::active()) || real.profiling_enabled(); }

int record_counters() {
  int recorded = 0;
  for (std::uint32_t i = 0; i < record::pool_count(); ++i) {
    const auto pool = static_cast<std::uint8_t>(i);
    const ReportedTotals& reported = g_reported_totals[pool];
    const spool::Pool* const totals = record::pool_totals(pool);
    if (totals == nullptr || totals->framework != record::Framework::pytorch ||
        reported.recording.load(std::memory_order_relaxed) != record::recording_number())
      continue;
    spool::StatsRecord stats{};
    stats.in_use = reported.allocated.load(std::memory_order_relaxed);
    stats.pool_bytes = reported.reserved.load(std::memory_order_relaxed);
    record::stats(pool, stats);
    ++recorded;
  }
  return recorded;
}

}  // namespace vramscope::capture::torch

#define HOOK VS_HOOK_DEFINE
#include "capture/torch/hooks.inc"
#undef HOOK
