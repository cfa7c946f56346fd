#include "capture/cuda/owner.h"

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <link.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>

#include "capture/framework.h"
#include "record/recorder.h"
#include "record/state.h"

namespace vramscope::capture::cuda {

namespace {

enum Trait : std::uint8_t { kPlain = 0, kPooling = 1, kRuntime = 2, kTransparent = 4 };

struct Known {
  const char* prefix;  // of the file name
  const char* owner;
  std::uint8_t traits;
};

// Beside the frameworks that are recorded, which say so themselves (capture/framework.h).
constexpr Known kKnown[] = {
    {"libnccl", "NCCL", kPlain},
    {"libcublas", "cuBLAS", kPlain},
    {"libcudnn", "cuDNN", kPlain},
    {"libcufft", "cuFFT", kPlain},
    {"libcusparse", "cuSPARSE", kPlain},
    {"libcusolver", "cuSOLVER", kPlain},
    {"libcurand", "cuRAND", kPlain},
    {"libnvshmem", "NVSHMEM", kPlain},
    {"libnvinfer", "TensorRT", kPlain},
    {"libcupti", "CUPTI", kPlain},
    {"pjrt", "XLA", kPooling},
    {"librmm", "RMM", kPooling},
    {"libcudart", "CUDA runtime", kRuntime},
    {"libcuda.so", "CUDA driver", kTransparent},
    {"libvramscope_inject", "vramscope", kTransparent},
    {"libc.so", "libc", kTransparent},
    {"libpthread", "libc", kTransparent},
    {"libstdc++", "libstdc++", kTransparent},
    {"ld-linux", "libc", kTransparent},
};

struct Module {
  std::uintptr_t begin;
  std::uintptr_t end;
  const char* owner;
  std::uint8_t traits;
};

constexpr std::size_t kMaxModules = 1024;
constexpr std::size_t kNameBytes = 32 * 1024;

// Written by one thread at a time; a reader that sees `version` change starts again.
struct Modules {
  std::atomic<std::uint32_t> version;  // odd while it is written
  std::atomic<std::uint32_t> count;
  Module sorted[kMaxModules];
  char names[kNameBytes];  // appended to and never reused: a reader may hold an older pointer
  std::size_t name_bytes;
};
Modules g_modules;

const char* keep_name(const char* name) {
  const std::size_t bytes = strlen(name) + 1;
  for (std::size_t at = 0; at < g_modules.name_bytes; at += strlen(g_modules.names + at) + 1) {
    if (strcmp(g_modules.names + at, name) == 0) return g_modules.names + at;
  }
  if (g_modules.name_bytes + bytes > kNameBytes) return "other";
  char* kept = g_modules.names + g_modules.name_bytes;
  memcpy(kept, name, bytes);
  g_modules.name_bytes += bytes;
  return kept;
}

const char* base_name(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash != nullptr ? slash + 1 : path;
}

void name_module(const char* path, Module& module) {
  char program[1024];
  if (path == nullptr || *path == '\0') {  // the program itself
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length > 0 ? length : 0] = '\0';
    path = program;
  }
  const char* name = base_name(path);
  const auto begins_with = [&](const char* prefix) { return strncmp(name, prefix, strlen(prefix)) == 0; };
  for (const Framework* framework : frameworks())
    for (const char* file : framework->files)
      if (begins_with(file)) {
        module.owner = framework->name;
        module.traits = kPooling;
        return;
      }
  for (const Known& known : kKnown) {
    if (!begins_with(known.prefix)) continue;
    module.owner = known.owner;
    module.traits = known.traits;
    return;
  }
  module.owner = keep_name(*name != '\0' ? name : "program");
  module.traits = kPlain;
}

int add_module(dl_phdr_info* info, std::size_t, void* data) {
  auto& count = *static_cast<std::uint32_t*>(data);
  Module named{};
  for (int i = 0; i < info->dlpi_phnum && count < kMaxModules; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
    if (named.owner == nullptr) name_module(info->dlpi_name, named);
    named.begin = info->dlpi_addr + segment.p_vaddr;
    named.end = named.begin + segment.p_memsz;
    std::uint32_t at = count++;
    for (; at > 0 && g_modules.sorted[at - 1].begin > named.begin; --at) g_modules.sorted[at] = g_modules.sorted[at - 1];
    g_modules.sorted[at] = named;
  }
  return 0;
}

void refresh() {
  std::uint32_t version = g_modules.version.load(std::memory_order_relaxed);
  if ((version & 1) != 0 || !g_modules.version.compare_exchange_strong(version, version + 1, std::memory_order_acquire)) return;
  std::uint32_t count = 0;
  dl_iterate_phdr(add_module, &count);
  g_modules.count.store(count, std::memory_order_relaxed);
  g_modules.version.store(version + 2, std::memory_order_release);
}

bool search(std::uintptr_t address, Module& found) {
  for (int attempt = 0; attempt < 16; ++attempt) {
    const std::uint32_t version = g_modules.version.load(std::memory_order_acquire);
    if ((version & 1) != 0) continue;
    std::uint32_t low = 0, high = g_modules.count.load(std::memory_order_relaxed);
    while (low < high) {
      const std::uint32_t middle = (low + high) / 2;
      if (g_modules.sorted[middle].end <= address)
        low = middle + 1;
      else
        high = middle;
    }
    const Module module = g_modules.sorted[low < kMaxModules ? low : 0];
    const bool inside = low < g_modules.count.load(std::memory_order_relaxed) && address >= module.begin;
    std::atomic_thread_fence(std::memory_order_acquire);
    if (g_modules.version.load(std::memory_order_relaxed) != version) continue;
    found = module;
    return inside;
  }
  return false;
}

bool module_of(const void* caller, Module& module) {
  const auto address = reinterpret_cast<std::uintptr_t>(caller);
  if (search(address, module)) return true;
  refresh();
  return search(address, module);
}

// Return address -> string id, one word each: 39 bits of the address (the other 8 are the place), 16 of the id, 8 of the
// recorder's generation (ids begin anew in a forked child).
constexpr std::size_t kCached = 256;
std::atomic<std::uint64_t> g_cache[kCached];

std::uint64_t cache_tag(std::uintptr_t address) { return (address >> 8) << 24 | (record::t_state.generation & 0xff); }

// Memory is read through the kernel here: near the end of a stack, or in a library that was unloaded meanwhile, it stops short
// where a plain read would be a fault.
constexpr std::size_t kStackPieces = 6;
constexpr std::size_t kPieceWords = 64;

std::size_t read_stack(const void* stack, std::uintptr_t (&words)[kStackPieces * kPieceWords]) {
  const iovec local{words, sizeof words};
  iovec remote[kStackPieces];  // whole pieces are copied or not at all
  for (std::size_t i = 0; i < kStackPieces; ++i) {
    const auto at = reinterpret_cast<std::uintptr_t>(stack) + i * kPieceWords * sizeof *words;
    remote[i] = {reinterpret_cast<void*>(at), kPieceWords * sizeof *words};
  }
  const ssize_t bytes = process_vm_readv(getpid(), &local, 1, remote, kStackPieces, 0);
  return bytes > 0 ? static_cast<std::size_t>(bytes) / sizeof *words : 0;
}

bool follows_call(std::uintptr_t address) {
  unsigned char before[6];
  const iovec local{before, sizeof before}, remote{reinterpret_cast<void*>(address - sizeof before), sizeof before};
  if (process_vm_readv(getpid(), &local, 1, &remote, 1, 0) != sizeof before) return false;
  const bool relative = before[1] == 0xe8;
  const bool through_table = before[0] == 0xff && before[1] == 0x15;
  const bool through_register = before[4] == 0xff && (before[5] & 0x38) == 0x10;
  const bool through_memory = before[3] == 0xff && (before[4] & 0x38) == 0x10;
  return relative || through_table || through_register || through_memory;
}

}  // namespace

std::uint32_t owner_of(const void* caller) {
  const auto address = reinterpret_cast<std::uintptr_t>(caller);
  std::atomic<std::uint64_t>& place = g_cache[address % kCached];
  const std::uint64_t cached = place.load(std::memory_order_relaxed);
  constexpr std::uint64_t kIdMask = 0xffffull << 8;
  if ((cached & ~kIdMask) == cache_tag(address)) return static_cast<std::uint32_t>((cached & kIdMask) >> 8);
  Module module;
  const std::uint32_t id = module_of(caller, module) ? record::intern(module.owner) : 0;
  if (id <= 0xffff) place.store(cache_tag(address) | static_cast<std::uint64_t>(id) << 8, std::memory_order_relaxed);
  return id;
}

// Return addresses further up the stack, without frame pointers or an unwinder: the first word that points behind a call
// instruction of a library which is neither the runtime nor the C library. A word left over from an earlier call can mislead,
// but only towards another user of the runtime.
std::uint32_t owner_behind_runtime(const void* caller, const void* stack) {
  Module module;
  if (!module_of(caller, module) || (module.traits & kRuntime) == 0) return owner_of(caller);
  std::uintptr_t words[kStackPieces * kPieceWords];
  const std::size_t count = read_stack(stack, words);
  for (std::size_t i = 0; i < count; ++i) {
    Module candidate;
    if (words[i] < 4096 || !search(words[i], candidate) || (candidate.traits & (kRuntime | kTransparent)) != 0) continue;
    if (follows_call(words[i])) return owner_of(reinterpret_cast<const void*>(words[i]));
  }
  return owner_of(caller);
}

bool retries(const void* caller) {
  Module module;
  return module_of(caller, module) && (module.traits & kPooling) != 0;
}

}  // namespace vramscope::capture::cuda
