#include "tfops/allocator_lock.h"

#include <dlfcn.h>

#include <cstdint>
#include <cstring>

#include "tfops/tf_api.h"

namespace vramscope::tfops {
namespace {

using Code = const unsigned char*;

constexpr std::size_t kPrologueBytes = 48;
constexpr std::size_t kCallBytes = 5;

std::int32_t displacement(Code at) {
  std::int32_t value = 0;
  std::memcpy(&value, at, sizeof value);
  return value;
}

struct FirstCall {
  Code at = nullptr;  // the call instruction
  std::int32_t offset = 0;
};

// lea OFFSET(%rsi),%reg; mov %reg,%rdi; call: the allocator is the second argument, the lock the first argument of the called
// function.
FirstCall first_call(Code function) {
  for (Code code = function; code < function + kPrologueBytes; ++code) {
    const bool lea = (code[0] & 0xFBu) == 0x48 && code[1] == 0x8D && (code[2] & 0xC7u) == 0x86;
    const Code move = code + 7;
    const Code call = move + 3;
    if (!lea || (move[0] & 0xFBu) != 0x48 || move[1] != 0x89 || (move[2] & 0xC7u) != 0xC7 || call[0] != 0xE8) continue;
    const bool same_register = (code[0] & 4u) == (move[0] & 4u) && (code[2] & 0x38u) == (move[2] & 0x38u);
    if (same_register) return {call, displacement(code + 3)};
  }
  return {};
}

// The target of a call: through an entry of the import table (jmp *table(%rip)), like everything that a library exports.
void* target_of(Code call) {
  const Code entry = call + kCallBytes + displacement(call + 1);
  if (entry[0] != 0xFF || entry[1] != 0x25) return nullptr;
  void* target = nullptr;
  std::memcpy(&target, entry + 6 + displacement(entry + 2), sizeof target);
  return target;
}

struct Pair {
  const char* lock;
  const char* unlock;
};
// Ends of the mangled names: tsl::mutex up to 2.17, then absl::Mutex (in a namespace with its date).
constexpr Pair kPairs[] = {
    {"5mutex4lockEv", "5mutex6unlockEv"}, {"5Mutex4LockEv", "5Mutex6UnlockEv"}, {"5Mutex4lockEv", "5Mutex6unlockEv"}};

// The kind of `lock`, by its name; NULL if that is not the name of a lock.
void* unlock_for(void* lock) {
  Dl_info info{};
  if (dladdr(lock, &info) == 0 || info.dli_sname == nullptr || info.dli_saddr != lock) return nullptr;
  const std::size_t length = std::strlen(info.dli_sname);
  char name[128];
  for (const Pair& pair : kPairs) {
    const std::size_t end = std::strlen(pair.lock);
    if (length < end || length + 8 > sizeof name || std::strcmp(info.dli_sname + length - end, pair.lock) != 0) continue;
    std::memcpy(name, info.dli_sname, length - end);
    std::memcpy(name + length - end, pair.unlock, std::strlen(pair.unlock) + 1);
    return dlsym(framework_handle(), name);
  }
  return nullptr;
}

}  // namespace

AllocatorLock find_allocator_lock(const void* get_stats) {
  AllocatorLock found;
  const FirstCall first = first_call(static_cast<Code>(get_stats));
  if (first.at == nullptr || first.offset <= 0) return found;
  void* const lock = target_of(first.at);
  void* const unlock = lock == nullptr ? nullptr : unlock_for(lock);
  if (unlock == nullptr) return found;
  found.offset = static_cast<std::size_t>(first.offset);
  found.lock = reinterpret_cast<void (*)(void*)>(lock);
  found.unlock = reinterpret_cast<void (*)(void*)>(unlock);
  return found;
}

}  // namespace vramscope::tfops
