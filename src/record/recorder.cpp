#include "record/recorder.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <initializer_list>

#include "base/hash.h"
#include "record/intern.h"
#include "record/settings.h"
#include "record/setup.h"
#include "record/state.h"
#include "record/write.h"

namespace vramscope::record {

namespace {

using spool::RecordHead;
using spool::RecordKind;
using spool::SegmentHeader;

constexpr std::size_t kLongestText = 8192;
char g_pool_names[spool::kMaxPools][64];  // for the process itself; the spool has them as texts

// Asks for a cache line to be owned by this core. The compiler would only read it, unless built for newer processors; where the
// instruction is missing it does nothing.
inline void fetch_for_writing(const void* line) {
#if defined(__x86_64__)
  __asm__ volatile("prefetchw %0" ::"m"(*static_cast<const char*>(line)));
#else
  __builtin_prefetch(line, 1);
#endif
}

}  // namespace

__attribute__((noinline, cold)) Control* activate() {
  ThreadState& thread = t_state;
  if (thread.busy != 0 || is_off()) return nullptr;
  const int errno_before = errno;
  thread.busy = 1;
  bool first_in_process = false;
  Control* control = nullptr;
  if (set_up() == Setup::recording) {
    control = g_control.load(std::memory_order_acquire);
    thread.segment = nullptr;
    thread.cursor = 0;
    thread.last_pool_key = 0;
    thread.call = {};
    thread.region = {};
    thread.generation = control->generation.load(std::memory_order_acquire);
    first_in_process = control->header->next_seq.load(std::memory_order_relaxed) == 1;
  }
  thread.busy = 0;
  if (first_in_process) record_environment();
  errno = errno_before;
  return control;
}

namespace {

void count_alloc_shared(spool::Pool& pool, std::uint64_t granted) {
  pool.allocs.fetch_add(1, std::memory_order_relaxed);
  const std::uint64_t live = pool.live_bytes.fetch_add(granted, std::memory_order_relaxed) + granted;
  raise_to(pool.peak_bytes, live);
  raise_to(pool.window_peak, live);
  raise_to(pool.largest_bytes, granted);
}

void fill_alloc(spool::AllocRecord& record, const AllocEvent& event, std::uint64_t seq) {
  record.head.seq = seq;
  record.head.flags = event.flags;
  record.head.pool = event.pool;
  record.head.dtype = event.dtype;
  record.head.small = event.region;
  record.address = event.address;
  record.requested = event.requested;
  record.granted = event.granted;
  record.step = event.step;
  record.op = event.op;
  record.shape = event.shape;
}

// A number that was drawn but cannot be written would look like an event that is still coming: it stays a gap, and is counted.
[[gnu::always_inline]] inline void write_alloc(Control& control, RecordKind kind, const AllocEvent& event) {
  const bool extended = (event.stack | event.stream | event.handle | event.owner) != 0;
  const std::size_t bytes = sizeof(spool::AllocRecord) + (extended ? sizeof(spool::AllocExtra) : 0);
  auto* record = room<spool::AllocRecord>(control, kind, bytes);
  if (record == nullptr) return;
  fill_alloc(*record, event, seq_or_draw(control, event.seq));
  if (extended) {
    record->head.flags |= spool::kFlagExtended;
    *reinterpret_cast<spool::AllocExtra*>(record + 1) = {event.stack, event.stream, event.owner, 0, event.handle};
  }
  commit(record->head);
}

[[gnu::always_inline]] inline void write_free(Control& control, RecordKind kind, const FreeEvent& event) {
  const bool extended = event.stream != 0;
  auto* record = room<spool::FreeRecord>(control, kind, sizeof(spool::FreeRecord) + (extended ? sizeof(spool::FreeExtra) : 0));
  if (record == nullptr) return;
  record->head.seq = seq_or_draw(control, event.seq);
  record->head.flags = static_cast<std::uint8_t>(event.flags | (extended ? spool::kFlagExtended : 0));
  record->head.pool = event.pool;
  record->address = event.address;
  if (extended) *reinterpret_cast<spool::FreeExtra*>(record + 1) = {event.stream, {}};
  commit(record->head);
}

std::uint32_t define_text(Control& control, std::uint32_t id, const char* text, std::size_t bytes) {
  auto* record = room<spool::StringRecord>(control, RecordKind::string, sizeof(spool::StringRecord) + bytes);
  if (record == nullptr) return 0;
  record->id = id;
  record->bytes = static_cast<std::uint32_t>(bytes);
  memcpy(record + 1, text, bytes);
  commit(record->head);
  return id;
}

}  // namespace

std::uint32_t intern_inside(Control& control, const char* text, std::size_t bytes) {
  if (bytes == 0) return 0;
  const std::uint64_t key = base::hash(text, bytes);
  const Lookup found = text_entry(key);
  if (__builtin_expect(!found.inserted, 1)) {
    if (found.value == 0) count_loss(control, spool::LossKind::names);
    return found.value;
  }
  return define_text(control, found.value, text, bytes < kLongestText ? bytes : kLongestText);
}

std::uint32_t intern_inside(Control& control, const char* text) {
  return text != nullptr ? intern_inside(control, text, strlen(text)) : 0;
}

namespace {

void claim_pool(Control& control, const PoolKey& key) {
  const std::uint32_t index = control.header->pool_count.load(std::memory_order_acquire);
  if (index >= spool::kMaxPools) return;
  spool::Pool& slot = control.header->pools[index];
  std::uint64_t unused = 0;
  if (!slot.key.compare_exchange_strong(unused, ~std::uint64_t{0}, std::memory_order_acq_rel)) return;
  slot.name = intern_inside(control, key.name);
  strncpy(g_pool_names[index], key.name != nullptr ? key.name : "", sizeof g_pool_names[index] - 1);
  slot.device = key.device;
  slot.level = key.level;
  slot.memory = key.memory;
  slot.framework = key.framework;
  constexpr auto relaxed = std::memory_order_relaxed;
  slot.flags.store(key.flags, relaxed);
  slot.limit_bytes.store(key.limit_bytes, relaxed);
  // Counted as live, so that the running total is the allocator's.
  for (auto* bytes : {&slot.before_bytes, &slot.live_bytes, &slot.peak_bytes, &slot.window_peak})
    bytes->store(key.before_bytes, relaxed);
  slot.key.store(key.key, std::memory_order_release);
  control.header->pool_count.store(index + 1, std::memory_order_release);
}

}  // namespace

bool active() { return live_control() != nullptr; }

std::uint64_t recording_number() {
  const Control* const control = live_control();
  return control != nullptr ? control->generation.load(std::memory_order_relaxed) : 0;
}

std::uint32_t intern(const char* text, std::size_t bytes) {
  std::uint32_t id = 0;
  recorded([&](Control& control) { id = intern_inside(control, text, bytes); });
  return id;
}

std::uint32_t intern(const char* text) { return text != nullptr ? intern(text, strlen(text)) : 0; }

namespace {

__attribute__((noinline)) std::uint8_t search_pool(const Control& control, std::uint64_t key) {
  ThreadState& thread = t_state;
  const std::uint32_t count = control.header->pool_count.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < count && i < spool::kMaxPools; ++i) {
    if (control.header->pools[i].key.load(std::memory_order_acquire) != key) continue;
    thread.last_pool_key = key;
    thread.last_pool = static_cast<std::uint8_t>(i);
    return thread.last_pool;
  }
  return kNoPool;
}

}  // namespace

std::uint8_t find_pool(std::uint64_t key) {
  const Control* control = live_control();  // first: in a forked child this empties what the thread remembers
  if (__builtin_expect(control == nullptr, 0)) return kNoPool;
  return __builtin_expect(key == t_state.last_pool_key && key != 0, 1) ? t_state.last_pool : search_pool(*control, key);
}

std::uint8_t pool(const PoolKey& key) {
  // Another thread may be claiming the next slot, for this pool or for another: look again until it is settled.
  for (int attempt = 0; attempt < 100'000; ++attempt) {
    const std::uint8_t known = find_pool(key.key);
    if (known != kNoPool || t_state.busy != 0 || live_control() == nullptr) return known;
    recorded([&](Control& control) { claim_pool(control, key); });
    if (attempt > 0) syscall(SYS_sched_yield);
  }
  return kNoPool;
}

spool::Pool* pool_totals(std::uint8_t pool) {
  const Control* control = g_control.load(std::memory_order_acquire);
  return pool < spool::kMaxPools && control != nullptr && control->header != nullptr ? &control->header->pools[pool] : nullptr;
}

std::uint32_t pool_count() {
  const Control* control = live_control();
  return control != nullptr ? control->header->pool_count.load(std::memory_order_acquire) : 0;
}

const char* pool_name(std::uint8_t pool) { return pool < spool::kMaxPools ? g_pool_names[pool] : ""; }

void count_alloc(spool::Pool& pool, std::uint64_t granted) {
  // Under the allocator's lock: plain read and write, no locked instruction.
  constexpr auto relaxed = std::memory_order_relaxed;
  pool.allocs.store(pool.allocs.load(relaxed) + 1, relaxed);
  const std::uint64_t live = pool.live_bytes.load(relaxed) + granted;
  pool.live_bytes.store(live, relaxed);
  if (live > pool.peak_bytes.load(relaxed)) pool.peak_bytes.store(live, relaxed);
  if (live > pool.window_peak.load(relaxed)) pool.window_peak.store(live, relaxed);
  if (granted > pool.largest_bytes.load(relaxed)) pool.largest_bytes.store(granted, relaxed);
}

void count_free(spool::Pool& pool, std::uint64_t granted) {
  constexpr auto relaxed = std::memory_order_relaxed;
  pool.frees.store(pool.frees.load(relaxed) + 1, relaxed);
  pool.live_bytes.store(pool.live_bytes.load(relaxed) - granted, relaxed);
}

void expect_event(const AllocatorCall& call) {
  fetch_for_writing(call.next_seq);
  fetch_for_writing(&call.totals->allocs);
  // The collector has read this segment before: its lines are not ours yet either. A prefetch of no memory does nothing.
  const std::byte* record = t_state.segment + t_state.cursor;
  fetch_for_writing(record);
  fetch_for_writing(record + sizeof(spool::AllocRecord) - 1);
}

void alloc(const AllocEvent& event) {
  recorded([&](Control& control) {
    spool::Pool* totals = pool_totals(event.pool);
    if (event.count && totals != nullptr) count_alloc_shared(*totals, event.granted);
    write_alloc(control, RecordKind::alloc, event);
  });
}

void oom(const AllocEvent& event) {
  recorded([&](Control& control) {
    spool::Pool* totals = pool_totals(event.pool);
    if (totals != nullptr && (event.flags & spool::kFlagFinal) != 0) totals->ooms.fetch_add(1, std::memory_order_relaxed);
    write_alloc(control, RecordKind::oom, event);
  });
}

void free(const FreeEvent& event) {
  recorded([&](Control& control) {
    spool::Pool* totals = pool_totals(event.pool);
    if (event.count && totals != nullptr) {
      totals->frees.fetch_add(1, std::memory_order_relaxed);
      totals->live_bytes.fetch_sub(event.bytes, std::memory_order_relaxed);
    }
    write_free(control, RecordKind::free, event);
  });
}

void cancel_free(const FreeEvent& event) {
  recorded([&](Control& control) {
    spool::Pool* totals = pool_totals(event.pool);
    if (event.count && totals != nullptr) {
      totals->frees.fetch_sub(1, std::memory_order_relaxed);
      totals->live_bytes.fetch_add(event.bytes, std::memory_order_relaxed);
    }
    write_free(control, RecordKind::free_cancelled, event);
  });
}

bool busy() { return t_state.busy != 0; }

bool enter() {
  if (t_state.busy != 0) return false;
  t_state.busy = 1;
  return true;
}

void leave() { t_state.busy = 0; }

spool::RecordHead* reserve(RecordKind kind, std::size_t bytes) {
  Control* control = live_control();
  if (control == nullptr || bytes > spool::kSegmentBytes - sizeof(SegmentHeader)) return nullptr;
  return room<RecordHead>(*control, kind, bytes);
}

void publish(RecordHead* record) { commit(*record); }

}  // namespace vramscope::record
