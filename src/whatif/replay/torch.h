// PyTorch's native caching allocator, rule for rule. Given the addresses of the recorded segments, it hands out the same
// addresses and makes the same device calls as PyTorch did.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "whatif/replay/allocator.h"
#include "whatif/replay/sorted_blocks.h"
#include "whatif/replay/torch_settings.h"

namespace vramscope::whatif {

class TorchAllocator final : public Allocator {
 public:
  TorchAllocator(const TorchSettings& settings, const DeviceOptions& device);

  bool allocate(const Event& request) override;
  void free(std::uint32_t block) override;
  void hold(std::uint32_t block) override;
  void control(const Event& event) override;
  std::uint64_t address_of(std::uint32_t block) const override { return blocks_[owned_[block]].address; }
  void for_each_piece(const std::function<void(const Piece&)>& visit) const override;

 private:
  using Ref = std::uint32_t;  // into blocks_
  static constexpr Ref kNone = ~Ref{0};

  struct Block {
    std::uint64_t address = 0;
    std::uint64_t base = 0;  // where its segment starts
    Bytes bytes = 0;
    std::uint64_t created = 0;   // order of creation, of the block or of its segment; 0: none yet
    std::uint64_t searches = 0;  // of the pool, when the block became free: the base of its age
    Ref previous = kNone, next = kNone;
    std::uint16_t stream = 0;
    std::uint16_t pool = 0;  // into pools_
    bool used = false, held = false, mapped = true, expandable = false, exists = true;
    bool is_whole() const { return previous == kNone && next == kNone; }
    bool is_free() const { return !used && !held; }
  };
  struct Pool {
    SortedBlocks free, unmapped;
    std::uint64_t searches = 0;
    bool small = false;
    bool retired = false;  // a private one that nobody uses
  };
  struct Request {
    Bytes bytes;    // rounded
    Bytes segment;  // size of a new segment for it
    std::uint16_t stream;
    std::uint16_t pool;
  };

  // torch.cpp: hand out and take back
  Ref search(const Request& request);
  bool fits_oversize_rules(Bytes wanted, Bytes found) const;
  bool should_split(const Block& block, Bytes wanted) const;
  Ref hand_out(Ref found, Bytes wanted);
  void return_block(Ref block);
  bool merge(Ref into, Ref neighbor);
  // torch_device.cpp: grow
  Ref grow(const Request& request);
  Ref grow_expandable(const Request& request);
  Ref room_for(const Request& request);
  bool has_room(Ref from, Bytes wanted) const;
  bool map(Ref block, Bytes bytes);
  // torch_release.cpp: shrink
  void collect();
  bool release_oversize(const Request& request);
  void release_all();
  void release_pool(Pool& pool);
  void release(Ref block);
  void unmap(Ref block);

  // Free blocks are ordered by stream, then size.
  static constexpr unsigned kSizeBits = 48;
  static std::uint64_t major_of(std::uint16_t stream, Bytes bytes) { return std::uint64_t{stream} << kSizeBits | bytes; }
  static std::uint16_t stream_of(const BlockKey& key) { return static_cast<std::uint16_t>(key.major >> kSizeBits); }

  Ref create(const Block& block);
  void destroy(Ref block);
  void link_after(Ref block, Ref previous, Ref next);
  std::uint64_t tie_key(const Block& block) const;
  BlockKey free_key(Ref ref) const;
  BlockKey unmapped_key(Ref ref) const;
  void insert_free(Ref ref);
  void erase_free(Ref ref) { pools_[blocks_[ref].pool].free.erase(free_key(ref)); }
  std::uint16_t pool_for(std::uint8_t private_pool, bool small);
  Bytes page_of(const Pool& pool) const { return pool.small ? kTorchSmallSegment : settings_.large_segment; }
  bool counts_ages() const { return limit_ != 0 && settings_.collection_threshold > 0; }

  TorchSettings settings_;
  Ties ties_;
  Bytes limit_ = 0;
  std::uint64_t created_ = 0;
  int captures_ = 0;
  std::vector<Block> blocks_;
  std::vector<Ref> unused_;                              // places in blocks_
  std::vector<Ref> owned_;                               // by block number of the events
  std::vector<std::uint32_t> held_;                      // block numbers
  std::vector<Pool> pools_;                              // default large, default small, private ones
  std::map<std::uint8_t, std::uint16_t> private_pools_;  // first of the pair in pools_
};

}  // namespace vramscope::whatif
