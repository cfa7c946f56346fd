// The best-fit allocator with coalescing of TensorFlow and XLA.
#pragma once

#include <cstdint>
#include <vector>

#include "whatif/replay/allocator.h"
#include "whatif/replay/sorted_blocks.h"

namespace vramscope::whatif {

inline constexpr Bytes kBfcQuantum = 256;                 // sizes and regions are multiples of it
inline constexpr Bytes kBfcFirstRegion = Bytes{2} << 20;  // with growth; each following one is twice as large
inline constexpr Bytes kBfcMostSlack = Bytes{128} << 20;  // that it leaves in a chunk

struct BfcSettings {
  Bytes limit = kUnlimited;
  bool growth = true;                 // false: the first request takes the whole limit as one region
  bool collection = false;            // return regions that are completely free before failing
  double fragmentation_fraction = 0;  // of the limit: the most that a chunk may be larger than its request; 0 = 128 MiB
};

class BfcAllocator final : public Allocator {
 public:
  BfcAllocator(const BfcSettings& settings, const DeviceOptions& device);

  bool allocate(const Event& request) override;
  void free(std::uint32_t block) override;
  std::uint64_t address_of(std::uint32_t block) const override { return chunks_[owned_[block]].address; }
  void for_each_piece(const std::function<void(const Piece&)>& visit) const override;
  Bytes largest_free() const;

 private:
  using Ref = std::uint32_t;
  static constexpr Ref kNone = ~Ref{0};
  struct Chunk {
    std::uint64_t address = 0;
    Bytes bytes = 0;
    Ref previous = kNone, next = kNone;
    bool used = false, exists = true;
  };
  struct Region {
    std::uint64_t address;
    Bytes bytes;
    Ref first;  // chunk
  };

  Ref find(Bytes rounded);
  bool extend(Bytes rounded);
  bool return_free_regions(Bytes rounded);
  void merge(Ref into, Ref other);
  Ref create(const Chunk& chunk);
  void destroy(Ref ref);
  BlockKey key(Ref ref) const { return {chunks_[ref].bytes, chunks_[ref].address, ref}; }

  BfcSettings settings_;
  Bytes most_slack_;
  Bytes step_;  // size of the next region
  std::vector<Chunk> chunks_;
  std::vector<Ref> unused_;      // places in chunks_
  std::vector<Ref> owned_;       // by block number of the events
  std::vector<Region> regions_;  // by address
  SortedBlocks free_;
};

}  // namespace vramscope::whatif
