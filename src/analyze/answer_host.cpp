// Host memory by owner: what the frameworks' host pools and Python hold of the process, and what graphs and pipelines added.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "analyze/host_reports.h"
#include "analyze/index/lifetime.h"
#include "analyze/query/state.h"
#include "support/units.h"

namespace vramscope::analyze {
namespace {

using support::format_size;
using HostAt = Stamped<trace::HostSample>;

// The last one that is not later; without a time, the largest.
const HostAt* sample_of(const Store& store, bool largest, std::uint64_t time_us) {
  const HostAt* found = nullptr;
  for (const HostAt& sample : store.host_samples)
    if (largest ? found == nullptr || sample.row.rss > found->row.rss : found == nullptr || sample.time_us <= time_us)
      found = &sample;
  return found;
}

Bytes matching(const Engine::State& state, const Place& place, const Filter& filter, Moment at) {
  const PoolSet pools = state.pools(place);
  Bytes sum = 0;
  for_each_live(state.store, at, [&](std::uint32_t alloc) {
    const Kind& kind = state.store.kind_of(alloc);
    if (kind.pool < pools.size() && pools[kind.pool] != 0 && filter.matches(alloc)) sum += kind.granted;
  });
  return sum;
}

std::string size_of(std::int64_t bytes) {
  const auto size = static_cast<Bytes>(bytes);
  return bytes < 0 ? "−" + format_size(0 - size) : format_size(size);
}

std::string sentence_of(const Host& host) {
  std::string parts;
  for (const auto& [name, bytes] : host.owners)
    if (bytes > 0) parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", format_size(bytes), name);
  std::string out;
  if (!host.resident)
    out = parts.empty() ? "Host memory was not sampled." : fmt::format("Host memory was not sampled; {}.", parts);
  else
    out = fmt::format("The process held {} of host memory at {}{}.", format_size(*host.resident),
                      support::format_duration(host.time_us), parts.empty() ? "" : ": " + parts);
  if (!host.graphs.empty())
    out += fmt::format(" Building graphs added {}, most of it for {} at {}.", size_of(host.built), host.graphs[0].function,
                       host.graphs[0].line);
  return out;
}

}  // namespace

Result<Host> Engine::host(std::string_view at_word, int place_index, std::string_view where) const {
  const State& state = *state_;
  const Store& store = state.store;
  if (const auto place = state.place(place_index); !place) return std::unexpected(place.error());
  Host out;
  const HostAt* sample = nullptr;
  if (at_word.empty()) {
    sample = sample_of(store, true, 0);
    out.at = sample != nullptr ? store.moment_at(sample->time_us) : store.events();
    out.time_us = sample != nullptr ? sample->time_us : store.time_of(out.at);
  } else {
    const auto at = state.resolve(at_word, place_index);
    if (!at) return std::unexpected(at.error());
    out.at = *at;
    out.time_us = store.time_of(*at);
    sample = sample_of(store, false, out.time_us);
  }
  const auto filter = state.filter(where, out.at, place_index);
  if (!filter) return std::unexpected(filter.error());
  if (sample != nullptr) {
    out.resident = sample->row.rss;
    out.pinned = sample->row.pinned;
  }
  for (const Place& place : state.places)
    if (place.device < 0)
      out.owners.emplace_back(fmt::format("in blocks on {}", place.name), matching(state, place, *filter, out.at));
  out.lines = python_lines(store);
  Bytes arrays = 0, objects = 0;
  for (const HostLine& line : out.lines) (line.kind == "numpy" ? arrays : objects) += line.bytes;
  if (!out.lines.empty()) {
    out.owners.emplace_back("in NumPy arrays", arrays);
    out.owners.emplace_back("in Python objects", objects);
  }
  if (out.resident) {
    Bytes rest = *out.resident;  // wraps below zero
    for (const auto& [name, bytes] : out.owners) rest -= bytes;
    out.rest = static_cast<std::int64_t>(rest);
  }
  out.graphs = built_graphs(store);
  Bytes built = 0;
  for (const HostGraph& graph : out.graphs) built += static_cast<Bytes>(graph.bytes);
  out.built = static_cast<std::int64_t>(built);
  out.stages = pipeline_stages(store);
  if (out.lines.empty()) out.advice = "Record with 'vramscope run --host python' to see NumPy arrays and Python objects by line.";
  out.sentence = sentence_of(out);
  return out;
}

}  // namespace vramscope::analyze
