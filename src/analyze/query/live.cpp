#include <tsl/robin_map.h>

#include <algorithm>

#include "analyze/index/lifetime.h"
#include "analyze/query/block_text.h"
#include "analyze/query/groups.h"
#include "analyze/query/state.h"
#include "support/secret_hash.h"

namespace vramscope::analyze {

// Keys stay numbers as long as possible: texts are created once per group, not once per block.
std::uint64_t GroupKeys::part(std::uint64_t alloc, By by) {
  Attributes attributes = store_.attributes_of(alloc);
  switch (by) {
    case By::category:
      return static_cast<std::uint64_t>(attributes.category());
    case By::layer:
      return attributes.layer();
    case By::phase:
      return static_cast<std::uint64_t>(attributes.stage());
    case By::known:
      return static_cast<std::uint64_t>(attributes.known());
    case By::step:
      return static_cast<std::uint64_t>(step_index(store_, store_.birth[alloc]) + 1);
    case By::name:
      return text_id(tag_name(store_, alloc));
    default:
      break;
  }
  auto& table = by_kind_[static_cast<std::size_t>(by)];
  std::uint32_t kind = store_.kind[alloc];
  if (table.empty()) table.assign(store_.kinds.size() + 1, kNone32);
  std::uint32_t& id = table[std::min<std::size_t>(kind, store_.kinds.size())];
  if (id == kNone32) id = static_cast<std::uint32_t>(text_id(kind_text(store_, store_.kind_of(alloc), by)));
  return id;
}

std::uint64_t GroupKeys::text_id(const std::string& text) {
  auto [it, fresh] = texts_.try_emplace(text, texts_.size());
  return it->second;
}

std::string GroupKeys::key(std::uint64_t alloc, std::span<const By> by) {
  std::string out;
  for (By b : by) {
    std::uint64_t p = part(alloc, b);
    // Categories shown under the same name are one group.
    if (b == By::category) {
      std::uint64_t& known = by_category_[p % by_category_.size()];
      if (known == 0) known = text_id(block_text(store_, alloc, b)) + 1;
      p = known - 1;
    }
    out.append(reinterpret_cast<const char*>(&p), sizeof p);
  }
  return out;
}

bool GroupKeys::same_for_alike(std::span<const By> by) {
  return std::ranges::none_of(by, [](By each) { return each == By::step || each == By::name; });
}

std::size_t GroupSums::group_of(std::uint64_t alloc) {
  const std::uint32_t kind = store_.kind[alloc], attributes = store_.attributes[alloc];
  Recent& recent = recent_[support::SecretHash{}(std::uint64_t{kind} << 32 | attributes) % recent_.size()];
  if (alike_ && kind != kNone32 && recent.kind == kind && recent.attributes == attributes) return recent.group;
  const auto [it, fresh] = index_.try_emplace(keys_.key(alloc, by_), groups_.size());
  if (fresh) groups_.emplace_back();
  recent = {kind, attributes, it->second};
  return it->second;
}

void GroupSums::add(std::uint64_t alloc, std::uint64_t times) {
  Sum& g = groups_[group_of(alloc)];
  const Kind& kind = store_.kind_of(alloc);
  if (g.count == 0 || kind.granted > store_.kind_of(g.largest).granted ||
      (kind.granted == store_.kind_of(g.largest).granted && alloc < g.largest))
    g.largest = alloc;
  g.bytes += times * kind.granted;
  g.requested += times * kind.requested;
  g.count += times;
  g.oldest = std::min<std::uint64_t>(g.oldest, store_.birth[alloc]);
  g.newest = std::max<std::uint64_t>(g.newest, store_.birth[alloc]);
}

std::vector<Group> GroupSums::largest(std::size_t limit, Bytes& rest_bytes, std::uint64_t& rest_count,
                                      std::uint64_t& rest_groups) const {
  std::vector<std::uint32_t> order(groups_.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::uint32_t>(i);
  std::ranges::sort(order, [&](std::uint32_t a, std::uint32_t b) {
    return groups_[a].bytes != groups_[b].bytes ? groups_[a].bytes > groups_[b].bytes : groups_[a].largest < groups_[b].largest;
  });
  std::size_t shown = limit == 0 ? order.size() : std::min(limit, order.size());
  std::vector<Group> out;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Sum& g = groups_[order[i]];
    if (i >= shown) {
      rest_bytes += g.bytes;
      rest_count += g.count;
      rest_groups += 1;
      continue;
    }
    Group group;
    for (By b : by_) group.keys.push_back(block_text(store_, g.largest, b));
    group.bytes = g.bytes;
    group.requested = g.requested;
    group.count = g.count;
    group.oldest_us = store_.time_of_event(g.oldest);
    group.newest_us = store_.time_of_event(g.newest);
    group.example = g.largest;
    out.push_back(std::move(group));
  }
  return out;
}

Result<Live> Engine::live(const LiveRequest& request) const {
  const Store& store = state_->store;
  auto at = state_->resolve(request.at, request.place);
  if (!at) return std::unexpected(at.error());
  auto place = state_->place(request.place);
  if (!place) return std::unexpected(place.error());
  auto filter = state_->filter(request.where, *at, request.place);
  if (!filter) return std::unexpected(filter.error());
  Grouper grouper(store, state_->pools(**place), &*filter);
  Live out;
  out.at = *at;
  out.time_us = store.time_of(*at);
  out.step = state_->step_number(*at);
  GroupSums sums(store, request.by);
  std::vector<std::uint32_t> blocks;
  for_each_live(store, *at, [&](std::uint32_t alloc) {
    if (grouper.of(alloc) == kOut) return;
    const Kind& kind = store.kind_of(alloc);
    out.total += kind.granted;
    out.requested += kind.requested;
    out.count += 1;
    if (request.by.empty())
      blocks.push_back(alloc);
    else
      sums.add(alloc);
  });
  // What was running: the stage of the newest block.
  std::uint64_t newest = 0;
  if (*at > 0 && store.ref[*at - 1] != kNone32) {
    newest = store.ref[*at - 1] >> 1;
    out.phase = name_of(store.attributes_of(newest).stage());
  }
  if (!request.by.empty()) {
    out.groups = sums.largest(request.limit, out.rest_bytes, out.rest_count, out.rest_groups);
    return out;
  }
  std::size_t shown = request.limit == 0 ? blocks.size() : std::min<std::size_t>(request.limit, blocks.size());
  std::ranges::partial_sort(blocks, blocks.begin() + static_cast<std::ptrdiff_t>(shown), [&](std::uint32_t a, std::uint32_t b) {
    Bytes x = store.kind_of(a).granted, y = store.kind_of(b).granted;
    return x != y ? x > y : a < b;
  });
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (i < shown) {
      out.blocks.push_back(block_of(store, blocks[i]));
    } else {
      out.rest_bytes += store.kind_of(blocks[i]).granted;
      out.rest_count += 1;
    }
  }
  return out;
}

}  // namespace vramscope::analyze
