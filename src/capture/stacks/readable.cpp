#include "capture/stacks/readable.h"

#include <sys/syscall.h>
#include <unistd.h>
#include <cerrno>

namespace vramscope::stacks {

std::uint64_t g_readable_pages[kPageCacheEntries];

// rt_sigprocmask copies its second argument before it checks the first, which is invalid here: EFAULT means unreadable, EINVAL
// readable, and nothing changes. Unlike process_vm_readv, no sandbox forbids it.
bool ask_kernel(std::uint64_t address) {
  const int saved = errno;
  const std::uint64_t aligned = address & ~std::uint64_t{7};
  const long result = syscall(SYS_rt_sigprocmask, ~0, reinterpret_cast<void*>(aligned), nullptr, 8);
  const bool yes = result == -1 && errno == EINVAL;
  errno = saved;
  return yes;
}

bool probe_page(std::uint64_t address) {
  const bool yes = ask_kernel(address);
  const std::uint64_t page = address >> 12;
  if (yes) __atomic_store_n(&g_readable_pages[page % kPageCacheEntries], page, __ATOMIC_RELAXED);
  return yes;
}

}  // namespace vramscope::stacks
