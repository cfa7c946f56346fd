// What each layer holds at a moment, and the most that it ever held by itself.
#include <tsl/robin_set.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "analyze/absent.h"
#include "analyze/attribute/categories.h"
#include "analyze/attribute/op_names.h"
#include "analyze/gen/texts.h"
#include "analyze/index/lifetime.h"
#include "analyze/query/state.h"
#include "analyze/steps/step_time.h"
#include "support/units.h"

namespace vramscope::analyze {
namespace {

using support::format_size;

constexpr std::size_t kMostOps = 50;  // with their time

// The highest live total of each layer on its own, by name.
struct OwnPeaks {
  std::vector<Bytes> peak;
  std::vector<Moment> at;
};

OwnPeaks own_peaks(const Store& store, const Grouper& grouper, Moment from, Moment to) {
  std::vector<Bytes> now(store.names() + 1, 0);
  for_each_live(store, from, [&](std::uint32_t alloc) {
    if (grouper.of(alloc) != kOut)
      now[std::min<std::size_t>(store.attributes_of(alloc).layer(), store.names())] += grouper.bytes(alloc);
  });
  OwnPeaks out{now, std::vector<Moment>(now.size(), from)};
  walk(store, grouper, from, to, [&](std::uint64_t pos, std::uint8_t, Bytes bytes, bool is_free) {
    std::size_t layer = std::min<std::size_t>(store.attributes_of(store.ref[pos] >> 1).layer(), store.names());
    now[layer] += is_free ? Bytes{0} - bytes : bytes;
    if (now[layer] > out.peak[layer]) {
      out.peak[layer] = now[layer];
      out.at[layer] = pos + 1;
    }
  });
  return out;
}

// Rows in parentheses do not belong to the model: the input pipeline, the loss, what training adds.
bool is_layer(std::string_view name) { return !name.empty() && !name.starts_with('('); }

std::size_t first_born(const Store& store, Moment from) {
  return static_cast<std::size_t>(std::lower_bound(store.birth.begin(), store.birth.end(), from) - store.birth.begin());
}

// The position of each layer in the order in which a step makes the activations. Other blocks say less: an executor starts
// constants and updates of any layer as soon as a thread is free. Layers that provide inputs come before the model; layers
// without an activation come where they were first seen.
std::map<std::uint32_t, std::uint64_t> model_order(const Store& store, Moment from, Moment to) {
  std::map<std::uint32_t, std::uint64_t> seen, active;
  for (std::size_t a = first_born(store, from); a < store.allocs() && store.birth[a] < to; ++a) {
    const std::uint32_t layer = store.attributes_of(a).layer();
    const Shown category = shown(store.attributes_of(a).category());
    if (category == Shown::activations)
      active.try_emplace(layer, a);
    else if (category == Shown::inputs)
      active.try_emplace(layer, 0);
    else
      seen.try_emplace(layer, a);
  }
  active.merge(seen);
  return active;
}

// The position of each layer in the graphs that Python traced. There, the ops are in the order of the program's own calls. Before
// a model is traced, a layer may be traced alone, to learn the shape of its result: what comes before the first op that ran
// counts only for layers that come nowhere else.
std::map<std::string_view, std::size_t> traced_order(const Store& store) {
  tsl::robin_set<std::string_view> ran;
  for (const Kind& kind : store.kinds) ran.insert(store.text(store.site_of(kind).op));
  const auto& sources = store.dictionaries().op_sources;
  const auto first = std::ranges::find_if(sources, [&](const auto& source) { return ran.contains(store.text(source.op)); });
  const auto begin = static_cast<std::size_t>(first - sources.begin());
  std::map<std::string_view, std::size_t> out;
  for (std::size_t i = begin; i < sources.size(); ++i) out.try_emplace(store.text(sources[i].layer), i);
  for (std::size_t i = 0; i < begin; ++i) out.try_emplace(store.text(sources[i].layer), i);
  return out;
}

// Puts the layers that were traced into their order, each in the place of another one. The others stay where they are.
void sort_as_traced(const Store& store, std::vector<std::pair<std::uint64_t, std::uint32_t>>& order) {
  const auto traced = traced_order(store);
  std::vector<std::pair<std::size_t, std::uint32_t>> known;
  std::vector<std::uint32_t*> places;
  for (auto& [position, layer] : order) {
    const auto found = is_layer(store.name(layer)) ? traced.find(store.name(layer)) : traced.end();
    if (found == traced.end()) continue;
    known.emplace_back(found->second, layer);
    places.push_back(&layer);
  }
  std::ranges::sort(known);
  for (std::size_t i = 0; i < known.size(); ++i) *places[i] = known[i].second;
}

// The line where each layer was built or is called, preferably from the ops of its forward pass. In eager mode only blocks have a
// layer.
std::map<std::uint32_t, std::uint32_t> lines_of(const Store& store, Moment from, Moment to) {
  std::map<std::uint32_t, std::uint32_t> out, others;
  for (const Kind& kind : store.kinds)
    if (kind.layer != 0 && kind.line != 0)
      (kind.stage == static_cast<std::uint8_t>(Stage::forward) ? out : others).try_emplace(kind.layer, kind.line);
  for (std::size_t a = first_born(store, from); a < store.allocs() && store.birth[a] < to; ++a) {
    const Attributes attributes = store.attributes_of(a);
    const std::uint32_t layer = attributes.layer(), line = store.kind_of(a).line;
    if (line != 0 && layer != 0) (attributes.stage() == Stage::forward ? out : others).try_emplace(layer, line);
  }
  out.merge(others);
  return out;
}

constexpr std::pair<Shown, Bytes LayerRow::*> kParts[] = {
#include "analyze/gen/layer_parts.inc"
};
constexpr auto kPartOf = [] {
  std::array<Bytes LayerRow::*, kShown> out{};
  out.fill(&LayerRow::other);
  for (const auto& [category, part] : kParts) out[static_cast<std::size_t>(category)] = part;
  return out;
}();

void add_block(LayerRow& row, Shown category, Bytes bytes) {
  row.total += bytes;
  row.*kPartOf[static_cast<std::size_t>(category)] += bytes;
}

using RowsByLayer = std::map<std::uint32_t, LayerRow>;

RowsByLayer live_rows(const Store& store, const Grouper& grouper, Moment at) {
  RowsByLayer rows;
  for_each_live(store, at, [&](std::uint32_t alloc) {
    if (grouper.of(alloc) == kOut) return;
    const Attributes attributes = store.attributes_of(alloc);
    add_block(rows[attributes.layer()], shown(attributes.category()), grouper.bytes(alloc));
  });
  return rows;
}

// The stretch in which own peaks are searched. A whole run of a hundred million events consists of thousands of equal steps; a
// layer's own peak shows within a few of them.
Stretch stretch_for_peaks(const Store& store, const Steady& steady, Moment at) {
  constexpr Moment kSteadyEvents = 2'000'000, kEvents = 4'000'000;
  if (steady.has) {
    const Moment from = store.steps[steady.first].begin;
    std::size_t last = steady.first;
    while (last < steady.last && store.steps[last].end - from < kSteadyEvents) ++last;
    return {from, store.steps[last].end};
  }
  if (store.events() <= kEvents) return {0, store.events()};
  const Moment to = std::max(at, kEvents);
  return {to - kEvents, to};
}

// Adds names and own peaks. A layer without a live block at the moment gets a row too if it had one in the stretch.
void complete_rows(const Store& store, const OwnPeaks& own, Moment at, RowsByLayer& rows) {
  for (std::uint32_t layer = 1; layer < store.names(); ++layer)
    if (own.peak[layer] > 0) rows[layer];
  for (auto& [layer, row] : rows) {
    row.name = store.name(layer);
    if (layer >= own.peak.size()) continue;
    row.own_peak = std::max(own.peak[layer], row.total);
    row.own_peak_at = own.peak[layer] >= row.total ? own.at[layer] : at;
  }
}

// A layer that only takes time, such as one that changes a shape, has no row.
void add_times(const StepTime& time, RowsByLayer& rows) {
  if (time.layers.empty()) return;
  for (auto& [layer, row] : rows) {
    const auto found = time.layers.find(row.name);
    row.time_us = found != time.layers.end() ? found->second : 0;
  }
}

// Where a row comes: the input first, then layers in the order of the model, those that a step does not make after them, then
// groups such as the optimizer, whose ops run at any time, then blocks outside of all layers.
std::uint64_t place_of(const Store& store, const std::map<std::uint32_t, std::uint64_t>& positions, std::uint32_t layer) {
  constexpr std::uint64_t kLast = ~std::uint64_t{0};
  if (layer == 0) return kLast;
  const std::string_view name = store.name(layer);
  if (name == kInputGroup) return 0;
  if (!is_layer(name)) return kLast - 1;
  const auto position = positions.find(layer);
  return position == positions.end() ? kLast - 2 : position->second;
}

// `step` is one step, or the whole stretch if there are no steps.
std::vector<LayerRow> in_model_order(const Store& store, Stretch step, RowsByLayer rows) {
  const auto positions = model_order(store, step.from, step.to);
  const auto lines = lines_of(store, step.from, step.to);
  std::vector<std::pair<std::uint64_t, std::uint32_t>> order;
  order.reserve(rows.size());
  for (const auto& [layer, row] : rows) order.emplace_back(place_of(store, positions, layer), layer);
  // Groups have one place: among them the name decides, because numbers of names differ from one opening of a trace to the next.
  std::ranges::sort(order, [&](const auto& one, const auto& other) {
    const std::string_view name = store.name(one.second), other_name = store.name(other.second);
    if (one.first == other.first && !is_layer(name) && !is_layer(other_name)) return name < other_name;
    return one < other;
  });
  sort_as_traced(store, order);
  std::vector<LayerRow> out;
  for (const auto& [position, layer] : order) {
    LayerRow& row = out.emplace_back(std::move(rows[layer]));
    if (const auto line = lines.find(layer); line != lines.end()) row.line = store.name(line->second);
  }
  return out;
}

std::string sentence_of(const RowsByLayer& rows, std::string_view when, bool filtered) {
  Bytes total = 0;
  std::uint64_t layers = 0;
  const LayerRow* largest = nullptr;
  for (const auto& [layer, row] : rows) {
    total += row.total;
    if (!is_layer(row.name)) continue;
    ++layers;
    if (row.total > (largest != nullptr ? largest->total : 0)) largest = &row;
  }
  if (largest == nullptr) return filtered ? std::string(kNoLayerMatches) : no_layer_known(format_size(total), kWhyNoLayers);
  return layer_holds_most(largest->name, support::format_plural(layers, "layer", "layers"), format_size(largest->total),
                          format_size(total), when);
}

}  // namespace

Result<Layers> Engine::layers(std::string_view at_word, int place_index, std::string_view where) const {
  const Store& store = state_->store;
  const Steady& steady = state_->steady;
  const auto at = state_->resolve(at_word, place_index);
  if (!at) return std::unexpected(at.error());
  const auto place = state_->place(place_index);
  if (!place) return std::unexpected(place.error());
  const auto filter = state_->filter(where, *at, place_index);
  if (!filter) return std::unexpected(filter.error());
  const Grouper grouper(store, state_->pools(**place), &*filter);
  const Stretch stretch = stretch_for_peaks(store, steady, *at);
  const Stretch first_step{stretch.from, steady.has ? store.steps[steady.first].end : stretch.to};

  RowsByLayer rows = live_rows(store, grouper, *at);
  complete_rows(store, own_peaks(store, grouper, stretch.from, stretch.to), *at, rows);
  StepTime time = step_time(store, steady, kMostOps);
  add_times(time, rows);
  Layers out;
  out.ops = std::move(time.ops);
  out.at = *at;
  out.sentence = sentence_of(rows, at_word == "steady" && steady.has ? kSteadyPeak.words : kThen, !where.empty());
  out.rows = in_model_order(store, first_step, std::move(rows));
  out.layers = static_cast<std::uint64_t>(std::ranges::count_if(out.rows, is_layer, &LayerRow::name));
  return out;
}

}  // namespace vramscope::analyze
