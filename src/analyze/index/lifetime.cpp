#include "analyze/index/lifetime.h"

#include <array>

#include "analyze/index/parallel.h"

namespace vramscope::analyze {
namespace {

std::size_t class_of(std::uint32_t birth, std::uint32_t death) {
  if (death == kNone32 || death <= birth) return kClasses - 1;
  return static_cast<std::size_t>(std::bit_width(death - birth)) - 1;
}

}  // namespace

std::vector<std::uint64_t> sort_by_lifetime(std::span<const std::uint32_t> birth, std::span<const std::uint32_t> death,
                                            std::span<std::uint32_t> order, unsigned threads) {
  // Counts in blocks first: then the position of each block's share of every class is known.
  constexpr std::size_t kBlock = 1u << 20;
  std::size_t blocks = (birth.size() + kBlock - 1) / kBlock;
  std::vector<std::array<std::uint64_t, kClasses>> share(blocks, std::array<std::uint64_t, kClasses>{});
  auto each = [&](std::size_t block, auto&& f) {
    for (std::size_t i = block * kBlock; i < std::min(birth.size(), (block + 1) * kBlock); ++i)
      if (birth[i] != kNone32) f(i, class_of(birth[i], death[i]));
  };
  parallel(threads, blocks, [&](std::size_t b, unsigned) { each(b, [&](std::size_t, std::size_t c) { ++share[b][c]; }); });
  std::vector<std::uint64_t> start(kClasses + 1, 0);
  std::uint64_t next = 0;
  for (std::size_t c = 0; c < kClasses; ++c) {
    start[c] = next;
    for (auto& counts : share) next += std::exchange(counts[c], next);
  }
  start[kClasses] = next;
  parallel(threads, blocks, [&](std::size_t b, unsigned) {
    each(b, [&](std::size_t i, std::size_t c) { order[share[b][c]++] = static_cast<std::uint32_t>(i); });
  });
  return start;
}

}  // namespace vramscope::analyze
