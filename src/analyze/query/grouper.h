// Sorts blocks into bands for a stacked chart, without those that the place or the filter excludes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "analyze/answers.h"
#include "analyze/index/store.h"
#include "analyze/query/filter.h"

namespace vramscope::analyze {

inline constexpr std::uint8_t kOut = 255;

// Pools that count, as a flag by pool id.
using PoolSet = std::vector<std::uint8_t>;

class Grouper {
 public:
  // Bands are the categories in stack order for By::category, otherwise the largest groups at `rank_at` and "other".
  Grouper(const Store& store, const PoolSet& pools, By by, const Filter* filter, Moment rank_at, std::size_t bands);
  // All blocks of the pools in one band.
  Grouper(const Store& store, const PoolSet& pools, const Filter* filter);

  const std::vector<std::string>& names() const { return names_; }
  // Band of an allocation, or kOut. Thread-safe.
  std::uint8_t of(std::uint64_t alloc) const {
    std::uint32_t kind = store_->kind[alloc];
    if (kind >= by_kind_.size()) return kOut;
    std::uint8_t band = by_kind_[kind];
    if (band == kOut) return kOut;
    if (band == kAsk) band = ask(alloc);
    return filter_ != nullptr && !filter_->matches(alloc) ? kOut : band;
  }
  Bytes bytes(std::uint64_t alloc) const { return store_->kind_of(alloc).granted; }

 private:
  static constexpr std::uint8_t kAsk = 254;  // the kind alone does not determine it
  std::uint8_t ask(std::uint64_t alloc) const;
  const Store* store_;
  const Filter* filter_ = nullptr;
  By by_ = By::category;
  std::vector<std::string> names_;
  std::vector<std::uint8_t> by_kind_;
  std::vector<std::uint8_t> by_name_;                          // By::layer: band of each name
  std::vector<std::pair<std::string, std::uint8_t>> by_text_;  // sorted, for By::name
  std::vector<std::uint8_t> by_step_;                          // By::step: band of each step, plus one for outside
};

}  // namespace vramscope::analyze
