#include "troubles.h"

#include <functional>
#include <map>

#include "maker.h"

namespace vramscope::tracegen {
namespace {

using trace::MarkEdge;
using trace::MarkKind;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kBlock = 4 * kMiB, kLarge = 6 * kMiB;

std::optional<Handle> activation(Maker& m, int layer) {
  return m.alloc({"StatefulPartitionedCall/sequential/dense_" + std::to_string(layer) + "/Relu", "output", kBlock, 0, 1,
                  "[1024,1024]", "train.py", static_cast<std::uint64_t>(10 + layer)});
}

// Three steps that fill the pool with blocks of 4 MiB and free them; in the fourth, every other one stays, and a block of 6 MiB
// is wanted: half of the pool is free, in holes of 4 MiB.
void in_pieces(Maker& m, int count) {
  m.setting("tensorflow.version", "2.21.0");
  for (int step = 0; step < 4; ++step) {
    m.mark(MarkKind::step, MarkEdge::begin, "train", step);
    std::vector<Handle> blocks;
    for (int i = 0; i < count; ++i)
      if (const auto block = activation(m, i)) blocks.push_back(*block);
    for (std::size_t i = 0; i < blocks.size(); ++i)
      if (step < 3 || i % 2 == 0) m.free(blocks[i]);
    if (step == 3)
      m.alloc({"StatefulPartitionedCall/sequential/dense_12/MatMul", "output", kLarge, 0, 1, "[1536,1024]", "train.py", 40});
    m.mark(MarkKind::step, MarkEdge::end, "train", step);
    m.wait(200);
  }
}

struct Trouble {
  Maker::Options options;
  std::function<void(Maker&)> make;
};

Maker::Options pool_of(std::uint64_t limit, bool growth) {
  Maker::Options out;
  out.pool.limit = limit;
  out.pool.growth = growth;
  return out;
}

const std::map<std::string, Trouble> kTroubles = {
    {"fragmented", {pool_of(12 * kBlock, false), [](Maker& m) { in_pieces(m, 12); }}},
    // Its regions are of 4, 4, 8, 16 and 32 MiB: a power of two of blocks fills them.
    {"grown", {pool_of(64 * 1024 * kMiB, true), [](Maker& m) { in_pieces(m, 16); }}},
};

}  // namespace

std::vector<std::string> trouble_cases() {
  std::vector<std::string> out;
  for (const auto& [name, trouble] : kTroubles) out.push_back(name);
  return out;
}

Status write_trouble(const std::string& name, const std::filesystem::path& path) {
  const Trouble& trouble = kTroubles.at(name);
  auto maker = Maker::create(path, trouble.options);
  if (!maker) return std::unexpected(maker.error());
  trouble.make(*maker);
  return maker->finish();
}

}  // namespace vramscope::tracegen
