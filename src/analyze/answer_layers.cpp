#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "analyze/categories.h"
#include "analyze/lifetime.h"
#include "analyze/state.h"
#include "support/units.h"

namespace vramscope::analyze {
namespace {

// Highest live total of each layer on its own: one walk over the steady stretch (the whole trace where there is none).
struct OwnPeaks {
  std::vector<Bytes> now, peak;
  std::vector<Moment> at;
};

OwnPeaks own_peaks(const Store& store, const Grouper& grouper, Moment from, Moment to) {
  OwnPeaks out;
  out.now.assign(store.names() + 1, 0);
  for_each_live(store, from, [&](std::uint32_t alloc) {
    if (grouper.of(alloc) != kOut)
      out.now[std::min<std::size_t>(store.note_of(alloc).layer(), store.names())] += grouper.bytes(alloc);
  });
  out.peak = out.now;
  out.at.assign(out.now.size(), from);
  walk(store, grouper, from, to, [&](std::uint64_t pos, std::uint8_t, Bytes bytes, bool is_free) {
    std::size_t layer = std::min<std::size_t>(store.note_of(store.ref[pos] >> 1).layer(), store.names());
    out.now[layer] += is_free ? Bytes{0} - bytes : bytes;
    if (out.now[layer] > out.peak[layer]) out.peak[layer] = out.now[layer], out.at[layer] = pos + 1;
  });
  return out;
}

std::size_t first_born(const Store& store, Moment from) {
  return static_cast<std::size_t>(std::lower_bound(store.birth.begin(), store.birth.end(), from) - store.birth.begin());
}

// Layers in the order in which a step makes their activations. Other blocks say less: an executor starts constants and updates of
// any layer as soon as a thread is free. What brings the inputs comes before the model; layers without an activation come where
// they were first seen.
std::map<std::uint32_t, std::uint64_t> model_order(const Store& store, Moment from, Moment to) {
  std::map<std::uint32_t, std::uint64_t> seen, active;
  for (std::size_t a = first_born(store, from); a < store.allocs() && store.birth[a] < to; ++a) {
    const std::uint32_t layer = store.note_of(a).layer();
    const Shown category = shown(store.note_of(a).category());
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

// Where each layer was built or is called, as the ops of its forward pass know. In eager mode only blocks have a layer.
std::map<std::uint32_t, std::uint32_t> lines_of(const Store& store, Moment from, Moment to) {
  std::map<std::uint32_t, std::uint32_t> out, others;
  for (const Kind& kind : store.kinds)
    if (kind.layer != 0 && kind.line != 0)
      (kind.stage == static_cast<std::uint8_t>(Stage::forward) ? out : others).try_emplace(kind.layer, kind.line);
  for (std::size_t a = first_born(store, from); a < store.allocs() && store.birth[a] < to; ++a) {
    const Note note = store.note_of(a);
    const std::uint32_t line = store.kind_of(a).line;
    if (line != 0 && note.layer() != 0) (note.stage() == Stage::forward ? out : others).try_emplace(note.layer(), line);
  }
  out.merge(others);
  return out;
}

// Rows in parentheses are no part of the model: what brings its inputs, the loss, what training adds.
bool is_layer(std::string_view name) { return !name.empty() && !name.starts_with('('); }

}  // namespace

Result<Layers> Engine::layers(std::string_view at_word, int place_index, std::string_view where) const {
  const Store& store = state_->store;
  auto at = state_->resolve(at_word, place_index);
  if (!at) return std::unexpected(at.error());
  auto place = state_->place(place_index);
  if (!place) return std::unexpected(place.error());
  auto filter = state_->filter(where, *at, place_index);
  if (!filter) return std::unexpected(filter.error());
  Grouper grouper(store, state_->pools(**place), &*filter);
  Layers out;
  out.at = *at;
  std::map<std::uint32_t, LayerRow> rows;
  for_each_live(store, *at, [&](std::uint32_t alloc) {
    if (grouper.of(alloc) == kOut) return;
    std::uint32_t layer = store.note_of(alloc).layer();
    LayerRow& row = rows[layer];
    Bytes bytes = grouper.bytes(alloc);
    switch (shown(store.note_of(alloc).category())) {
      case Shown::parameters:
        row.parameters += bytes;
        break;
      case Shown::gradients:
        row.gradients += bytes;
        break;
      case Shown::optimizer_state:
        row.optimizer_state += bytes;
        break;
      case Shown::activations:
        row.activations += bytes;
        break;
      case Shown::temporaries:
      case Shown::xla_temporaries:
        row.temporaries += bytes;
        break;
      case Shown::inputs:
        row.inputs += bytes;
        break;
      default:
        row.other += bytes;
    }
    row.total += bytes;
  });
  // A whole run of a hundred million events holds thousands of equal steps; a layer's own peak shows within one of them.
  Moment from = 0, to = store.events();
  if (state_->steady.has) {
    from = store.steps[state_->steady.first].begin;
    std::size_t last = state_->steady.first;
    while (last < state_->steady.last && store.steps[last].end - from < 2'000'000) ++last;
    to = store.steps[last].end;
  } else if (to > 4'000'000) {
    to = std::max<Moment>(*at, 4'000'000);
    from = to - 4'000'000;
  }
  OwnPeaks own = own_peaks(store, grouper, from, to);
  for (const Kind& kind : store.kinds)
    if (kind.layer != 0 && kind.layer < own.peak.size() && own.peak[kind.layer] > 0) rows[kind.layer];
  const Moment first_end = state_->steady.has ? store.steps[state_->steady.first].end : to;
  auto first = model_order(store, from, first_end);
  std::string largest;
  Bytes most = 0, total = 0;
  for (auto& [layer, row] : rows) {
    row.name = store.name(layer);
    if (layer < own.peak.size()) {
      row.own_peak = std::max(own.peak[layer], row.total);
      row.own_peak_at = own.peak[layer] >= row.total ? own.at[layer] : *at;
    }
    total += row.total;
    if (!is_layer(row.name)) continue;
    ++out.layers;
    if (row.total > most) most = row.total, largest = row.name;
  }
  std::map<std::uint32_t, std::uint32_t> lines = lines_of(store, from, first_end);
  std::vector<std::pair<std::uint64_t, std::uint32_t>> order;
  order.reserve(rows.size());
  for (auto& [layer, row] : rows)
    order.emplace_back(layer == 0 ? ~std::uint64_t{0} : first.contains(layer) ? first[layer] : ~std::uint64_t{0} - 1, layer);
  std::ranges::sort(order);
  for (auto [when, layer] : order) {
    if (auto it = lines.find(layer); it != lines.end()) rows[layer].line = store.name(it->second);
    out.rows.push_back(std::move(rows[layer]));
  }
  using support::format_size;
  if (most == 0)
    out.sentence = fmt::format(
        "No layer is known for the {} that are live: op names carry none and no layer marks were recorded.", format_size(total));
  else
    out.sentence =
        fmt::format("{} holds the most of {} layers: {} of the {} that are live {}.", largest, out.layers, format_size(most),
                    format_size(total), at_word == "steady" && state_->steady.has ? "at the steady peak" : "then");
  return out;
}

}  // namespace vramscope::analyze
