// Free blocks in order: a list of sorted leaves. Moving half a leaf costs less than following the pointers of a tree.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

namespace vramscope::whatif {

struct BlockKey {
  std::uint64_t major = 0;  // stream and size
  std::uint64_t minor = 0;  // what decides between equal ones: the address, or the age of the block
  std::uint32_t block = 0;
  friend bool operator<(const BlockKey& a, const BlockKey& b) {
    if (a.major != b.major) return a.major < b.major;
    return a.minor != b.minor ? a.minor < b.minor : a.block < b.block;  // recorded addresses may be the same twice
  }
};

class SortedBlocks {
 public:
  // A place between two changes of the set.
  struct Place {
    std::size_t leaf = 0, slot = 0;
    friend bool operator==(const Place&, const Place&) = default;
  };

  bool empty() const { return leaves_.empty(); }
  Place begin() const { return {}; }
  Place end() const { return {leaves_.size(), 0}; }
  const BlockKey& at(Place place) const { return leaves_[place.leaf]->keys[place.slot]; }

  // The first key that is not smaller.
  Place lower_bound(const BlockKey& key) const {
    if (leaves_.empty()) return end();
    const std::size_t leaf = leaf_of(key);
    const Leaf& keys = *leaves_[leaf];
    const auto slot = static_cast<std::size_t>(std::lower_bound(keys.keys, keys.keys + keys.count, key) - keys.keys);
    return slot < keys.count ? Place{leaf, slot} : Place{leaf + 1, 0};
  }
  Place next(Place place) const {
    return place.slot + 1 < leaves_[place.leaf]->count ? Place{place.leaf, place.slot + 1} : Place{place.leaf + 1, 0};
  }
  Place previous(Place place) const {
    return place.slot > 0 ? Place{place.leaf, place.slot - 1} : Place{place.leaf - 1, leaves_[place.leaf - 1]->count - 1};
  }

  void insert(const BlockKey& key) {
    if (leaves_.empty()) leaves_.push_back(std::make_unique<Leaf>());
    std::size_t leaf = leaf_of(key);
    if (leaves_[leaf]->count == kLeaf) {
      split(leaf);
      if (!(key < leaves_[leaf + 1]->keys[0])) ++leaf;
    }
    Leaf& keys = *leaves_[leaf];
    BlockKey* const at = std::lower_bound(keys.keys, keys.keys + keys.count, key);
    std::copy_backward(at, keys.keys + keys.count, keys.keys + keys.count + 1);
    *at = key;
    ++keys.count;
  }
  void erase(const BlockKey& key) { erase(lower_bound(key)); }
  void erase(Place place) {
    Leaf& keys = *leaves_[place.leaf];
    std::copy(keys.keys + place.slot + 1, keys.keys + keys.count, keys.keys + place.slot);
    if (--keys.count == 0) leaves_.erase(leaves_.begin() + static_cast<std::ptrdiff_t>(place.leaf));
  }

 private:
  static constexpr std::size_t kLeaf = 64;
  struct Leaf {
    std::size_t count = 0;
    BlockKey keys[kLeaf];
  };

  // The last leaf whose first key is not larger; the first one if there is none.
  std::size_t leaf_of(const BlockKey& key) const {
    std::size_t low = 0, high = leaves_.size();
    while (high - low > 1) {
      const std::size_t middle = (low + high) / 2;
      (key < leaves_[middle]->keys[0] ? high : low) = middle;
    }
    return low;
  }
  void split(std::size_t leaf) {
    auto upper = std::make_unique<Leaf>();
    Leaf& lower = *leaves_[leaf];
    upper->count = kLeaf / 2;
    std::copy(lower.keys + kLeaf / 2, lower.keys + kLeaf, upper->keys);
    lower.count = kLeaf / 2;
    leaves_.insert(leaves_.begin() + static_cast<std::ptrdiff_t>(leaf) + 1, std::move(upper));
  }

  std::vector<std::unique_ptr<Leaf>> leaves_;
};

}  // namespace vramscope::whatif
