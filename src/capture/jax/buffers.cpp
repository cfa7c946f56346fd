#include "capture/jax/buffers.h"

#include <atomic>

#include "capture/jax/activity.h"
#include "capture/jax/plugins.h"
#include "capture/stacks/stacks.h"
#include "record/recorder.h"
#include "record/state.h"

namespace vramscope::capture::jax::pjrt::buffers {

namespace {

// A fixed table: a buffer is in one of the places from its home on. One that finds no place is not recorded.
struct Entry {
  std::atomic<const void*> buffer;
  std::uint64_t generation;  // of the spool that knows it
  std::uint64_t bytes;
  std::uint8_t pool;
  record::Category category;  // as it was labelled last
  std::uint32_t name, layer;
  bool settled;  // whatever later programs call it
};
constexpr std::size_t kEntries = std::size_t{1} << 16, kReach = 32;
Entry g_entries[kEntries + kReach];

Entry* home_of(const void* buffer) {
  return g_entries + (reinterpret_cast<std::uintptr_t>(buffer) * 0x9e3779b97f4a7c15u >> 40) % kEntries;
}

// "CPU_0 arrays". Devices of a plugin are numbered from 0.
void write_name(char* name, bool on_cpu, unsigned number) {
  const char* const kind = on_cpu ? "CPU_" : "GPU_";
  for (const char* letter = kind; *letter != '\0'; ++letter) *name++ = *letter;
  if (number >= 100) *name++ = static_cast<char>('0' + number / 100 % 10);
  if (number >= 10) *name++ = static_cast<char>('0' + number / 10 % 10);
  *name++ = static_cast<char>('0' + number % 10);
  for (const char* letter = " arrays"; *letter != '\0'; ++letter) *name++ = *letter;
  *name = '\0';
}

std::uint8_t pool_of(const Table& table, const void* buffer) {
  Question device, description, number, on_cpu;
  if (!ask(table, Place::buffer_device, buffer, kOneAnswer, device)) return record::kNoPool;
  if (const std::uint8_t known = record::find_pool(device.answer); known != record::kNoPool) return known;
  if (!ask(table, Place::device_description, reinterpret_cast<const void*>(device.answer), kOneAnswer, description) ||
      !ask(table, Place::description_id, reinterpret_cast<const void*>(description.answer), kOneAnswer, number) ||
      !ask(table, Place::buffer_on_cpu, buffer, kOneAnswer, on_cpu))
    return record::kNoPool;
  const bool cpu = (on_cpu.answer & 0xff) != 0;
  const auto id = static_cast<std::uint32_t>(number.answer);  // an int
  char name[32];
  write_name(name, cpu, id);
  record::setting("jax.allocator_found_by", text_of(FoundBy::nothing));
  return record::pool({device.answer, name, cpu ? -1 : static_cast<std::int32_t>(id), record::Level::tensor,
                       cpu ? record::Memory::host : record::Memory::device, kFramework.id,
                       spool::kPoolOrderExact | spool::kPoolAttributed | spool::kPoolOfObjects});
}

void record_block(const Entry& entry, const void* buffer) {
  record::AllocEvent event;
  event.pool = entry.pool;
  event.address = reinterpret_cast<std::uint64_t>(buffer);
  event.requested = event.granted = entry.bytes;
  event.stack = stacks::capture();
  const Activity activity = current_activity();
  event.op = activity.op;
  event.region = activity.region;
  event.step = activity.run;
  record::alloc(event);
}

// NULL if it is not recorded.
Entry* entry_of(const void* buffer) {
  Entry* const home = home_of(buffer);
  for (Entry* entry = home; entry != home + kReach; ++entry)
    if (entry->buffer.load(std::memory_order_acquire) == buffer)
      return record::recording() != nullptr && entry->generation == record::t_state.generation ? entry : nullptr;
  return nullptr;
}

void set_label(Entry& entry, const Argument& argument) {
  entry.category = argument.category;
  entry.name = argument.name;
  entry.layer = argument.layer;
  const auto object = reinterpret_cast<std::uint64_t>(entry.buffer.load(std::memory_order_relaxed));
  record::tag(object, entry.bytes, argument.category, argument.name, argument.layer);
}

struct Asked {
  const void* buffer;
  std::uint64_t address;
};
constinit thread_local Asked t_asked;

}  // namespace

void add(const Table& table, const void* buffer) {
  if (buffer == nullptr || !table.tracks.load(std::memory_order_relaxed) || record::recording() == nullptr) return;
  remove(buffer);  // an earlier one at this address is gone in a way that is not seen
  Question bytes;
  if (!ask(table, Place::buffer_bytes, buffer, kOneAnswer, bytes) || bytes.answer == 0) return;
  const std::uint8_t pool = pool_of(table, buffer);
  if (pool == record::kNoPool) return;
  Entry* const home = home_of(buffer);
  for (Entry* entry = home; entry != home + kReach; ++entry) {
    const void* there = nullptr;
    // Taken under an address that no buffer has, filled, then published.
    if (!entry->buffer.compare_exchange_strong(there, &g_entries, std::memory_order_acq_rel)) continue;
    entry->bytes = bytes.answer;
    entry->pool = pool;
    entry->category = record::Category::unknown;
    entry->name = entry->layer = 0;
    entry->settled = false;
    entry->generation = record::t_state.generation;
    record_block(*entry, buffer);
    entry->buffer.store(buffer, std::memory_order_release);
    return;
  }
}

void remove(const void* buffer) {
  Entry* const home = home_of(buffer);
  for (Entry* entry = home; entry != home + kReach; ++entry) {
    const void* there = buffer;
    if (entry->buffer.load(std::memory_order_relaxed) != buffer ||
        !entry->buffer.compare_exchange_strong(there, &g_entries, std::memory_order_acq_rel))
      continue;  // an exchange costs even where it fails, and nearly all places are others'
    if (record::recording() != nullptr && entry->generation == record::t_state.generation) {
      record::FreeEvent event;
      event.pool = entry->pool;
      event.address = reinterpret_cast<std::uint64_t>(buffer);
      event.bytes = entry->bytes;
      record::free(event);
    }
    entry->buffer.store(nullptr, std::memory_order_release);
    return;
  }
}

void label(const Table& table, const void* buffer, const Argument& argument) {
  if (!table.tracks.load(std::memory_order_relaxed) || argument.category == record::Category::unknown) return;
  Entry* const entry = entry_of(buffer);
  if (entry == nullptr || entry->settled) return;
  const bool same = entry->category == argument.category && entry->name == argument.name && entry->layer == argument.layer;
  if (!same) set_label(*entry, argument);
  entry->settled = argument.category == record::Category::gradient;
}

void note_memory(const void* buffer, std::uint64_t address) { t_asked = {buffer, address}; }

bool tag_memory(std::uint64_t address, record::Category category, const char* name, const char* layer) {
  Entry* const entry = address != 0 && t_asked.address == address ? entry_of(t_asked.buffer) : nullptr;
  if (entry == nullptr) return false;
  set_label(*entry, {record::intern(name), record::intern(layer), category, 0, 0});
  entry->settled = true;
  return true;
}

void remove_donated(const Table& table, const Execute& execute) {
  if (!table.tracks.load(std::memory_order_relaxed)) return;
  for (std::size_t device = 0; device < execute.devices; ++device)
    for (std::size_t i = 0; i < execute.argument_count; ++i) {
      Question deleted;
      const void* const buffer = execute.arguments[device][i];
      if (ask(table, Place::buffer_is_deleted, buffer, kOneAnswer, deleted) && (deleted.answer & 0xff) != 0) remove(buffer);
    }
}

void add_results(const Table& table, const Execute& execute, const Program& program) {
  if (!table.tracks.load(std::memory_order_relaxed) || execute.results == nullptr) return;
  Activity activity = current_activity();
  activity.region = region_called("result");
  const Doing doing(activity);
  for (std::size_t device = 0; device < execute.devices; ++device)
    for (std::size_t i = 0; i < program.result_count; ++i) {
      add(table, execute.results[device][i]);
      if (program.labelled_count == program.result_count) label(table, execute.results[device][i], program.results[i]);
    }
}

}  // namespace vramscope::capture::jax::pjrt::buffers
