// Allocates and frees through the stand-in allocator, each time with an op, a region, a dtype and a shape, and prints as JSON
// what one call costs. Run it plain and with the recorder preloaded: the difference is the cost of recording.
//   tf_events PAIRS NAMES [PAUSE_US]
// NAMES = how many different op names and shapes take turns (NAMES >= PAIRS: each is new). PAUSE_US = rest after each batch, so
// that a collector keeps up as it does with a real program.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "bench/micro/fake_tensorflow.h"

namespace {

constexpr std::size_t kBatch = 256;  // allocated together, then freed together, as the layers of a step are

// TensorFlow's TensorShape: 16-bit dimensions, their number in byte 14, the number of elements at the end.
struct Shape {
  std::uint16_t sizes[7] = {};
  std::uint8_t dimensions = 2;
  std::uint8_t kind = 0;
  std::int64_t elements = 0;
  std::string text() const { return "[" + std::to_string(sizes[0]) + "," + std::to_string(sizes[1]) + "]"; }
};
static_assert(sizeof(Shape) == 24);

struct Op {
  std::string name;
  Shape shape;
};

std::vector<Op> make_ops(std::size_t count) {
  std::vector<Op> ops(count);
  for (std::size_t i = 0; i < count; ++i) {
    ops[i].name = "while/body/transformer/layer_" + std::to_string(i) + "/attention/MatMul";
    ops[i].shape.sizes[0] = static_cast<std::uint16_t>(i % 60000 + 1);
    ops[i].shape.sizes[1] = static_cast<std::uint16_t>(i / 60000 + 1);
    ops[i].shape.elements = ops[i].shape.sizes[0] * ops[i].shape.sizes[1];
  }
  return ops;
}

double now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

// Resident memory of this process: the recorder's share is the difference to a plain run.
long resident_kib() {
  std::FILE* status = std::fopen("/proc/self/status", "r");
  char line[256];
  long kib = 0;
  while (status != nullptr && std::fgets(line, sizeof line, status) != nullptr)
    if (std::strncmp(line, "VmRSS:", 6) == 0) kib = std::atol(line + 6);
  if (status != nullptr) std::fclose(status);
  return kib;
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t pairs = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1000000;
  const std::size_t names = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 256;
  const long pause_us = argc > 3 ? std::strtol(argv[3], nullptr, 10) : 0;
  const std::vector<Op> ops = make_ops(names);
  static tsl::BFCAllocator allocator;
  auto& annotation = tsl::profiler::ScopedMemoryDebugAnnotation::ThreadMemoryDebugAnnotation();
  annotation.region = "output";
  annotation.dtype = 1;
  const Op* current = nullptr;
  void* blocks[kBatch];

  double alloc_ns = 1e9;
  double free_ns = 1e9;
  double alloc_total = 0;
  std::size_t op = 0;
  for (std::size_t done = 0; done < pairs; done += kBatch) {
    const double began = now_ns();
    for (auto& block : blocks) {
      current = &ops[op];
      op = op + 1 == names ? 0 : op + 1;
      annotation.op = current->name;
      annotation.step = static_cast<std::int64_t>(done);
      annotation.shape = [shape = &current->shape] { return shape->text(); };
      block = allocator.AllocateRaw(64, 200, {});
    }
    const double between = now_ns();
    for (void* block : blocks) allocator.DeallocateRaw(block);
    const double ended = now_ns();
    // The fastest batch: everything slower was disturbed by something else on the machine.
    alloc_ns = std::min(alloc_ns, (between - began) / kBatch);
    free_ns = std::min(free_ns, (ended - between) / kBatch);
    alloc_total += between - began;
    if (pause_us > 0) {
      const timespec pause{0, pause_us * 1000};
      nanosleep(&pause, nullptr);
    }
  }
  const std::uint64_t timed = (pairs + kBatch - 1) / kBatch * kBatch;
  std::printf("{\"alloc_ns\": %.2f, \"free_ns\": %.2f, \"mean_alloc_ns\": %.2f, \"resident_kib\": %ld}\n", alloc_ns, free_ns,
              alloc_total / static_cast<double>(timed), resident_kib());
}
