#include "record/intern.h"

#include <sys/mman.h>

#include <atomic>
#include <initializer_list>

namespace vramscope::record {

namespace {

struct Entry {
  std::atomic<std::uint64_t> hash;   // 0 = empty; set once
  std::atomic<std::uint64_t> value;  // set after hash; 0 = being set
};

constexpr std::size_t kTables = 9;
constexpr std::size_t kFirstEntries = 4096;  // 64 KiB; each further table is four times as large and mapped when needed
constexpr std::size_t kProbes = 16;          // a full neighborhood means: continue with the next table

struct Table {
  std::atomic<Entry*> entries;
  std::atomic<std::uint32_t> state;  // 0 absent, 1 being mapped, 2 decided
};

struct Tables {
  Table text[kTables];
  Table pair[kTables];
  std::atomic<std::uint32_t> next_text;
};

void* (*g_map)(std::size_t);
Tables* g_tables;

std::size_t entries_of(std::size_t index) { return kFirstEntries << (2 * index); }

__attribute__((noinline, cold)) Entry* make_entries(Table& table, std::size_t index) {
  if (index > 5) return nullptr;
  std::uint32_t absent = 0;
  if (table.state.compare_exchange_strong(absent, 1, std::memory_order_acquire)) {
    table.entries.store(static_cast<Entry*>(g_map(entries_of(index) * sizeof(Entry))), std::memory_order_release);
    table.state.store(2, std::memory_order_release);
  }
  // Another thread's mapping takes a few microseconds, a handful of times per process; losing a name would be worse.
  while (table.state.load(std::memory_order_acquire) == 1) {
  }
  return table.entries.load(std::memory_order_acquire);
}

inline Entry* entries(Table* tables, std::size_t index, bool create) {
  Table& table = tables[index];
  Entry* there = table.entries.load(std::memory_order_acquire);
  return __builtin_expect(there != nullptr || !create, 1) ? there : make_entries(table, index);
}

// Finds the hash, or claims a slot for it if `create`.
Entry* locate(Table* tables, std::uint64_t hash, bool create, bool& claimed) {
  claimed = false;
  for (std::size_t index = 0; index < kTables; ++index) {
    Entry* table = entries(tables, index, create);
    if (table == nullptr) return nullptr;
    const std::size_t mask = entries_of(index) - 1;
    for (std::size_t probe = 0; probe < kProbes; ++probe) {
      Entry& entry = table[(hash + probe) & mask];
      std::uint64_t seen = entry.hash.load(std::memory_order_acquire);
      if (seen == hash) return &entry;
      if (seen != 0) continue;
      if (!create) return nullptr;
      if (entry.hash.compare_exchange_strong(seen, hash, std::memory_order_acq_rel)) {
        claimed = true;
        return &entry;
      }
      if (seen == hash) return &entry;
    }
  }
  return nullptr;
}

// The common case in a few instructions: the hash is known and in its first slot. Otherwise 0.
inline std::uint64_t first_glance(const Table* tables, std::uint64_t hash) {
  const Entry* first = tables[0].entries.load(std::memory_order_acquire);
  if (__builtin_expect(first == nullptr, 0)) return 0;
  const Entry& entry = first[hash & (kFirstEntries - 1)];
  return entry.hash.load(std::memory_order_acquire) == hash ? entry.value.load(std::memory_order_acquire) : 0;
}

// The thread that claimed the slot sets the value within a few instructions.
std::uint32_t settled(const Entry& entry) {
  std::uint64_t value = entry.value.load(std::memory_order_acquire);
  for (int spin = 0; value == 0 && spin < 1000; ++spin) value = entry.value.load(std::memory_order_acquire);
  return static_cast<std::uint32_t>(value);
}

}  // namespace

bool make_text_tables(void* (*map)(std::size_t)) {
  g_map = map;
  if (g_tables == nullptr) g_tables = static_cast<Tables*>(map(sizeof(Tables)));
  return g_tables != nullptr;
}

void forget_texts() {
  // Private anonymous pages that are given back read as zero afterwards.
  for (std::size_t i = 0; i < kTables; ++i)
    for (Table* table : {&g_tables->text[i], &g_tables->pair[i]})
      if (Entry* there = table->entries.load(std::memory_order_acquire))
        madvise(there, entries_of(i) * sizeof(Entry), MADV_DONTNEED);
  g_tables->next_text.store(0, std::memory_order_relaxed);
}

Lookup text_entry(std::uint64_t hash) {
  bool claimed = false;
  Entry* entry = locate(g_tables->text, hash, true, claimed);
  if (entry == nullptr) return {0, false};
  if (!claimed) return {settled(*entry), false};
  const std::uint32_t id = g_tables->next_text.fetch_add(1, std::memory_order_relaxed) + 1;
  entry->value.store(id, std::memory_order_release);
  return {id, true};
}

Pair find_pair(std::uint64_t hash) {
  std::uint64_t value = first_glance(g_tables->pair, hash);
  if (__builtin_expect(value == 0, 0)) {
    bool claimed = false;
    const Entry* entry = locate(g_tables->pair, hash, false, claimed);
    value = entry != nullptr ? entry->value.load(std::memory_order_acquire) : 0;
  }
  return {static_cast<std::uint32_t>(value), static_cast<std::uint32_t>(value >> 32)};
}

void add_pair(std::uint64_t hash, Pair pair) {
  bool claimed = false;
  Entry* entry = locate(g_tables->pair, hash, true, claimed);
  if (entry != nullptr) entry->value.store(pair.first | (std::uint64_t{pair.second} << 32), std::memory_order_release);
}

}  // namespace vramscope::record
