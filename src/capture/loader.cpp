#include "capture/loader.h"

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

#include <atomic>

#include "base/glibc.h"
#include "capture/elf_symbols.h"

namespace vramscope::capture {

namespace {

using Dlsym = void* (*)(void*, const char*);

struct Search {
  const char* file_name;
  char path[4096];
};

int match_name(dl_phdr_info* info, std::size_t, void* data) {
  auto* search = static_cast<Search*>(data);
  const char* path = info->dlpi_name;
  if (path == nullptr || *path == '\0') return 0;
  const char* slash = strrchr(path, '/');
  const char* name = slash != nullptr ? slash + 1 : path;
  const std::size_t length = strlen(path);
  if (strncmp(name, search->file_name, strlen(search->file_name)) != 0 || length >= sizeof search->path) return 0;
  memcpy(search->path, path, length + 1);
  return 1;
}

int match_code(dl_phdr_info* info, std::size_t, void* data) {
  const auto address = *static_cast<const std::uintptr_t*>(data);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    const std::uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0 && address >= begin && address < begin + segment.p_memsz)
      return 1;
  }
  return 0;
}

}  // namespace

void* real_dlsym(void* handle, const char* name) {
  static std::atomic<Dlsym> real;
  Dlsym found = real.load(std::memory_order_acquire);
  if (found == nullptr) {
    void* symbol = libc_function("dlsym");
    if (symbol == nullptr) return nullptr;
    memcpy(&found, &symbol, sizeof found);
    real.store(found, std::memory_order_release);
  }
  return found(handle, name);
}

void* loaded_library(const char* file_name) {
  Search search{file_name, {}};
  if (dl_iterate_phdr(match_name, &search) == 0) return nullptr;
  return dlopen(search.path, RTLD_LAZY | RTLD_NOLOAD);
}

bool is_code(const void* address) {
  auto value = reinterpret_cast<std::uintptr_t>(address);
  return value != 0 && dl_iterate_phdr(match_code, &value) != 0;
}

bool read_safely(const void* from, void* to, std::size_t bytes) {
  // The kernel checks the address for us: write() into a pipe says EFAULT instead of a signal.
  int ends[2];
  if (bytes > 4096 || pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return false;
  const bool readable =
      write(ends[1], from, bytes) == static_cast<ssize_t>(bytes) && read(ends[0], to, bytes) == static_cast<ssize_t>(bytes);
  close(ends[0]);
  close(ends[1]);
  return readable;
}

}  // namespace vramscope::capture
