#include "capture/cuda/driver.h"

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <link.h>
#include <string.h>

#include <atomic>

#include "capture/elf_symbols.h"
#include "capture/loader.h"

namespace vramscope::capture::cuda {

namespace {

struct Entry {
  const char* symbol;
  void* wrapper;  // NULL for queries
};

// In the order of Function: hooks, then queries.
const Entry kEntries[] = {
#define VS_HOOK(symbol, base, since, per_thread, role, parameters, what) {#symbol, reinterpret_cast<void*>(&vs_##symbol)},
#include "capture/cuda/hooks.inc"
#define VS_QUERY(symbol, base, since, per_thread, parameters) {#symbol, nullptr},
#include "capture/cuda/hooks.inc"
};
constexpr std::size_t kFunctions = static_cast<std::size_t>(Function::kCount);
static_assert(sizeof kEntries / sizeof *kEntries == kFunctions);

std::atomic<void*> g_real[kFunctions];
std::atomic<bool> g_bound;
std::atomic<std::uintptr_t> g_code_begin;
std::atomic<std::uintptr_t> g_code_end;

// Replaces whatever the driver does not have. The caller pops its own arguments, so one function serves all signatures.
CUresult absent() { return kNotFound; }

int note_code_range(dl_phdr_info* info, std::size_t, void* data) {
  const auto inside = reinterpret_cast<std::uintptr_t>(data);
  std::uintptr_t begin = ~std::uintptr_t{0}, end = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
    const std::uintptr_t from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
    if (from < begin) begin = from;
    if (from + info->dlpi_phdr[i].p_memsz > end) end = from + info->dlpi_phdr[i].p_memsz;
  }
  if (inside < begin || inside >= end) return 0;
  g_code_begin.store(begin, std::memory_order_relaxed);
  g_code_end.store(end, std::memory_order_relaxed);
  return 1;
}

}  // namespace

bool bind_driver() {
  constexpr const char* kFile = "libcuda.so";
  if (g_bound.load(std::memory_order_acquire)) return true;
  if (!keep_loaded(kFile)) return false;
  const LoadedObject library = loaded_object(kFile);
  // Two threads may do this at once and store the same values. Neither waits: each may hold the dynamic linker's lock.
  for (std::size_t i = 0; i < kFunctions; ++i) {
    void* real = symbol_in(library, kEntries[i].symbol);
    g_real[i].store(real != nullptr ? real : reinterpret_cast<void*>(&absent), std::memory_order_release);
    if (real != nullptr && g_code_end.load(std::memory_order_relaxed) == 0) dl_iterate_phdr(note_code_range, real);
  }
  g_bound.store(true, std::memory_order_release);
  return true;
}

void* real_function(Function function) {
  const auto index = static_cast<std::size_t>(function);
  void* real = g_real[index].load(std::memory_order_acquire);
  if (__builtin_expect(real != nullptr, 1)) return real;
  bind_driver();
  real = g_real[index].load(std::memory_order_acquire);
  return real != nullptr ? real : reinterpret_cast<void*>(&absent);
}

void* wrapper_of(const void* real) {
  for (std::size_t i = 0; i < kFunctions; ++i) {
    if (kEntries[i].wrapper != nullptr && g_real[i].load(std::memory_order_acquire) == real) return kEntries[i].wrapper;
  }
  return nullptr;
}

bool is_hooked(const char* symbol) {
  for (const Entry& entry : kEntries) {
    if (entry.wrapper != nullptr && strcmp(entry.symbol, symbol) == 0) return true;
  }
  return false;
}

bool is_driver_code(const void* address) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  return at >= g_code_begin.load(std::memory_order_relaxed) && at < g_code_end.load(std::memory_order_relaxed);
}

}  // namespace vramscope::capture::cuda
