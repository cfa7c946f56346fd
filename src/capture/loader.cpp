#include "capture/loader.h"

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include "capture/elf_symbols.h"

namespace vramscope::capture {

namespace {

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

bool keep_loaded(const char* file_name) {
  const LoadedObject object = loaded_object(file_name);
  return object.dynamic != nullptr && dlopen(object.path, RTLD_LAZY | RTLD_NOLOAD) != nullptr;
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
