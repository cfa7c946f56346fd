// Every block that PyTorch's allocators hand out and take back, as they report it to PyTorch's profiler.
//
// The CUDA allocator reports unconditionally, under its device's lock, with its own totals. The CPU allocator reports only while
// a memory profiler is on; on a machine without an accelerator this library says that one is, so that the same path is recorded
// (and tested) there. Each report is passed on: torch.profiler gets its events as before.
#include "capture/torch/reporter.h"

#include <unistd.h>

#include <atomic>

#include "capture/stacks/stacks.h"
#include "capture/stacks/watches.h"
#include "capture/torch/autograd.h"
#include "capture/torch/hooks.h"
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

// Host tensors are recorded only where there is no accelerator: reporting them costs PyTorch a lock and a hash table each.
bool wants_host() {
  static std::atomic<int> known{-1};
  int wants = known.load(std::memory_order_relaxed);
  if (__builtin_expect(wants < 0, 0)) {
    const bool accelerator =
        access("/dev/nvidiactl", F_OK) == 0 || access("/dev/kfd", F_OK) == 0 || access("/dev/dxg", F_OK) == 0;
    wants = accelerator ? 0 : 1;
    known.store(wants, std::memory_order_relaxed);
  }
  return wants == 1;
}

// PyTorch's totals as last told, for cross-checks.
struct Told {
  std::atomic<std::uint64_t> allocated, reserved;
  std::atomic<bool> any;
};
Told g_told[spool::kMaxPools];

__attribute__((noinline)) std::uint8_t make_pool(const Device& device) {
  record::Text<64> name;
  const char* const kind = device.type == kCpu ? "cpu" : device.type == kCuda ? "cuda" : device.type == kHip ? "hip" : "device";
  name.add("pytorch_").add(kind);
  if (!device.is_host()) name.add("_").add(device.index);
  return record::pool({device.key(), name.c_str(), device.is_host() ? -1 : device.index, record::Level::tensor,
                       device.is_host() ? record::Memory::host : record::Memory::device, record::Framework::pytorch,
                       device.is_host() ? 0u : spool::kPoolOrderExact});
}

std::uint8_t pool_of(const Device& device) {
  const std::uint8_t pool = record::find_pool(device.key());
  return __builtin_expect(pool != record::kNoPool, 1) ? pool : make_pool(device);
}

std::uint16_t phase_text(Phase phase) {
  // One word for each phase: string id, and above it the spool in which it is one.
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

// The stack that called backward() last. Autograd's own threads have no Python frames; this is the line they work for. The id
// holds in one spool only.
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

// Stack, layer, node and phase of the block being handed out right now.
void describe(const Library& real, record::AllocEvent& event) {
  const stacks::Snapshot stack = stacks::snapshot();
  event.stack = stack.id;
  event.op = stack.op;
  const Backward backward = current_node();
  const Progress now = follow(real, stack, backward.inside);
  if (backward.inside) {
    if (stack.layer != 0) note_again(real, stack.layer);
    if (stack.part != 0) event.op = part_of(backward, stack.part);
    if (stack.op == 0) event.op = backward.op;  // else the forward pass runs again in there, or FSDP collects what is sharded
    if (stack.id == 0) event.stack = g_backward_stack.id();
  } else if (now.phase == Phase::backward) {  // the first gradient is made before the threads begin
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

// What was there before recording began. PyTorch's total includes this event already.
void note_first(std::uint8_t pool, std::uint64_t allocated, std::int64_t bytes) {
  if (g_told[pool].any.exchange(true, std::memory_order_relaxed)) return;
  const std::uint64_t before = allocated - static_cast<std::uint64_t>(bytes);
  if (allocated == 0 || before == 0 || before > (std::uint64_t{1} << 50)) return;
  spool::Pool& totals = *record::pool_totals(pool);
  totals.before_bytes.store(before, std::memory_order_relaxed);
  totals.flags.fetch_or(spool::kPoolSeenLate, std::memory_order_relaxed);
}

void note_totals(std::uint8_t pool, const Device& device, std::uint64_t allocated, std::uint64_t reserved) {
  Told& told = g_told[pool];
  told.allocated.store(allocated, std::memory_order_relaxed);
  told.reserved.store(reserved, std::memory_order_relaxed);
  if (device.is_host()) return;
  spool::Pool& totals = *record::pool_totals(pool);
  totals.region_bytes.store(reserved, std::memory_order_relaxed);
  if (reserved > totals.region_peak.load(std::memory_order_relaxed))
    totals.region_peak.store(reserved, std::memory_order_relaxed);
}

void on_report(const Library& real, void* block, std::int64_t bytes, std::uint64_t allocated, std::uint64_t reserved,
               std::uint32_t raw) {
  const Device device(raw);
  if (bytes == 0 || !record::active() || record::busy() || (device.is_host() && !wants_host())) return;
  const std::uint8_t pool = pool_of(device);
  if (pool == record::kNoPool) return;
  note_first(pool, allocated, bytes);
  const auto address = reinterpret_cast<std::uint64_t>(block);
  if (bytes > 0) {
    on_alloc(real, device, pool, address, static_cast<std::uint64_t>(bytes));
  } else {
    on_free(device, pool, address, static_cast<std::uint64_t>(-bytes));
  }
  note_totals(pool, device, allocated, reserved);
}

void on_oom(const Library& real, std::int64_t bytes, std::uint64_t allocated, std::uint64_t reserved, std::uint32_t raw) {
  const Device device(raw);
  if (!record::active() || record::busy() || (device.is_host() && !wants_host())) return;
  record::AllocEvent event;
  event.pool = pool_of(device);
  if (event.pool == record::kNoPool) return;
  event.flags = spool::kFlagFinal;  // reported once, after all retries
  event.requested = static_cast<std::uint64_t>(bytes);
  describe(real, event);
  record::oom(event);
  note_totals(event.pool, device, allocated, reserved);
}

}  // namespace

int record_stats() {
  int recorded = 0;
  for (std::uint32_t i = 0; i < record::pool_count(); ++i) {
    const auto pool = static_cast<std::uint8_t>(i);
    const Told& told = g_told[pool];
    const spool::Pool* const totals = record::pool_totals(pool);
    if (totals == nullptr || totals->framework != record::Framework::pytorch || !told.any.load(std::memory_order_relaxed))
      continue;
    spool::StatsRecord stats{};
    stats.in_use = told.allocated.load(std::memory_order_relaxed);
    stats.pool_bytes = told.reserved.load(std::memory_order_relaxed);
    record::stats(pool, stats);
    ++recorded;
  }
  return recorded;
}

}  // namespace vramscope::capture::torch

using namespace vramscope::capture::torch;

// Reports come from inside PyTorch, so its library is always found; without it there is nothing to pass on to.
extern "C" {

void vramscope_torch_report_19(void* block, std::int64_t bytes, std::uint32_t device) {
  const Library* const real = library();
  if (real == nullptr) return;
  on_report(*real, block, bytes, 0, 0, device);
  if (real->report_19 != nullptr) real->report_19(block, bytes, device);
}

void vramscope_torch_report_113(void* block, std::int64_t bytes, std::uint64_t allocated, std::uint64_t reserved,
                                std::uint32_t device) {
  const Library* const real = library();
  if (real == nullptr) return;
  on_report(*real, block, bytes, allocated, reserved, device);
  if (real->report_113 != nullptr) real->report_113(block, bytes, allocated, reserved, device);
}

void vramscope_torch_report(void* block, std::int64_t bytes, std::uint64_t allocated, std::uint64_t reserved,
                            std::uint32_t device) {
  const Library* const real = library();
  if (real == nullptr) return;
  on_report(*real, block, bytes, allocated, reserved, device);
  if (real->report != nullptr) real->report(block, bytes, allocated, reserved, device);
}

void vramscope_torch_report_oom_113(std::int64_t bytes, std::uint64_t allocated, std::uint64_t reserved, std::uint32_t device) {
  const Library* const real = library();
  if (real == nullptr) return;
  on_oom(*real, bytes, allocated, reserved, device);
  if (real->report_oom_113 != nullptr) real->report_oom_113(bytes, allocated, reserved, device);
}

void vramscope_torch_report_oom(std::int64_t bytes, std::uint64_t allocated, std::uint64_t reserved, std::uint32_t device) {
  const Library* const real = library();
  if (real == nullptr) return;
  on_oom(*real, bytes, allocated, reserved, device);
  if (real->report_oom != nullptr) real->report_oom(bytes, allocated, reserved, device);
}

bool vramscope_torch_profiling_enabled() {
  if (wants_host() && vramscope::record::active()) return true;
  const Library* const real = library();
  return real != nullptr && real->profiling_enabled != nullptr && real->profiling_enabled();
}

}  // extern "C"
