// Registers TensorFlow with the recorder.
#include "capture/framework.h"

#include <iterator>

#include "capture/hook.h"
#include "capture/tensorflow/library.h"
#include "capture/tensorflow/pools.h"

#define HOOK VS_HOOK_DECLARE
#include "capture/tensorflow/hooks.inc"
#undef HOOK

namespace vramscope::capture::tensorflow {

namespace {

constexpr const char* kFiles[] = {"libtensorflow", "_pywrap_tensorflow"};

int attach_late() {
  const Library* const found = library();
  if (found == nullptr) return 0;
  const Library& real = *found;
  static constexpr const char* kVtables[] = {"_ZTVN3tsl12BFCAllocatorE", "_ZTVN10tensorflow15GPUBFCAllocatorE",
                                             "_ZTVN10tensorflow27PluggableDeviceBFCAllocatorE"};
  const Replacement replacements[] = {
#define HOOK VS_HOOK_REPLACE
#include "capture/tensorflow/hooks.inc"
#undef HOOK
  };
  return redirect(loaded_object(kFile), kVtables, std::size(kVtables), replacements, std::size(replacements));
}

}  // namespace

constinit const Framework kFramework = {
    .id = record::Framework::tensorflow,
    .word = "tensorflow",
    .name = "TensorFlow",
    .library = kFile,
    .files = kFiles,
    .attach_late = attach_late,
    .record_counters = record_counters,
};

}  // namespace vramscope::capture::tensorflow
