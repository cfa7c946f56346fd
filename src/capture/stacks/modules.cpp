#include "capture/stacks/modules.h"

#include <elf.h>
#include <link.h>
#include <unistd.h>
#include <atomic>
#include <cstring>

#include "capture/stacks/hash.h"
#include "record/recorder.h"

namespace vramscope::stacks {
namespace {

struct Module {
  std::uint64_t begin;  // of its executable part
  std::uint64_t end;
  std::uint64_t base;  // what was added to the addresses in the file
  std::uint64_t hash;  // of the build id, or of the path where there is none
};
constexpr std::uint32_t kMaxModules = 4096;
Module g_modules[kMaxModules];
std::atomic<std::uint32_t> g_count{0};
std::atomic<bool> g_refreshing{false};
std::atomic<std::uint64_t> g_generation{0};  // of the spool in which they are defined

const Module* find(std::uint64_t address) {
  // Newest first: a library that was unloaded may have left its addresses to another one.
  for (std::uint32_t i = g_count.load(std::memory_order_acquire); i-- > 0;) {
    if (address >= g_modules[i].begin && address < g_modules[i].end) return &g_modules[i];
  }
  return nullptr;
}

constexpr std::size_t kMaxBuildId = 32;

std::size_t read_build_id(const dl_phdr_info& info, std::uint8_t (&out)[kMaxBuildId]) {
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const auto& header = info.dlpi_phdr[i];
    if (header.p_type != PT_NOTE) continue;
    const auto* at = reinterpret_cast<const char*>(info.dlpi_addr + header.p_vaddr);
    const auto* const end = at + header.p_memsz;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      ElfW(Nhdr) note;
      std::memcpy(&note, at, sizeof note);
      const char* const name = at + sizeof note;
      const char* const data = name + ((note.n_namesz + 3u) & ~3u);
      if (data + note.n_descsz > end) break;
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0) {
        const std::size_t bytes = note.n_descsz < kMaxBuildId ? note.n_descsz : kMaxBuildId;
        std::memcpy(out, data, bytes);
        return bytes;
      }
      at = data + ((note.n_descsz + 3u) & ~3u);
    }
  }
  return 0;
}

void define(const Module& module, const char* path, const std::uint8_t* id, std::size_t id_bytes) {
  char hex[2 * kMaxBuildId];
  for (std::size_t i = 0; i < id_bytes; ++i) {
    hex[2 * i] = "0123456789abcdef"[id[i] >> 4];
    hex[2 * i + 1] = "0123456789abcdef"[id[i] & 15];
  }
  const std::uint32_t path_id = record::intern(path);
  const std::uint32_t build_id = record::intern(hex, 2 * id_bytes);
  auto* const head = record::reserve(spool::RecordKind::module, sizeof(spool::ModuleRecord));
  if (head == nullptr) return;
  auto* const record = reinterpret_cast<spool::ModuleRecord*>(head);
  record->base = module.base;
  record->bytes = module.end - module.base;
  record->path = path_id;
  record->build_id = build_id;
  record::publish(head);
}

int add_module(dl_phdr_info* info, std::size_t, void*) {
  Module module{~std::uint64_t{0}, 0, info->dlpi_addr, 0};
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& header = info->dlpi_phdr[i];
    if (header.p_type != PT_LOAD || (header.p_flags & PF_X) == 0) continue;
    const std::uint64_t begin = info->dlpi_addr + header.p_vaddr;
    if (begin < module.begin) module.begin = begin;
    if (begin + header.p_memsz > module.end) module.end = begin + header.p_memsz;
  }
  if (module.end == 0) return 0;
  const Module* const known = find(module.begin);
  if (known != nullptr && known->begin == module.begin && known->end == module.end) return 0;

  char self[512];
  const char* path = info->dlpi_name;
  if (path == nullptr || *path == '\0') {
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length > 0 ? length : 0] = '\0';
    path = self;
  }
  std::uint8_t id[kMaxBuildId];
  const std::size_t id_bytes = read_build_id(*info, id);
  char text[kMaxBuildId];
  std::memcpy(text, id, id_bytes);
  module.hash = id_bytes != 0 ? hash_bytes(text, id_bytes, kHash0) : hash_bytes(path, std::strlen(path), kHash1);
  define(module, path, id, id_bytes);
  const std::uint32_t slot = g_count.load(std::memory_order_relaxed);
  if (slot == kMaxModules) return 1;
  g_modules[slot] = module;
  g_count.store(slot + 1, std::memory_order_release);
  return 0;
}

}  // namespace

std::uint64_t native_hash(std::uint64_t address, std::uint64_t generation) {
  if (g_generation.exchange(generation, std::memory_order_relaxed) != generation) g_count.store(0, std::memory_order_release);
  const Module* module = find(address);
  if (module == nullptr && !g_refreshing.exchange(true, std::memory_order_acquire)) {
    dl_iterate_phdr(add_module, nullptr);
    g_refreshing.store(false, std::memory_order_release);
    module = find(address);
  }
  return module == nullptr ? 0 : fold(module->hash ^ kHash1, (address - module->base) ^ kHash0);
}

}  // namespace vramscope::stacks
