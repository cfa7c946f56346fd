// Registers JAX with the recorder. Its memory is managed by plugins of XLA, which it opens at run time.
#include "capture/framework.h"

#include "capture/elf_symbols.h"
#include "capture/jax/buffers.h"
#include "capture/jax/pjrt.h"
#include "capture/jax/plugins.h"
#include "record/options.h"
#include "record/setup.h"

namespace vramscope::capture::jax {

namespace {

constexpr const char* kFiles[] = {kCudaPlugin, "xla_extension", "libjax"};

void* plugin_found(void* entry) {
  if (record::is_off() || record::g_options.spool_folder[0] == '\0') return entry;
  const bool recorded = take_over_allocator(entry) > 0;
  return pjrt::wrapped_entry(entry, recorded);
}

int attach_late() {
  const LoadedObject plugin = loaded_object(kCudaPlugin);
  return plugin.dynamic != nullptr ? take_over_allocator(plugin.dynamic) : 0;
}

}  // namespace

constinit const Framework kFramework = {
    .id = record::Framework::jax,
    .word = "jax",
    .name = "JAX",
    .library = kCudaPlugin,
    .files = kFiles,
    .attach_late = attach_late,
    .record_counters = record_counters,
    .plugin_entry = "GetPjrtApi",
    .plugin_found = plugin_found,
    .tag = pjrt::buffers::tag_memory,
};

}  // namespace vramscope::capture::jax
