#include "analyze/verdict/replaced.h"

#include <algorithm>
#include <map>

#include "analyze/index/lifetime.h"

namespace vramscope::analyze {
namespace {

constexpr std::size_t kSamples = 256;     // live sets examined: enough for a trend, and fast for any number of steps
constexpr std::size_t kFewestRises = 12;  // a level without drift rises this often in a row once in 4,096 times
constexpr std::size_t kRisesPerFall = 20;

struct Level {
  std::vector<double> bytes;  // requested, at each sample
  std::uint64_t newest = 0;   // a block of the last sample
  Bytes granted = 0;          // of that block
  std::uint64_t blocks = 0;   // live at the last sample
};

}  // namespace

std::vector<Origin> replaced(const Store& store, const Grouper& grouper, const StepWindow& window) {
  std::vector<Origin> out;
  std::size_t n = window.steps.size();
  if (n <= kFewestRises) return out;
  std::vector<std::uint64_t> ends = step_ends(store, window);
  std::size_t samples = std::min(n, kSamples);
  std::vector<std::size_t> at;  // window steps
  for (std::size_t i = 0; i < samples; ++i) at.push_back(i * (n - 1) / (samples - 1));

  std::map<std::uint64_t, Level> levels;
  for (std::size_t i = 0; i < samples; ++i)
    for_each_live(store, ends[at[i]], [&](std::uint32_t alloc) {
      if (grouper.of(alloc) == kOut) return;
      Level& level = levels[origin_key(store, alloc)];
      if (level.bytes.empty()) level.bytes.assign(samples, 0);
      const Kind& kind = store.kind_of(alloc);
      level.bytes[i] += static_cast<double>(kind.requested);
      if (i + 1 < samples) return;
      level.blocks += 1;
      if (kind.granted >= level.granted) {
        level.granted = kind.granted;
        level.newest = alloc;
      }
    });

  for (const auto& [key, level] : levels) {
    std::size_t rises = 0, falls = 0;
    for (std::size_t i = 1; i < samples; ++i) {
      if (level.bytes[i] > level.bytes[i - 1]) ++rises;
      if (level.bytes[i] < level.bytes[i - 1]) ++falls;
    }
    if (rises < kFewestRises || falls * kRisesPerFall > rises || level.blocks == 0) continue;
    Origin origin;
    origin.key = key;
    origin.replaced = true;
    origin.example = level.newest;
    origin.kept.assign(n, 0);
    for (std::size_t i = 1; i < samples; ++i)
      for (std::size_t step = at[i - 1] + 1; step <= at[i]; ++step)
        origin.kept[step] = (level.bytes[i] - level.bytes[i - 1]) / static_cast<double>(at[i] - at[i - 1]);
    origin.kept_blocks = level.blocks;
    origin.kept_bytes = static_cast<Bytes>(std::max(0.0, level.bytes.back() - level.bytes.front()));
    origin.largest = level.granted;
    origin.oldest = {level.newest};
    out.push_back(std::move(origin));
  }
  return out;
}

}  // namespace vramscope::analyze
