#include "capture/jax/programs.h"

#include <atomic>

#include "record/state.h"

namespace vramscope::capture::jax::programs {

namespace {

// A fixed table: an executable is in one of the places from its home on.
struct Entry {
  std::atomic<const void*> executable;
  std::uint64_t generation;  // of the spool in which its string ids are valid
  Program program;
};
constexpr std::size_t kEntries = 4096, kReach = 16;
Entry g_entries[kEntries + kReach];

constexpr std::size_t kArguments = std::size_t{1} << 15;
Argument g_arguments[kArguments];
std::atomic<std::size_t> g_argument_count;

// The last descriptions. Each is written under the interpreter's lock; a reader that is overtaken finds another name.
struct Description {
  std::atomic<std::uint32_t> name;  // 0: being written
  std::uint64_t generation;
  Program program;
};
constexpr std::size_t kDescriptions = 64;
Description g_descriptions[kDescriptions];
std::atomic<std::size_t> g_description_count;

std::size_t home_of(const void* executable) {
  return (reinterpret_cast<std::uintptr_t>(executable) * 0x9e3779b97f4a7c15u >> 40) % kEntries;
}

bool is_same(const Argument& left, const Argument& right) {
  return left.name == right.name && left.layer == right.layer && left.category == right.category;
}

// The same arguments again, as when a function is compiled for another shape of its batch.
Argument* find_equal(const Argument* arguments, std::size_t count) {
  for (const Entry& entry : g_entries) {
    const Program& known = entry.program;
    if (known.argument_count != count || entry.generation != record::t_state.generation) continue;
    std::size_t i = 0;
    while (i < count && is_same(known.arguments[i], arguments[i])) ++i;
    if (i == count) return known.arguments;
  }
  return nullptr;
}

}  // namespace

void describe(const Program& program) {
  const std::size_t count = g_description_count.load(std::memory_order_relaxed);
  Description& next = g_descriptions[count % kDescriptions];
  next.name.store(0, std::memory_order_release);
  next.program = program;
  next.generation = record::t_state.generation;
  next.name.store(program.name, std::memory_order_release);
  g_description_count.store(count + 1, std::memory_order_release);
}

Program described_as(std::uint32_t name) {
  const std::size_t count = g_description_count.load(std::memory_order_acquire);
  for (std::size_t back = 1; back <= kDescriptions && back <= count; ++back) {
    const Description& known = g_descriptions[(count - back) % kDescriptions];
    if (known.name.load(std::memory_order_acquire) == name && known.generation == record::t_state.generation)
      return known.program;
  }
  Program program;
  program.name = name;
  return program;
}

std::uint32_t last_described() {
  const std::size_t count = g_description_count.load(std::memory_order_acquire);
  const Description& last = g_descriptions[(count - 1) % kDescriptions];
  return count != 0 && last.generation == record::t_state.generation ? last.name.load(std::memory_order_acquire) : 0;
}

Argument* keep_arguments(const Argument* arguments, std::size_t count) {
  if (count == 0) return nullptr;
  if (Argument* known = find_equal(arguments, count)) return known;
  const std::size_t first = g_argument_count.fetch_add(count, std::memory_order_relaxed);
  if (first + count > kArguments) {
    g_argument_count.fetch_sub(count, std::memory_order_relaxed);
    return nullptr;
  }
  for (std::size_t i = 0; i < count; ++i) g_arguments[first + i] = arguments[i];
  return g_arguments + first;
}

void add(const void* executable, const Program& program) {
  Entry* const home = g_entries + home_of(executable);
  for (Entry* entry = home; entry != home + kReach; ++entry) {
    const void* there = nullptr;
    // Taken under an address that no executable has, filled, then published.
    if (!entry->executable.compare_exchange_strong(there, &g_entries, std::memory_order_acq_rel)) continue;
    entry->program = program;
    entry->generation = record::t_state.generation;
    entry->executable.store(executable, std::memory_order_release);
    return;
  }
}

void remove(const void* executable) {
  Entry* const home = g_entries + home_of(executable);
  for (Entry* entry = home; entry != home + kReach; ++entry) {
    const void* there = executable;
    if (entry->executable.compare_exchange_strong(there, nullptr, std::memory_order_acq_rel)) return;
  }
}

Program* find(const void* executable) {
  Entry* const home = g_entries + home_of(executable);
  for (Entry* entry = home; entry != home + kReach; ++entry)
    if (entry->executable.load(std::memory_order_acquire) == executable)
      return entry->generation == record::t_state.generation ? &entry->program : nullptr;
  return nullptr;
}

}  // namespace vramscope::capture::jax::programs
