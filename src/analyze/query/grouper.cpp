#include "analyze/query/grouper.h"

#include <algorithm>
#include <map>

#include "analyze/attribute/categories.h"
#include "analyze/index/lifetime.h"
#include "analyze/query/block_text.h"
#include "analyze/query/layer_fold.h"

namespace vramscope::analyze {

Grouper::Grouper(const Store& store, const PoolSet& pools, const Filter* filter)
    : store_(&store), filter_(filter), names_({"live"}) {
  if (filter_ != nullptr && filter_->everything()) filter_ = nullptr;
  for (const Kind& kind : store.kinds) by_kind_.push_back(kind.pool < pools.size() && pools[kind.pool] != 0 ? 0 : kOut);
}

Grouper::Grouper(const Store& store, const PoolSet& pools, By by, const Filter* filter, Moment rank_at, std::size_t bands)
    : Grouper(store, pools, filter) {
  by_ = by;
  names_.clear();
  if (by == By::category) {
    for (std::size_t c = 0; c < kShown; ++c) names_.emplace_back(name_of(static_cast<Shown>(c)));
    for (std::uint8_t& band : by_kind_)
      if (band == 0) band = kAsk;
    return;
  }
  // Rank by what is live at the instant; groups that are not live then share "other".
  std::map<std::string, Bytes> size;
  for_each_live(store, rank_at, [&](std::uint32_t alloc) {
    if (store.kind[alloc] < by_kind_.size() && by_kind_[store.kind[alloc]] == 0 &&
        (filter_ == nullptr || filter_->matches(alloc)))
      size[block_text(store, alloc, by)] += bytes(alloc);
  });
  const LayerFold fold = by == By::layer ? LayerFold::for_largest(size, bands - 1) : LayerFold();
  std::map<std::string, Bytes> folded;
  for (auto& [name, sum] : size) folded[fold(name)] += sum;
  std::vector<std::pair<Bytes, std::string>> order;
  for (auto& [name, sum] : folded) order.emplace_back(sum, name);
  std::ranges::sort(order,
                    [](const auto& a, const auto& b) { return a.first != b.first ? a.first > b.first : a.second < b.second; });
  if (order.size() > bands - 1) order.resize(bands - 1);
  std::map<std::string, std::uint8_t> band_of;
  for (auto& [sum, name] : order) {
    band_of[name] = static_cast<std::uint8_t>(names_.size());
    names_.push_back(name);
  }
  auto other = static_cast<std::uint8_t>(names_.size());
  names_.emplace_back("other");
  auto band = [&](const std::string& name) {
    auto it = band_of.find(fold(name));
    return it == band_of.end() ? other : it->second;
  };
  for (std::size_t k = 0; k < by_kind_.size(); ++k)
    if (by_kind_[k] == 0) by_kind_[k] = depends_on_kind_only(by) ? band(kind_text(store, store.kinds[k], by)) : kAsk;
  if (by == By::layer)
    for (std::uint32_t i = 0; i < store.names(); ++i) by_name_.push_back(band(std::string(store.name(i))));
  if (by == By::phase)
    for (std::size_t i = 0; i < 16; ++i) by_name_.push_back(band(std::string(name_of(static_cast<Stage>(i)))));
  if (by == By::known)
    for (std::size_t i = 0; i < 4; ++i) by_name_.push_back(band(std::string(name_of(static_cast<Known>(i)))));
  if (by == By::step) {
    for (std::size_t i = 0; i < store.steps.size(); ++i) by_step_.push_back(band(step_text(store, static_cast<std::int64_t>(i))));
    by_step_.push_back(band(""));
  }
  if (by == By::name)
    for (auto& [name, b] : band_of) by_text_.emplace_back(name, b);
}

std::uint8_t Grouper::ask(std::uint64_t alloc) const {
  Attributes attributes = store_->attributes_of(alloc);
  std::size_t last = names_.size() - 1;
  switch (by_) {
    case By::category:
      return static_cast<std::uint8_t>(shown(attributes.category()));
    case By::layer:
      return attributes.layer() < by_name_.size() ? by_name_[attributes.layer()] : static_cast<std::uint8_t>(last);
    case By::phase:
      return by_name_[static_cast<std::size_t>(attributes.stage())];
    case By::known:
      return by_name_[static_cast<std::size_t>(attributes.known())];
    case By::step: {
      std::int64_t i = step_index(*store_, store_->birth[alloc]);
      return i < 0 ? by_step_.back() : by_step_[static_cast<std::size_t>(i)];
    }
    default: {
      std::string text = block_text(*store_, alloc, by_);
      auto it = std::ranges::lower_bound(by_text_, text, {}, &std::pair<std::string, std::uint8_t>::first);
      return it != by_text_.end() && it->first == text ? it->second : static_cast<std::uint8_t>(last);
    }
  }
}

}  // namespace vramscope::analyze
