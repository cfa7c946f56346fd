// What certain code objects and network layers mean: reported once by the Python side, looked up when a new stack is defined.
#pragma once

#include <atomic>
#include <cstdint>

#include "capture/stacks/python_walk.h"
#include "capture/stacks/stacks.h"
#include "record/state.h"

namespace vramscope::stacks {

// Number of the spool in this process; texts have other ids in another spool.
inline std::uint64_t spool_generation() {
  const record::Control* const control = record::g_control.load(std::memory_order_acquire);
  return control != nullptr ? control->generation.load(std::memory_order_relaxed) : 0;
}

struct LayerCall {
  std::atomic<std::uint64_t> code;
  std::atomic<std::uint16_t> self_slot;
  std::atomic<bool> self_in_cell;
};
inline constexpr int kMaxLayerCalls = 2;
extern LayerCall g_layer_calls[kMaxLayerCalls];
extern std::atomic<std::uint32_t> g_watches;  // how many; 0 = no labels wanted

extern std::atomic<std::uint64_t> g_unnamed_layers;  // times a stack with a layer without a name was defined

// Address of the layer whose call this frame is, 0 for any other frame. Part of a stack's key, so on the hot path.
inline std::uint64_t layer_object(const PythonLayout& layout, const PythonFrame& frame) {
  for (const LayerCall& call : g_layer_calls) {
    if (__builtin_expect(frame.code != call.code.load(std::memory_order_relaxed), 1)) continue;
    const std::uint64_t variable = frame.frame + layout.frame_locals + 8u * call.self_slot.load(std::memory_order_relaxed);
    if (!readable(variable, 8)) return 0;
    std::uint64_t object = peek<std::uint64_t>(variable) & layout.pointer_mask;
    if (call.self_in_cell.load(std::memory_order_relaxed)) {
      const std::uint64_t contents = object + layout.object_type + 8;  // PyCellObject
      object = readable(contents, 8) ? peek<std::uint64_t>(contents) : 0;
    }
    return object;
  }
  return 0;
}

struct Labels {
  std::uint32_t layer = 0;
  std::uint32_t part = 0;  // CompiledLine::part
  const char* plumbing = "";
  Phase phase = Phase::none;
};
// String id of "layer/plumbing", or of what there is of it.
std::uint32_t intern_op(std::uint32_t layer, const char* plumbing);
// String id of a part of the network (CompiledLine::part) inside a layer: "block.3/Block" and ".mlp/Linear" are
// "block.3.mlp/Linear".
std::uint32_t intern_part(std::uint32_t layer, std::uint32_t part);

// Takes the frames of one stack, innermost first.
class LabelReader {
 public:
  // `part`: CompiledLine::part of this frame.
  void add(const PythonLayout& layout, const PythonFrame& frame, std::uint32_t part);
  Labels finish() const;

 private:
  Labels labels_;
  bool recompute_ = false;
  bool phase_decided_ = false;
  bool serving_ = false;
};

}  // namespace vramscope::stacks
