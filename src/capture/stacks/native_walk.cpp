#include "capture/stacks/native_walk.h"

#include <atomic>

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include "base/glibc.h"
#include "capture/loader.h"
#include "capture/stacks/readable.h"

namespace vramscope::stacks {
namespace {

// End of the mapping that holds `address`, from /proc/self/maps, read without allocating. 0 if it cannot be told.
std::uint64_t mapping_end(std::uint64_t address) {
  const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char buffer[4096];
  std::uint64_t number = 0;
  std::uint64_t begin = 0;
  enum { kBegin, kEnd, kRest } part = kBegin;
  std::uint64_t result = 0;
  for (ssize_t got; result == 0 && (got = read(fd, buffer, sizeof buffer)) > 0;) {
    for (ssize_t i = 0; i < got && result == 0; ++i) {
      const char c = buffer[i];
      if (c == '\n') {
        part = kBegin;
        number = 0;
      } else if (part == kBegin && c == '-') {
        begin = number;
        number = 0;
        part = kEnd;
      } else if (part == kEnd && c == ' ') {
        if (address >= begin && address < number) result = number;
        part = kRest;
      } else if (part != kRest) {
        number = 16 * number + static_cast<std::uint64_t>(c <= '9' ? c - '0' : c - 'a' + 10);
      }
    }
  }
  close(fd);
  return result;
}

[[gnu::tls_model("initial-exec")]] thread_local std::uint64_t t_stack_end = 0;
constexpr std::uint64_t kUnknownEnd = 1;

std::uint64_t stack_end(std::uint64_t address) {
  if (__builtin_expect(t_stack_end == 0, 0)) {
    const std::uint64_t end = mapping_end(address);
    t_stack_end = end == 0 ? kUnknownEnd : end;
  }
  return t_stack_end;
}

struct Own {
  std::uint64_t begin = 0, end = 0;
};
std::atomic<std::uint64_t> g_own_begin{0};
std::atomic<std::uint64_t> g_own_end{0};

int find_own(dl_phdr_info* info, std::size_t, void* data) {
  auto& own = *static_cast<Own*>(data);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& header = info->dlpi_phdr[i];
    const std::uint64_t begin = info->dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_LOAD && (header.p_flags & PF_X) != 0 &&
        reinterpret_cast<std::uint64_t>(&find_own) - begin < header.p_memsz) {
      own = {begin, begin + header.p_memsz};
      return 1;
    }
  }
  return 0;
}

// The machine code of this library: its frames are not the program's.
Own own_range() {
  Own own{g_own_begin.load(std::memory_order_relaxed), g_own_end.load(std::memory_order_acquire)};
  if (own.end != 0) return own;
  dl_iterate_phdr(find_own, &own);
  g_own_begin.store(own.begin, std::memory_order_relaxed);
  g_own_end.store(own.end, std::memory_order_release);
  return own;
}

using UnwindContext = struct _Unwind_Context;
using Backtrace = int (*)(int (*)(UnwindContext*, void*), void*);
using GetIp = std::uint64_t (*)(UnwindContext*);

struct Collected {
  std::uint64_t* out;
  std::size_t capacity;
  std::size_t count;
  Own own;
  NativeLimits limits;
  GetIp get_ip;
};

constexpr int kContinue = 0;  // _URC_NO_REASON
constexpr int kStop = 4;      // _URC_NORMAL_STOP

int collect(UnwindContext* context, void* data) {
  auto& into = *static_cast<Collected*>(data);
  const std::uint64_t ip = into.get_ip(context);
  if (ip == 0 || into.count == into.capacity || (ip >= into.limits.stop_begin && ip < into.limits.stop_end)) return kStop;
  if (into.count != 0 || ip < into.own.begin || ip >= into.own.end) into.out[into.count++] = ip;
  return kContinue;
}

}  // namespace

std::size_t walk_frame_pointers(std::uint64_t* out, std::size_t capacity, const NativeLimits& limits) {
  auto frame = reinterpret_cast<std::uint64_t>(__builtin_frame_address(0));
  const std::uint64_t end = stack_end(frame);
  const Own own = own_range();
  std::size_t count = 0;
  while (count < capacity && (frame & 7) == 0 && frame + 16 <= end) {
    const std::uint64_t next = peek<std::uint64_t>(frame);
    const std::uint64_t ip = peek<std::uint64_t>(frame + 8);
    if (ip < 0x1000 || (ip >= limits.stop_begin && ip < limits.stop_end)) break;
    if (count != 0 || ip < own.begin || ip >= own.end) out[count++] = ip;
    if (next <= frame || next - frame > (1u << 20)) break;  // only outwards, one function's frame at a time
    frame = next;
  }
  return count;
}

std::size_t walk_unwind_tables(std::uint64_t* out, std::size_t capacity, const NativeLimits& limits) {
  static std::atomic<Backtrace> backtrace{nullptr};
  static std::atomic<GetIp> get_ip{nullptr};
  Backtrace walk = backtrace.load(std::memory_order_acquire);
  if (walk == nullptr) {
    void* const library = dlopen("libgcc_s.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) return walk_frame_pointers(out, capacity, limits);
    get_ip.store(reinterpret_cast<GetIp>(capture::real_dlsym(library, "_Unwind_GetIP")), std::memory_order_relaxed);
    walk = reinterpret_cast<Backtrace>(capture::real_dlsym(library, "_Unwind_Backtrace"));
    if (walk == nullptr || get_ip.load(std::memory_order_relaxed) == nullptr) return walk_frame_pointers(out, capacity, limits);
    backtrace.store(walk, std::memory_order_release);
  }
  Collected into{out, capacity, 0, own_range(), limits, get_ip.load(std::memory_order_relaxed)};
  walk(collect, &into);
  return into.count;
}

}  // namespace vramscope::stacks
