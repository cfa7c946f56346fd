// The settings of PyTorch's caching allocator, as PYTORCH_CUDA_ALLOC_CONF spells them.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "support/result.h"
#include "whatif/event.h"

namespace vramscope::whatif {

inline constexpr Bytes kMiB = Bytes{1} << 20;

// Which of several free blocks of one size is used: the one at the lowest address, the oldest one, or that of the oldest segment
// (in it, the one at the lowest address).
enum class Ties : std::uint8_t { address, block, segment };

struct TorchSettings {
  int version = 211;  // 2.11
  bool expandable = false;
  Bytes max_split = kUnlimited;
  Bytes large_segment = 20 * kMiB;
  Bytes oversize_slack = 20 * kMiB;
  double collection_threshold = 0;
  double memory_fraction = 1;                    // of the card
  std::array<std::uint32_t, 16> divisions = {};  // from 1 MiB, 2 MiB, 4 MiB, ... on
  bool stream_ordered = false;                   // backend:cudaMallocAsync
  Bytes limit = 0;                               // 0 = none

  // "expandable_segments:True,max_split_size_mb:128". Unknown keys of a recording belong to a newer PyTorch.
  enum class UnknownKeys : std::uint8_t { refused, ignored };
  static Result<TorchSettings> parse(std::string_view text, int version = 211, UnknownKeys unknown = UnknownKeys::refused);
  // "2.11.0+cu128" is 211; 211 for a text that is not a version.
  static int version_of(std::string_view text);

  Ties ties() const;
  Bytes rounded(Bytes bytes) const;
  // The size of a new segment for a rounded request.
  Bytes segment_for(Bytes rounded) const;
};

inline constexpr Bytes kTorchQuantum = 512;
inline constexpr Bytes kTorchSmall = kMiB;             // requests up to this go to the small pool
inline constexpr Bytes kTorchSmallSegment = 2 * kMiB;  // and its segments have this size
inline constexpr Bytes kTorchMedium = 10 * kMiB;       // requests below this get a large segment
inline constexpr Bytes kTorchLargeRounding = 2 * kMiB;

}  // namespace vramscope::whatif
