// Registers PyTorch with the recorder.
#include "capture/framework.h"

#include <iterator>

#include "capture/hook.h"
#include "capture/torch/library.h"
#include "capture/torch/reporter.h"

#define HOOK VS_HOOK_DECLARE
#include "capture/torch/hooks.inc"
#undef HOOK

namespace vramscope::capture::torch {

namespace {

constexpr const char* kFiles[] = {"libtorch", "libc10"};

int attach_late() {
  const Library* const found = library();
  if (found == nullptr) return 0;
  const Library& real = *found;
  const Replacement replacements[] = {
#define HOOK VS_HOOK_REPLACE
#include "capture/torch/hooks.inc"
#undef HOOK
  };
  return redirect({}, nullptr, 0, replacements, std::size(replacements));
}

}  // namespace

constinit const Framework kFramework = {
    .id = record::Framework::pytorch,
    .word = "pytorch",
    .name = "PyTorch",
    .library = kCoreFile,
    .files = kFiles,
    .attach_late = attach_late,
    .record_counters = record_counters,
};

}  // namespace vramscope::capture::torch
