// Sums over blocks by any combination of properties.
#pragma once

#include <tsl/robin_map.h>

#include <array>
#include <span>
#include <string>
#include <vector>

#include "analyze/answers.h"
#include "analyze/index/store.h"

namespace vramscope::analyze {

class GroupKeys {
 public:
  explicit GroupKeys(const Store& store) : store_(store) {}
  std::string key(std::uint64_t alloc, std::span<const By> by);
  // Whether blocks of one kind with the same attributes have the same key.
  static bool same_for_alike(std::span<const By> by);

 private:
  std::uint64_t part(std::uint64_t alloc, By by);
  std::uint64_t text_id(const std::string& text);
  const Store& store_;
  std::array<std::vector<std::uint32_t>, kByCount> by_kind_;
  std::array<std::uint64_t, 256> by_category_{};  // plus one; 0: not known yet
  tsl::robin_map<std::string, std::uint64_t> texts_;
};

class GroupSums {
 public:
  GroupSums(const Store& store, std::vector<By> by)
      : store_(store), by_(std::move(by)), keys_(store), alike_(GroupKeys::same_for_alike(by_)) {}
  void add(std::uint64_t alloc, std::uint64_t times = 1);
  // Largest first; what exceeds the limit is added to the rest.
  std::vector<Group> largest(std::size_t limit, Bytes& rest_bytes, std::uint64_t& rest_count, std::uint64_t& rest_groups) const;

 private:
  struct Sum {
    Bytes bytes = 0, requested = 0;
    std::uint64_t count = 0, oldest = ~std::uint64_t{0}, newest = 0, largest = 0;
  };
  std::size_t group_of(std::uint64_t alloc);

  // Texts and keys take far longer than the sums: blocks that look alike follow one another.
  struct Recent {
    std::uint32_t kind = kNone32, attributes = 0;
    std::size_t group = 0;
  };
  const Store& store_;
  std::vector<By> by_;
  GroupKeys keys_;
  bool alike_;
  std::array<Recent, 256> recent_;
  tsl::robin_map<std::string, std::size_t> index_;
  std::vector<Sum> groups_;
};

}  // namespace vramscope::analyze
