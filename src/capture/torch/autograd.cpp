#include "capture/torch/autograd.h"

#include <string.h>

#include <atomic>

#include "capture/stacks/shared_cache.h"
#include "capture/stacks/watches.h"
#include "record/recorder.h"

namespace vramscope::capture::torch {

namespace {

using stacks::peek;
using stacks::readable;

// A node that is being evaluated, in the stack frame of on_evaluate. Evaluations nest: checkpointing runs a backward pass inside
// another.
struct Evaluation {
  const void* node;
  const Evaluation* outer;
};
constinit thread_local const Evaluation* t_evaluation = nullptr;

// For each change of layer in the forward pass: the first node number and the layer. A ring with one writer. A reader that the
// writer overtakes finds a wrong layer or none, but never reads invalid memory.
constexpr std::uint64_t kLayerStarts = std::uint64_t{1} << 14;
struct LayerStart {
  std::atomic<std::uint64_t> number;
  std::atomic<std::uint32_t> layer;
};
LayerStart g_layer_starts[kLayerStarts];
std::atomic<std::uint64_t> g_layer_start_count{0};
std::atomic<const void*> g_forward_thread{nullptr};
std::atomic<bool> g_several_threads{false};  // then numbers, which are per thread, identify nothing

constexpr std::uint64_t kNoNumber = ~std::uint64_t{0};  // AccumulateGrad

// Node::sequence_nr_ follows what counts the node's owners. Up to 2.14, that is a std::weak_ptr to the node itself, or an empty
// one. Later it is one word with the counts, which equals neither.
std::uint64_t number_of(std::uint64_t node) {
  const std::uint64_t owners = peek<std::uint64_t>(node + 8);
  return peek<std::uint64_t>(node + (owners == node || owners == 0 ? 24 : 16));
}

std::uint32_t layer_of(std::uint64_t number) {
  const std::uint64_t count = g_layer_start_count.load(std::memory_order_acquire);
  if (count == 0 || number == kNoNumber || g_several_threads.load(std::memory_order_relaxed)) return 0;
  const auto start = [](std::uint64_t i) -> const LayerStart& { return g_layer_starts[i % kLayerStarts]; };
  std::uint64_t low = count > kLayerStarts ? count - kLayerStarts + 1 : 0;
  std::uint64_t high = count;  // the answer is below high, at or above low
  if (start(low).number.load(std::memory_order_relaxed) > number) return 0;
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    (start(middle).number.load(std::memory_order_relaxed) <= number ? low : high) = middle;
  }
  return start(low).layer.load(std::memory_order_relaxed);
}

// The class of a C++ object by its run-time type: "N5torch8autograd9generated13AddmmBackward0E" -> "AddmmBackward0".
struct TypeName {
  char text[96] = {};
};

TypeName type_name(std::uint64_t vtable) {
  TypeName out;
  if (!readable(vtable - 8, 8)) return out;
  const std::uint64_t type = peek<std::uint64_t>(vtable - 8);
  if (!readable(type, 16)) return out;
  std::uint64_t at = peek<std::uint64_t>(type + 8);
  const auto next = [&at]() -> char { return readable(at, 1) ? peek<char>(at) : '\0'; };
  while (next() == '*' || next() == 'N' || next() == 'S' || next() == 't') ++at;
  while (next() >= '0' && next() <= '9') {  // each part of the name: its length, then itself
    std::size_t length = 0;
    for (; next() >= '0' && next() <= '9' && length < 1000; ++at) length = 10 * length + static_cast<std::size_t>(next() - '0');
    std::size_t i = 0;
    for (; i < length && next() != '\0'; ++i, ++at)
      if (i + 1 < sizeof out.text) out.text[i] = next();
    out.text[i < sizeof out.text ? i : sizeof out.text - 1] = '\0';
  }
  return out;
}

stacks::SharedCache<1, 12> g_ops;  // node type or part, layer, spool -> string id

template <typename Intern>
std::uint32_t cached_op(std::uint64_t what, std::uint32_t layer, Intern intern) {
  const std::uint64_t key = stacks::fold(what ^ stacks::kHash0, layer ^ (stacks::spool_generation() << 32) ^ stacks::kHash1);
  decltype(g_ops)::Entry entry;
  if (g_ops.find(key, entry)) return static_cast<std::uint32_t>(entry.value[0]);
  const std::uint32_t op = intern();
  g_ops.put(key, {{op}});
  return op;
}

std::uint32_t op_of(std::uint64_t vtable, std::uint32_t layer) {
  return cached_op(vtable, layer, [&] { return stacks::intern_op(layer, type_name(vtable).text); });
}

}  // namespace

void note_forward(const Library& real, std::uint32_t layer) {
  if (real.sequence_number == nullptr) return;
  const void* const me = &t_evaluation;  // different in each thread
  const void* owner = g_forward_thread.load(std::memory_order_relaxed);
  if (__builtin_expect(owner != me, 0)) {
    if (owner != nullptr || !g_forward_thread.compare_exchange_strong(owner, me, std::memory_order_relaxed)) {
      g_several_threads.store(true, std::memory_order_relaxed);
      return;
    }
  }
  const std::uint64_t count = g_layer_start_count.load(std::memory_order_relaxed);
  if (count != 0 && g_layer_starts[(count - 1) % kLayerStarts].layer.load(std::memory_order_relaxed) == layer) return;
  // An op's node is created just before the op allocates its result.
  const std::uint64_t number = real.sequence_number();
  LayerStart& start = g_layer_starts[count % kLayerStarts];
  start.number.store(number != 0 ? number - 1 : 0, std::memory_order_relaxed);
  start.layer.store(layer, std::memory_order_relaxed);
  g_layer_start_count.store(count + 1, std::memory_order_release);
}

void note_again(const Library& real, std::uint32_t layer) {
  if (g_forward_thread.load(std::memory_order_relaxed) == &t_evaluation) note_forward(real, layer);
}

Backward current_node() {
  const Evaluation* const now = t_evaluation;
  // The frame must be an outer one: otherwise it was left without our knowledge (longjmp).
  if (now == nullptr || static_cast<const void*>(now) <= __builtin_frame_address(0)) return {};
  const auto node = reinterpret_cast<std::uint64_t>(now->node);
  if (!readable(node, 32)) return {true, 0};
  const std::uint32_t layer = layer_of(number_of(node));
  return {true, op_of(peek<std::uint64_t>(node), layer), layer};
}

std::uint32_t part_of(const Backward& backward, std::uint32_t part) {
  return cached_op(std::uint64_t{part} << 32, backward.layer, [&] { return stacks::intern_part(backward.layer, part); });
}

}  // namespace vramscope::capture::torch

using namespace vramscope::capture::torch;

// Called by the unwinder when an exception leaves on_evaluate, while the inner frames still exist: the backward pass has failed
// and is over. Does what a destructor would do, without the C++ runtime that a destructor needs.
extern "C" [[gnu::used]] int vramscope_torch_unwound(int /*version*/, int actions, std::uint64_t /*kind*/, void* /*exception*/,
                                                     void* /*context*/) {
  constexpr int kCleanupPhase = 2;
  constexpr int kContinueUnwind = 8;
  if ((actions & kCleanupPhase) != 0 && t_evaluation != nullptr) t_evaluation = t_evaluation->outer;
  return kContinueUnwind;
}

namespace vramscope::capture::torch {

[[gnu::noinline]] void on_evaluate(const Library& real, void* engine, void* task, void* node, void* inputs, void* queue) {
  asm(".cfi_personality 0x1b, vramscope_torch_unwound");  // 0x1b: the address relative to its place, 32 bits
  const Evaluation now{node, t_evaluation};
  t_evaluation = &now;
  real.evaluate(engine, task, node, inputs, queue);
  t_evaluation = now.outer;
}

}  // namespace vramscope::capture::torch
