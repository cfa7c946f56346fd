#include "collect/spool/guarded_mapping.h"

#include <signal.h>
#include <sys/mman.h>

#include <functional>

namespace vramscope::collect {

namespace {

GuardedMapping* g_first = nullptr;
struct sigaction g_before{};

// Only what a handler may do: a walk over a list that the interrupted code does not change, and a system call.
void on_bus_error(int number, siginfo_t* info, void*) {
  if (info->si_code > 0 && GuardedMapping::replace_at(info->si_addr)) return;
  sigaction(number, &g_before, nullptr);  // not ours: the same access fails again, as it would have without us
  if (info->si_code <= 0) raise(number);  // sent by a process: nothing would repeat it
}

void install_handler() {
  static const bool kInstalled = [] {
    struct sigaction action{};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO;
    return sigaction(SIGBUS, &action, &g_before) == 0;
  }();
  (void)kInstalled;
}

}  // namespace

GuardedMapping::GuardedMapping(void* memory, std::size_t bytes)
    : memory_(static_cast<std::byte*>(memory)), bytes_(bytes), next_(g_first) {
  install_handler();
  if (g_first != nullptr) g_first->previous_ = this;
  g_first = this;
}

GuardedMapping::~GuardedMapping() {
  (previous_ != nullptr ? previous_->next_ : g_first) = next_;
  if (next_ != nullptr) next_->previous_ = previous_;
  munmap(memory_, bytes_);
}

bool GuardedMapping::replace_at(const void* address) {
  const std::less<> before;
  for (GuardedMapping* each = g_first; each != nullptr; each = each->next_) {
    if (before(address, each->memory_) || !before(address, each->memory_ + each->bytes_)) continue;
    if (mmap(each->memory_, each->bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
      return false;
    each->cut_ = true;
    return true;
  }
  return false;
}

}  // namespace vramscope::collect
