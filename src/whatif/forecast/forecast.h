// What each allocation of a program would be at another batch size: size = fixed + per_unit x batch. At another sequence length,
// which stored attention needs the square of: + per_square x length x length.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "whatif/event.h"

namespace vramscope::whatif {

// An allocation of a recording: `key` is equal in all recordings for the same place in the program, `section` is the step.
struct Request {
  std::uint64_t key = 0;
  std::uint32_t section = 0;
  std::uint32_t block = 0;
  Bytes bytes = 0;
};

struct Scaling {
  double fixed = 0, per_unit = 0;
  bool uncertain = false;  // no counterpart, or sizes that do not follow the batch
  double per_square = 0;
  Bytes at(double batch) const;
};

struct Recording {
  std::span<const Request> requests;  // in order
  double batch = 0;
};

// How the allocations of `large` scale, from a second recording at a smaller batch; one for each request of `large`.
std::vector<Scaling> scalings(const Recording& small, const Recording& large);
// The same for three sequence lengths.
std::vector<Scaling> scalings(const Recording& small, const Recording& middle, const Recording& large);

// A line through equal or proportional sizes is exact; others may be workspaces, whose size follows no line.
Scaling line_through(double batch_small, Bytes small, double batch_large, Bytes large);

// A line if all three are on one.
struct SizeAt {
  double length = 0;
  Bytes bytes = 0;
};
Scaling parabola_through(const SizeAt& small, const SizeAt& middle, const SizeAt& large);

// The events of the larger recording with the sizes at another batch. `by_block`: scalings by number of the block.
Events substituted(std::span<const Event> events, std::span<const Scaling> by_block, double batch);

}  // namespace vramscope::whatif
