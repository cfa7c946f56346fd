// PyTorch's caching allocator, as far as it determines how large a block is. A snapshot's events have the requested size; what
// the allocator granted follows from the free block that it took: rounded up and split off, or the whole of it.
#pragma once

#include <cstdint>
#include <map>

namespace vramscope::importers {

class TorchLayout {
 public:
  // `max_split` in bytes.
  TorchLayout(std::uint64_t max_split, bool expandable) : max_split_(max_split), expandable_(expandable) {}

  void take_segment(std::uint64_t address, std::uint64_t bytes);
  void return_segment(std::uint64_t address, std::uint64_t bytes);
  // The size of the block that is now at `address`. Rounded up if the layout around it is not known.
  std::uint64_t allocate(std::uint64_t address, std::uint64_t requested);
  void release(std::uint64_t address, std::uint64_t granted);

  static std::uint64_t rounded(std::uint64_t requested);

 private:
  bool splits(std::uint64_t size, std::uint64_t remaining) const;

  std::uint64_t max_split_;
  bool expandable_;
  std::map<std::uint64_t, std::uint64_t> segments_, free_;  // address and bytes
};

}  // namespace vramscope::importers
