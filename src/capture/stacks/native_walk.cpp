#include "capture/stacks/native_walk.h"

#include <atomic>

#include <link.h>

#include "capture/elf_symbols.h"
#include "capture/stacks/readable.h"

namespace vramscope::stacks {
namespace {

// The frame pointer may lead anywhere: code without frames uses the register for its own values, and coroutines run on stacks
// that come and go. So the kernel is asked about each page of a walk, and no answer outlives the walk.
class StackPages {
 public:
  bool readable(std::uint64_t frame) { return is_user(frame) && page(frame) && page(frame + 15); }

 private:
  bool page(std::uint64_t address) {
    if (address >> 12 == known_) return true;
    if (!ask_kernel(address)) return false;
    known_ = address >> 12;
    return true;
  }
  std::uint64_t known_ = 0;
};

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

// The machine code of this library: its frames do not belong to the program.
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
  StackPages pages;
  const Own own = own_range();
  std::size_t count = 0;
  while (count < capacity && (frame & 7) == 0 && pages.readable(frame)) {
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
    // Not through dlsym: another thread may hold the loader's lock and wait for this one.
    get_ip.store(reinterpret_cast<GetIp>(capture::symbol_in_any("_Unwind_GetIP")), std::memory_order_relaxed);
    walk = reinterpret_cast<Backtrace>(capture::symbol_in_any("_Unwind_Backtrace"));
    if (walk == nullptr || get_ip.load(std::memory_order_relaxed) == nullptr) return walk_frame_pointers(out, capacity, limits);
    backtrace.store(walk, std::memory_order_release);
  }
  Collected into{out, capacity, 0, own_range(), limits, get_ip.load(std::memory_order_relaxed)};
  walk(collect, &into);
  return into.count;
}

}  // namespace vramscope::stacks
