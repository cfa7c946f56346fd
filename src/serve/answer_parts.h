// Text and lookups that several answers need.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/api.h"
#include "serve/gen/rpc.h"
#include "serve/gen/views.h"
#include "serve/opened.h"

namespace vramscope::serve {

// Of the time axis (gen/views.h), in microseconds.
struct Tile {
  std::uint64_t t0 = 0, t1 = 0;
};
Result<Tile> tile_range(std::uint64_t level, std::uint64_t tile);

const analyze::Place* main_place(const analyze::Engine& engine);
// Replaces "steady" with "peak" if there is no steady state.
std::string usable_instant(const analyze::Engine& engine, std::string_view at);

std::string setting(const analyze::Overview& overview, std::string_view key);
BlockRow row_of(const analyze::Block& block, std::uint64_t now_us, analyze::Bytes total);
// The keys of a row that stands for all blocks which a person could not tell apart, and such a row.
std::vector<analyze::By> row_keys();
BlockRow row_of_group(const analyze::Group& group, std::uint64_t now_us, analyze::Bytes total);
double share_of(analyze::Bytes part, analyze::Bytes whole);

// In columns of equal duration, at the highest instant of each: what the pools hold, what is live in them, and how many events
// there were.
struct PoolOverTime {
  std::vector<double> t, held, live, events;
};
Result<PoolOverTime> pool_over_time(const analyze::Engine& engine, std::uint64_t t0_us, std::uint64_t t1_us);

// NULL if it is unknown.
const analyze::Fragmentation* fragmentation_of(const Opened& trace);
// As in analyze/verdict/notable.h.
std::string instant_of(const Opened& trace, const analyze::Finding& finding);
std::string remedy_of_failure(const Opened& trace);

// The analysis speaks of verbs, the page of views.
const View& view_for(std::string_view verb);

// The address of the view that shows the evidence for a finding: "#map?at=...".
std::string address(std::string_view verb, std::string_view at, std::string_view where);

template <typename T>
std::vector<double> column(const std::vector<T>& values) {
  return {values.begin(), values.end()};
}

}  // namespace vramscope::serve
