#include "capture/stacks/compiled_lines.h"

#include <atomic>

#include "capture/stacks/hash.h"
#include "capture/stacks/python_code.h"
#include "capture/stacks/shared_cache.h"
#include "capture/stacks/stacks.h"

namespace vramscope::stacks {

namespace {

constexpr std::uint32_t kMaxPlaces = 1u << 14;
Place g_places[kMaxPlaces];
std::atomic<std::uint32_t> g_place_count{1};  // number 0 = none

SharedCache<1, 15> g_lines;  // code and line -> part, place; code and line 0 -> whether it has any
std::atomic<bool> g_any{false};

std::uint64_t line_key(std::uint64_t code, std::uint32_t line) { return fold(code ^ kHash2, line ^ kHash0); }

}  // namespace

std::uint32_t add_place(const char* file, const char* function, std::uint32_t line, std::uint32_t outer) {
  // One caller at a time: Python's lock is held.
  const std::uint32_t number = g_place_count.load(std::memory_order_relaxed);
  const std::uint32_t file_name = keep_layer(file != nullptr ? file : "");
  if (number >= kMaxPlaces || file_name == 0 || outer >= number) return 0;
  g_places[number] = {file_name, keep_layer(function != nullptr ? function : ""), line, outer};
  g_place_count.store(number + 1, std::memory_order_release);
  return number;
}

Place place_at(std::uint32_t number) {
  return number != 0 && number < g_place_count.load(std::memory_order_acquire) ? g_places[number] : Place{};
}

void name_line(std::uint64_t code, std::uint32_t line, const char* part, std::uint32_t place) {
  const std::uint32_t handle = part != nullptr ? keep_layer(part) : 0;
  g_lines.put(line_key(code, line), {{(std::uint64_t{place} << 32) | handle}});
  g_lines.put(line_key(code, 0), {{1}});
  g_any.store(true, std::memory_order_release);
}

void forget_code(std::uint64_t code) { g_lines.put(line_key(code, 0), {{0}}); }

CompiledLine compiled_line(const Python& py, const PythonFrame& frame) {
  decltype(g_lines)::Entry entry;
  if (!g_any.load(std::memory_order_acquire)) return {};
  if (!g_lines.find(line_key(frame.code, 0), entry) || entry.value[0] == 0) return {};
  const std::uint32_t line = line_at(py.layout, frame.code, instruction_offset(py, frame));
  if (line == 0 || !g_lines.find(line_key(frame.code, line), entry)) return {};
  return {static_cast<std::uint32_t>(entry.value[0]), static_cast<std::uint32_t>(entry.value[0] >> 32)};
}

}  // namespace vramscope::stacks
