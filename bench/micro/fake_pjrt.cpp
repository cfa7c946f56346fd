// A stand-in for one of JAX's CUDA plugins: its table of functions, and an allocator of the same class, both of which cost next
// to nothing. What remains is the cost of recording.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "bench/micro/fake_pjrt.h"

// NOLINTBEGIN(readability-identifier-naming): the names are those of the plugin.
namespace tsl {

struct AllocationAttributes {
  bool retry_on_failure = true;
};
struct AllocatorStats {
  std::int64_t numbers[64];
};

// As many functions as the class has in later versions; those that are recorded have its names.
class BFCAllocator {
 public:
  virtual ~BFCAllocator();
  virtual std::string Name();
  virtual void* AllocateRaw(std::size_t alignment, std::size_t bytes, const AllocationAttributes& attributes);
  virtual void DeallocateRaw(void* block);
  virtual std::size_t AllocatedSize(const void* block) const;
  virtual AllocatorStats GetStats();
  virtual int GetMemoryType() const;
  virtual void Unused1() {}
  virtual void Unused2() {}
  virtual void Unused3() {}
  virtual void Unused4() {}
  virtual void Unused5() {}
  virtual void Unused6() {}

 private:
  std::size_t next_ = 0;
};

BFCAllocator::~BFCAllocator() = default;
std::string BFCAllocator::Name() { return "GPU_0_bfc"; }
void* BFCAllocator::AllocateRaw(std::size_t /*alignment*/, std::size_t /*bytes*/, const AllocationAttributes& /*attributes*/) {
  return reinterpret_cast<void*>(0x700000000000 + (++next_ % 64 << 20));
}
void BFCAllocator::DeallocateRaw(void* /*block*/) {}
std::size_t BFCAllocator::AllocatedSize(const void* /*block*/) const { return 1 << 20; }
AllocatorStats BFCAllocator::GetStats() { return {}; }
int BFCAllocator::GetMemoryType() const { return 1; }

}  // namespace tsl
// NOLINTEND(readability-identifier-naming)

namespace {

using fake_pjrt::Buffer;
using fake_pjrt::Question;

tsl::BFCAllocator* g_allocator = new tsl::BFCAllocator;

void* nothing(void* /*arguments*/) { return nullptr; }

void* compile(void* arguments) {
  static int executables[64];
  static std::size_t next;
  *reinterpret_cast<void**>(static_cast<unsigned char*>(arguments) + 48) = &executables[next++];
  return nullptr;
}

void* name(void* arguments) {
  auto* const question = static_cast<Question*>(arguments);
  question->answer = reinterpret_cast<std::uint64_t>(fake_pjrt::kProgram);
  question->second_answer = std::strlen(fake_pjrt::kProgram);
  return nullptr;
}

void* address(void* arguments) {
  auto* const question = static_cast<Question*>(arguments);
  question->answer = static_cast<const Buffer*>(question->about)->address;
  return nullptr;
}

void* bytes(void* arguments) {
  auto* const question = static_cast<Question*>(arguments);
  question->answer = static_cast<const Buffer*>(question->about)->bytes;
  return nullptr;
}

// A block for temporaries, and one for a result that takes the place of the one before.
void* execute(void* /*arguments*/) {
  static void* result;
  void* const temporaries = g_allocator->AllocateRaw(64, 1 << 20, {});
  void* const next = g_allocator->AllocateRaw(64, 1 << 10, {});
  g_allocator->DeallocateRaw(temporaries);
  if (result != nullptr) g_allocator->DeallocateRaw(result);
  result = next;
  return nullptr;
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming)
extern "C" __attribute__((visibility("default"))) const void* GetPjrtApi() {
  static void* table[fake_pjrt::kTableBytes / sizeof(void*)];
  for (void*& function : table) function = reinterpret_cast<void*>(&nothing);
  constexpr std::size_t kBytes = sizeof table;
  std::memcpy(table, &kBytes, sizeof kBytes);
  const auto set = [](std::size_t place, void* (*function)(void*)) {
    std::memcpy(&table[place / 8], &function, sizeof function);
  };
  set(200, compile);
  set(368, name);
  set(480, execute);
  set(552, bytes);
  set(648, address);
  return table;
}
