// The C ABI of include/vramscope/labels.h, but for steps (capture/torch).
#include "vramscope/labels.h"

#include "capture/stacks/compiled_lines.h"
#include "capture/stacks/python_walk.h"
#include "capture/stacks/stacks.h"
#include "capture/stacks/watches.h"
#include "record/recorder.h"

#define VS_EXPORT extern "C" __attribute__((visibility("default")))

using namespace vramscope;

VS_EXPORT int vramscope_watch_code(uint64_t code, int role, int phase, int self_slot, int self_in_cell, const char* text) {
  if (role < 1 || role > 4 || phase < 0 || phase >= static_cast<int>(stacks::Phase::kCount) || self_slot < 0 || self_slot > 255)
    return 0;
  return stacks::watch({code, static_cast<stacks::Role>(role), static_cast<stacks::Phase>(phase),
                        static_cast<std::uint16_t>(self_slot), self_in_cell != 0, text})
             ? 1
             : 0;
}

VS_EXPORT void vramscope_name_layers(const uint64_t* objects, const char* const* names, size_t count) {
  for (size_t i = 0; i < count; ++i) stacks::name_object(objects[i], names[i]);
  stacks::forget_labels();
}

VS_EXPORT uint32_t vramscope_add_place(const char* file, const char* function, uint32_t line, uint32_t outer) {
  return stacks::add_place(file, function, line, outer);
}

VS_EXPORT void vramscope_name_lines(uint64_t code, const uint32_t* lines, const char* const* parts, const uint32_t* places,
                                    size_t count) {
  if (count == 0) stacks::forget_code(code);
  for (size_t i = 0; i < count; ++i) stacks::name_line(code, lines[i], parts[i], places[i]);
}

VS_EXPORT uint64_t vramscope_unnamed_layers(void) { return stacks::g_unnamed_layers.load(std::memory_order_relaxed); }

VS_EXPORT void vramscope_tag_many(const uint64_t* addresses, const uint64_t* bytes, const char* const* names,
                                  const char* const* layers, size_t count, int category) {
  if (category < 0 || category > 255) return;
  for (size_t i = 0; i < count; ++i)
    if (addresses[i] != 0)
      record::tag(addresses[i], bytes[i], static_cast<record::Category>(category), names[i],
                  layers != nullptr ? layers[i] : nullptr);
}

VS_EXPORT int vramscope_verify_stack(const uint64_t* codes, const uint32_t* lines, size_t count) {
  if (!stacks::python_usable()) return -1;
  return stacks::verify(codes, lines, count) ? 1 : 0;
}
