// The framework of the tests as the recorder knows it: everything that src/capture/<framework>/ holds for a real one.
#include <string.h>

#include <iterator>

#include "capture/framework.h"
#include "capture/hook.h"
#include "capture/once.h"
#include "capture/python/startup.h"
#include "capture/stacks/stacks.h"
#include "record/recorder.h"

#define HOOKS(HOOK)                                                                                              \
  HOOK(toyframe, allocate, "libtoyframe.so", void*, "toy_allocate", (const char* op, size_t bytes), (op, bytes)) \
  HOOK(toyframe, release, "libtoyframe.so", void, "toy_release", (void* memory), (memory))

HOOKS(VS_HOOK_DECLARE)

namespace vramscope::capture::toyframe {

extern const Framework kFramework;

namespace {

struct Library {
  HOOKS(VS_HOOK_MEMBER)
  size_t (*size)(const void* memory);
  size_t (*in_use)();
  size_t (*peak)();
  size_t (*allocations)();
};

Library g_library;
Once g_bound;

const Library* library() {
  const int state = g_bound([] {
    const LoadedObject object = loaded_object("libtoyframe.so");
    const auto object_of = [&](const char*) { return object; };
    Library& found = g_library;
    HOOKS(VS_HOOK_BIND)
    bind(object, "toy_size", found.size);
    bind(object, "toy_in_use", found.in_use);
    bind(object, "toy_peak", found.peak);
    bind(object, "toy_allocations", found.allocations);
    return object.dynamic != nullptr ? 1 : Once::kAgain;
  });
  return state == 1 ? &g_library : nullptr;
}

constexpr std::uint64_t kPoolKey = 0x746f79;

std::uint8_t pool() {
  const std::uint8_t known = record::find_pool(kPoolKey);
  if (known != record::kNoPool) return known;
  const std::uint8_t made = record::pool({kPoolKey, "toy_pool", -1, record::Level::tensor, record::Memory::host, kFramework.id});
  if (made != record::kNoPool) python::framework_seen(kFramework);
  return made;
}

void* on_allocate(const Library& real, const char* op, size_t bytes) {
  void* const memory = real.allocate(op, bytes);
  if (memory == nullptr || !record::active()) return memory;
  record::AllocEvent event;
  event.pool = pool();
  if (event.pool == record::kNoPool) return memory;
  event.op = record::intern(op);
  event.requested = event.granted = bytes;
  event.address = reinterpret_cast<std::uint64_t>(memory);
  event.stack = stacks::capture();
  record::alloc(event);
  return memory;
}

void on_release(const Library& real, void* memory) {
  record::FreeEvent event;
  event.pool = record::active() ? pool() : record::kNoPool;
  event.address = reinterpret_cast<std::uint64_t>(memory);
  event.bytes = real.size(memory);
  real.release(memory);
  if (event.pool != record::kNoPool) record::free(event);
}

int attach_late() {
  const Library* const found = library();
  if (found == nullptr) return 0;
  const Library& real = *found;
  const Replacement replacements[] = {HOOKS(VS_HOOK_REPLACE)};
  return redirect({}, nullptr, 0, replacements, std::size(replacements));
}

int record_counters() {
  const Library* const real = library();
  const std::uint8_t known = record::find_pool(kPoolKey);
  if (real == nullptr || known == record::kNoPool) return 0;
  spool::StatsRecord counters{};
  counters.allocs = real->allocations();
  counters.in_use = real->in_use();
  counters.peak = real->peak();
  record::stats(known, counters);
  return 1;
}

constexpr const char* kFiles[] = {"libtoyframe"};

}  // namespace

constinit const Framework kFramework = {
    .id = record::Framework{31},
    .word = "toyframe",
    .name = "ToyFrame",
    .library = "libtoyframe.so",
    .files = kFiles,
    .attach_late = attach_late,
    .record_counters = record_counters,
};

}  // namespace vramscope::capture::toyframe

HOOKS(VS_HOOK_DEFINE)
