#include "analyze/query/block_text.h"

#include <algorithm>
#include <array>
#include <bit>

#include <fmt/format.h>

#include "analyze/attribute/categories.h"
#include "analyze/framework.h"

namespace vramscope::analyze {

std::string dtype_text(std::uint64_t dtype, trace::Framework id) {
  if (dtype == 0) return {};
  if (const auto names = framework(id).dtypes; dtype < names.size()) return std::string(names[dtype]);
  return fmt::format("dtype {}", dtype);
}

std::string size_class(Bytes bytes) {
  if (bytes < 1024) return "below 1 KiB";
  int power = static_cast<int>(std::bit_width(bytes)) - 1;
  auto text = [](int p) {
    constexpr std::array<std::string_view, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
    auto unit = std::min<std::size_t>(static_cast<std::size_t>(p) / 10, kUnits.size() - 1);
    return fmt::format("{} {}", std::uint64_t{1} << (static_cast<std::size_t>(p) - unit * 10), kUnits[unit]);
  };
  return text(power) + " to " + text(power + 1);
}

std::int64_t step_index(const Store& store, std::uint64_t pos) {
  auto it = std::upper_bound(store.steps.begin(), store.steps.end(), pos,
                             [](std::uint64_t p, const StepRow& s) { return p < s.begin; });
  if (it == store.steps.begin()) return -1;
  --it;
  return pos < it->end ? it - store.steps.begin() : -1;
}

std::string step_text(const Store& store, std::int64_t index) {
  if (index < 0) return {};
  const StepRow& step = store.steps[static_cast<std::size_t>(index)];
  std::string_view kind = store.name(step.kind);
  return kind == "train" ? fmt::format("{}", step.number) : fmt::format("{} {}", kind, step.number);
}

bool depends_on_kind_only(By by) {
  switch (by) {
    case By::category:
    case By::layer:
    case By::phase:
    case By::step:
    case By::name:
    case By::known:
      return false;
    default:
      return true;
  }
}

std::string kind_text(const Store& store, const Kind& kind, By by) {
  const trace::Site& site = store.site_of(kind);
  const auto& pools = store.dictionaries().pools;
  const trace::Pool* pool = kind.pool < pools.size() ? &pools[kind.pool] : nullptr;
  switch (by) {
    case By::op:
      return std::string(store.text(site.op));
    case By::line:
      return std::string(store.name(kind.line));
    case By::stack:
      return static_cast<std::uint32_t>(site.stack) == 0 ? "" : fmt::format("{}", static_cast<std::uint32_t>(site.stack));
    case By::dtype:
      return dtype_text(site.dtype, pool != nullptr ? pool->framework : trace::Framework::none);
    case By::shape:
      return std::string(store.text(site.shape));
    case By::size:
      return size_class(kind.granted);
    case By::pool:
      return pool != nullptr ? std::string(store.text(pool->name)) : "";
    case By::stream:
      return fmt::format("{}", site.stream);
    case By::owner:
      return std::string(store.text(site.owner));
    case By::region:
      return std::string(store.text(site.region));
    case By::device:
      return pool == nullptr ? "" : pool->device < 0 ? "host" : fmt::format("GPU {}", pool->device);
    default:
      return {};
  }
}

std::string tag_name(const Store& store, std::uint64_t alloc) {
  auto it = std::ranges::lower_bound(store.tagged, alloc, {}, &TaggedRow::alloc);
  if (it == store.tagged.end() || it->alloc != alloc) return {};
  return std::string(store.text(static_cast<trace::StringId>(it->name)));
}

std::string block_text(const Store& store, std::uint64_t alloc, By by) {
  Attributes attributes = store.attributes_of(alloc);
  switch (by) {
    case By::category:
      return std::string(name_of(shown(attributes.category())));
    case By::layer:
      return std::string(store.name(attributes.layer()));
    case By::phase:
      return std::string(name_of(attributes.stage()));
    case By::known:
      return std::string(name_of(attributes.known()));
    case By::step:
      return step_text(store, step_index(store, store.birth[alloc]));
    case By::name:
      return tag_name(store, alloc);
    default:
      return kind_text(store, store.kind_of(alloc), by);
  }
}

Block block_of(const Store& store, std::uint64_t alloc) {
  Block out;
  const Kind& kind = store.kind_of(alloc);
  const trace::Site& site = store.site_of(kind);
  out.id = alloc;
  out.address = store.address[alloc];
  out.requested = kind.requested;
  out.granted = kind.granted;
  out.birth = std::uint64_t{store.birth[alloc]} + 1;
  out.birth_us = store.time_of(out.birth);
  bool ended = store.death[alloc] != kNone32;
  out.death = ended ? std::uint64_t{store.death[alloc]} + 1 : kNever;
  out.death_us = ended ? store.time_of(out.death) : kNever;
  out.pool = kind.pool;
  out.pool_name = kind_text(store, kind, By::pool);
  out.category = block_text(store, alloc, By::category);
  out.known = block_text(store, alloc, By::known);
  out.layer = block_text(store, alloc, By::layer);
  out.op = kind_text(store, kind, By::op);
  out.region = kind_text(store, kind, By::region);
  out.dtype = kind_text(store, kind, By::dtype);
  out.shape = kind_text(store, kind, By::shape);
  out.phase = block_text(store, alloc, By::phase);
  out.line = kind_text(store, kind, By::line);
  out.owner = kind_text(store, kind, By::owner);
  out.name = tag_name(store, alloc);
  out.stream = site.stream;
  out.stack = static_cast<std::uint32_t>(site.stack);
  std::int64_t step = step_index(store, store.birth[alloc]);
  out.step = step < 0 ? 0 : store.steps[static_cast<std::size_t>(step)].number;
  return out;
}

}  // namespace vramscope::analyze
