#include "record/recorder.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/hash.h"
#include "record/arena.h"
#include "record/intern.h"
#include "record/settings.h"
#include "record/state.h"
#include "record/text.h"

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

void count_loss(const Control& control, spool::Loss loss) {
  control.header->lost[static_cast<std::size_t>(loss)].fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

__attribute__((noinline, cold)) Control* activate() {
  ThreadState& thread = t_state;
  if (thread.busy != 0 || is_off()) return nullptr;
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
  return control;
}

namespace {

// Room for one record in the thread's segment, its head filled but for seq.
template <typename Record>
inline Record* room(Control& control, RecordKind kind, std::size_t bytes = sizeof(Record)) {
  ThreadState& thread = t_state;
  const auto slots = static_cast<std::uint32_t>((bytes + spool::kSlotBytes - 1) / spool::kSlotBytes);
  const std::uint32_t needed = slots * static_cast<std::uint32_t>(spool::kSlotBytes);
  if (__builtin_expect(thread.segment == nullptr || thread.cursor + needed > spool::kSegmentBytes, 0))
    if (!next_segment(control)) return nullptr;
  auto* record = reinterpret_cast<Record*>(thread.segment + thread.cursor);
  RecordHead& head = *reinterpret_cast<RecordHead*>(record);
  head.seq = 0;
  head.ticks = ticks(control);
  head.kind = kind;
  head.flags = 0;
  head.slots = static_cast<std::uint16_t>(slots);
  head.pool = kNoPool;
  head.dtype = 0;
  head.small = 0;
  return record;
}

inline void commit(const RecordHead& head) {
  ThreadState& thread = t_state;
  auto* segment = reinterpret_cast<SegmentHeader*>(thread.segment);
  thread.cursor += head.slots * static_cast<std::uint32_t>(spool::kSlotBytes);
  ++segment->records;
  segment->committed.store(thread.cursor, std::memory_order_release);  // pairs with the collector's acquire
}

inline std::uint64_t seq_or_draw(const Control& control, std::uint64_t seq) {
  return seq != 0 ? seq : control.header->next_seq.fetch_add(1, std::memory_order_relaxed);
}

void raise_to(std::atomic<std::uint64_t>& peak, std::uint64_t value) {
  std::uint64_t seen = peak.load(std::memory_order_relaxed);
  while (seen < value && !peak.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

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

// Runs `body(control)` with the thread marked busy; drops and counts the event if it already was.
template <typename Body>
inline void recorded(Body body) {
  Control* control = live_control();
  if (control == nullptr) return;
  if (t_state.busy != 0) {
    count_loss(*control, spool::Loss::reentered);
    return;
  }
  t_state.busy = 1;
  body(*control);
  t_state.busy = 0;
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

std::uint32_t intern_inside(Control& control, const char* text, std::size_t bytes) {
  if (bytes == 0) return 0;
  const std::uint64_t key = base::hash(text, bytes);
  const Lookup found = text_entry(key);
  if (__builtin_expect(!found.inserted, 1)) {
    if (found.value == 0) count_loss(control, spool::Loss::names);
    return found.value;
  }
  return define_text(control, found.value, text, bytes < kLongestText ? bytes : kLongestText);
}

std::uint32_t intern_inside(Control& control, const char* text) {
  return text != nullptr ? intern_inside(control, text, strlen(text)) : 0;
}

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

void region(std::uint8_t pool, std::uint64_t address, std::uint64_t bytes, bool returned) {
  recorded([&](Control& control) {
    if (spool::Pool* totals = pool_totals(pool)) {
      const std::uint64_t change = returned ? std::uint64_t{0} - bytes : bytes;
      raise_to(totals->region_peak, totals->region_bytes.fetch_add(change, std::memory_order_relaxed) + change);
    }
    auto* record = room<spool::RegionRecord>(control, RecordKind::region);
    if (record == nullptr) return;
    record->head.seq = seq_or_draw(control, 0);
    record->head.flags = returned ? std::uint8_t{spool::kFlagReturned} : std::uint8_t{0};
    record->head.pool = pool;
    record->address = address;
    record->bytes = bytes;
    commit(record->head);
  });
}

void mark(MarkKind kind, std::uint8_t edge_flags, const char* name, std::int64_t number, const char* detail) {
  recorded([&](Control& control) {
    const std::uint32_t name_id = intern_inside(control, name);
    const std::uint32_t detail_id = intern_inside(control, detail);
    auto* record = room<spool::MarkRecord>(control, RecordKind::mark);
    if (record == nullptr) return;
    record->head.seq = seq_or_draw(control, 0);
    record->head.flags = edge_flags;
    record->head.small = static_cast<std::uint16_t>(kind);
    record->number = number;
    record->name = name_id;
    record->detail = detail_id;
    commit(record->head);
  });
}

void tag(std::uint64_t address, std::uint64_t bytes, Category category, const char* name, const char* layer) {
  recorded([&](Control& control) {
    const std::uint32_t name_id = intern_inside(control, name);
    const std::uint32_t layer_id = intern_inside(control, layer);
    auto* record = room<spool::TagRecord>(control, RecordKind::tag);
    if (record == nullptr) return;
    record->head.seq = seq_or_draw(control, 0);
    record->head.small = static_cast<std::uint16_t>(category);
    record->address = address;
    record->bytes = bytes;
    record->name = name_id;
    record->layer = layer_id;
    commit(record->head);
  });
}

void setting(const char* key, const char* value) {
  recorded([&](Control& control) {
    const std::uint32_t key_id = intern_inside(control, key);
    const std::uint32_t value_id = intern_inside(control, value);
    auto* record = room<spool::SettingRecord>(control, RecordKind::setting);
    if (record == nullptr) return;
    record->head.seq = seq_or_draw(control, 0);
    record->key = key_id;
    record->value = value_id;
    commit(record->head);
  });
}

void context(std::int64_t device, std::uint64_t free_bytes, std::uint64_t total_bytes, std::uint64_t handle) {
  recorded([&](Control& control) {
    auto* record = room<spool::ContextRecord>(control, RecordKind::context);
    if (record == nullptr) return;
    record->head.seq = seq_or_draw(control, 0);
    record->device = static_cast<std::uint64_t>(device);
    record->free_bytes = free_bytes;
    record->total_bytes = total_bytes;
    record->context = handle;
    commit(record->head);
  });
}

void stats(std::uint8_t pool, const spool::StatsRecord& counters) {
  recorded([&](Control& control) {
    auto* record = room<spool::StatsRecord>(control, RecordKind::stats);
    if (record == nullptr) return;
    const RecordHead head = record->head;
    *record = counters;
    record->head = head;
    record->head.seq = seq_or_draw(control, 0);
    record->head.pool = pool;
    commit(record->head);
  });
}

void op_source(const char* op, const char* file, std::uint32_t line, const char* function, const char* layer) {
  recorded([&](Control& control) {
    const std::uint32_t ids[] = {intern_inside(control, op), intern_inside(control, file), intern_inside(control, function),
                                 intern_inside(control, layer)};
    auto* record = room<spool::OpSourceRecord>(control, RecordKind::op_source);
    if (record == nullptr) return;
    record->op = ids[0];
    record->file = ids[1];
    record->function = ids[2];
    record->line = line;
    record->layer = ids[3];
    commit(record->head);
  });
}

bool busy() { return t_state.busy != 0; }

bool enter() {
  if (t_state.busy != 0) return false;
  t_state.busy = 1;
  return true;
}

void leave() { t_state.busy = 0; }

void say_once(const char* what, const char* remedy) {
  constexpr std::size_t kSaid = 16;
  static std::atomic<const char*> said[kSaid];
  for (auto& place : said) {
    const char* there = nullptr;
    if (place.compare_exchange_strong(there, what, std::memory_order_relaxed)) break;
    if (there == what) return;
  }
  Text<512> line;
  line.add("vramscope: ").add(what).add(": ").add(remedy).add("\n");
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.c_str(), line.size());
}

spool::RecordHead* reserve(RecordKind kind, std::size_t bytes) {
  Control* control = live_control();
  if (control == nullptr || bytes > spool::kSegmentBytes - sizeof(SegmentHeader)) return nullptr;
  return room<RecordHead>(*control, kind, bytes);
}

void publish(RecordHead* record) { commit(*record); }

}  // namespace vramscope::record
